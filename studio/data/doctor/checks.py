"""Looking sprites over for what only shows once all of them are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.core.formatting import count, number
from studio.data.colour.colour_counts import colours_per_sprite
from studio.data.doctor.class_spelling import preferred_spellings, spelling_key
from studio.data.doctor.findings import HARDLY_SEEN, MANY_COLOURS, SMALL_CLASS, SpritesChecked
from studio.data.doctor.fixes import near_colour_merger
from studio.data.files.source_files import ImportIssue
from studio.data.images.canvas import OPAQUE, as_uint32, sprite_slices
from studio.data.options import ImportOptions
from studio.data.similarity.groups import find_near_duplicates
from studio.data.sprites import Sprites

MOST_CHECKED = 100_000  # sprites: of more, some from all over
_AT_ONCE = 1 << 18  # pixels
_COMMON = 0.02  # of the sprites have a colour, and at least three: then it is of their palette
_LARGEST_PALETTE = 256
_MOSTLY = 0.8  # of the sprites have no other colours: then there is a palette


def run_checks(sprites: Sprites, options: ImportOptions, cache_dir: Path | None = None) -> Generator[Event, None, None]:
    """Look at sprites that were imported with these options: yields Progress, and Examined last.

    With `cache_dir`, near duplicates are not looked for again, neither here nor by a training.
    """
    looked_at = np.unique(np.linspace(0, len(sprites) - 1, min(len(sprites), MOST_CHECKED)).astype(np.int64))
    some = sprites if len(looked_at) == len(sprites) else sprites.take(looked_at)
    items = [*_small_classes(sprites), *_like_named(sprites)]
    items += yield from _many_colours(some)
    items += yield from _near_colours(some)
    strays, palette_colours = yield from _off_palette(some)
    items += strays
    if options.similar == "keep":
        items += yield from _similar(some, cache_dir)
    yield SpritesChecked(sprites, tuple(items), len(some), palette_colours)


def _small_classes(sprites: Sprites) -> Iterator[ImportIssue]:
    counts = sprites.class_counts()
    small = np.flatnonzero(counts < SMALL_CLASS)
    if len(sprites.class_names) > 1:
        for index in np.flatnonzero(np.isin(sprites.labels, small)).tolist():
            label = int(sprites.labels[index])
            words = f"class {sprites.class_names[label]!r} has only {count(int(counts[label]), 'sprite')}"
            yield ImportIssue(sprites.names[index], words, "small class")


def _like_named(sprites: Sprites) -> Iterator[ImportIssue]:
    """Yield the sprites of every like-named class but the largest."""
    chosen = preferred_spellings(sprites)
    largest = [chosen.get(spelling_key(name), name) for name in sprites.class_names]
    for name, label in zip(sprites.names, sprites.labels.tolist(), strict=True):
        own = sprites.class_names[label]
        if own != largest[label]:
            yield ImportIssue(name, f"class {own!r} is class {largest[label]!r} in another spelling", "like-named")


def _many_colours(sprites: Sprites) -> Generator[Event, None, list[ImportIssue]]:
    items = []
    for part in sprite_slices(sprites.rgba, pixels=_AT_ONCE):
        used = colours_per_sprite(sprites.rgba[part])
        for index in np.flatnonzero(used > MANY_COLOURS).tolist():
            items.append(
                ImportIssue(sprites.names[part.start + index], f"{number(int(used[index]))} colours", "many colours")
            )
        yield _progress(sprites, part)
    return items


def _near_colours(sprites: Sprites) -> Generator[Event, None, list[ImportIssue]]:
    """Sprites that need fewer colours once near ones are merged."""
    change = yield from near_colour_merger(sprites.rgba, HARDLY_SEEN)
    items = []
    for part in sprite_slices(sprites.rgba, pixels=_AT_ONCE):
        before, after = colours_per_sprite(sprites.rgba[part]), colours_per_sprite(change(sprites.rgba[part]))
        for index in np.flatnonzero(after < before).tolist():
            words = f"{number(int(before[index]))} colours, {number(int(after[index]))} to the eye"
            items.append(ImportIssue(sprites.names[part.start + index], words, "near colours"))
        yield _progress(sprites, part)
    return items


def _off_palette(sprites: Sprites) -> Generator[Event, None, tuple[list[ImportIssue], int]]:
    """Sprites with colours of their own where nearly all share a palette, and how many colours that has, or 0."""
    shared: Counter[int] = Counter()
    for part in sprite_slices(sprites.rgba, pixels=_AT_ONCE):
        for colours in _each(sprites.rgba[part]):
            shared.update(colours.tolist())
        yield _progress(sprites, part)
    fewest = max(3, _COMMON * len(sprites))
    palette = np.array(sorted(colour for colour, sprites_with in shared.items() if sprites_with >= fewest), np.uint32)
    if not 0 < len(palette) <= _LARGEST_PALETTE:
        return [], 0
    items = []
    for part in sprite_slices(sprites.rgba, pixels=_AT_ONCE):
        for index, colours in enumerate(_each(sprites.rgba[part]), part.start):
            others = len(colours) - int(np.isin(colours, palette).sum())
            if others:
                items.append(ImportIssue(sprites.names[index], f"{count(others, 'colour')} of its own", "off palette"))
        yield _progress(sprites, part)
    return (items, len(palette)) if items and len(items) <= (1 - _MOSTLY) * len(sprites) else ([], 0)


def _each(rgba: Rgba) -> Iterator[NDArray[np.uint32]]:
    """The distinct colours that can be seen in each sprite, with full alpha: uint32 [n]."""
    pixels = as_uint32(rgba)
    for sprite, alpha in zip(pixels, rgba[..., 3], strict=True):
        yield np.unique(sprite[alpha > 0] | OPAQUE)


def _similar(sprites: Sprites, cache_dir: Path | None) -> Generator[Event, None, list[ImportIssue]]:
    found = (yield from find_near_duplicates(sprites, cache_dir)).similar.earliest()
    pairs = zip(found.first.tolist(), found.second.tolist(), strict=True)
    twins = [(sprites.names[first], sprites.names[second]) for first, second in pairs]
    return [ImportIssue(name, found.words(pair, twin), "similar", twin=twin) for pair, (twin, name) in enumerate(twins)]


def _progress(sprites: Sprites, part: slice) -> Progress:
    return Progress(part.stop, len(sprites), "sprites looked over")
