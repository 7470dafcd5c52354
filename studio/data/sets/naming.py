"""Recognise sets by words in names: folders, files, atlas frames and Aseprite tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from studio.data.sets.layout import Place
from studio.data.sets.words import SpriteName, Words, natural, parse

Places = dict[int, Place]  # by index of the sprite's name
_MOST_FRAMES = 64  # limit for sets with numbers as file names


def places_by_words(names: Sequence[SpriteName], words: Words, *, only_folders: bool = False) -> Places:
    """Return the places of sprites with words for cells in their names, in sets with at least two cells.

    only_folders: ignore words in file names. A number as file name means a frame ('knight/left/2.png'), but a set
    ('left/12.png') if frames would leave a single set.
    """
    places = _parsed(names, words, numbers_are_frames=True, only_folders=only_folders)
    cells = Counter(place.name for place in places.values())
    if len(cells) > 1 and max(cells.values()) <= _MOST_FRAMES:
        return places
    return _parsed(names, words, numbers_are_frames=False, only_folders=only_folders)


def _parsed(names: Sequence[SpriteName], words: Words, *, numbers_are_frames: bool, only_folders: bool) -> Places:
    found = {
        number: place
        for number, name in enumerate(names)
        if name.tile is None
        and (place := parse(name, words, numbers_are_frames=numbers_are_frames, only_folders=only_folders)) is not None
    }
    return in_sets(found)


def places_by_folders(names: Sequence[SpriteName]) -> Places:
    """Return the places of sprites in folders with equal file names, whatever the folders' names."""
    deepest = max((len(name.folders) for name in names), default=0)
    levels = [in_sets(dict(_at_level(names, level))) for level in range(deepest)]
    return max(levels, key=len, default={})


def _at_level(names: Sequence[SpriteName], level: int) -> Iterator[tuple[int, Place]]:
    """Yield sprites' places, with the folder at `level`, from 0, as the cell's name."""
    for number, name in enumerate(names):
        if level < len(name.folders) and name.tile is None:
            rest = [*name.folders[:level], *name.folders[level + 1 :], name.stem, *filter(None, [name.part])]
            yield number, Place("/".join(rest), name.folders[level], "")


def in_sets(places: Mapping[int, Place]) -> Places:
    """Return the places in sets with at least two cells; in a cell, the first sprite counts."""
    first: dict[Place, int] = {}
    for number, place in places.items():
        first.setdefault(place, number)
    cells = Counter(place.name for place in first)
    return {number: place for place, number in first.items() if cells[place.name] > 1}


def folder_order(places: Mapping[int, Place], rows: Sequence[str]) -> list[str]:
    """Return the row names in order: first by `rows`, then sorted by name, numbers by value."""
    used = {place.row for place in places.values()}
    return [*(row for row in rows if row in used), *sorted(used.difference(rows), key=natural)]
