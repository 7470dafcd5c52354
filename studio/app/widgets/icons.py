"""Icons that take the text colour of the moment and stay crisp at every scale."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QGuiApplication, QIcon, QIconEngine, QImage, QPainter, QPalette, QPixmap, QPixmapCache
from PySide6.QtSvg import QSvgRenderer

_ROLES = {"": QPalette.ColorRole.ButtonText, "on_accent": QPalette.ColorRole.HighlightedText}
_ROLES |= {"muted": QPalette.ColorRole.PlaceholderText, "accent": QPalette.ColorRole.Accent}
_GROUPS = {QIcon.Mode.Disabled: QPalette.ColorGroup.Disabled}


class SvgIconEngine(QIconEngine):
    """Draws a one-colour SVG (stroke="currentColor") when asked, so that a change of colours needs no new icons.

    `clone` is left out on purpose: Qt calls it only when a shared icon is edited (addPixmap, addFile); nobody does,
    and an engine made in Python would die with its wrapper.
    """

    def __init__(self, path: Path, colour: str = "") -> None:
        super().__init__()
        self._path = path
        self._colour = colour

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        """Draw the icon centred in `rect`, in device pixels."""
        ratio = painter.device().devicePixelRatioF()
        painter.drawPixmap(QPointF(rect.topLeft()), self.scaledPixmap(rect.size(), mode, state, ratio))

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        """The icon at a device pixel ratio of 1."""
        return self.scaledPixmap(size, mode, state, 1.0)

    def scaledPixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State, scale: float) -> QPixmap:
        """The icon of `size` logical pixels at a device pixel ratio of `scale`."""
        colour = self._palette_colour(mode) if self._colour in _ROLES else self._colour
        key = f"studio/{self._path}/{colour}/{size.width()}x{size.height()}@{scale}"
        found = QPixmap()
        if not QPixmapCache.find(key, found):
            found = _render(self._path, colour, size, scale)
            QPixmapCache.insert(key, found)
        return found

    def key(self) -> str:
        """The name of this kind of engine."""
        return "studio-svg"

    def _palette_colour(self, mode: QIcon.Mode) -> str:
        group = _GROUPS.get(mode, QPalette.ColorGroup.Active)
        return QGuiApplication.palette().color(group, _ROLES[self._colour]).name()


@lru_cache(maxsize=128)
def _source(path: Path) -> str:
    """The text of an SVG; an empty drawing when there is no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"/>'


def _render(path: Path, colour: str, size: QSize, scale: float) -> QPixmap:
    side = max(1, round(min(size.width(), size.height()) * scale))
    image = QImage(round(size.width() * scale), round(size.height() * scale), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    renderer = QSvgRenderer(QByteArray(_source(path).replace("currentColor", colour).encode()))
    renderer.render(painter, QRectF((image.width() - side) // 2, (image.height() - side) // 2, side, side))
    painter.end()
    image.setDevicePixelRatio(scale)
    return QPixmap.fromImage(image)
