"""A zoomable map of sprites at 2D positions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QPointF, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.input import ARROWS, NOTCH, PlaceTips
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
_STEP = 1.25  # zoom factor of a wheel notch
_PAN = 64  # logical pixels for an arrow key
_TIP = "Scroll, + or - to zoom. Drag or arrow keys to pan. Double-click or Home to fit. Click or Enter to select."


class MapCamera:
    """The visible part of a map, and where the map's sprites lie in a view.

    positions: float64 [N, 2]. spacing: float32 [N], distance on the map that is free for each sprite. pixels: side of a
    sprite in sprite pixels. scale, whole: logical pixels for a map unit, now and for the whole map.
    """

    def __init__(self, view: QWidget) -> None:
        self._view = view
        self.positions = np.zeros((0, 2))
        self.spacing: Floats = np.zeros(0, np.float32)
        self.pixels = 1
        self.scale = self.whole = 1.0
        self.middle = np.full(2, 0.5)  # map position at the view's centre

    def size(self) -> NDArray[np.float64]:
        """Return the view's width and height in logical pixels."""
        return np.array([self._view.width(), self._view.height()], np.float64)

    def ratio(self) -> float:
        """Return the device pixels for a logical pixel."""
        return self._view.devicePixelRatioF()

    def fit(self) -> None:
        if len(self.positions):
            low, high = self.positions.min(0), self.positions.max(0)
            room = self.size() - 2 * _MARGIN - _SIDE
            self.scale = self.whole = float(max(1.0, (room / np.maximum(high - low, 1e-6)).min()))
            self.middle = (low + high) / 2
        self._view.update()

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom by a factor; the map at point `at` of the view, or at its centre, stays in place."""
        scale = min(max(self.scale * factor, self.whole), _FARTHEST * self.whole)
        off = np.zeros(2) if at is None else np.array(at.toTuple()) - self.size() / 2
        self.move_by(off * (1 - self.scale / scale))
        self.scale = scale

    def move_by(self, distance: NDArray[np.float64]) -> None:
        """Move the visible part by logical pixels, within the map."""
        if len(self.positions):
            middle = self.middle + distance / self.scale
            self.middle = middle.clip(self.positions.min(0), self.positions.max(0))
        self._view.update()

    def factor(self) -> int:
        """Return the device pixels for a sprite pixel."""
        grown = min(math.pow(self.scale / self.whole, _GROWTH), _MOST_GROWN)
        return max(1, round(grown * _SIDE * self.ratio() / self.pixels))

    def side(self) -> int:
        """Return a sprite's side in device pixels."""
        return self.factor() * self.pixels

    def centres(self) -> NDArray[np.float64]:
        """Return the sprites' centres in device pixels of the view: float64 [N, 2]."""
        return np.asarray(((self.positions - self.middle) * self.scale + self.size() / 2) * self.ratio())

    def seen(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return two masks, bool [N]: sprites in view, and sprites with room to be drawn."""
        ratio, side, centres = self.ratio(), self.side(), self.centres()
        is_seen = ((centres > -side / 2) & (centres < self.size() * ratio + side / 2)).all(1)
        return np.asarray(is_seen), self.spacing * (self.scale * ratio) >= side + _GAP * ratio

    def at(self, point: QPointF) -> int:
        """Return the index of the sprite at a point of the view, drawn as a thumbnail or a dot nearby; -1 for none."""
        if not len(self.positions):
            return -1
        is_seen, has_room = self.seen()
        apart = np.abs(self.centres() - np.array(point.toTuple()) * self.ratio()).max(1)
        reach = np.where(has_room, max(self.side() / 2, 1), _NEAR * self.ratio())
        apart = np.where(is_seen & (apart <= reach), apart + 1e6 * ~has_room, np.inf)  # prefer sprites over dots
        nearest = int(apart.argmin())
        return nearest if math.isfinite(apart[nearest]) else -1


class MapPainter:
    """Draws the sprites of a map as dots or on tiles, in the colours of their groups.

    rgba: uint8 [N, S, S, 4]. groups: int64 [N], index into the theme's curve colours; -1 for grey.
    """

    def __init__(self, camera: MapCamera) -> None:
        self._camera = camera
        self.rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self.groups: Groups = np.zeros(0, np.int64)

    def draw(self, painter: QPainter, letters: Mapping[int, str], font: QFont) -> None:
        """Draw the visible sprites in device pixels. letters: by index of the sprites on top, '' for no letter."""
        is_seen, has_room = self._camera.seen()
        centres = np.round(self._camera.centres()).astype(np.int64)
        self._draw_dots(painter, np.flatnonzero(is_seen & ~has_room), centres)
        self._draw_tiles(painter, np.flatnonzero(is_seen & has_room), centres)
        self._draw_framed(painter, centres, letters, font)

    def _draw_dots(self, painter: QPainter, some: Groups, centres: NDArray[np.int64]) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        side = max(1, round(_DOT * self._camera.ratio()))
        for colour, mine in _by_colour(some, self.groups):
            painter.setBrush(colour)
            painter.drawRects([QRect(x, y, side, side) for x, y in (centres[mine] - side // 2).tolist()])

    def _draw_tiles(self, painter: QPainter, some: Groups, centres: NDArray[np.int64]) -> None:
        """Draw each sprite on a tile with a frame in its group's colour."""
        side, frame = self._camera.side(), max(1, round(_FRAME * self._camera.ratio()))
        corners, around = centres - side // 2, side + 2 * frame
        painter.setPen(Qt.PenStyle.NoPen)
        for colour, mine in _by_colour(some, self.groups):
            painter.setBrush(colour)
            painter.drawRects([QRect(x - frame, y - frame, around, around) for x, y in corners[mine].tolist()])
        colours = theme.colours()
        painter.setBrush(QColor(theme.mix(colours.checker_a, colours.checker_b, 0.5)))  # dark and light sprites show
        boxes = [QRect(x, y, side, side) for x, y in corners[some].tolist()]
        painter.drawRects(boxes)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        for index, box in zip(some.tolist(), boxes, strict=True):
            painter.drawImage(box, as_image(np.ascontiguousarray(self.rgba[index])))

    def _draw_framed(
        self, painter: QPainter, centres: NDArray[np.int64], letters: Mapping[int, str], font: QFont
    ) -> None:
        """Draw framed sprites with letters, above other sprites."""
        ratio, colours, side = self._camera.ratio(), theme.colours(), self._camera.side()
        width, badge = round(2 * ratio), round(16 * ratio)
        font.setBold(True)
        font.setPointSizeF(font.pointSizeF() * ratio)
        painter.setFont(font)
        for index, letter in letters.items():
            self._draw_tiles(painter, np.array([index]), centres)
            x, y = (centres[index] - side // 2).tolist()
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(colours.accent), width))
            painter.drawRect(QRect(x - width, y - width, side + 2 * width, side + 2 * width))
            if letter:
                box = QRect(x - badge // 2, y - badge // 2, badge, badge)
                painter.setBrush(QColor(colours.accent))
                painter.drawEllipse(box)
                painter.setPen(QColor(colours.on_accent))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, letter)


class MapView(QWidget):
    """A map of sprites at 2D positions: sprites where there is room, dots elsewhere. Zooming in shows more sprites.

    chosen: index of the clicked sprite. end_chosen: index of a Shift+clicked sprite.
    """

    chosen = Signal(int)
    end_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.camera = MapCamera(self)
        self._painter = MapPainter(self.camera)
        self._names: Sequence[str] = ()
        self._marked: dict[int, str] = {}  # letters by index; these sprites are always drawn
        self._selected = -1
        self._pressed: QPointF | None = None
        self._is_dragged = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        factory.set_name_and_tip(self, "Sprite map", _TIP)
        PlaceTips(self, self._tip_at)
        self.setAccessibleDescription(_TIP)

    def set_map(self, rgba: Rgba, names: Sequence[str], positions: Floats, spacing: Floats, groups: Groups) -> None:
        """Show sprites uint8 [N, S, S, 4] at positions float32 [N, 2] (x right, y down).

        spacing: float32 [N], distance on the map that is free for each sprite. groups: int64 [N], each sprite's index
        into the theme's curve colours; -1 for grey.
        """
        self._names, self._painter.rgba, self._painter.groups = names, rgba, groups
        self.camera.positions, self.camera.spacing = positions.astype(np.float64), spacing
        self.camera.pixels = rgba.shape[1]
        self._marked, self._selected = {}, -1
        self.fit()

    def select(self, index: int) -> None:
        """Frame a sprite; -1 removes the frame."""
        self._selected = index
        what = f"{self._names[index]} is selected. " if index >= 0 else ""
        self.setAccessibleDescription(f"{formatting.count(len(self._names), 'sprite')}. {what}{_TIP}")
        self.update()

    def mark(self, letters: dict[int, str]) -> None:
        """Draw these sprites at any zoom, each with a letter. letters: by sprite index."""
        self._marked = letters
        self.update()

    def show_sprite(self, index: int) -> None:
        """Centre a sprite, and zoom in until its neighbours are visible."""
        self.camera.middle = self.camera.positions[index].copy()
        self.camera.scale = max(self.camera.scale, 4 * self.camera.whole)
        self.update()

    @Slot()
    def fit(self) -> None:
        self.camera.fit()

    def sizeHint(self) -> QSize:
        return QSize(640, 480)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, 200)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw dots, then sprites on tiles, then marked sprites."""
        colours, ratio = theme.colours(), self.camera.ratio()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(colours.surface))
            painter.scale(1 / ratio, 1 / ratio)  # draw in device pixels, whole numbers for each sprite pixel
            if len(self._names):
                selected, marked = self._selected, self._marked
                letters = marked if selected < 0 else {**marked, selected: marked.get(selected, "")}
                self._painter.draw(painter, letters, self.font())
            if self.hasFocus():
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(colours.accent), 2 * ratio))
                painter.drawRect(0, 0, round(self.width() * ratio), round(self.height() * ratio))

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.camera.zoom(_STEP ** (event.angleDelta().y() / NOTCH), event.position())
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key in ARROWS:
            self.camera.move_by(np.array(ARROWS[key]) * float(_PAN))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            self.camera.zoom(1 / _STEP if key == Qt.Key.Key_Minus else _STEP)
        elif key == Qt.Key.Key_Home:
            self.fit()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and len(self._names):
            nearest = int(np.abs(self.camera.positions - self.camera.middle).max(1).argmin())
            self._choose(nearest, event.modifiers())
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed, self._is_dragged = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan during a drag; otherwise show a hand over sprites."""
        shapes = Qt.CursorShape
        if self._pressed is None:
            is_over = self.camera.at(event.position()) >= 0
            self.setCursor(shapes.PointingHandCursor if is_over else shapes.ArrowCursor)
            return
        moved = event.position() - self._pressed
        if self._is_dragged or moved.manhattanLength() >= QApplication.startDragDistance():
            self._is_dragged, self._pressed = True, event.position()
            self.setCursor(shapes.ClosedHandCursor)
            self.camera.move_by(-np.array(moved.toTuple()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._pressed is not None and not self._is_dragged:
            self._choose(self.camera.at(event.position()), event.modifiers())
        self._pressed = None
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep a fully visible map fully visible."""
        camera = self.camera
        middle, scale, was_whole = camera.middle, camera.scale, camera.scale == camera.whole
        camera.fit()
        if not was_whole:
            camera.middle, camera.scale = middle, max(scale, camera.whole)

    def _tip_at(self, point: QPoint) -> str:
        index = self.camera.at(QPointF(point))
        return self._names[index] if index >= 0 else _TIP

    def _choose(self, index: int, modifiers: Qt.KeyboardModifier) -> None:
        if index >= 0:
            is_end = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
            (self.end_chosen if is_end else self.chosen).emit(index)


def _by_colour(some: Groups, groups: Groups) -> Iterator[tuple[QColor, Groups]]:
    """Yield each colour with its sprites among `some`. groups: int64 [N], index of a colour; -1 for grey."""
    colours = group_colours()
    group = groups[some] % len(colours)
    return ((colour, some[group == number]) for number, colour in enumerate(colours))


def group_colours() -> list[QColor]:
    """Return the groups' colours, followed by grey for sprites without a group."""
    colours = theme.colours()
    return [*map(QColor, colours.curves), QColor(theme.mix(colours.surface, colours.muted, 0.6))]
