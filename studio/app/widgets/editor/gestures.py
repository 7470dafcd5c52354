"""Gestures on the editor's canvas, from press to release: strokes and moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from studio.data.pixels.editing import EditedSprite, Mask, Point, Stroke


class Gesture(ABC):
    """An unfinished gesture that will change the sprite."""

    @abstractmethod
    def drag_to(self, place: Point) -> Mask | None:
        """Continue to a pixel. Return the pixels whose look changes, bool [S, S]; None for any pixels."""

    @abstractmethod
    def apply(self, edit: EditedSprite) -> EditedSprite:
        """Return the sprite as changed so far."""


class StrokeGesture(Gesture):
    """A stroke of a drawing tool. use: selects, deselects, paints or erases the covered pixels."""

    def __init__(self, stroke: Stroke, use: Callable[[EditedSprite, Mask], EditedSprite]) -> None:
        self.stroke, self._use = stroke, use

    def drag_to(self, place: Point) -> Mask:
        before, self.stroke = self.stroke.covered, self.stroke.drag_to(place)
        differs: Mask = before ^ self.stroke.covered
        return differs

    def apply(self, edit: EditedSprite) -> EditedSprite:
        return self._use(edit, self.stroke.covered)


class MoveGesture(Gesture):
    """A move of the selected pixels, or of the whole sprite."""

    def __init__(self, start: Point) -> None:
        self._start = self._last = start

    def drag_to(self, place: Point) -> None:
        self._last = place

    def apply(self, edit: EditedSprite) -> EditedSprite:
        return edit.move((self._last[0] - self._start[0], self._last[1] - self._start[1]))
