"""The plot of an experiment: visible points and tick labels."""

from __future__ import annotations

import math

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets.plot.xy_plot import XYPlot
from studio.lab.outcome import Axis, Line, Mark, Plot
from tests.app.widgets.tools import SCHEMES, colours_in, shown

LINE = Line("a", (1.0, 2.0, 1024.0), (10.0, 20.0, 40.0))
MARK = Mark(2.0, "here")


def plot(x: Axis, y: Axis, *lines: Line) -> Plot:
    return Plot("Speed", x, y, lines or (LINE,), (MARK,))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("log", [False, True])
def test_all_points_are_visible(qtbot: QtBot, scheme: str, log: bool) -> None:
    made = shown(qtbot, XYPlot(), 600, 280)
    made.show_plot(plot(Axis("x", log), Axis("y", log)), (Line("b", (1.0, 4096.0), (5.0, 80.0)),))
    (left, right), (low, high) = made._item.getViewBox().viewRange()
    scale = math.log10 if log else float
    assert left <= scale(1) and scale(4096) <= right and high >= scale(80)
    assert low <= (scale(5) if log else 0)  # linear axes start at 0
    assert made.accessibleName() == "Speed" and made.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert made.accessibleDescription() == (
        "y by x. a: 10 at 1, 20 at 2, 40 at 1,024. b: 5 at 1, 80 at 4,096. here at 2."
    )
    before = made.grab().toImage()
    made.show_plot(plot(Axis("x", log), Axis("y", log), Line("a", (1.0,), (1.0,))))
    assert made.grab().toImage() != before


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_legend_lies_above_the_curves_in_colours_of_the_theme(
    qtbot: QtBot, qapp: QApplication, scheme: theme.Scheme
) -> None:
    theme.apply(qapp, scheme)
    made = shown(qtbot, XYPlot(), 400, 480)
    made.show_plot(plot(Axis("x"), Axis("y")))
    assert not made.legend.isVisible()  # a single curve needs no legend
    made.show_plot(plot(Axis("x"), Axis("y"), LINE, Line("b", (1.0, 1024.0), (5.0, 80.0))), (LINE,))
    assert set(made.legend.values()) == {"a", "b"}
    qapp.processEvents()
    assert made.legend.geometry().bottom() < made.widget.geometry().top()
    assert set(SCHEMES[scheme].curves[:2]) <= colours_in(made.widget.grab().toImage())


def test_ticks_at_few_points_and_at_powers_of_ten(qtbot: QtBot) -> None:
    made = shown(qtbot, XYPlot(), 600, 280)
    axis = made._bottom
    axis.setLogMode(True)
    axis.places = [1.0, 1024.0]
    ((_, places),) = axis.tickValues(0, 3.2, 100)
    assert places == pytest.approx(np.log10([1, 1024])) and axis.tickStrings(places, 1, 1) == ["1", "1,024"]
    axis.places = []
    ((_, decades),) = axis.tickValues(-6.1, 0.1, 100)
    assert axis.tickStrings(decades, 1, 1)[:3] == ["1e-6", "1e-5", "0.0001"]


def test_value_axes_have_thousands_separators(qtbot: QtBot) -> None:
    made = shown(qtbot, XYPlot(), 600, 280)
    axis = made._item.getAxis("left")
    assert axis.tickStrings([0, 5000, 10_000, 2e6], 1, 5000) == ["0", "5,000", "10,000", "2e6"]
    assert axis.tickStrings([0.5, 1.0, 1.5], 1, 0.5) == ["0.5", "1.0", "1.5"]
    axis.setLogMode(True)
    assert axis.tickStrings([-5, 0, 4], 1, 1) == ["1e-5", "1", "10,000"]


def test_labels_of_marks_lie_above_the_curves(qtbot: QtBot) -> None:
    made = shown(qtbot, XYPlot(), 600, 280)
    made.show_plot(Plot("Memory", Axis("batch size"), Axis("MB"), (LINE,), (Mark(1024.0, "largest"),)))
    QApplication.processEvents()  # places the label
    (mark,) = [item for item in made._item.items if isinstance(item, pg.InfiniteLine)]
    label = mark.label.mapRectToScene(mark.label.boundingRect())
    highest = made._item.getViewBox().mapViewToScene(QPointF(1024, 40))
    assert label.bottom() <= highest.y()


def test_marks_are_as_wide_as_the_screen_scale_asks(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    made = shown(qtbot, XYPlot(), 600, 280)
    monkeypatch.setattr(XYPlot, "devicePixelRatioF", lambda plot: 2.0)
    made.show_plot(plot(Axis("x"), Axis("y")))
    marks = [item for item in made._item.items if isinstance(item, pg.InfiniteLine)]
    assert [mark.pen.width() for mark in marks] == [2]


def test_whole_numbers_get_no_ticks_at_fractions(qtbot: QtBot) -> None:
    made = shown(qtbot, XYPlot(), 840, 280)
    axis = made._bottom
    for x, fractions in (((0.0, 1.0, 2.0, 4.0), False), ((0.0, 0.5, 4.0), True)):
        made.show_plot(Plot("Speed", Axis("workers"), Axis("sprites/s"), (Line("files", x, x),)))
        ticks = [value for _, values in axis.tickValues(0, 4, 840) for value in values]
        assert {0, 1, 2, 3, 4} <= set(ticks) and any(value != round(value) for value in ticks) == fractions
