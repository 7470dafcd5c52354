"""`SheetPlan`: positions, names and animations of the frames in a sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from studio.core import pictures
from studio.exports import sheets
from studio.exports.png import sheet_layout
from studio.exports.sprites.base import LONGEST_SIDE, SpriteSet
from studio.exports.sprites.cells import GAP, Cells


@dataclass(frozen=True, eq=False)
class SheetPlan:
    """The frames of a sheet: a frame per sprite or, with cells, per filled cell."""

    grid: sheets.SheetLayout
    slots: NDArray[np.int64] | None  # sprite index or GAP per grid cell; None: all sprites in order
    names: Sequence[str]  # a name per frame
    folders: Sequence[str]  # a folder per frame, put before the name; or empty
    durations_ms: Sequence[int]  # a duration per frame
    tags: Sequence[tuple[str, int, int]] = ()  # animations of the cells: name, first and last frame

    @classmethod
    def of(cls, sprites: SpriteSet) -> SheetPlan:
        """Arrange sprites in a sheet: a row for each view of each set, or `sheet_columns` columns without cells."""
        if sprites.cells is not None:
            return _plan_cells(sprites, sprites.cells)
        grid = sheet_layout(sprites.sprites, sprites.sheet_columns())
        return cls(grid, None, sprites.frame_names(), sprites.classes, sprites.durations_ms())

    def paths(self) -> Sequence[str]:
        """Return the names of the frames; with cells, folders included: 'down/step'."""
        if self.slots is None:
            return self.names
        return ["/".join(filter(None, path)) for path in zip(self.folders, self.names, strict=True)]

    def picture(self, sprites: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the sheet of sprites, uint8 [N, H, W, C], as a picture; gaps are 0."""
        if self.slots is not None:
            sprites = np.concatenate([sprites, np.zeros_like(sprites[:1])])[self.slots]  # GAP is -1, the empty sprite
        return pictures.tile(sprites, self.grid.columns)

    def json(self, image: str, about: Mapping[str, object], pixels: Literal["RGBA8888", "I8"] = "RGBA8888") -> bytes:
        """Return the JSON of the sheet in Aseprite's format. image: file name of the sheet."""
        return sheets.sheet_json(
            image, self.grid, self.names, self.folders, about, self.durations_ms, pixels, tags=self.tags
        )


def _plan_cells(sprites: SpriteSet, cells: Cells) -> SheetPlan:
    """Arrange cells in a sheet: a row for each view of each set."""
    height, width = sprites.sprites.shape[1:3]
    numbers, columns = cells.slots(LONGEST_SIDE // height)
    places = {name: place for place, name in enumerate(cells.by_row)}
    durations, slots = sprites.durations_ms(), np.full(int(numbers.max()) + 1, GAP)
    filled, order, names, folders = list[int](), list[int](), list[str](), list[str]()
    tags: list[tuple[str, int, int]] = []
    for row in cells.rows():
        tags.append((row.label, len(order), len(order) + len(row.filled) - 1))
        for column, sprite in enumerate(row.sprites):
            if sprite != GAP:
                filled.append(int(numbers[row.set_index, places[row.name], column]))
                order.append(sprite)
                path = [cells.set_names[row.set_index] if len(cells) > 1 else "", row.name, row.columns[column]]
                folder, _, name = "/".join(filter(None, path)).rpartition("/")
                folders.append(folder)
                names.append(name)
    slots[filled] = order
    grid = sheets.SheetLayout(len(slots), width, height, columns, tuple(filled))
    return SheetPlan(grid, slots, names, folders, [durations[sprite] for sprite in order], tags)
