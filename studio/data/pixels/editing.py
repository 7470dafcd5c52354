"""The sprite editor's document: pixels, kept pixels, strokes, undo and redo, saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from studio.core import records
from studio.core.arrays import Rgba
from studio.data.images.canvas import as_uint32
from studio.data.images.components import label_components

Mask = NDArray[np.bool_]  # [S, S]
Point = tuple[int, int]  # x and y of a pixel, from the upper left corner
Tool = Literal["pencil", "eraser", "line", "rectangle", "bucket", "wand"]

Pixels = TypeVar("Pixels", bound=NDArray[Any])

_MOST_STEPS = 100  # undo limit


@dataclass(frozen=True, eq=False)
class EditedSprite:
    """A sprite, uint8 [S, S, 4], and its kept pixels, bool [S, S]; a model redraws the other pixels. Immutable."""

    sprite: Rgba
    keep: Mask

    @classmethod
    def of(cls, sprite: Rgba) -> EditedSprite:
        """Return the sprite with all pixels kept."""
        return cls(sprite, np.ones(sprite.shape[:2], bool))

    def with_keep(self, where: Mask, stays: bool) -> EditedSprite:
        """Return a copy with the pixels in `where` kept (`stays`), or else marked to be redrawn."""
        return EditedSprite(self.sprite, np.where(where, stays, self.keep))

    def paint(self, where: Mask, colour: NDArray[np.uint8]) -> EditedSprite:
        """Return a copy with the pixels in `where` painted in `colour`, uint8 [4]."""
        return EditedSprite(np.where(where[..., None], colour, self.sprite), self.keep)

    def move(self, by: Point) -> EditedSprite:
        """Return a copy with the selected pixels moved, or all pixels without a selection. Pixels outside are lost.

        The moved pixels leave transparent pixels behind, and the selection moves with them.
        """
        selected = ~self.keep
        lifted = selected[..., None] if selected.any() else np.ones((1, 1, 1), bool)
        moved = _shift(np.where(lifted, self.sprite, 0).astype(np.uint8), by)
        sprite = np.where(moved[..., 3:] > 0, moved, np.where(lifted, 0, self.sprite)).astype(np.uint8)
        return EditedSprite(sprite, ~_shift(selected, by))

    def equals(self, other: EditedSprite) -> bool:
        """Return whether `other` has equal pixels and equal kept pixels."""
        return np.array_equal(self.sprite, other.sprite) and np.array_equal(self.keep, other.keep)


def _shift(pixels: Pixels, by: Point) -> Pixels:
    """Return a copy of an array [S, S, ...] moved by x and y, with zeros in the emptied pixels."""
    found: Pixels = np.zeros_like(pixels)
    size = len(pixels)
    if all(abs(step) < size for step in by):
        to_x, to_y = (slice(max(0, step), size + min(0, step)) for step in by)
        from_x, from_y = (slice(max(0, -step), size - max(0, step)) for step in by)
        found[to_y, to_x] = pixels[from_y, from_x]
    return found


def line_mask(start: Point, end: Point, size: int, brush: int = 1) -> Mask:
    """Return the pixels under a square brush of `brush` pixels moved from `start` to `end` (Bresenham 1965)."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    share = np.arange(steps + 1) / steps
    xs, ys = (np.floor(a + (b - a) * share + 0.5).astype(int) for a, b in zip(start, end, strict=True))
    reach = np.arange(brush) - (brush - 1) // 2
    xs = (xs[:, None, None] + reach[None, :, None]).repeat(brush, 2).ravel()
    ys = (ys[:, None, None] + reach[None, None, :]).repeat(brush, 1).ravel()
    inside = (xs >= 0) & (xs < size) & (ys >= 0) & (ys < size)
    found = np.zeros((size, size), bool)
    found[ys[inside], xs[inside]] = True
    return found


def rectangle_mask(start: Point, end: Point, size: int) -> Mask:
    """Return the pixels of the rectangle between two corners, both inclusive."""
    (left, right), (top, bottom) = (sorted(pair) for pair in zip(start, end, strict=True))
    found = np.zeros((size, size), bool)
    found[max(0, top) : max(0, bottom + 1), max(0, left) : max(0, right + 1)] = True
    return found


def same_colour_mask(sprite: Rgba, place: Point) -> Mask:
    """Return the pixels with the colour of the pixel at `place`; all transparent pixels count as equal."""
    numbers = as_uint32(sprite) * (sprite[..., 3] > 0)
    return np.asarray(numbers == numbers[place[1], place[0]])


def flood_fill_mask(sprite: Rgba, place: Point) -> Mask:
    """Return the pixels of equal colour connected to `place` horizontally or vertically."""
    label = label_components(same_colour_mask(sprite, place), diagonal=False)
    return np.asarray(label == label[place[1], place[0]])


@dataclass(frozen=True, eq=False)
class Stroke:
    """A stroke of a drawing tool from `start` to `last`."""

    tool: Tool
    sprite: Rgba
    width: int  # brush size in pixels
    start: Point
    last: Point
    covered: Mask  # pixels to paint

    @classmethod
    def begin(cls, tool: Tool, sprite: Rgba, width: int, place: Point) -> Stroke:
        """Start a stroke on a sprite, uint8 [S, S, 4]."""
        nothing = cls(tool, sprite, width, place, place, np.zeros(sprite.shape[:2], bool))
        if tool in _AT_ONCE:
            return replace(nothing, covered=_AT_ONCE[tool](sprite, place))
        return nothing.drag_to(place)

    def drag_to(self, place: Point) -> Stroke:
        """Return the stroke continued to `place`."""
        size = len(self.sprite)
        if self.tool in ("pencil", "eraser"):
            under = self.covered | line_mask(self.last, place, size, self.width)
        elif self.tool == "line":
            under = line_mask(self.start, place, size, self.width)
        else:
            under = rectangle_mask(self.start, place, size) if self.tool == "rectangle" else self.covered
        return replace(self, last=place, covered=under)


_AT_ONCE: dict[Tool, Callable[[Rgba, Point], Mask]] = {"bucket": flood_fill_mask, "wand": same_colour_mask}


@dataclass(frozen=True, eq=False)
class SavedEdit:
    """An edited sprite with its name, class and source; class_name and source are '' if unknown."""

    edit: EditedSprite
    name: str
    class_name: str = ""
    source: str = ""

    def is_same_sprite(self, other: SavedEdit) -> bool:
        """Return whether both edits have a sprite with equal size, name, class and source."""
        same_size = len(self.edit.sprite) == len(other.edit.sprite)
        return same_size and (self.name, self.class_name, self.source) == (other.name, other.class_name, other.source)

    def to_json(self) -> bytes:
        """Return the edit as JSON, with pixels as hexadecimal digits."""
        edit = self.edit
        pixels = {"sprite": edit.sprite.tobytes().hex(), "keep": np.packbits(edit.keep).tobytes().hex()}
        told = {"name": self.name, "class_name": self.class_name, "source": self.source}
        return json.dumps({"size": len(edit.sprite), **told, **pixels}).encode()

    @classmethod
    def from_json(cls, text: bytes) -> SavedEdit:
        """Create an edit from the output of `to_json`. Raises ValueError with a message for users."""
        kept = records.parse(text, _SavedEditRecord)
        side = kept.size
        sprite = np.frombuffer(bytes.fromhex(kept.sprite), np.uint8).reshape(side, side, 4)
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(kept.keep), np.uint8))
        edit = EditedSprite(sprite, bits[: side * side].reshape(side, side).astype(bool))
        return cls(edit, kept.name, kept.class_name, kept.source)


class EditHistory:
    """Undo history of the sprite editor; can also undo opening a sprite. now: the current edit."""

    def __init__(self, kept: SavedEdit) -> None:
        self.now = kept
        self._past: list[SavedEdit] = []
        self._future: list[SavedEdit] = []

    def push(self, edit: EditedSprite) -> bool:
        """Add an edit of the current sprite; return False if it equals the current edit."""
        if edit.equals(self.now.edit):
            return False
        self.open(replace(self.now, edit=edit))
        return True

    def open(self, kept: SavedEdit) -> None:
        """Make `kept` the current edit, usually of another sprite; `undo` returns to the edit before."""
        self._past = [*self._past, self.now][-_MOST_STEPS:]
        self._future = []
        self.now = kept

    def undo(self) -> None:
        """Undo the last step, if any."""
        if self._past:
            self._future.append(self.now)
            self.now = self._past.pop()

    def redo(self) -> None:
        """Redo the last undone step, if any."""
        if self._future:
            self._past.append(self.now)
            self.now = self._future.pop()


class NamedSprite(NamedTuple):
    """A sprite with its name and origin."""

    rgba: Rgba  # uint8 [H, W, 4]
    name: str
    class_name: str = ""
    source: str = ""  # JSON of a `ModelSource`; '' if unknown


@dataclass(frozen=True)
class _SavedEditRecord:
    """JSON record of a SavedEdit."""

    size: records.Count
    name: str
    class_name: str
    sprite: str
    keep: str
    source: str = ""
