"""A zoomable map of sprites at 2D positions."""

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

_SIDE, _MOST_GROWN = 28, 3  # approximate sprite side in logical pixels on the whole map; largest growth factor
_GROWTH = 0.4  # sprites grow by zoom ** 0.4, so that zooming makes room for more sprites
_GAP, _FRAME, _DOT, _NEAR = 3, 1, 3, 8  # logical pixels: gap, frame, dot, click tolerance
_MARGIN = 3 * factory.GRID
_FARTHEST = 400.0  # largest zoom, relative to the whole map
_STEP, _NOTCH = 1.25, 120  # zoom factor of a wheel notch, and its angle
_PAN = 64  # logical pixels for an arrow key
_KEYS = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
}  # fmt: skip
_TIP = "Scroll, + or - to zoom. Drag or arrow keys to pan. Double-click or Home to fit. Click or Enter to select."


class MapView(QWidget):
    """A map of sprites at 2D positions: sprites where there is room, dots elsewhere. Zooming in shows more sprites.

    chosen: index of the clicked sprite. end_chosen: index of a Shift+clicked sprite.
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
        self._marked: dict[int, str] = {}  # letters by index; these sprites are always drawn
        self._selected = -1
        self._scale, self._whole = 1.0, 1.0  # logical pixels for a map unit: now, and for the whole map
        self._middle = np.full(2, 0.5)  # map position at the view's centre
        self._pressed: QPointF | None = None
        self._is_dragged = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        factory.set_name_and_tip(self, "Sprite map", _TIP)
        self.setAccessibleDescription(_TIP)

    def set_map(self, rgba: Rgba, names: Sequence[str], positions: Floats, spacing: Floats, groups: Groups) -> None:
        """Show sprites uint8 [N, S, S, 4] at positions float32 [N, 2] (x right, y down).

        spacing: float32 [N], distance on the map that is free for each sprite. groups: int64 [N], each
        sprite's index into the theme's curve colours; -1 for grey.
        """
        self._rgba, self._names, self._spacing, self._groups = rgba, names, spacing, groups
        self._positions = positions.astype(np.float64)
        self._marked, self._selected = {}, -1
        self.fit()

    def select(self, index: int) -> None:
        """Frame a sprite; -1 removes the frame."""
        self._selected = index
        what = f"{self._names[index]} is selected. " if index >= 0 else ""
        self.setAccessibleDescription(f"{formatting.count(len(self._rgba), 'sprite')}. {what}{_TIP}")
        self.update()

    def mark(self, letters: dict[int, str]) -> None:
        """Draw these sprites at any zoom, each with a letter. letters: by sprite index."""
        self._marked = letters
        self.update()

    def show_sprite(self, index: int) -> None:
        """Centre a sprite, and zoom in until its neighbours are visible."""
        self._middle = self._positions[index].copy()
        self._scale = max(self._scale, 4 * self._whole)
        self.update()

    def fit(self) -> None:
        if len(self._positions):
            low, high = self._positions.min(0), self._positions.max(0)
            room = np.array([self.width(), self.height()]) - 2 * _MARGIN - _SIDE
            self._scale = self._whole = float(max(1.0, (room / np.maximum(high - low, 1e-6)).min()))
            self._middle = (low + high) / 2
        self.update()

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom by a factor; the map at point `at` of the view, or at its centre, stays in place."""
        scale = min(max(self._scale * factor, self._whole), _FARTHEST * self._whole)
        off = np.zeros(2) if at is None else np.array([at.x() - self.width() / 2, at.y() - self.height() / 2])
        self._move_to(self._middle + off / self._scale - off / scale)
        self._scale = scale
        self.update()

    def position_in_view(self, index: int) -> QPointF:
        """Return a sprite's centre in the view, in logical pixels."""
        x, y = (self._positions[index] - self._middle) * self._scale
        return QPointF(x + self.width() / 2, y + self.height() / 2)

    def drawn(self) -> NDArray[np.int64]:
        """Return the visible sprites not drawn as dots: int64 [n]."""
        is_seen, has_room = self._seen()
        return np.flatnonzero(is_seen & has_room)

    def at(self, point: QPointF) -> int:
        """Return the index of the sprite at a point of the view, drawn as a thumbnail or a dot nearby; -1 for none."""
        if not len(self._positions):
            return -1
        is_seen, has_room = self._seen()
        apart = np.abs(self._device_centres() - np.array([point.x(), point.y()]) * self._ratio()).max(1)
        reach = np.where(has_room, max(self._side() / 2, 1), _NEAR * self._ratio())
        apart = np.where(is_seen & (apart <= reach), apart + 1e6 * ~has_room, np.inf)  # prefer sprites over dots
        nearest = int(apart.argmin())
        return nearest if math.isfinite(apart[nearest]) else -1

    def sizeHint(self) -> QSize:
        return QSize(640, 480)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, 200)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw dots, then sprites on tiles, then marked sprites."""
        colours, ratio = theme.colours(), self._ratio()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(colours.surface))
            painter.scale(1 / ratio, 1 / ratio)  # draw in device pixels, whole numbers for each sprite pixel
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
        self.zoom(_STEP ** (event.angleDelta().y() / _NOTCH), event.position())
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
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
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed, self._is_dragged = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan during a drag; otherwise show a hand over sprites."""
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
        if self._pressed is not None and not self._is_dragged:
            self._choose(self.at(event.position()), event.modifiers())
        self._pressed = None
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep a fully visible map fully visible."""
        was_whole = self._scale == self._whole
        middle, scale = self._middle, self._scale
        self.fit()
        if not was_whole:
            self._middle, self._scale = middle, max(scale, self._whole)

    def event(self, event: QEvent) -> bool:
        """Show the name of the sprite under the mouse as tooltip."""
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
        """Centre the view here, limited to the map."""
        if len(self._positions):
            self._middle = middle.clip(self._positions.min(0), self._positions.max(0))
        self.update()

    def _ratio(self) -> float:
        return self.devicePixelRatioF()

    def _factor(self) -> int:
        """Return the device pixels for a sprite pixel."""
        grown = min(math.pow(self._scale / self._whole, _GROWTH), _MOST_GROWN)
        return max(1, round(grown * _SIDE * self._ratio() / int(self._rgba.shape[1])))

    def _side(self) -> int:
        """Return a sprite's side in device pixels."""
        return self._factor() * int(self._rgba.shape[1])

    def _device_centres(self) -> NDArray[np.float64]:
        """Return the sprites' centres in device pixels of the view: float64 [N, 2]."""
        ratio = self._ratio()
        half = np.array([self.width(), self.height()]) / 2
        return np.asarray(((self._positions - self._middle) * self._scale + half) * ratio)

    def _seen(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return two masks, bool [N]: sprites in view, and sprites with room to be drawn."""
        ratio, reach = self._ratio(), self._side() / 2
        beyond = np.array([self.width(), self.height()]) * ratio + reach
        centres = self._device_centres()
        is_seen = ((centres > -reach) & (centres < beyond)).all(1)
        return np.asarray(is_seen), self._spacing * (self._scale * ratio) >= self._side() + _GAP * ratio

    def _by_colour(self, some: Groups) -> Iterator[tuple[QColor, Groups]]:
        """Yield each colour with its sprites among `some`."""
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
        """Draw each sprite on a tile with a frame in its group's colour."""
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
        """Draw sprites with letters and the selected sprite on top."""
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
    """Return the groups' colours, followed by grey for sprites without a group."""
    colours = theme.colours()
    return [*map(QColor, colours.curves), QColor(theme.mix(colours.surface, colours.muted, 0.6))]


def _ground() -> QColor:
    """Return a tile colour that both dark and light sprites contrast with."""
    colours = theme.colours()
    return QColor(theme.mix(colours.checker_a, colours.checker_b, 0.5))
