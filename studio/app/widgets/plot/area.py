"""The part of a plot that pyqtgraph draws: axes, curves, marks and the crosshair, in the colours of the theme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QPen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from studio.app import theme
from studio.app.widgets.plot.axes import StepAxis, ValueAxis
from studio.core.curves import Range, Values

Style = Literal["raw", "bold", "thin", "dots"]

_ORDER: dict[Style, int] = {"raw": 1, "thin": 2, "bold": 3, "dots": 4}
_WIDTHS: dict[Style, float] = {"raw": 0, "thin": 1, "bold": 2, "dots": 1}  # 0 is one pixel, on every screen
_AXIS_WIDTH = 52
_DOT_ROOM = 7  # pixels; dots that lie closer are left out


@dataclass(frozen=True)
class Look:
    """How a curve is drawn: its style and which of the theme's curve colours it has."""

    style: Style
    tint: int = 0

    def colour(self) -> str:
        """Its colour now."""
        colours = theme.colours()
        full = colours.curves[self.tint % len(colours.curves)]
        return theme.mix(colours.surface, full, 0.42) if self.style == "raw" else full


class PlotArea(QWidget):
    """Draws arrays that are thin enough to be drawn; in log mode their values are logarithms already.

    view_changed: what is visible is another, through the user or a resize. moved_by_user: whether the steps and whether
    the values have been moved.
    """

    view_changed = Signal()
    moved_by_user = Signal(bool, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.canvas = pg.PlotWidget(axisItems={"bottom": StepAxis("bottom"), "left": ValueAxis("left")})
        self._item: Any = self.canvas.getPlotItem()
        self._box: Any = self._item.getViewBox()
        self._curves: list[tuple[Look, Any, Any]] = []
        self._marks: dict[str, Any] = {}
        self._cross: Any = pg.InfiniteLine(angle=90, movable=False)
        self._note: Any = pg.TextItem(anchor=(0, 0))
        self._set: tuple[Range, Range] = ((0.0, 1.0), (0.0, 1.0))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.canvas)
        self._prepare()
        self.restyle()

    def columns(self) -> int:
        """How many pixels wide the curves are."""
        return max(16, int(self._box.width() * self.devicePixelRatioF()))

    def ranges(self) -> tuple[Range, Range]:
        """The visible steps and values."""
        (left, right), (low, high) = self._box.viewRange()
        return (left, right), (low, high)

    def set_ranges(self, steps: Range, values: Range) -> None:
        """Show this part."""
        self._set = (steps, values)
        if self._set != self.ranges():
            self._box.setRange(xRange=steps, yRange=values, padding=0, disableAutoRange=True)
            self._set = self.ranges()

    def set_looks(self, looks: Sequence[Look]) -> None:
        """Prepare for so many curves."""
        for _, curve, dots in self._curves:
            self._item.removeItem(curve)
            self._item.removeItem(dots)
        self._curves = []
        for look in looks:
            curve = pg.PlotCurveItem(antialias=False)
            dots = pg.ScatterPlotItem(size=5 if look.style == "dots" else 0, pxMode=True, antialias=True)
            for item in (curve, dots):
                item.setZValue(_ORDER[look.style])
                self._item.addItem(item, ignoreBounds=True)
            self._curves.append((look, curve, dots))
        self.restyle()

    def draw(self, index: int, steps: Values, values: Values) -> None:
        """Draw a curve; where it is not a number there is a gap."""
        look, curve, dots = self._curves[index]
        whole = bool(np.isfinite(values).all())
        curve.setData(steps, values, connect="all" if whole else "finite", skipFiniteCheck=whole)
        if look.style == "dots":
            few = len(steps) * _DOT_ROOM <= self._box.width()
            dots.setData(steps if few else [], values if few else [])

    def draw_marks(self, kind: str, steps: Values) -> None:
        """Draw vertical lines over the visible height; short ones where they are dense."""
        curve = self._marks.get(kind)
        if curve is None:
            curve = self._marks[kind] = pg.PlotCurveItem(connect="pairs", skipFiniteCheck=True)
            curve.setZValue(0 if kind == "checkpoint" else 2.5)  # what matters more lies over the raw curve
            self._item.addItem(curve, ignoreBounds=True)
            self.restyle()
        (left, right), (low, high) = self.ranges()
        seen = steps[(steps >= left) & (steps <= right)]
        top = high if len(seen) * 24 <= self._box.width() else low + 0.04 * (high - low)
        curve.setData(np.repeat(seen, 2), np.tile([low, top], len(seen)), connect="pairs", skipFiniteCheck=True)

    def set_cross(self, step: float | None, note: str = "") -> None:
        """Move the crosshair with a short text beside it, or hide both."""
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

    def set_log(self, log: bool) -> None:
        """Label the values as powers of ten."""
        self._item.getAxis("left").setLogMode(y=log)

    def at(self, place: QPointF) -> tuple[float | None, float]:
        """The step (None beside the curves) and the value, in log mode its logarithm, at a place on the canvas."""
        scene = self.canvas.mapToScene(place.toPoint())
        point = self._box.mapSceneToView(scene)
        inside = self._box.sceneBoundingRect().contains(scene)
        return (float(point.x()) if inside else None), float(point.y())

    def restyle(self, scale: float = 1.0) -> None:
        """Take the colours of the theme, and lines `scale` times as wide: pens know only the pixels of the device."""
        colours, scale = theme.colours(), scale * self.devicePixelRatioF()
        self.canvas.setBackground(colours.surface)
        for name in ("bottom", "left"):
            axis = self._item.getAxis(name)
            axis.setPen(pen(colours.border))
            axis.setTickPen(pen(colours.text if name == "left" else colours.border))
            axis.setTextPen(pen(colours.muted))
        self._item.getAxis("left").setGrid(30)  # none for the steps: marks are vertical, and a grid costs a millisecond
        points = f"{small_font().pointSizeF():.1f}pt"
        self._item.getAxis("bottom").setLabel("Step", **{"color": colours.muted, "font-size": points})
        for look, curve, dots in self._curves:
            curve.setPen(pen(look.colour(), scale * _WIDTHS[look.style]))
            dots.setPen(None)
            dots.setBrush(look.colour())
        tints = {"checkpoint": theme.mix(colours.surface, colours.text, 0.25), "incident": colours.error}
        for kind, curve in self._marks.items():
            curve.setPen(pen(tints.get(kind, colours.good)))
        self._cross.setPen(pen(colours.muted))
        self._note.fill.setColor(QColor(colours.surface))

    def event(self, event: QEvent) -> bool:
        """pyqtgraph follows neither the theme nor the screen by itself."""
        done = super().event(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.DevicePixelRatioChange):
            self.restyle()
        return done

    def _prepare(self) -> None:
        """Decimation, ranges and menus are ours."""
        item, box = self._item, self._box
        item.setDownsampling(auto=False)
        item.setClipToView(False)
        item.setMenuEnabled(False)
        item.hideButtons()
        item.setContentsMargins(0, 6, 12, 0)
        box.disableAutoRange()
        box.setLimits(minXRange=2)
        for name in ("bottom", "left"):
            axis = item.getAxis(name)
            axis.setTickFont(small_font())
            axis.enableAutoSIPrefix(False)
            axis.setStyle(tickLength=0, tickTextOffset=6, maxTickLevel=1)
        item.getAxis("left").setWidth(_AXIS_WIDTH)
        for extra in (self._cross, self._note):
            extra.setZValue(9)
            extra.setVisible(False)
            item.addItem(extra, ignoreBounds=True)
        self.canvas.setFrameShape(pg.PlotWidget.Shape.NoFrame)
        self.canvas.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        box.sigRangeChanged.connect(self._note_change)
        box.sigResized.connect(self._note_change)
        box.sigRangeChangedManually.connect(self._note_moved)

    @Slot()
    def _note_change(self, *_: object) -> None:
        self.view_changed.emit()

    @Slot()
    def _note_moved(self, *_: object) -> None:
        steps, values = self.ranges()
        self.moved_by_user.emit(steps != self._set[0], values != self._set[1])


def pen(colour: str, width: float = 1) -> QPen:
    """A pen of whole pixels of the device."""
    pen: QPen = pg.mkPen(colour, width=max(1, round(width)))
    return pen


def small_font() -> QFont:
    """That of axes."""
    font = QFont()
    font.setPointSizeF(font.pointSizeF() * 0.88)
    return font
