"""Sprites at their places on a plane: to zoom into, to move about in, to point at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.sprites.painting import as_image
from studio.core import formatting
from studio.core.arrays import Rgba

Floats = NDArray[np.float32]
Groups = NDArray[np.int64]

_SIDE, _MOST_GROWN = 28, 3  # logical pixels of a sprite on the whole map, about; how much larger sprites get
_GROWTH = 0.4  # sprites grow with the zoom to this power: most of what it gives is room for more of them
_GAP, _FRAME, _DOT, _NEAR = 3, 1, 3, 8  # logical pixels: between sprites, around one, of a dot, that a click may be off
_MARGIN = 3 * factory.GRID
_FARTHEST = 400.0  # times as large as the whole map
_STEP, _NOTCH = 1.25, 120  # a notch of the wheel, and how far that turns it
_PAN = 64  # logical pixels that an arrow key moves
_KEYS = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
}  # fmt: skip
_TIP = (
    "The wheel or + and - zoom, a drag or the arrow keys move, a double click or Home shows all. A click or Enter "
    "chooses a sprite."
)


class MapView(QWidget):
    """As many sprites as have room without lying over one another, the others as dots; more of them further in.

    chosen: the sprite that was clicked. end_chosen: the one that was clicked with Shift held down.
    """

    chosen = Signal(int)
    end_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self._names: Sequence[str] = ()
        self._positions = np.zeros((0, 2))
        self._spacing: Floats = np.zeros(0, np.float32)
        self._groups: Groups = np.zeros(0, np.int64)
        self._marked: dict[int, str] = {}  # sprites that are always drawn, with a letter or without
        self._selected = -1
        self._scale, self._whole = 1.0, 1.0  # logical pixels a unit, now and with the whole map in view
        self._middle = np.full(2, 0.5)  # what is in the middle of the view
        self._pressed: QPointF | None = None
        self._is_dragged = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        factory.set_name_and_tip(self, "Map of the sprites", _TIP)
        self.setAccessibleDescription(_TIP)

    def set_map(self, rgba: Rgba, names: Sequence[str], positions: Floats, spacing: Floats, groups: Groups) -> None:
        """Show uint8 [N, S, S, 4] at float32 [N, 2], to the right and down; spacing: as in MapReady.

        groups: int64 [N], which of the theme's colours for curves is around each sprite; -1 for a quiet one.
        """
        self._rgba, self._names, self._spacing, self._groups = rgba, names, spacing, groups
        self._positions = positions.astype(np.float64)
        self._marked, self._selected = {}, -1
        self.fit()

    def select(self, index: int) -> None:
        """Draw a frame around a sprite; -1 for none."""
        self._selected = index
        what = f"{self._names[index]} is chosen. " if index >= 0 else ""
        self.setAccessibleDescription(f"{formatting.count(len(self._rgba), 'sprite')}. {what}{_TIP}")
        self.update()

    def mark(self, letters: dict[int, str]) -> None:
        """Draw these sprites whether there is room or not, each with a letter."""
        self._marked = letters
        self.update()

    def show_sprite(self, index: int) -> None:
        """Bring a sprite into the middle, near enough for those around it to be seen."""
        self._middle = self._positions[index].copy()
        self._scale = max(self._scale, 4 * self._whole)
        self.update()

    def fit(self) -> None:
        """Show the whole map."""
        if len(self._positions):
            low, high = self._positions.min(0), self._positions.max(0)
            room = np.array([self.width(), self.height()]) - 2 * _MARGIN - _SIDE
            self._scale = self._whole = float(max(1.0, (room / np.maximum(high - low, 1e-6)).min()))
            self._middle = (low + high) / 2
        self.update()

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Make everything so many times as large; what is at a point of the view, or in its middle, stays there."""
        scale = min(max(self._scale * factor, self._whole), _FARTHEST * self._whole)
        off = np.zeros(2) if at is None else np.array([at.x() - self.width() / 2, at.y() - self.height() / 2])
        self._move_to(self._middle + off / self._scale - off / scale)
        self._scale = scale
        self.update()

    def position_in_view(self, index: int) -> QPointF:
        """Where the middle of a sprite is in the view, in logical pixels."""
        x, y = (self._positions[index] - self._middle) * self._scale
        return QPointF(x + self.width() / 2, y + self.height() / 2)

    def drawn(self) -> NDArray[np.int64]:
        """The sprites in view that are drawn as such and not as dots: int64 [n]."""
        is_seen, has_room = self._seen()
        return np.flatnonzero(is_seen & has_room)

    def at(self, point: QPointF) -> int:
        """The sprite under a point of the view, or the dot next to it; -1 where there is none."""
        if not len(self._positions):
            return -1
        is_seen, has_room = self._seen()
        apart = np.abs(self._device_centres() - np.array([point.x(), point.y()]) * self._ratio()).max(1)
        reach = np.where(has_room, max(self._side() / 2, 1), _NEAR * self._ratio())
        apart = np.where(is_seen & (apart <= reach), apart + 1e6 * ~has_room, np.inf)  # sprites lie over dots
        nearest = int(apart.argmin())
        return nearest if math.isfinite(apart[nearest]) else -1

    def sizeHint(self) -> QSize:
        return QSize(640, 480)

    def minimumSizeHint(self) -> QSize:
        """Below it there is no map to see."""
        return QSize(240, 200)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Dots, then sprites on their tiles, then those that are marked."""
        colours, ratio = theme.colours(), self._ratio()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(colours.surface))
            painter.scale(1 / ratio, 1 / ratio)  # all in device pixels: a pixel of a sprite is a whole number of them
            if len(self._positions):
                is_seen, has_room = self._seen()
                centres = np.round(self._device_centres()).astype(np.int64)
                self._draw_dots(painter, np.flatnonzero(is_seen & ~has_room), centres)
                self._draw_tiles(painter, np.flatnonzero(is_seen & has_room), centres)
                self._draw_marked(painter, centres)
            if self.hasFocus():
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(colours.accent), 2 * ratio))
                painter.drawRect(0, 0, round(self.width() * ratio), round(self.height() * ratio))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom at the pointer."""
        self.zoom(_STEP ** (event.angleDelta().y() / _NOTCH), event.position())
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move, zoom, show all, choose what is in the middle."""
        key = Qt.Key(event.key())
        if key in _KEYS:
            self._move_to(self._middle + np.array(_KEYS[key]) * _PAN / self._scale)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            self.zoom(1 / _STEP if key == Qt.Key.Key_Minus else _STEP)
        elif key == Qt.Key.Key_Home:
            self.fit()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and len(self._positions):
            self._choose(int(np.abs(self._positions - self._middle).max(1).argmin()), event.modifiers())
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click or the beginning of a drag."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed, self._is_dragged = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag the map; a pointing hand is over what can be chosen."""
        if self._pressed is None:
            shape = Qt.CursorShape.PointingHandCursor if self.at(event.position()) >= 0 else Qt.CursorShape.ArrowCursor
            self.setCursor(shape)
            return
        moved = event.position() - self._pressed
        if self._is_dragged or moved.manhattanLength() >= QApplication.startDragDistance():
            self._is_dragged, self._pressed = True, event.position()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self._move_to(self._middle - np.array([moved.x(), moved.y()]) / self._scale)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose what was clicked."""
        if self._pressed is not None and not self._is_dragged:
            self._choose(self.at(event.position()), event.modifiers())
        self._pressed = None
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show all."""
        self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A map that is seen as a whole stays so."""
        was_whole = self._scale == self._whole
        middle, scale = self._middle, self._scale
        self.fit()
        if not was_whole:
            self._middle, self._scale = middle, max(scale, self._whole)

    def event(self, event: QEvent) -> bool:
        """Name what the pointer rests on."""
        if event.type() != QEvent.Type.ToolTip or not isinstance(event, QHelpEvent):
            return super().event(event)
        index = self.at(QPointF(event.pos()))
        QToolTip.showText(event.globalPos(), self._names[index] if index >= 0 else _TIP, self)
        return True

    def _choose(self, index: int, modifiers: Qt.KeyboardModifier) -> None:
        if index < 0:
            return
        is_end = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
        (self.end_chosen if is_end else self.chosen).emit(index)

    def _move_to(self, middle: NDArray[np.float64]) -> None:
        """Have this in the middle of the view, or the part of the map that is next to it."""
        if len(self._positions):
            self._middle = middle.clip(self._positions.min(0), self._positions.max(0))
        self.update()

    def _ratio(self) -> float:
        return self.devicePixelRatioF()

    def _factor(self) -> int:
        """Device pixels a pixel of a sprite."""
        grown = min(math.pow(self._scale / self._whole, _GROWTH), _MOST_GROWN)
        return max(1, round(grown * _SIDE * self._ratio() / int(self._rgba.shape[1])))

    def _side(self) -> int:
        """Device pixels of a sprite."""
        return self._factor() * int(self._rgba.shape[1])

    def _device_centres(self) -> NDArray[np.float64]:
        """The middle of each sprite in device pixels of the view: float64 [N, 2]."""
        ratio = self._ratio()
        half = np.array([self.width(), self.height()]) / 2
        return np.asarray(((self._positions - self._middle) * self._scale + half) * ratio)

    def _seen(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which sprites are in view, and which have room to be drawn as such: bool [N] both."""
        ratio, reach = self._ratio(), self._side() / 2
        beyond = np.array([self.width(), self.height()]) * ratio + reach
        centres = self._device_centres()
        is_seen = ((centres > -reach) & (centres < beyond)).all(1)
        return np.asarray(is_seen), self._spacing * (self._scale * ratio) >= self._side() + _GAP * ratio

    def _by_colour(self, some: Groups) -> Iterator[tuple[QColor, Groups]]:
        """Those of `some` that share a colour, colour by colour."""
        colours = group_colours()
        group = self._groups[some] % len(colours)
        return ((colour, some[group == number]) for number, colour in enumerate(colours))

    def _draw_dots(self, painter: QPainter, some: Groups, centres: NDArray[np.int64]) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        side = max(1, round(_DOT * self._ratio()))
        for colour, mine in self._by_colour(some):
            painter.setBrush(colour)
            painter.drawRects([QRect(x, y, side, side) for x, y in (centres[mine] - side // 2).tolist()])

    def _draw_tiles(self, painter: QPainter, some: Groups, centres: NDArray[np.int64]) -> None:
        """A frame in the colour of its group around each, a quiet ground in it, and the sprite on that."""
        side, frame = self._side(), max(1, round(_FRAME * self._ratio()))
        corners = centres - side // 2
        painter.setPen(Qt.PenStyle.NoPen)
        for colour, mine in self._by_colour(some):
            around = side + 2 * frame
            painter.setBrush(colour)
            painter.drawRects([QRect(x - frame, y - frame, around, around) for x, y in corners[mine].tolist()])
        painter.setBrush(_ground())
        boxes = [QRect(x, y, side, side) for x, y in corners[some].tolist()]
        painter.drawRects(boxes)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        for index, box in zip(some.tolist(), boxes, strict=True):
            painter.drawImage(box, as_image(np.ascontiguousarray(self._rgba[index])))

    def _draw_marked(self, painter: QPainter, centres: NDArray[np.int64]) -> None:
        """Those with letters, and the chosen one, over all others."""
        ratio, colours, side = self._ratio(), theme.colours(), self._side()
        font = self.font()
        font.setBold(True)
        font.setPointSizeF(font.pointSizeF() * ratio)
        painter.setFont(font)
        for index in dict.fromkeys([*self._marked, *([self._selected] if self._selected >= 0 else [])]):
            self._draw_tiles(painter, np.array([index]), centres)
            x, y = (centres[index] - side // 2).tolist()
            width = round(2 * ratio)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(colours.accent), width))
            painter.drawRect(QRect(x - width, y - width, side + 2 * width, side + 2 * width))
            if letter := self._marked.get(index, ""):
                badge = round(16 * ratio)
                box = QRect(QPoint(x - badge // 2, y - badge // 2), QSize(badge, badge))
                painter.setBrush(QColor(colours.accent))
                painter.drawEllipse(box)
                painter.setPen(QColor(colours.on_accent))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, letter)


def group_colours() -> list[QColor]:
    """One for each group, in their order, and last the quiet one of those that are in none."""
    colours = theme.colours()
    return [*map(QColor, colours.curves), QColor(theme.mix(colours.surface, colours.muted, 0.6))]


def _ground() -> QColor:
    """Of a tile: the darkest and the lightest sprites stand out from it."""
    colours = theme.colours()
    return QColor(theme.mix(colours.checker_a, colours.checker_b, 0.5))
