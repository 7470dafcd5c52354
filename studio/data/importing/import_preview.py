"""Preview changed import options: compare the open sprites with the sprites of a new import."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.events import Event, Events, Progress
from studio.data.doctor.fixes import PIXEL_OPTIONS, PixelChange, pixel_changes
from studio.data.doctor.preview import READ_OPTIONS, changed_pixels
from studio.data.images.canvas import crop_transparent, sprite_slices
from studio.data.import_result import ReadSprites, SpritesImported
from studio.data.importing.importing import import_sprites, with_palette
from studio.data.options import ImportOptions, settings_of_reading
from studio.data.sprites import Sprites

MOST_EXAMPLES = 6
_FIRST = 16  # sprites, spread over the set, compared first
_BATCH_PIXELS = 1 << 17
_SLOW_BATCH_PIXELS = 1 << 13  # limiting the colours of each sprite takes 5 ms a sprite
_REPORT_INTERVAL_S = 0.25
_CANVAS_OPTIONS = ("size", "other_sizes")


@dataclass(frozen=True, eq=False)
class Example:
    """A sprite before and after a change of the import options."""

    name: str
    before: Rgba  # uint8 [S, S, 4]
    after: Rgba  # uint8 [T, T, 4]
    changed: int  # pixels


@dataclass(frozen=True, eq=False)
class ImportPreviewed(Event):
    """The effect of changed import options on the open sprites, after comparing the first `compared` sprites."""

    total: int  # open sprites
    compared: int = 0
    changed: int = 0  # sprites with changed pixels; a larger or smaller canvas alone does not count
    excluded: int = 0  # open sprites that the new options exclude
    added: int = 0
    sizes: tuple[int, int] = (0, 0)  # sides of the canvas before and after
    examples: tuple[Example, ...] = field(default=(), repr=False)
    problem: str = ""  # why the options can't be applied

    @property
    def is_done(self) -> bool:
        """Whether all sprites were compared, or the options can't be applied."""
        return self.compared == self.total or bool(self.problem)


def can_change_pixels(before: ImportOptions, after: ImportOptions) -> bool:
    """Return whether two import options differ in an option that can change pixels or the canvas."""
    names = (*PIXEL_OPTIONS, *READ_OPTIONS, *_CANVAS_OPTIONS)
    return any(getattr(before, name) != getattr(after, name) for name in names)


def preview_import(
    found: SpritesImported, paths: Sequence[Path], before: ImportOptions, after: ImportOptions, cache_dir: Path | None
) -> Events:
    """Compare an import's sprites with the sprites from other options; yields Progress and ImportPreviewed.

    found: the import of `paths` with the options `before`. The files are read again only if options of reading differ.
    Later results keep the examples of earlier results. Unusable options yield an ImportPreviewed with the problem.
    """
    try:
        after = with_palette(after)
        read = yield from _read(found, paths, before, after, cache_dir)
        changes = yield from pixel_changes(read.sprites.rgba, after)
    except BadInputError as error:
        yield ImportPreviewed(len(found.sprites), problem=error.title)
        return
    yield from _compare(found, read, changes, _SLOW_BATCH_PIXELS if after.colours_each else _BATCH_PIXELS)


def _read(
    found: SpritesImported, paths: Sequence[Path], before: ImportOptions, after: ImportOptions, cache_dir: Path | None
) -> Generator[Event, None, ReadSprites]:
    """Return the sprites as read with the new options. rows: row of each open sprite, -1 for an excluded sprite."""
    reading = settings_of_reading(after)
    if reading == settings_of_reading(before):
        return found.read
    sprites = found.read.sprites
    with closing(import_sprites(paths, ImportOptions(**reading), cache_dir)) as events:
        for event in events:
            if isinstance(event, Progress):
                yield event
            elif isinstance(event, SpritesImported):
                sprites = event.read.sprites
    row_of = {name: row for row, name in enumerate(sprites.names)}
    rows = [row_of.get(name, -1) for name in found.sprites.names]
    return ReadSprites(sprites, np.array(rows, np.int64))


def _compare(found: SpritesImported, read: ReadSprites, changes: Sequence[PixelChange], pixels_at_once: int) -> Events:
    """Compare the open sprites with the changed sprites in batches; yields Progress and ImportPreviewed."""
    old, total, added = found.sprites, len(found.sprites), _count_new(found.read.sprites, read.sprites)
    sizes = (old.size, read.sprites.size)
    first = np.unique(np.linspace(0, total - 1, min(_FIRST, total)).astype(np.int64))
    rest = np.setdiff1d(np.arange(total), first)
    batches = [first, *(rest[part] for part in sprite_slices(old.rgba, len(rest), pixels_at_once))]
    compared = changed = 0
    examples: list[Example] = []
    due = 0.0
    for indices in batches:
        kept = indices[read.rows[indices] >= 0]
        before, after = old.rgba[kept], read.sprites.rgba[read.rows[kept]]
        for change in changes:
            after = change(after)
        pixels = _changed_pixels(before, after)
        compared += len(indices)
        yield Progress(compared, total, "sprites compared")
        changed += int(np.count_nonzero(pixels))
        for index in np.argsort(-pixels, kind="stable")[: MOST_EXAMPLES - len(examples)]:
            if pixels[index] or sizes[0] != sizes[1]:
                name = old.names[kept[index]]
                examples.append(Example(name, before[index], after[index], int(pixels[index])))
        if time.monotonic() >= due or compared == total:
            excluded = int(np.count_nonzero(read.rows < 0))
            yield ImportPreviewed(total, compared, changed, excluded, added, sizes, tuple(examples))
            due = time.monotonic() + _REPORT_INTERVAL_S


def _count_new(before: Sprites, after: Sprites) -> int:
    return 0 if before is after else len(set(after.names).difference(before.names))


def _changed_pixels(before: Rgba, after: Rgba) -> NDArray[np.int64]:
    """Count the changed pixels of each sprite, int64 [n]; on another canvas, compare the pictures on the canvas."""
    if before.shape == after.shape:
        return changed_pixels(before, after)
    pairs = ((crop_transparent(old), crop_transparent(new)) for old, new in zip(before, after, strict=True))
    return np.array([_difference(old, new) for old, new in pairs], np.int64)


def _difference(before: Rgba, after: Rgba) -> int:
    """Count the changed pixels of a picture; all pixels of the larger picture if the sizes differ."""
    if before.shape == after.shape:
        return int(np.count_nonzero((before != after).any(-1)))
    return max(before[..., 0].size, after[..., 0].size)
