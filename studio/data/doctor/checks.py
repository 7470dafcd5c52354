"""Slower checks after an import: comparisons between sprites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Event, Events, Progress
from studio.core.formatting import count, number
from studio.data.colour.colour_counts import colours_per_sprite
from studio.data.doctor.class_spelling import preferred_spellings, spelling_key
from studio.data.doctor.findings import HARDLY_SEEN, MANY_COLOURS, SMALL_CLASS, SpritesChecked
from studio.data.doctor.fixes import near_colour_merger
from studio.data.files.source_files import ImportIssue
from studio.data.images.canvas import OPAQUE, as_uint32, sprite_slices
from studio.data.import_result import small_class_reason
from studio.data.options import ImportOptions
from studio.data.similarity.groups import find_near_duplicates
from studio.data.sprites import Sprites

MOST_CHECKED = 100_000  # sprites; larger sets are sampled evenly
_BATCH_PIXELS = 1 << 18  # pixels
_COMMON = 0.02  # share of sprites, and at least three, that have a colour of the shared palette
_LARGEST_PALETTE = 256
_MOSTLY = 0.8  # share of sprites without other colours, if a palette is shared
_CLASS_GROUPS = ("small class", "like-named", "wrong class")  # issue groups that depend on classes


def run_checks(sprites: Sprites, options: ImportOptions, cache_dir: Path | None = None) -> Generator[Event, None, None]:
    """Check imported sprites: yields Progress, then one SpritesChecked.

    options: of the import. cache_dir: folder where near duplicates are stored, for later checks and trainings.
    """
    checked = np.unique(np.linspace(0, len(sprites) - 1, min(len(sprites), MOST_CHECKED)).astype(np.int64))
    some = sprites if len(checked) == len(sprites) else sprites.take(checked)
    items = [*_small_classes(sprites), *_like_named(sprites)]
    used = yield from _in_batches(some, colours_per_sprite)
    for index in np.flatnonzero(used > MANY_COLOURS).tolist():
        items.append(ImportIssue(some.names[index], f"{number(int(used[index]))} colours", "many colours"))
    items += yield from _near_colours(some, used)
    off_palette, palette_colours = yield from _off_palette(some)
    items += off_palette
    if options.similar == "keep":
        items += yield from _similar(some, cache_dir)
    yield SpritesChecked(sprites, tuple(items), len(some), palette_colours)


def update_checks(
    sprites: Sprites, options: ImportOptions, known: Sequence[SpritesChecked], cache_dir: Path | None = None
) -> Events:
    """Check imported sprites, but only their classes where `known` has results for the same pixels and options.

    Yields Progress, then a SpritesChecked for each known result, and for `run_checks` in any case. cache_dir: see
    `run_checks`.
    """
    for each in known:
        yield _recheck_classes(each, sprites)
    if all(each.neighbours is not None for each in known):
        yield from run_checks(sprites, options, cache_dir)


def _recheck_classes(known: SpritesChecked, sprites: Sprites) -> SpritesChecked:
    """Return a known result with the issues of the new classes; issues with pixels stay."""
    if known.neighbours is None:
        items = [*_small_classes(sprites), *_like_named(sprites)]
    else:
        items = known.neighbours.wrong_classes(sprites)
    items += [item for item in known.items if item.group not in _CLASS_GROUPS]
    return replace(known, sprites=sprites, items=tuple(items))


def _small_classes(sprites: Sprites) -> Iterator[ImportIssue]:
    """Yield an issue for every sprite in a class with fewer than SMALL_CLASS sprites, if there are several classes."""
    counts = sprites.class_counts()[sprites.labels]
    for index in np.flatnonzero(counts < SMALL_CLASS).tolist() if len(sprites.class_names) > 1 else ():
        reason = small_class_reason(sprites.class_names[sprites.labels[index]], int(counts[index]))
        yield ImportIssue(sprites.names[index], reason, "small class")


def _like_named(sprites: Sprites) -> Iterator[ImportIssue]:
    """Yield an issue for every sprite in a class named like a larger class except for case or spaces."""
    chosen = preferred_spellings(sprites)
    largest = [chosen.get(spelling_key(name), name) for name in sprites.class_names]
    for name, label in zip(sprites.names, sprites.labels.tolist(), strict=True):
        own = sprites.class_names[label]
        if own != largest[label]:
            words = f"class {own!r} differs from class {largest[label]!r} only in case or spaces"
            yield ImportIssue(name, words, "like-named")


def _in_batches(
    sprites: Sprites, count: Callable[[Rgba], NDArray[np.int64]]
) -> Generator[Event, None, NDArray[np.int64]]:
    """Call `count` on batches of sprites and return a number for each sprite, int64 [N]. Yields Progress."""
    counts = [np.zeros(0, np.int64)]
    for part in sprite_slices(sprites.rgba, pixels=_BATCH_PIXELS):
        counts.append(count(sprites.rgba[part]))
        yield _progress(sprites, part)
    return np.concatenate(counts)


def _near_colours(sprites: Sprites, used: NDArray[np.int64]) -> Generator[Event, None, list[ImportIssue]]:
    """Return an issue for every sprite with colours similar enough to merge. used: int64 [N], colours of each."""
    change = yield from near_colour_merger(sprites.rgba, HARDLY_SEEN)
    merged = yield from _in_batches(sprites, lambda rgba: colours_per_sprite(change(rgba)))
    items = []
    for index in np.flatnonzero(merged < used).tolist():
        words = f"{number(int(used[index]))} colours, {number(int(merged[index]))} after merging"
        items.append(ImportIssue(sprites.names[index], words, "near colours"))
    return items


def _off_palette(sprites: Sprites) -> Generator[Event, None, tuple[list[ImportIssue], int]]:
    """Return issues for colours outside a palette of nearly all sprites, and the palette's size; else ([], 0)."""
    shared: Counter[int] = Counter()
    for part in sprite_slices(sprites.rgba, pixels=_BATCH_PIXELS):
        for colours in _each(sprites.rgba[part]):
            shared.update(colours.tolist())
        yield _progress(sprites, part)
    least_sprites = max(3, _COMMON * len(sprites))
    common = sorted(colour for colour, sprites_with in shared.items() if sprites_with >= least_sprites)
    palette = np.array(common, np.uint32)
    if not 0 < len(palette) <= _LARGEST_PALETTE:
        return [], 0
    items = []
    for part in sprite_slices(sprites.rgba, pixels=_BATCH_PIXELS):
        for index, colours in enumerate(_each(sprites.rgba[part]), part.start):
            others = len(colours) - int(np.isin(colours, palette).sum())
            if others:
                words = f"{count(others, 'colour')} outside the palette"
                items.append(ImportIssue(sprites.names[index], words, "off palette"))
        yield _progress(sprites, part)
    return (items, len(palette)) if items and len(items) <= (1 - _MOSTLY) * len(sprites) else ([], 0)


def _each(rgba: Rgba) -> Iterator[NDArray[np.uint32]]:
    """Yield the distinct opaque versions of a sprite's visible colours, sprite by sprite: uint32 [n]."""
    pixels = as_uint32(rgba)
    for sprite, alpha in zip(pixels, rgba[..., 3], strict=True):
        yield np.unique(sprite[alpha > 0] | OPAQUE)


def _similar(sprites: Sprites, cache_dir: Path | None) -> Generator[Event, None, list[ImportIssue]]:
    """Return an issue for every sprite that differs from an earlier sprite in only a few pixels."""
    found = (yield from find_near_duplicates(sprites, cache_dir)).similar.first_matches()
    items = []
    for pair, (first, second) in enumerate(zip(found.first.tolist(), found.second.tolist(), strict=True)):
        twin = sprites.names[first]
        items.append(ImportIssue(sprites.names[second], found.describe(pair, twin), "similar", twin=twin))
    return items


def _progress(sprites: Sprites, part: slice) -> Progress:
    return Progress(part.stop, len(sprites), "sprites checked")
