"""The legend of a plot, which is also where the crosshair's values are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio.app import theme
from studio.app.widgets.plot.area import Look

_SWATCH = 18
_GAP = 6
_BETWEEN = 16
_LONGEST_LABEL = 150
_WIDEST_VALUE = "0.08888"  # "1.234e-05" reaches into the gap to the next part
_WIDEST_STEP = "8,888,888"


@dataclass(frozen=True)
class Entry:
    """One part of the legend: a curve, its look and the unit of its values. Without a look it shows the step."""

    label: str
    look: Look | None = None
    unit: str = ""


STEP = Entry("Step")


class PlotLegend(QWidget):
    """Parts of fixed width in rows that wrap: nothing moves when values change."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries: tuple[Entry, ...] = ()
        self._values: tuple[str, ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName("Values under the crosshair")

    def set_entries(self, entries: Sequence[Entry]) -> None:
        """Show these parts, their values not known yet."""
        if tuple(entries) != self._entries:
            self._entries = tuple(entries)
            self._values = ("",) * len(entries)
            self.updateGeometry()
            self.update()

    def set_values(self, values: Sequence[str]) -> None:
        """Show a value for each part."""
        if tuple(values) != self._values:
            self._values = tuple(values)
            self.update()

    def values(self) -> dict[str, str]:
        """What is shown, by label."""
        return {entry.label: value for entry, value in zip(self._entries, self._values, strict=True)}

    def heightForWidth(self, width: int) -> int:
        """So many rows as the parts need."""
        places = self._places(width)
        return (places[-1].bottom() + 1 if places else self._row()) + 2

    def sizeHint(self) -> QSize:
        """One row."""
        return QSize(320, self.heightForWidth(max(320, self.width())))

    def minimumSizeHint(self) -> QSize:
        """It may be as narrow as its widest part."""
        widths = [self._width(entry) for entry in self._entries]
        return QSize(max(widths, default=80), self._row())

    def changeEvent(self, event: QEvent) -> None:
        """Another font needs other widths."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Swatch, label, value."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for entry, value, place in zip(self._entries, self._values, self._places(self.width()), strict=True):
            self._paint_entry(painter, entry, value, place)

    def _paint_entry(self, painter: QPainter, entry: Entry, value: str, place: QRect) -> None:
        colours, metrics = theme.colours(), self.fontMetrics()
        left = place.left()
        if entry.look is not None:
            _paint_swatch(painter, entry.look, QRectF(left, place.top(), _SWATCH, place.height()))
            left += _SWATCH + _GAP
        label = metrics.elidedText(entry.label, Qt.TextElideMode.ElideMiddle, _LONGEST_LABEL)
        width = metrics.horizontalAdvance(label)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.setPen(QColor(colours.muted))
        painter.drawText(QRect(left, place.top(), width + 1, place.height()), flags, label)
        painter.setPen(QColor(colours.text))
        left += width + _GAP
        painter.drawText(QRect(left, place.top(), place.right() + _BETWEEN - left, place.height()), flags, value)

    def _places(self, width: int) -> list[QRect]:
        places, left, top, row = [], 0, 0, self._row()
        for entry in self._entries:
            needed = self._width(entry)
            if left and left + needed > width:
                left, top = 0, top + row
            places.append(QRect(left, top, needed, row))
            left += needed + _BETWEEN
        return places

    def _width(self, entry: Entry) -> int:
        metrics = self.fontMetrics()
        label = min(metrics.horizontalAdvance(entry.label), _LONGEST_LABEL)
        swatch = _SWATCH + _GAP if entry.look is not None else 0
        widest = _WIDEST_VALUE if entry.look is not None else _WIDEST_STEP
        return swatch + label + _GAP + metrics.horizontalAdvance(f"{widest} {entry.unit}".rstrip())

    def _row(self) -> int:
        return self.fontMetrics().height() + 4


def _paint_swatch(painter: QPainter, look: Look, place: QRectF) -> None:
    """A piece of the curve."""
    middle = place.center().y()
    painter.setPen(QPen(QColor(look.colour()), 2.5 if look.style == "bold" else 1.5))
    painter.drawLine(QPointF(place.left(), middle), QPointF(place.right(), middle))
    if look.style == "dots":
        painter.setBrush(QColor(look.colour()))
        painter.drawEllipse(place.center(), 2.5, 2.5)
