"""Split sets into files: a file per set for Aseprite, a file per animation for GIF and APNG."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from studio.core import files
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.cells import GAP, Cells, Row

_TURN_MS = 300  # shortest duration of a view in a turntable
# Views in turning order, with synonyms.
_TURN = (
    ("down", "front", "south", "s", "d"),
    ("downleft", "southwest", "sw"),
    ("left", "west", "w", "l", "side"),
    ("upleft", "northwest", "nw"),
    ("up", "back", "north", "n", "u"),
    ("upright", "northeast", "ne"),
    ("right", "east", "e", "r"),
    ("downright", "southeast", "se"),
)
_ANGLES = {name: angle for angle, names in enumerate(_TURN) for name in names}


def split_sets(sprites: SpriteSet) -> Mapping[str, SpriteSet]:
    """Return the sprites per set, by file name ending: '-hero', or '' for a single set."""
    cells = sprites.cells
    if cells is None:
        return {"": sprites}
    parts = []
    for name, own in zip(cells.set_names, cells.table, strict=True):
        used = np.unique(own[own != GAP])
        if len(used):
            table = np.where(own == GAP, GAP, np.searchsorted(used, own)).astype(np.int32)
            parts.append((name, replace(sprites.take(used.tolist()), cells=Cells(cells.names, table[None]))))
    return _by_ending([([name], part) for name, part in parts])


def split_rows(sprites: SpriteSet) -> Mapping[str, SpriteSet]:
    """Return an animation per row with several frames, by file name ending: '-down' or '-hero-down'.

    Rows with a single frame make up one animation, a turntable, with the ending '' or '-hero'.
    """
    cells = sprites.cells
    if cells is None:
        return {"": sprites}
    by_set: dict[int, list[Row]] = {}
    for row in cells.rows():
        by_set.setdefault(row.set_index, []).append(row)
    parts = []
    for number, rows in by_set.items():
        path = [cells.set_names[number]] if len(cells) > 1 else []
        views = [row for row in rows if len(row.filled) == 1]
        if views:
            turn = sprites.take([row.filled[0] for row in _turning(views)])
            parts.append((path, replace(turn, duration_ms=max(turn.duration_ms, _TURN_MS), is_animation=True)))
        for row in rows:
            if len(row.filled) > 1:
                parts.append(([*path, row.name], replace(sprites.take(row.filled), is_animation=True)))
    return _by_ending(parts)


def _turning(views: Sequence[Row]) -> list[Row]:
    """Return the views as a character turns, front, left, back, right; unchanged if a view's name is unknown."""
    angles = [_ANGLES.get(re.sub(r"[-_ ]", "", row.name.lower()), -1) for row in views]
    if -1 in angles:
        return list(views)
    return [row for _, row in sorted(zip(angles, views, strict=True), key=lambda pair: pair[0])]


def _by_ending(parts: Sequence[tuple[Sequence[str], SpriteSet]]) -> dict[str, SpriteSet]:
    """Return the parts by file name ending. A single part has the ending ''."""
    if len(parts) == 1:
        return {"": parts[0][1]}
    endings = unique_file_names(["".join(f"-{files.output_name(name)}" for name in path) for path, _ in parts])
    return dict(zip(endings, (part for _, part in parts), strict=True))


def unique_file_names(names: Sequence[str]) -> list[str]:
    """Append numbers to equal names; file systems may ignore the case of letters."""
    used: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 2
        while candidate.casefold() in used:
            candidate = f"{name}-{number}"
            number += 1
        used.add(candidate.casefold())
        unique.append(candidate)
    return unique
