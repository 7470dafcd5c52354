"""Helpers for widget tests."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QImage, QWheelEvent
from PySide6.QtWidgets import QApplication, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets.sprites.map_view import MapView

W = TypeVar("W", bound=QWidget)
SCHEMES: dict[theme.Scheme, theme.Colours] = {"dark": theme.DARK, "light": theme.LIGHT}
NO_KEY = Qt.KeyboardModifier.NoModifier


def shown(qtbot: QtBot, widget: W, width: int, height: int) -> W:
    """Show a widget until the test ends."""
    qtbot.addWidget(widget)
    widget.resize(width, height)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def colours_in(image: QImage) -> set[str]:
    """Return the names of an image's colours, without alpha: '#1f77b4'."""
    pixels = np.frombuffer(image.convertToFormat(QImage.Format.Format_RGB32).constBits(), np.uint32) & 0xFFFFFF
    return {f"#{colour:06x}" for colour in np.unique(pixels).tolist()}


def child(parent: QWidget, kind: type[W]) -> W:
    """Return the first child widget of a type."""
    found = parent.findChild(kind)
    assert isinstance(found, kind)
    return found


def tip_at(qtbot: QtBot, widget: QWidget, place: QPoint) -> str:
    """Return the tooltip shown while the mouse rests at a position."""
    QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, place, widget.mapToGlobal(place)))
    qtbot.waitUntil(QToolTip.isVisible)
    text = QToolTip.text()
    QToolTip.hideText()
    return text


def turn_wheel(widget: QWidget, place: QPoint, delta: int, keys: Qt.KeyboardModifier = NO_KEY) -> None:
    """Turn the mouse wheel; a notch is 120."""
    seen, still = QPointF(widget.mapToGlobal(place)), Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(QPointF(place), seen, QPoint(), QPoint(0, delta), Qt.MouseButton.NoButton, keys, still, False)
    QApplication.sendEvent(widget, event)


def drawn_sprites(view: MapView) -> NDArray[np.int64]:
    """Return the visible sprites that a map doesn't draw as dots: int64 [n]."""
    is_seen, has_room = view.camera.seen()
    return np.flatnonzero(is_seen & has_room)


def sprite_position(view: MapView, index: int) -> QPointF:
    """Return a sprite's centre on a map, in logical pixels."""
    return QPointF(*(view.camera.centres()[index] / view.camera.ratio()).tolist())
