"""The loss plot: readings, redraws, following and saving."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QSlider, QToolButton
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets.plot.loss_plot import LossPlot
from studio.app.widgets.plot.series import MarkKind
from studio.core.errors import UsageError
from tests.app.widgets.tools import SCHEMES, child, colours_in, shown, turn_wheel

COUNT = 5000
LOSSES = np.exp(-np.arange(COUNT) / 1000) + 0.1


@pytest.fixture
def plot(qtbot: QtBot) -> LossPlot:
    """Return a visible plot with losses and three validation points."""
    made = LossPlot()
    made.append(np.arange(COUNT), LOSSES.astype(np.float32))
    for step in (1000, 2000, 4000):
        made.append_validation(step, step / 10_000)
    shown(qtbot, made, 800, 420).refresh()
    return made


def point_at(plot: LossPlot, step: float) -> QPoint:
    """Return a step's position on the canvas."""
    canvas = plot.canvas
    (left, right), _ = canvas.ranges()
    box = canvas.widget.getPlotItem().getViewBox().sceneBoundingRect()
    scene = QPointF(box.left() + (step - left) / (right - left) * box.width(), box.center().y())
    return QPoint(canvas.widget.mapFromScene(scene))


def hover(plot: LossPlot, step: float) -> None:
    QTest.mouseMove(plot.canvas.widget.viewport(), point_at(plot, step))


def zoom(plot: LossPlot, step: float, notches: int) -> None:
    turn_wheel(plot.canvas.widget.viewport(), point_at(plot, step), 120 * notches)
    plot.refresh()


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_crosshair_reads_all_curves(plot: LossPlot, qtbot: QtBot) -> None:
    with qtbot.waitSignal(plot.step_hovered) as caught:
        hover(plot, 2500)
    step = caught.args[0]
    assert abs(step - 2500) <= 10
    plot.set_smoothing(0)
    values = plot.legend.values()
    assert values["Step"] == f"{step:,}"
    assert float(values["Loss"]) == pytest.approx(LOSSES[step], rel=1e-3)
    assert values["Validation"] == "0.2"  # the newest value up to this step
    with qtbot.waitSignal(plot.hover_ended):
        QApplication.sendEvent(plot.canvas.widget.viewport(), QEvent(QEvent.Type.Leave))
    values = plot.legend.values()
    assert values["Step"] == f"{COUNT - 1:,}" and values["Validation"] == "0.4"
    hover(plot, 500)
    assert plot.legend.values()["Validation"] == "–"  # before the first validation


def test_crosshair_moves_with_arrow_keys(plot: LossPlot, qtbot: QtBot) -> None:
    canvas = plot.canvas.widget
    seen: list[int] = []
    plot.step_hovered.connect(seen.append)
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Right):
        QTest.keyClick(canvas, key)
    first, second, third = seen
    assert COUNT - 40 < second < first < COUNT and second < third <= first + 1
    with qtbot.waitSignal(plot.hover_ended):
        QTest.keyClick(canvas, Qt.Key.Key_Escape)


def test_redraw_once_an_interval_and_only_if_visible(plot: LossPlot, qtbot: QtBot) -> None:
    plot.set_redraw_interval_ms(60)
    drawn: list[int] = []
    plot.redrawn.connect(lambda: drawn.append(1))
    with qtbot.waitSignal(plot.redrawn):
        for step in range(COUNT, COUNT + 50):
            plot.append([step], [0.1])
        assert not drawn
    assert len(drawn) == 1
    with qtbot.assertNotEmitted(plot.redrawn, wait=150):
        plot.append_series("Memory", [1, 2], [1.0, 1.1], "GB")  # new data on another tab only
    plot.hide()
    with qtbot.assertNotEmitted(plot.redrawn, wait=150):
        plot.append([COUNT + 50], [0.1])
    with qtbot.waitSignal(plot.redrawn):
        plot.show()
    assert plot.legend.values()["Step"] == f"{COUNT + 50:,}"


def test_tabs_show_other_series_with_their_units(plot: LossPlot) -> None:
    plot.append_series("Memory", range(0, COUNT, 10), np.full(COUNT // 10, 1.5), "GB")
    assert [plot.bar.tabText(index) for index in range(plot.bar.count())] == ["Loss", "Memory"]
    plot.bar.setCurrentIndex(1)
    assert plot.legend.values()["Memory"] == "1.5 GB"
    plot.clear()
    assert plot.bar.count() == 1 and plot.legend.values().keys() >= {"Loss", "Validation"}
    plot.refresh()
    assert set(plot.legend.values().values()) == {"–"}


def test_legend_names_the_marks_without_moving_the_curves(plot: LossPlot) -> None:
    plot.refresh()
    assert not {"Checkpoint", "Best checkpoint", "Incident"} & plot.legend.values().keys()
    heights = {width: plot.legend.heightForWidth(width) for width in (240, 500, 1000)}
    plot.add_mark(100, "checkpoint")
    plot.add_mark(100, "best")
    plot.refresh()
    assert list(plot.legend.values())[-2:] == ["Checkpoint", "Best checkpoint"]
    assert {width: plot.legend.heightForWidth(width) for width in heights} == heights
    plot.add_mark(50, "incident")
    plot.refresh()
    assert "Incident" in plot.legend.values()


def test_marks_and_crosshair_follow_the_scale_of_the_screen(plot: LossPlot, monkeypatch: pytest.MonkeyPatch) -> None:
    plot.add_mark(50, "incident")
    plot.refresh()
    canvas = plot.canvas
    monkeypatch.setattr(type(canvas), "devicePixelRatioF", lambda widget: 2.0)
    canvas.restyle()
    assert canvas._marks["incident"].opts["pen"].width() == canvas._cross.pen.width() == 2


def test_memory_axis_starts_at_zero(plot: LossPlot) -> None:
    plot.append_series("Memory", [10, 20], [1.5, 1.6], "GB", from_zero=True)
    plot.bar.setCurrentIndex(1)
    plot.refresh()
    low, high = plot.canvas.ranges()[1]
    assert -0.1 < low <= 0 and high > 1.6
    plot.set_log(True)
    plot.refresh()
    assert plot.canvas.ranges()[1][0] > 0.1  # a logarithm of about 1.5


def test_step_axis_tells_of_values_off_the_axis(plot: LossPlot) -> None:
    def label() -> str:
        return str(plot.canvas.widget.getPlotItem().getAxis("bottom").labelText)

    plot.refresh()
    assert label() == "Step"
    plot.append([COUNT], [1e6])
    plot.append(range(COUNT + 1, 2 * COUNT), np.full(COUNT - 1, 0.1))
    plot.refresh()
    assert label().startswith("Step (off the axis: up to 1,000,000 near step ")
    plot.set_log(True)
    plot.refresh()
    assert label() == "Step"


def test_sparse_values_are_dots(plot: LossPlot, qtbot: QtBot) -> None:
    plot.append_series("Quality (KID)", [20], [2.9], dots=True)
    plot.append_series("Quality (KID)", [500, 1000], [0.3, 0.1], dots=True)
    plot.bar.setCurrentIndex(1)
    canvas = plot.canvas
    qtbot.waitUntil(lambda: len(canvas._lines[0][2].getData()[1]) == 3)
    line, _, dots = canvas._lines[0]
    assert line.style.kind == "dots" and dots.getData()[1].tolist() == [2.9, 0.3, 0.1]
    low, high = canvas.ranges()[1]
    assert low < 0.1 and 2.9 < high < 3.5  # including the first loss, far above the others


def test_figures_share_a_tab(plot: LossPlot, tmp_path: Path) -> None:
    for step, (whole, up) in {20: (0.2, 0.4), 500: (0.5, 0.6)}.items():
        plot.append_series("Exact", [step], [whole], position=1, dots=True, tip="Shares.")
        plot.append_series("Exact", [step], [up], beside="up")
        plot.bar.setCurrentIndex(1)  # while its second figure is missing
    assert [line.label for line in plot.tab().lines()] == ["Exact", "up"] and plot.bar.tabToolTip(1) == "Shares."
    assert plot.legend.values().keys() >= {"Exact", "up"}
    plot.append([400], [1.0])  # a resumed run
    plot.save(tmp_path / "exact.csv")
    assert [(line["exact"], line["up"]) for line in read_csv(tmp_path / "exact.csv")] == [("0.2", "0.4")]


def test_resumed_run_replaces_later_values(plot: LossPlot, tmp_path: Path) -> None:
    plot.append_series("Memory", [100, 3000], [1.0, 2.0])
    plot.append([2000, 2001], [7.0, 8.0])
    plot.save(tmp_path / "loss.csv")
    lines = read_csv(tmp_path / "loss.csv")
    assert [line["step"] for line in lines[-3:]] == ["1999", "2000", "2001"]
    assert [line["loss"] for line in lines[-2:]] == ["7", "8"]
    assert [line["step"] for line in lines if line["validation"]] == ["1000", "2000"]
    plot.bar.setCurrentIndex(1)
    plot.save(tmp_path / "memory.csv")
    assert [line["memory"] for line in read_csv(tmp_path / "memory.csv")] == ["1"]


def test_view_follows_until_moved(plot: LossPlot, qtbot: QtBot) -> None:
    canvas = plot.canvas
    assert canvas.ranges()[0][1] >= COUNT
    zoom(plot, 2500, 3)
    (left, right), _ = canvas.ranges()
    assert left > 500 and right < COUNT - 500 and left < 2500 < right
    plot.append(range(COUNT, 2 * COUNT), np.full(COUNT, 0.1))
    plot.refresh()
    assert canvas.ranges()[0] == (left, right)
    with qtbot.waitSignal(plot.redrawn):
        plot.auto_range()
    assert canvas.ranges()[0][0] <= 0 and canvas.ranges()[0][1] >= 2 * COUNT - 1
    zoom(plot, 5000, 1)
    zoom(plot, 5000, -2)  # zoomed out beyond the data: follow again
    plot.append(range(2 * COUNT, 3 * COUNT), np.full(COUNT, 0.1))
    plot.refresh()
    assert canvas.ranges()[0][1] >= 3 * COUNT - 1


def test_drag_pans_the_view(plot: LossPlot) -> None:
    viewport = plot.canvas.widget.viewport()
    before = plot.canvas.ranges()[0]
    start, end = point_at(plot, 3000), point_at(plot, 2000)
    QTest.mousePress(viewport, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(viewport, (start + end) / 2)
    QTest.mouseMove(viewport, end)
    QTest.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=end)
    plot.refresh()
    assert plot.canvas.ranges()[0][0] > before[0] + 300


@pytest.mark.parametrize("axis", ["steps", "values"])
def test_wheel_over_an_axis_zooms_that_axis(plot: LossPlot, axis: str) -> None:
    canvas, middle = plot.canvas, point_at(plot, COUNT / 2)
    place = QPoint(middle.x(), canvas.height() - 4) if axis == "steps" else QPoint(4, middle.y())
    before = canvas.ranges()
    turn_wheel(canvas.widget.viewport(), place, 120)
    after = canvas.ranges()
    assert (after[0] != before[0], after[1] != before[1]) == (axis == "steps", axis == "values")


def test_values_fit_the_visible_steps(plot: LossPlot) -> None:
    plot.append([COUNT], [1e6])
    plot.append(range(COUNT + 1, 2 * COUNT), np.full(COUNT - 1, 0.1))
    plot.refresh()
    low, high = plot.canvas.ranges()[1]
    assert low < 0.11 and 0.4 < high < 2


def test_log_and_smoothing_controls(plot: LossPlot, qtbot: QtBot) -> None:
    box, slider = child(plot, QCheckBox), child(plot, QSlider)
    with qtbot.waitSignal(plot.redrawn):
        box.setChecked(True)
    low, high = plot.canvas.ranges()[1]
    assert -1.3 < low < -0.9 and -0.1 < high < 0.3  # logarithms of about 0.1 and 1.1
    plot.set_log(False)
    assert not box.isChecked()
    slider.setValue(slider.minimum())
    assert "Smoothed" not in plot.legend.values()
    plot.set_smoothing(1000)
    assert "Smoothed" in plot.legend.values() and slider.value() == 30


def test_nan_losses_are_drawn_as_gaps(plot: LossPlot) -> None:
    plot.append(range(COUNT, COUNT + 3), [np.nan, np.inf, -1.0])
    plot.set_log(True)
    plot.refresh()
    plot.grab()
    assert all(np.isfinite(plot.canvas.ranges()).ravel())


def test_csv_holds_the_values(plot: LossPlot, tmp_path: Path) -> None:
    plot.set_smoothing(20)
    plot.save(tmp_path / "loss.csv")
    lines = read_csv(tmp_path / "loss.csv")
    assert list(lines[0]) == ["step", "loss", "smoothed", "validation"] and len(lines) == COUNT
    read = np.array([float(line["loss"]) for line in lines], dtype=np.float32)
    np.testing.assert_array_equal(read, LOSSES.astype(np.float32))
    decay, mean = np.exp(-1 / 20), float(read[0])
    for value in read[1:3000].tolist():
        mean = decay * mean + (1 - decay) * value
    assert float(lines[2999]["smoothed"]) == pytest.approx(mean, rel=1e-6)
    held_out = {line["step"]: line["validation"] for line in lines if line["validation"]}
    assert held_out == {"1000": "0.1", "2000": "0.2", "4000": "0.4"}


def test_png_and_svg_show_the_curves(plot: LossPlot, tmp_path: Path) -> None:
    plot.add_mark(1234, "incident", "Loss jumped")
    plot.save(tmp_path / "loss.png")
    image = QImage(str(tmp_path / "loss.png"))
    assert image.width() > 1200 and image.height() > 600
    assert theme.colours().curves[0] in colours_in(image)
    plot.save(tmp_path / "loss.svg")
    root = ET.fromstring((tmp_path / "loss.svg").read_text(encoding="utf-8"))
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names & {"polyline", "path"} and "text" in names
    assert any("Step" in (element.text or "") for element in root.iter())


def test_save_errors_are_raised(plot: LossPlot, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gif"):
        plot.save(tmp_path / "loss.gif")
    (tmp_path / "file").write_text("")
    for suffix in ("csv", "png", "svg"):
        with pytest.raises(OSError, match="file"):
            plot.save(tmp_path / "file" / f"loss.{suffix}")


def test_save_an_empty_plot(qtbot: QtBot, tmp_path: Path) -> None:
    plot = LossPlot()
    qtbot.addWidget(plot)
    for suffix in ("csv", "png", "svg"):
        plot.save(tmp_path / f"loss.{suffix}")
    assert (tmp_path / "loss.csv").read_text(encoding="utf-8") == "step,loss,smoothed,validation\n"
    assert not QImage(str(tmp_path / "loss.png")).isNull()


def test_crosshair_names_marks(plot: LossPlot) -> None:
    marks: list[tuple[int, MarkKind]] = [(1000, "best"), (1500, "checkpoint"), (3000, "best"), (3000, "checkpoint")]
    for step, kind in [*marks, marks[-1]]:
        plot.add_mark(step, kind)
    plot.refresh()
    assert [(mark.step, mark.kind) for mark in plot.marks] == marks[1:]
    note = plot.canvas._note
    hover(plot, 3000)
    assert note.isVisible() and note.toPlainText() == "Best checkpoint, step 3,000"
    hover(plot, 1000)
    assert not note.isVisible()
    plot.append([2000], [1.0])  # resumed here: later values are removed
    assert [(mark.step, mark.kind) for mark in plot.marks] == marks[1:2]


def test_plot_follows_the_theme(plot: LossPlot, qapp: QApplication) -> None:
    for scheme, colours in SCHEMES.items():
        theme.apply(qapp, scheme)
        qapp.processEvents()
        image = plot.grab().toImage()
        assert image.pixelColor(image.width() - 30, image.height() // 2).name() == colours.surface


def test_controls_have_names_and_tooltips(plot: LossPlot) -> None:
    for kind in (QToolButton, QCheckBox, QSlider):
        for control in plot.findChildren(kind):
            assert control.toolTip() and control.accessibleName(), control
    assert plot.canvas.widget.accessibleName()
