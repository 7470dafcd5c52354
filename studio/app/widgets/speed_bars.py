"""How fast a device is, as bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio.app import theme
from studio.core import wording

_BAR = 8  # pixels high
_GAP = 8
_WORDS = {"fp32": "full precision (fp32)", "bf16": "mixed precision (bf16)", "fp16": "mixed precision (fp16)"}


@dataclass(frozen=True)
class Speed:
    """What a device did in one precision; the milliseconds are those of a step."""

    sprites_per_s: float
    transfer_ms: float
    compute_ms: float


class SpeedBars(QWidget):
    """One bar of sprites per second for each precision; below, the time of a step, split, in the faster one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._speeds: list[tuple[str, Speed]] = []
        self._longest = 1.0
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setVisible(False)

    def set_speeds(self, speeds: Mapping[str, Speed], longest: float) -> None:
        """Show these, by precision; a bar of the whole width would be `longest` sprites per second."""
        known = [name for name in _WORDS if name in speeds] + sorted(set(speeds) - set(_WORDS))
        self._speeds = [(name, speeds[name]) for name in known]
        self._longest = max(longest, 1e-9)
        words = "\n".join(_sentence(name, speed) for name, speed in self._speeds)
        self.setToolTip(words)
        self.setAccessibleName("Measured speed")
        self.setAccessibleDescription(words)
        self.setVisible(bool(self._speeds))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """A row for each precision and two for the step."""
        return QSize(240, (len(self._speeds) + 2) * self._row())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Labels left, numbers right, bars between them."""
        if not self._speeds:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = theme.colours()
        for index, (name, speed) in enumerate(self._speeds):
            share = speed.sprites_per_s / self._longest
            bar = self._paint_words(painter, index, name, wording.rate(speed.sprites_per_s))
            self._paint_bar(painter, bar, [(share, colours.accent)])
        fastest = max((speed for _, speed in self._speeds), key=_rate)
        whole = fastest.transfer_ms + fastest.compute_ms or 1.0
        bar = self._paint_words(painter, len(self._speeds), "step", _milliseconds(whole))
        parts = [(fastest.transfer_ms / whole, colours.curves[1]), (fastest.compute_ms / whole, colours.curves[2])]
        self._paint_bar(painter, bar, parts)
        self._paint_split(painter, fastest)

    def _paint_words(self, painter: QPainter, row: int, label: str, value: str) -> QRectF:
        """Draw a row's texts; returns the place of its bar."""
        metrics, colours = self.fontMetrics(), theme.colours()
        left = metrics.horizontalAdvance("fp32 ") + _GAP
        right = metrics.horizontalAdvance("88,888 sprites/s") + _GAP
        place = QRectF(0, row * self._row(), self.width(), self._row())
        painter.setPen(QColor(colours.muted))
        painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, label)
        painter.setPen(QColor(colours.text))
        painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, value)
        return QRectF(left, place.center().y() - _BAR / 2, max(24, self.width() - left - right), _BAR)

    def _paint_bar(self, painter: QPainter, bar: QRectF, parts: list[tuple[float, str]]) -> None:
        colours = theme.colours()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.mix(colours.window, colours.text, 0.1)))
        painter.drawRect(bar)
        left = bar.left()
        for share, colour in parts:
            width = max(1.0, share * bar.width())  # a little is not nothing
            width = min(width, bar.right() - left)
            painter.fillRect(QRectF(left, bar.top(), width, bar.height()), QColor(colour))
            left += width

    def _paint_split(self, painter: QPainter, speed: Speed) -> None:
        """Name the two parts of the step's bar, each with its colour."""
        metrics, colours = self.fontMetrics(), theme.colours()
        place = QRectF(0, (len(self._speeds) + 1) * self._row(), self.width(), self._row())
        for colour, milliseconds, word in (
            (colours.curves[1], speed.transfer_ms, "transfer"),
            (colours.curves[2], speed.compute_ms, "compute"),
        ):
            painter.fillRect(QRectF(place.left(), place.center().y() - 4, 8, 8), QColor(colour))
            place.setLeft(place.left() + 12)
            text = f"{word} {_milliseconds(milliseconds)}"
            painter.setPen(QColor(colours.muted))
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
            place.setLeft(place.left() + metrics.horizontalAdvance(text) + _GAP)

    def _row(self) -> int:
        return self.fontMetrics().height() + 2


def _rate(speed: Speed) -> float:
    return speed.sprites_per_s


def _milliseconds(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 9.95 else f"{value:.2g} ms"


def _sentence(precision: str, speed: Speed) -> str:
    return (
        f"{wording.rate(speed.sprites_per_s)} in {_WORDS.get(precision, precision)}: a step takes "
        f"{_milliseconds(speed.transfer_ms)} of transfer and {_milliseconds(speed.compute_ms)} of compute."
    )
