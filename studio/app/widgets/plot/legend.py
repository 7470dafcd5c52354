"""The plot's legend and the crosshair, whose values the legend shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio.app import theme
from studio.app.widgets.plot.canvas import PlotCanvas
from studio.app.widgets.plot.series import MARK_TITLES, LineStyle, MarkKind, StepMark, StyledCurve, mark_colour
from studio.core import formatting

_SWATCH = 18
_GAP = 6
_BETWEEN = 16
_LONGEST_LABEL, _LONGEST_NAME = 150, 260  # with and without a value
_WIDEST_VALUE = "0.08888"  # "1.234e-05" extends into the gap before the next entry
_WIDEST_STEP = "8,888,888"
_NEAR = 5  # pixels; a mark this close to the crosshair is named


@dataclass(frozen=True)
class LegendEntry:
    """An entry of the legend: a curve with a style, a kind of mark, or the crosshair's step."""

    label: str
    style: LineStyle | None = None
    unit: str = ""
    mark: MarkKind | None = None

    @property
    def widest_value(self) -> str:
        """The widest text beside the label."""
        if self.mark is not None:
            return ""
        return f"{_WIDEST_VALUE} {self.unit}".rstrip() if self.style is not None else _WIDEST_STEP


class PlotLegend(QWidget):
    """A legend in wrapping rows. Entries have a fixed width, so that changing values don't move them."""

    def __init__(self, *, has_values: bool = True) -> None:
        """Create a legend. has_values: whether each entry has room for a value after its label."""
        super().__init__()
        self._has_values = has_values
        self._longest_label = _LONGEST_LABEL if has_values else _LONGEST_NAME
        self._entries: list[LegendEntry] = []
        self._values: list[str] = []
        self._reserved: list[LegendEntry] = []
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName("Values under the crosshair" if has_values else "Legend")

    def reserve(self, marks: Sequence[MarkKind]) -> None:
        """Keep room for these kinds of marks, so that the plot doesn't jump when the first mark is drawn."""
        self._reserved = _mark_entries(marks)
        self.updateGeometry()

    def show_values(self, entries: list[LegendEntry], values: list[str]) -> None:
        """Show entries with their values."""
        are_new = entries != self._entries
        if are_new or values != self._values:
            self._entries, self._values = entries, values
            self.update()
        if are_new:
            self.updateGeometry()

    def values(self) -> dict[str, str]:
        """Return the shown values by label."""
        return {entry.label: value for entry, value in zip(self._entries, self._values, strict=True)}

    def heightForWidth(self, width: int) -> int:
        missing = [entry for entry in self._reserved if entry not in self._entries]
        rects = self._rects([*self._entries, *missing], width)
        return (rects[-1].bottom() + 1 if rects else self._row()) + 2

    def sizeHint(self) -> QSize:
        return QSize(320, self.heightForWidth(max(320, self.width())))

    def minimumSizeHint(self) -> QSize:
        """Return the widest entry's width and a row's height."""
        widths = [self._width(entry) for entry in self._entries]
        return QSize(max(widths, default=80), self._row())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for entry, value, rect in zip(
            self._entries, self._values, self._rects(self._entries, self.width()), strict=True
        ):
            self._paint_entry(painter, entry, value, rect)

    def _paint_entry(self, painter: QPainter, entry: LegendEntry, value: str, rect: QRect) -> None:
        colours, metrics = theme.colours(), self.fontMetrics()
        left = rect.left()
        if entry.style is not None:
            _paint_swatch(painter, entry.style, QRectF(left, rect.top(), _SWATCH, rect.height()))
        elif entry.mark is not None:
            painter.fillRect(QRect(left + _SWATCH // 2, rect.top() + 2, 2, rect.height() - 4), mark_colour(entry.mark))
        if entry.style is not None or entry.mark is not None:
            left += _SWATCH + _GAP
        label = metrics.elidedText(entry.label, Qt.TextElideMode.ElideMiddle, self._longest_label)
        width = metrics.horizontalAdvance(label)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.setPen(QColor(colours.muted))
        painter.drawText(QRect(left, rect.top(), width + 1, rect.height()), flags, label)
        painter.setPen(QColor(colours.text))
        left += width + _GAP
        painter.drawText(QRect(left, rect.top(), rect.right() + _BETWEEN - left, rect.height()), flags, value)

    def _rects(self, entries: Sequence[LegendEntry], width: int) -> list[QRect]:
        """Return the rectangles of entries in rows of this width."""
        rects, left, top, row = [], 0, 0, self._row()
        for entry in entries:
            needed = self._width(entry)
            if left and left + needed > width:
                left, top = 0, top + row
            rects.append(QRect(left, top, needed, row))
            left += needed + _BETWEEN
        return rects

    def _width(self, entry: LegendEntry) -> int:
        metrics = self.fontMetrics()
        label = min(metrics.horizontalAdvance(entry.label), self._longest_label)
        swatch = _SWATCH + _GAP if entry.style is not None or entry.mark is not None else 0
        value = metrics.horizontalAdvance(entry.widest_value) if self._has_values else 0
        return swatch + label + (_GAP + value if value else 0)

    def _row(self) -> int:
        return self.fontMetrics().height() + 4


class Crosshair(QObject):
    """A vertical line that follows the mouse; the legend shows the values at its step.

    Without a crosshair, the legend shows the newest values. step_hovered: the crosshair's step. hover_ended: the
    crosshair is hidden.
    """

    step_hovered = Signal(int)
    hover_ended = Signal()

    def __init__(self, canvas: PlotCanvas, legend: PlotLegend, marks: Sequence[StepMark]) -> None:
        super().__init__(canvas)
        self._canvas, self._legend, self._marks = canvas, legend, marks
        self._lines: tuple[StyledCurve, ...] = ()
        self._step: float | None = None

    def set_lines(self, lines: Sequence[StyledCurve]) -> None:
        """Show these curves' values in the legend. The crosshair stops at the longest curve's steps."""
        self._lines = tuple(lines)
        self.refresh()

    def step(self) -> float | None:
        """Return the crosshair's step; None while hidden."""
        return self._step

    def hover(self, near: float | None) -> None:
        """Move to the nearest step with a value; None hides the crosshair."""
        longest = max(self._lines, key=lambda line: len(line.curve.steps), default=None)
        step = longest.nearest_step(near) if longest is not None and near is not None else None
        if near is None:
            self.leave()
        elif step is not None and step != self._step:
            self._step = step
            self.refresh()
            self.step_hovered.emit(int(step))

    def leave(self) -> None:
        """Hide the crosshair and show the newest values."""
        if self._step is not None:
            self._step = None
            self.refresh()
            self.hover_ended.emit()

    def step_by(self, columns: int) -> None:
        """Move the crosshair by device pixels, and at least to the next step."""
        (left, right), _ = self._canvas.ranges()
        steps = max((line.curve.steps for line in self._lines), key=len, default=None)
        if steps is None or not len(steps):
            return
        here = self._step if self._step is not None else float(min(right, steps[-1]))
        ahead = columns * (right - left) / self._canvas.columns()
        index = int(steps.searchsorted(here)) + (1 if columns > 0 else -1)
        next_step = float(steps[max(0, min(index, len(steps) - 1))])
        self.hover(max(here + ahead, next_step) if columns > 0 else min(here + ahead, next_step))

    def refresh(self) -> None:
        """Update the values, because the data or the view has changed."""
        newest = max((float(line.curve.steps[-1]) for line in self._lines if len(line.curve.steps)), default=None)
        shown = self._step if self._step is not None else newest
        step = formatting.number(int(shown)) if shown is not None else "–"
        entries = [LegendEntry("Step"), *(LegendEntry(line.label, line.style, line.unit) for line in self._lines)]
        marked = {mark.kind for mark in self._marks}
        marks = _mark_entries([kind for kind in MARK_TITLES if kind in marked])
        values = [step, *(line.reading(self._step) for line in self._lines), *("" for _ in marks)]
        self._legend.show_values([*entries, *marks], values)
        self._canvas.set_cross(self._step, self._note())

    def _note(self) -> str:
        """Return the text of a mark near the crosshair; '' for none."""
        if self._step is None or not self._marks:
            return ""
        (left, right), _ = self._canvas.ranges()
        distance, nearest = min((abs(mark.step - self._step), number) for number, mark in enumerate(self._marks))
        return self._marks[nearest].text if distance <= _NEAR * (right - left) / self._canvas.columns() else ""


def _mark_entries(kinds: Sequence[MarkKind]) -> list[LegendEntry]:
    return [LegendEntry(MARK_TITLES[kind], mark=kind) for kind in kinds]


def _paint_swatch(painter: QPainter, style: LineStyle, rect: QRectF) -> None:
    middle = rect.center().y()
    line = Qt.PenStyle.DashLine if style.dashed else Qt.PenStyle.SolidLine
    painter.setPen(QPen(QColor(style.colour()), 2.5 if style.kind == "bold" else 1.5, line))
    painter.drawLine(QPointF(rect.left(), middle), QPointF(rect.right(), middle))
    if style.kind == "dots":
        painter.setBrush(QColor(style.colour()))
        painter.drawEllipse(rect.center(), 2.5, 2.5)
