"""The pyqtgraph part of a plot: axes, lines, marks and crosshair, in the theme's colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QPen
from PySide6.QtWidgets import QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.plot.series import LineKind, MarkKind, StyledCurve, mark_colour
from studio.core import curves
from studio.core.curves import Range, Values
from studio.core.formatting import axis_label

Ticks = list[tuple[float, Sequence[float]]]

_ORDER: dict[LineKind, int] = {"raw": 1, "thin": 2, "bold": 3, "dots": 4}
_WIDTHS: dict[LineKind, float] = {"raw": 0, "thin": 1, "bold": 2, "dots": 1}  # in logical pixels; 0 is a device pixel
_AXIS_WIDTH = 52
_DOT_ROOM = 7  # pixels; denser dots are hidden
_WIDE = 8.0  # log axes with a smaller ratio get ticks at round numbers


class ThemedPlot(QWidget):
    """Base class of widgets with a pyqtgraph plot; restyles the plot for another theme or screen."""

    def event(self, event: QEvent) -> bool:
        """Restyle the plot for another theme or another pixel ratio."""
        done = super().event(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.DevicePixelRatioChange):
            self.restyle()
        return done

    def restyle(self) -> None:
        """Apply the theme's colours, and line widths for the screen's pixel ratio."""
        raise NotImplementedError

    def take_tab_focus(self) -> None:
        """Make Tab reach the plot, which then shows a frame; a screen reader reads the plot's description."""
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setObjectName("plot")  # shows the focus
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)


class PlotCanvas(ThemedPlot):
    """Plot area with lines over steps, thinned to its width. view_changed: the visible range or the size changed.

    moved_by_user: whether the user changed the range of steps, and whether the range of values.
    """

    view_changed = Signal()
    moved_by_user = Signal(bool, bool)

    def __init__(self) -> None:
        super().__init__()
        self.widget = bare_plot({"bottom": StepAxis("bottom"), "left": ValueAxis("left")})
        self._item: Any = self.widget.getPlotItem()
        self._box: Any = self._item.getViewBox()
        self._lines: list[tuple[StyledCurve, Any, Any]] = []  # line, pyqtgraph curve, pyqtgraph dots
        self._marks: dict[MarkKind, Any] = {}
        self._cross: Any = pg.InfiniteLine(angle=90, movable=False)
        self._note: Any = pg.TextItem(anchor=(0, 0))
        self._set: tuple[Range, Range] = ((0.0, 1.0), (0.0, 1.0))
        self._log = self._from_zero = False
        self._step_label = "Step"
        self.setLayout(factory.column(self.widget))
        self._prepare()
        self.restyle()

    def columns(self) -> int:
        """Return the width of the curves in device pixels."""
        return max(16, int(self._box.width() * self.devicePixelRatioF()))

    def ranges(self) -> tuple[Range, Range]:
        """Return the visible range of steps and of values."""
        (left, right), (low, high) = self._box.viewRange()
        return (left, right), (low, high)

    def set_ranges(self, steps: Range, values: Range) -> None:
        self._set = (steps, values)
        if self._set != self.ranges():
            self._box.setRange(xRange=steps, yRange=values, padding=0, disableAutoRange=True)
            self._set = self.ranges()

    def set_lines(self, lines: Sequence[StyledCurve]) -> None:
        for _, curve, dots in self._lines:
            self._item.removeItem(curve)
            self._item.removeItem(dots)
        self._lines = []
        for line in lines:
            curve = pg.PlotCurveItem(antialias=False)
            dots = pg.ScatterPlotItem(size=5 if line.style.kind == "dots" else 0, pxMode=True, antialias=True)
            for item in (curve, dots):
                item.setZValue(_ORDER[line.style.kind])
                self._item.addItem(item, ignoreBounds=True)
            self._lines.append((line, curve, dots))
        self.restyle()

    def set_value_axis(self, *, log: bool, from_zero: bool) -> None:
        """Use a logarithmic or a linear value axis. from_zero: a linear axis that includes 0."""
        self._log, self._from_zero = log, from_zero and not log
        self._item.getAxis("left").setLogMode(y=log)

    def draw(self, steps: Range, *, fit_values: bool, detail: int = 1) -> None:
        """Draw the lines between two steps, `detail` points a pixel. fit_values: fit the value range to the lines."""
        drawn = [line.points(*steps, self.columns() * detail, log=self._log) for line, _, _ in self._lines]
        shown = self._fit_values(drawn) if fit_values else self.ranges()[1]
        self.set_ranges(steps, shown)
        self._label_steps(curves.describe_off_range(drawn, shown) if fit_values else "")
        for (line, curve, dots), (xs, values) in zip(self._lines, drawn, strict=True):
            whole = bool(np.isfinite(values).all())
            curve.setData(xs, values, connect="all" if whole else "finite", skipFiniteCheck=whole)
            if line.style.kind == "dots":
                few = len(xs) * _DOT_ROOM <= self._box.width()
                dots.setData(xs if few else [], values if few else [])

    def draw_marks(self, kind: MarkKind, steps: Values) -> None:
        """Replace the marks of a kind by vertical lines at these steps; dense lines are short."""
        curve = self._marks.get(kind)
        if curve is None:
            curve = self._marks[kind] = pg.PlotCurveItem(connect="pairs", skipFiniteCheck=True)
            curve.setZValue(0 if kind == "checkpoint" else 2.5)  # important marks lie over the raw curve
            self._item.addItem(curve, ignoreBounds=True)
            self.restyle()
        (left, right), (low, high) = self.ranges()
        seen = steps[(steps >= left) & (steps <= right)]
        top = high if len(seen) * 24 <= self._box.width() else low + 0.04 * (high - low)
        curve.setData(np.repeat(seen, 2), np.tile([low, top], len(seen)), connect="pairs", skipFiniteCheck=True)

    def set_cross(self, step: float | None, note: str = "") -> None:
        """Move the crosshair to a step, with a note beside it; None hides both."""
        self._cross.setVisible(step is not None)
        self._note.setVisible(bool(note) and step is not None)
        if step is None:
            return
        self._cross.setPos(step)
        if note:
            (left, right), (_, high) = self.ranges()
            self._note.setText(note, color=theme.colours().text)
            self._note.setAnchor((1.0 if step > left + 0.7 * (right - left) else 0.0, 0.0))
            self._note.setPos(step, high)

    def at(self, position: QPointF) -> tuple[float | None, float]:
        """Return the step (None outside the curves) and the value (its logarithm in log mode) at a canvas position."""
        scene = self.widget.mapToScene(position.toPoint())
        point = self._box.mapSceneToView(scene)
        inside = self._box.sceneBoundingRect().contains(scene)
        return (float(point.x()) if inside else None), float(point.y())

    def is_over_values(self, position: QPointF) -> bool:
        """Return whether a canvas position is over the value axis."""
        return bool(self.widget.mapToScene(position.toPoint()).x() < self._box.sceneBoundingRect().left())

    def restyle(self, scale: float = 1.0) -> None:
        """Use the theme's colours. scale: factor on line widths, since pens count device pixels."""
        colours, scale = theme.colours(), scale * self.devicePixelRatioF()
        restyle_plot(self.widget, {"bottom": self._step_label})
        self._item.getAxis("bottom").setTickPen(pen(colours.border))
        self._item.getAxis("left").setGrid(30)  # no vertical grid: it looks like marks and costs 1 ms
        for line, curve, dots in self._lines:
            curve.setPen(pen(line.style.colour(), scale * _WIDTHS[line.style.kind]))
            dots.setPen(None)
            dots.setBrush(line.style.colour())
        for kind, curve in self._marks.items():
            curve.setPen(pen(mark_colour(kind), scale))
        self._cross.setPen(pen(colours.muted, scale))
        self._note.fill.setColor(QColor(colours.surface))

    def _fit_values(self, drawn: Sequence[tuple[Values, Values]]) -> Range:
        """Return the range of values to show: every value, except a few outliers in raw curves."""
        kinds = [line.style.kind for line, _, _ in self._lines]
        # Smoothed curves lie within their raw curves, and would stretch a raw outlier over many steps.
        rough = [points for kind, points in zip(kinds, drawn, strict=True) if kind != "bold"]
        filled = [line.curve.steps for line, _, _ in self._lines if len(line.curve.steps)]
        run = None
        if filled and rough and not self._log and set(kinds) != {"dots"}:
            run = min(float(steps[0]) for steps in filled), max(float(steps[-1]) for steps in filled)
        return curves.values_range(rough or drawn, self.ranges()[1], run, from_zero=self._from_zero)

    def _label_steps(self, note: str) -> None:
        """Label the step axis, with a note about values that are off the value axis."""
        label = f"Step ({note})" if note else "Step"
        if label != self._step_label:
            self._step_label = label
            restyle_plot(self.widget, {"bottom": label})
            self._item.getAxis("bottom").resizeEvent()  # else the new label is not centred

    def _prepare(self) -> None:
        """Switch off pyqtgraph's thinning and auto range, which take several times as long for a million points."""
        item, box = self._item, self._box
        item.setDownsampling(auto=False)
        item.setClipToView(False)
        box.disableAutoRange()
        box.setLimits(minXRange=2)
        item.getAxis("left").setWidth(_AXIS_WIDTH)
        for extra in (self._cross, self._note):
            extra.setZValue(9)
            extra.setVisible(False)
            item.addItem(extra, ignoreBounds=True)
        self.widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        box.sigRangeChanged.connect(self.view_changed)
        box.sigResized.connect(self.view_changed)
        box.sigRangeChangedManually.connect(self._on_range_changed_manually)

    @Slot()
    def _on_range_changed_manually(self, *_: object) -> None:
        steps, values = self.ranges()
        self.moved_by_user.emit(steps != self._set[0], values != self._set[1])


class StepAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """An axis of whole steps with thousands separators."""

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """Return labels: 10000.0 -> '10,000', 0.5 -> ''."""
        return [f"{value:,.0f}" if abs(value - round(value)) < 1e-6 else "" for value in values]


class ValueAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """An axis of values. In log mode, only 1, 2 and 5 are labelled, so that labels don't overlap."""

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Ticks:  # noqa: N803
        """Return tick positions, as logarithms in log mode."""
        if not self.logMode or maxVal - minVal > 12:  # over 12 decades, pyqtgraph thins ticks well
            ticks: Ticks = super().tickValues(minVal, maxVal, size)
            return ticks
        low, high = 10.0**minVal, 10.0**maxVal
        if high < _WIDE * low:
            return [(1.0, np.log10(_round_numbers(low, high)).tolist())]
        decades = range(math.floor(minVal), math.ceil(maxVal) + 1)
        xs = [(digit, decade + math.log10(digit)) for decade in decades for digit in range(1, 10)]
        seen = [(digit, position) for digit, position in xs if minVal <= position <= maxVal]
        labelled = [position for digit, position in seen if digit in (1, 2, 5)]
        return [(1.0, labelled), (0.1, [position for digit, position in seen if digit not in (1, 2, 5)])]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """Return labels: 0.05 -> '0.05', 10000.0 -> '10,000'; '' for ticks between 1, 2 and 5 in log mode."""
        if self.logMode:
            return [axis_label(10.0**value) if spacing >= 1 else "" for value in values]
        texts: list[str] = super().tickStrings(values, scale, spacing)
        return [
            axis_label(value) if abs(value) >= 1000 or "e" in text else text
            for value, text in zip(values, texts, strict=True)
        ]


def bare_plot(axes: Mapping[str, pg.AxisItem]) -> pg.PlotWidget:
    """Return a pyqtgraph widget with these axes ('bottom', 'left') and without menu, buttons or frame."""
    widget = pg.PlotWidget(axisItems=axes, enableMenu=False)
    widget.setFrameShape(pg.PlotWidget.Shape.NoFrame)
    item = widget.getPlotItem()
    item.hideButtons()
    item.setContentsMargins(4, 6, 12, 4)
    for axis in axes.values():
        axis.setTickFont(_small_font())
        axis.enableAutoSIPrefix(False)
        axis.setStyle(tickLength=0, tickTextOffset=6, maxTickLevel=1)
    return widget


def restyle_plot(widget: pg.PlotWidget, labels: Mapping[str, str]) -> None:
    """Apply the theme's colours to background and axes, and set axis labels."""
    colours = theme.colours()
    widget.setBackground(colours.surface)
    points = f"{_small_font().pointSizeF():.1f}pt"
    for name in ("bottom", "left"):
        axis = widget.getPlotItem().getAxis(name)
        axis.setPen(pen(colours.border))
        axis.setTickPen(pen(colours.text))
        axis.setTextPen(pen(colours.muted))
        if name in labels:
            axis.setLabel(labels[name], **{"color": colours.muted, "font-size": points})


def widened(low: float, high: float) -> Range:
    """Return the range, widened by 0.5 on both sides if it is empty."""
    return (low, high) if low < high else (low - 0.5, low + 0.5)


def pen(colour: str, width: float = 1) -> QPen:
    """Return a pen of a whole number of device pixels."""
    pen: QPen = pg.mkPen(colour, width=max(1, round(width)))
    return pen


def _small_font() -> QFont:
    font = QFont()
    font.setPointSizeF(font.pointSizeF() * 0.88)
    return font


def _round_numbers(low: float, high: float) -> list[float]:
    """Return four to nine round numbers (1, 2 or 5 times a power of ten) between two values."""
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = max(factor for factor in (1, 2, 5) if factor * power * 4 <= high - low or factor == 1) * power
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]
