"""A plot for experiments: curves over a quantity, with marks. Importing the module imports pyqtgraph (0.4 s)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QSizePolicy

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.plot.canvas import ThemedPlot, Ticks, ValueAxis, bare_plot, pen, restyle_plot, widened
from studio.app.widgets.plot.legend import LegendEntry, PlotLegend
from studio.app.widgets.plot.series import LineStyle
from studio.core.formatting import number
from studio.lab.outcome import ROOM_FOR_MARKS, Axis, Line, Plot

_HEIGHT, _LEAST_WIDTH = 240, 260  # logical pixels
_MOST_DECADES = 3  # more decades get ticks at powers of ten only
_DOT = 6
_MARGIN = 0.04


class _PlaceAxis(ValueAxis):
    """An axis with ticks at the data points if few, at powers of ten over many decades, or at whole numbers."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self.places: list[float] = []
        self.is_whole = False  # no ticks at fractions of a linear axis

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Ticks:  # noqa: N803
        if self.places:
            return [(1.0, _scaled(self.places, self.logMode))]
        if self.logMode and maxVal - minVal > _MOST_DECADES:
            return [(1.0, list(map(float, range(math.ceil(minVal), math.floor(maxVal) + 1))))]
        ticks: Ticks = super().tickValues(minVal, maxVal, size)
        if self.is_whole and not self.logMode:
            return [(step, [value for value in values if value == round(value)]) for step, values in ticks]
        return ticks

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """Return labels: 1024.0 -> '1,024'."""
        if not self.places:
            texts: list[str] = super().tickStrings(values, scale, spacing)
            return texts
        return [number(round(10**value if self.logMode else value)) for value in values]


class XYPlot(ThemedPlot):
    """Widget for a `Plot`, without zoom or pan."""

    def __init__(self) -> None:
        super().__init__()
        self._plot = Plot("", Axis(""), Axis(""), ())
        self._compared: tuple[Line, ...] = ()
        self._bottom = _PlaceAxis("bottom")
        self.widget = bare_plot({"bottom": self._bottom, "left": _PlaceAxis("left")})
        self._item: Any = self.widget.getPlotItem()
        self.legend = PlotLegend(has_values=False)
        self.title = factory.text("", "heading", wrap=False)
        self.setLayout(factory.column(self.title, self.legend, self.widget, spacing=4, margin=factory.GRID // 2))
        self._item.setMouseEnabled(x=False, y=False)
        self._item.getViewBox().disableAutoRange()
        self.widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.take_tab_focus()
        self.widget.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)  # the wheel scrolls the page
        self.widget.setFixedHeight(_HEIGHT)
        self.setMinimumWidth(_LEAST_WIDTH)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def show_plot(self, plot: Plot, compared: tuple[Line, ...] = ()) -> None:
        """Draw a plot. compared: another result's lines, drawn dashed."""
        self._plot, self._compared = plot, compared
        self.title.setText(plot.title)
        self.setAccessibleName(plot.title)
        self.setAccessibleDescription(dataclasses.replace(plot, lines=(*plot.lines, *compared)).describe())
        self.restyle()

    def restyle(self) -> None:
        plot, scale = self._plot, self.devicePixelRatioF()
        self._item.clear()
        restyle_plot(self.widget, {"bottom": plot.x.title, "left": plot.y.title})
        self._bottom.setLogMode(plot.x.log)
        self._item.getAxis("left").setLogMode(plot.y.log)
        lines = [*plot.lines, *self._compared]
        shown = dataclasses.replace(plot, lines=tuple(lines))
        self._bottom.places, self._bottom.is_whole = shown.tick_positions(), shown.has_whole_x()
        for name in ("bottom", "left"):
            self._item.getAxis(name).setGrid(30)
        styles = [LineStyle("bold", index, dashed=index >= len(plot.lines)) for index in range(len(lines))]
        for line, style in zip(lines, styles, strict=True):
            tint = style.colour()
            item = pg.PlotDataItem(
                _scaled(line.x, plot.x.log), _scaled(line.y, plot.y.log), antialias=True,
                pen=_line_pen(tint, 2 * scale, dashed=style.dashed), symbol="o" if line.dots else None, symbolSize=_DOT,
                symbolBrush=QColor(tint), symbolPen=None,
            )  # fmt: skip
            self._item.addItem(item, ignoreBounds=True)
        entries = [LegendEntry(line.name, style) for line, style in zip(lines, styles, strict=True)]
        self.legend.show_values(entries, [""] * len(lines))
        self.legend.setVisible(len(lines) > 1)
        self._fit(lines)
        self._mark()

    def _mark(self) -> None:
        colours = theme.colours()
        (left, right), _ = self._item.getViewBox().viewRange()
        for mark in self._plot.marks:
            (x,) = _scaled([mark.x], self._plot.x.log)
            side = 1 if x > left + 0.8 * (right - left) else 0  # side of the line with more room
            label = {"position": 0.98, "color": colours.text, "anchors": [(side, 0), (side, 0)]}
            ink = _line_pen(colours.muted, self.devicePixelRatioF(), dashed=True)
            line = pg.InfiniteLine(x, 90, ink, False, label=mark.words, labelOpts=label)
            self._item.addItem(line, ignoreBounds=True)

    def _fit(self, lines: Sequence[Line]) -> None:
        x = np.array([value for line in lines for value in _scaled(line.x, self._plot.x.log)])
        y = np.array([value for line in lines for value in _scaled(line.y, self._plot.y.log)])
        if not len(x):
            return
        low = float(y.min()) if self._plot.y.log else 0.0
        (left, right), (low, high) = widened(float(x.min()), float(x.max())), widened(low, float(y.max()))
        if self._plot.marks:
            high += ROOM_FOR_MARKS * (high - low)
        self._item.getViewBox().setRange(xRange=(left, right), yRange=(low, high), padding=_MARGIN)


def _scaled(values: Sequence[float], log: bool) -> list[float]:
    return [math.log10(value) for value in values] if log else list(values)


def _line_pen(colour: str, width: float, *, dashed: bool) -> Any:
    made = pen(colour, width)
    if dashed:
        made.setStyle(Qt.PenStyle.DashLine)
    return made
