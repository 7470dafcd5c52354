"""Compose folders like those of games from whole sprites: undescribed strips and sheets, and single sprites."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from PIL import Image

from studio.data.images.canvas import clear_hidden, visible_bounds
from studio.data.options import SheetGrid
from studio.data.sheets.slicing import slice_grid
from tests.data.making import Pixels

DEMO = Path(__file__).resolve().parents[2] / "assets/demo/demo sprites"
_CELLS = ((16, 16), (12, 15), (14, 16), (16, 18), (20, 20), (24, 24), (24, 32), (32, 32), (18, 14))
_SHARES = (("exact", 5), ("padded", 6), ("rows", 3), ("upright", 1), ("roomy", 2), ("spaced", 2), ("items", 1))
_PAGE = 256  # pixels: many games want textures of a power of two


@dataclass(frozen=True, eq=False)
class Composed:
    """An image. grid: the grid of its cells; None for a single sprite. frames: number of sprites."""

    name: str
    rgba: Pixels
    grid: SheetGrid | None = None
    frames: int = 1


def trimmed(rgba: Pixels) -> Pixels:
    """What can be seen of uint8 [H, W, 4]."""
    box = visible_bounds(rgba)
    assert box is not None
    left, top, right, bottom = box
    return rgba[top:bottom, left:right]


def animated(sprite: Pixels, count: int, width: int, height: int, rng: Generator) -> list[Pixels]:
    """Animate a sprite in cells of this size: the body bobs, legs move, and some pixels flash."""
    knee = int(rng.integers(1, sprite.shape[0]))
    frames = []
    for number in range(count):
        frame = sprite.copy()
        if number % 4 in (1, 3):
            frame[knee:] = shifted(frame[knee:], across=2 - number % 4)
        if number % 4 == 2:
            frame = shifted(frame, down=1)
        flash = (rng.random(frame.shape[:2]) < 0.04) & (frame[..., 3] > 0)
        frame[flash, :3] = rng.integers(0, 255, 3)
        frames.append(celled(frame, width, height))
    return frames


def shifted(rgba: Pixels, across: int = 0, down: int = 0) -> Pixels:
    """Move a sprite by a pixel within its box; pixels outside the box are lost."""
    moved = np.roll(rgba, (down, across), (0, 1))
    if across:
        moved[:, 0 if across > 0 else -1] = 0
    if down:
        moved[0] = 0
    return moved


def celled(rgba: Pixels, width: int, height: int) -> Pixels:
    """A sprite on the floor of a cell, in its middle."""
    left = (width - rgba.shape[1]) // 2
    return np.pad(rgba, ((height - rgba.shape[0], 0), (left, width - rgba.shape[1] - left), (0, 0)))


def laid(cells: Sequence[Pixels], grid: SheetGrid, columns: int, width: int = 0, height: int = 0) -> Pixels:
    """Cells in rows, the last row only begun where they don't fill it, in a picture that is at least so large."""
    rows = -(-len(cells) // columns)
    step_x, step_y = grid.tile_width + grid.spacing, grid.tile_height + grid.spacing
    width = max(width, 2 * grid.left + columns * step_x - grid.spacing)
    height = max(height, 2 * grid.top + rows * step_y - grid.spacing)
    rgba = np.zeros((height, width, 4), np.uint8)
    for number, cell in enumerate(cells):
        y, x = grid.top + number // columns * step_y, grid.left + number % columns * step_x
        rgba[y : y + grid.tile_height, x : x + grid.tile_width] = cell
    return rgba


def demo_sheets() -> Iterator[tuple[Pixels, list[dict[str, Any]]]]:
    """Return the bundled demo sheets with the frames from their JSON files."""
    for path in sorted(DEMO.glob("*.png")):
        rgba = np.array(Image.open(path).convert("RGBA"))
        clear_hidden(rgba)
        yield rgba, [frame["frame"] for frame in json.loads(path.with_suffix(".json").read_text())["frames"]]


def demo_sprites() -> list[Pixels]:
    """Return the single sprites of these sheets."""
    boxes = ((sheet, *(box[key] for key in "xywh")) for sheet, frames in demo_sheets() for box in frames)
    return [sheet[y : y + h, x : x + w].copy() for sheet, x, y, w, h in boxes]


def frames_of(rgba: Pixels, grid: SheetGrid) -> list[bytes]:
    """What lies in the cells of a grid, whatever is left empty around it."""
    cells = (rgba for _, _, rgba in slice_grid(rgba, grid))
    return [trimmed(cell).tobytes() for cell in cells]


class Composer:
    """Composes images from whole sprites; a folder has cells of one to three sizes."""

    def __init__(self, sprites: Sequence[Pixels], rng: Generator) -> None:
        self._rng = rng
        self._sprites = [trimmed(sprite) for sprite in sprites]
        sizes = rng.choice(len(_CELLS), int(rng.integers(1, 4)), replace=False)
        self._cells = [_CELLS[number] for number in sizes]

    def folder(self, strips: int, whole: int) -> list[Composed]:
        """Compose a folder with this many strips and sheets, and this many single sprites."""
        kinds = [kind for kind, share in _SHARES for _ in range(share)]
        made = [self.strip(f"{kind} {number}.png", kind) for number, kind in zip(range(strips), cycle(kinds))]
        wholes = {"icon": self.icon, "wide": self.wide, "boss": self.boss, "gap": self.gap}
        for number, (name, make) in zip(range(whole), cycle(wholes.items())):
            made.append(Composed(f"{name} {number}.png", make()))
        return made

    def strip(self, name: str, kind: str) -> Composed:
        """One strip or sheet of a kind."""
        rng = self._rng
        width, height = self._cells[int(rng.integers(len(self._cells)))]
        grid = SheetGrid(width, height)
        count = int(rng.integers(3, 13))
        sprite = self._fitting(width, height)
        if kind == "roomy":  # frames that are smaller than their cells
            sprite = self._fitting(width - 4, height - 1)
        elif kind == "spaced":
            margin, spacing = ((0, 1), (1, 1), (0, 2), (2, 2))[int(rng.integers(4))]
            grid = SheetGrid(width, height, margin, margin, spacing)
        if kind == "items":
            cells = [celled(self._fitting(width, height), width, height) for _ in range(int(rng.integers(20, 60)))]
            return Composed(name, laid(cells, grid, columns=8), grid, len(cells))
        if kind == "rows":
            rows = int(rng.integers(2, 5))
            columns = int(rng.integers(3, 9))
            cells = [cell for _ in range(rows) for cell in animated(sprite, columns, width, height, rng)]
            cells = cells[: len(cells) - int(rng.integers(0, columns))]
            page = _PAGE if rng.random() < 0.3 else 0
            return Composed(name, laid(cells, grid, columns, page), grid, len(cells))
        cells = animated(sprite, count, width, height, rng)
        if kind == "upright":
            return Composed(name, laid(cells, grid, 1), grid, count)
        if kind == "padded":  # into a texture: behind the last frame it is empty, and some rows below may be
            high = next(side for side in (8, 16, 32, 64) if side >= height)
            return Composed(name, laid(cells, grid, count, _PAGE, high), grid, count)
        return Composed(name, laid(cells, grid, count), grid, count)

    def icon(self) -> Pixels:
        """A sprite as it is, in a square."""
        sprite = self._any()
        largest = max(sprite.shape[:2])
        side = next((side for side in (16, 24, 32, 48, 64) if side >= largest), largest)
        return celled(sprite, side, side)

    def wide(self) -> Pixels:
        """Join sprites to a wide sprite, two to four times as wide as high: a ship, a train."""
        whole = self._any()
        while whole.shape[1] < 2 * whole.shape[0]:
            part = self._any()
            high, wide = max(whole.shape[0], part.shape[0]), whole.shape[1] + part.shape[1] - 3
            grown = np.zeros((high, wide, 4), np.uint8)
            grown[high - whole.shape[0] :, : whole.shape[1]] = whole
            over = grown[high - part.shape[0] :, whole.shape[1] - 3 :]
            over[part[..., 3] > 0] = part[part[..., 3] > 0]
            middle = slice(whole.shape[1] - 6, whole.shape[1] + 3)
            grown[high - 4 : high - 1, middle] = (90, 60, 40, 255)
            whole = grown
        return whole

    def boss(self) -> Pixels:
        """A sprite that is larger than the others."""
        return self._any().repeat(3, 0).repeat(3, 1)

    def gap(self) -> Pixels:
        """One sprite in two parts that don't touch, like a pair of boots."""
        sprite = self._any()
        half = max(1, sprite.shape[1] // 2)
        return np.insert(sprite, [half] * 4, 0, axis=1)

    def _any(self) -> Pixels:
        return self._sprites[int(self._rng.integers(len(self._sprites)))]

    def _fitting(self, width: int, height: int) -> Pixels:
        """Return a sprite for cells of this size; a larger sprite is halved."""
        while True:
            sprite = self._any()
            for small in (sprite, trimmed(sprite[::2, ::2]) if sprite[::2, ::2, 3].any() else sprite):
                if width // 2 <= small.shape[1] <= width and height // 2 <= small.shape[0] <= height:
                    return small
