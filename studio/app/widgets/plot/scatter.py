"""A scatter plot of predicted against true numbers. Importing the module imports pyqtgraph (0.4 s)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.plot.canvas import ThemedPlot, ValueAxis, bare_plot, pen, restyle_plot, widened
from studio.core import formatting

_DOT, _DOT_SEEN = 7, 10  # diameters in pixels: a dot, and the hovered dot
_SMALLEST = 160  # logical pixels
_MARGIN = 0.05  # free share of the range around the dots


class ScatterDots(ThemedPlot):
    """A dot for each sprite: x is the true, y the predicted number. Perfect predictions lie on the diagonal."""

    def __init__(self) -> None:
        super().__init__()
        self.widget = bare_plot({"bottom": ValueAxis("bottom"), "left": ValueAxis("left")})
        self.points: Any = pg.ScatterPlotItem(pxMode=True, antialias=True, hoverable=True, tip=_tip, pen=None)
        self._diagonal: Any = pg.InfiniteLine(pos=(0, 0), angle=45, movable=False)
        self._item: Any = self.widget.getPlotItem()
        self.setLayout(factory.column(self.widget, margin=factory.GRID // 4))
        self._prepare()
        self.restyle()

    def set_points(self, points: NDArray[np.float32]) -> None:
        """Show float32 [2, N], predicted and true. Sprites with an unknown true number are skipped."""
        predicted, true = points[:, np.isfinite(points).all(0)].astype(np.float64)
        self.points.setData(x=true, y=predicted)
        both = np.concatenate([predicted, true]) if len(predicted) else np.array([0.0, 1.0])
        low, high = widened(both.min(), both.max())
        self._item.getViewBox().setRange(xRange=(low, high), yRange=(low, high), padding=_MARGIN)
        about = f"{formatting.count(len(predicted), 'sprite')}, a dot each."
        if len(predicted):
            error = formatting.decimal(float(np.abs(predicted - true).mean()))
            about += f" On average, the prediction is {error} away from the true number."
        self.setAccessibleDescription(about)

    def sizeHint(self) -> QSize:
        return QSize(2 * _SMALLEST, 2 * _SMALLEST)

    def minimumSizeHint(self) -> QSize:
        return QSize(_SMALLEST, _SMALLEST)

    def restyle(self) -> None:
        colours = theme.colours()
        restyle_plot(self.widget, {"bottom": "True", "left": "Predicted"})
        self._diagonal.setPen(pen(colours.muted, self.devicePixelRatioF()))
        dots = QColor(colours.accent)
        self.points.opts.update(hoverBrush=pg.mkBrush(dots), hoverPen=pen(colours.text), hoverSize=_DOT_SEEN)
        dots.setAlphaF(0.55)  # overlapping dots look darker
        self.points.setBrush(pg.mkBrush(dots))

    def _prepare(self) -> None:
        """Disable zoom and pan, and use the same scale on both axes."""
        item = self._item
        item.setMouseEnabled(x=False, y=False)
        item.setAspectLocked(True)
        for name in ("bottom", "left"):
            item.getAxis(name).setGrid(30)
        self.points.setSize(_DOT)
        self._diagonal.setZValue(-1)
        for part in (self._diagonal, self.points):
            item.addItem(part, ignoreBounds=True)
        self.widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.take_tab_focus()
        self.setAccessibleName("Predicted and true")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)


def _tip(x: float, y: float, data: object) -> str:
    return formatting.predicted_and_true(y, x)


class ScatterPlot(QWidget):
    """A scatter plot with a combo box that chooses the number."""

    def __init__(self) -> None:
        super().__init__()
        self._pairs: NDArray[np.float32] = np.zeros((2, 0, 0), np.float32)
        self.choice = factory.combo("Number", "The column of numbers to plot.")
        self.dots = ScatterDots()
        self.setLayout(factory.column(self.choice, self.dots, spacing=factory.GRID // 2))
        self.choice.currentIndexChanged.connect(self._on_number_chosen)

    def set_pairs(self, pairs: NDArray[np.float32], names: Sequence[str]) -> None:
        """Show float32 [2, N, T], predicted and true values of N sprites and T numbers with these names."""
        self._pairs = pairs
        if [self.choice.itemText(index) for index in range(self.choice.count())] != list(names):
            factory.fill_combo(self.choice, zip(names, names, strict=True), "")
            self.choice.setVisible(len(names) > 1)
        self._on_number_chosen()

    @Slot()
    def _on_number_chosen(self) -> None:
        self.dots.set_points(self._pairs[:, :, max(0, self.choice.currentIndex())])
