"""Read the characters for the starters from sheets with a row for each view and a column for each frame."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from studio.data.importing.importing import SpritesImported, import_sprites
from studio.data.options import ImportOptions
from studio.data.sprites import unstack

SIZE = 16
ROWS, FRAMES = ("down", "up", "left", "right"), ("stand", "step", "stand2", "step2")
CELLS = tuple(f"{row}/{frame}" for row in ROWS for frame in FRAMES)
ROUND = ("down", "down-right", "right", "up-right", "up", "up-left", "left", "down-left")
NO_FRAME = 99


class Collection(NamedTuple):
    """The layout of a collection's sheets. columns: for each of FRAMES, its column."""

    rows: tuple[str, ...] = ROWS
    columns: tuple[int, ...] = (0, 1, 2, 3)


COLLECTIONS = {
    "demo characters": Collection(),
    "kenney-rpg-urban": Collection(columns=(0, 1, NO_FRAME, 2)),
    "mini-world": Collection(columns=(0, 2, 3, 4)),
    "ninja-adventure": Collection(),
    "ninja-adventure-monsters": Collection(),
    "puny-characters": Collection(ROUND, (0, 2, 1, 3)),
    "superpowers-ninja": Collection(),
    "superpowers-ninja-monsters": Collection(),
}


class Characters(NamedTuple):
    """Characters with the cells CELLS."""

    names: list[str]
    cells: NDArray[np.uint8]  # [M, C, SIZE, SIZE, 4]
    present: NDArray[np.bool_]  # [M, C]


def characters_in(folder: Path, collection: Collection) -> Characters:
    """Read the characters in a folder of sheets, without characters larger than the canvas."""
    options = ImportOptions(sets="sheets", rows=",".join(collection.rows))
    *_, read = import_sprites([folder], options)
    assert isinstance(read, SpritesImported)
    layout = read.sprites.sets
    stacked = read.sprites.stacked_sets(np.arange(len(read.sprites)))
    cells, there = unstack(stacked.rgba), stacked.targets > 0
    known = {cell: number for number, cell in enumerate(layout.cells)}
    wanted = [known.get(f"{row}/{column + 1}", -1) for row in ROWS for column in collection.columns]
    present = there[:, wanted] & (np.array(wanted) >= 0)
    own = cells[:, wanted] * present[..., None, None, None]
    fitted = [_fit(character) for character in own]
    is_kept = [character is not None for character in fitted]
    names = [f"{folder.name}/{name}" for name, kept in zip(layout.sets, is_kept, strict=True) if kept]
    return Characters(names, np.stack([one for one in fitted if one is not None]), present[is_kept])


def _fit(cells: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """Return a character's cells on the canvas, uint8 [C, SIZE, SIZE, 4]; None if the character is larger.

    All cells of a larger canvas are cropped alike: the lowest pixel stands on the bottom, the figure in the middle.
    """
    if cells.shape[1] == SIZE:
        return cells
    ys, xs = (np.flatnonzero((cells[..., 3] > 0).any(axes)) for axes in ((0, 2), (0, 1)))
    height, width = ys[-1] - ys[0] + 1, xs[-1] - xs[0] + 1
    if max(height, width) > SIZE:
        return None
    fitted = np.zeros((len(cells), SIZE, SIZE, 4), np.uint8)
    left = (SIZE - width) // 2
    fitted[:, SIZE - height :, left : left + width] = cells[:, ys[0] : ys[-1] + 1, xs[0] : xs[-1] + 1]
    return fitted
