"""The plot that compares several runs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QSlider, QToolButton
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets.plot.curves_plot import CurvesPlot
from studio.engine.runs.history import MetricCurve
from tests.app.widgets.tools import child, colours_in, shown

_ARROW = 20  # logical pixels of an arrow that scrolls the tabs


def loss(label: str, steps: ArrayLike, values: ArrayLike) -> tuple[str, dict[str, MetricCurve]]:
    return label, {"Loss": curve(steps, values)}


def curve(steps: ArrayLike, values: ArrayLike) -> MetricCurve:
    return MetricCurve(np.asarray(steps, np.int64), np.asarray(values, np.float64))


@pytest.fixture
def plot(qtbot: QtBot) -> CurvesPlot:
    made = CurvesPlot()
    made.set_curves([loss("swords", [0, 1, 2, 3], [4.0, 3.0, 2.0, 1.0]), loss("a, b", [1, 2], [0.5, 0.25])])
    return shown(qtbot, made, 700, 400)


def test_legend_shows_last_values(plot: CurvesPlot) -> None:
    child(plot, QSlider).setValue(0)
    assert plot.legend.values() == {"Step": "3", "swords": "1", "a, b": "0.25"}
    plot.crosshair.hover(3.0)
    assert plot.legend.values() == {"Step": "3", "swords": "1", "a, b": "–"}
    plot.crosshair.hover(1.2)
    assert plot.legend.values() == {"Step": "1", "swords": "3", "a, b": "0.5"}


def test_a_narrow_plot_keeps_room_for_its_tabs(plot: CurvesPlot) -> None:
    steps = np.arange(4)
    plot.set_curves([("swords", {"Loss": curve(steps, steps), "Validation loss": curve(steps, steps)})])
    slider = child(plot, QSlider)
    for width, is_beside in ((700, True), (354, False), (700, True)):
        plot.resize(width, 400)
        QApplication.processEvents()
        assert plot.bar.width() >= plot.bar.tabRect(0).width() + 2 * _ARROW
        assert (slider.mapTo(plot, slider.rect().center()).y() < plot.legend.y()) == is_beside


@pytest.mark.parametrize("count", [12, 5000])
def test_curves_start_at_their_first_value(plot: CurvesPlot, count: int) -> None:
    steps = np.arange(count)
    falling = curve(steps, 0.2 + 2.0 * np.exp(-40 * steps / count))
    heldout = curve(steps[:: max(1, count // 20)], falling.values[:: max(1, count // 20)])
    plot.set_curves([("swords", {"Loss": falling, "Validation loss": heldout})])
    for tab in range(2):
        plot.bar.setCurrentIndex(tab)
        plot.refresh()
        assert plot.canvas.ranges()[1][1] >= 2.2


def test_csv_has_two_columns_for_each_run(plot: CurvesPlot, tmp_path: Path) -> None:
    plot.save(tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["step", "swords", "swords, smoothed", "a, b", "a, b, smoothed"]
    assert [line["swords"] for line in lines] == ["4", "3", "2", "1"]
    assert [line["a, b"] for line in lines] == ["", "0.5", "0.25", ""]


def test_curves_use_theme_colours_in_order(plot: CurvesPlot, tmp_path: Path) -> None:
    plot.save(tmp_path / "runs.png")
    image = QImage(str(tmp_path / "runs.png"))
    assert set(theme.colours().curves[:2]) <= colours_in(image)


def test_other_runs_replace_the_first_runs(plot: CurvesPlot, qtbot: QtBot) -> None:
    with qtbot.waitSignal(plot.redrawn):
        plot.set_curves([loss("one", np.arange(2000), np.ones(2000))])
    assert set(plot.legend.values()) == {"Step", "one"}
    assert plot.canvas.ranges()[0][1] >= 1999
    with qtbot.waitSignal(plot.redrawn):
        plot.set_curves([])
    assert plot.legend.values() == {"Step": "–"}


def test_figure_tabs_keep_run_colours(plot: CurvesPlot) -> None:
    bar, first, second = plot.bar, loss("one", [0, 1], [3.0, 2.0]), loss("two", [0, 1], [2.0, 1.0])
    assert [bar.tabText(i) for i in range(bar.count())] == ["Loss"]
    second[1]["Quality (KID)"] = curve([1], [0.25])
    plot.set_curves([first, second])
    assert [bar.tabText(i) for i in range(bar.count())] == ["Loss", "Quality (KID)"]
    bar.setCurrentIndex(1)
    assert plot.legend.values() == {"Step": "1", "two": "0.25"}
    plot.set_curves([second])
    assert bar.currentIndex() == 1
    plot.set_curves([first])
    assert bar.currentIndex() == 0 and bar.count() == 1


def test_save_button_emits_a_request(plot: CurvesPlot, qtbot: QtBot) -> None:
    save = next(button for button in plot.findChildren(QToolButton) if button.accessibleName() == "Save plot")
    with qtbot.waitSignal(plot.save_requested):
        save.click()
