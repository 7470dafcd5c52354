"""The Runs page during a training: the view stays."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from PySide6.QtCore import QItemSelectionModel, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea
from pytestqt.qtbot import QtBot

from studio.app import dialogs, theme
from studio.app.background import jobs
from studio.app.pages.runs.actions import RunActions
from studio.app.pages.runs.page import RunsPage
from studio.app.pages.runs.table import Column, RunTable
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.plot.time_plot import TimePlot
from studio.core.events import Events, Notice, Progress, SamplesReady
from studio.engine.runs.folder import RunDir, RunProgress, RunRecord
from studio.engine.runs.history import HistoryRead, MetricCurve, RunHistory, RunReader
from studio.engine.runs.listing import RunSummary, summarise
from studio.engine.runs.notes import RunNotes
from tests.app.conftest import LONG_MS, click, open_sprites, sprites_of
from tests.app.widgets.tools import turn_wheel
from tests.conftest import make_sprites
from tests.engine.tools import train_generator


def summary(name: str, day: int, step: int, standing: Literal["stopped", "training"] = "stopped") -> RunSummary:
    begun = f"2026-01-{day:02}T00:00:00+00:00"
    record = RunRecord(name, "generator", {}, 8, ("a",), "discs", 24, "", "cpu", "CPU", "fp32", 100, begun, {}, "group")
    return RunSummary(Path(name), record, RunProgress(standing, step, 1.0, {}), standing, step=step, elapsed_s=1.0)


OLD, OLDER = summary("old", 2, 20), summary("older", 1, 30)


def training(step: int) -> RunSummary:
    return summary("new", 3, step, "training")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the runs read. Each read adds a hundred losses and two samples."""
    read: list[str] = []

    def read_runs(reader: RunReader, paths: Sequence[Path]) -> Events:
        for path in paths:
            read.append(path.name)
            count = 100 * read.count(path.name)
            losses = MetricCurve(np.arange(count), np.linspace(2, 1, count))
            film = [SamplesReady(step, make_sprites().rgba[:4]) for step in range(0, count + 1, 50)]
            yield HistoryRead(path, RunHistory({"loss": losses}), tuple(film))

    monkeypatch.setattr("studio.app.background.jobs.read_runs", read_runs)
    return read


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, session: Session, asked: list[str]) -> Iterator[RunsPage]:
    """Return the page with three runs; the newest is training."""
    theme.apply(qapp, "light")
    session.catalog.plots_are_ready = True
    made = RunsPage(session)
    qtbot.addWidget(made)
    made.resize(1100, 900)
    made.show()
    with qtbot.waitSignal(session.runs.read, timeout=LONG_MS):
        tell(made, training(10), OLD, OLDER)
    yield made
    qtbot.waitUntil(lambda: not session.job_queue.running(), timeout=LONG_MS)


def tell(page: RunsPage, *runs: RunSummary) -> None:
    """Emit a new listing, as after each checkpoint."""
    page.session.runs.runs = runs
    page.session.runs.listed.emit()


def choose(qtbot: QtBot, page: RunsPage, *names: str) -> TimePlot:
    """Select these runs and wait for their curves."""
    flag = QItemSelectionModel.SelectionFlag
    with qtbot.waitSignals([page.session.runs.read] * len(names), timeout=LONG_MS):
        page.table.clearSelection()
        for row in range(page.table.model().rowCount()):
            index = page.table.model().index(row, Column.NAME)
            if index.data() in names:
                page.table.selectionModel().setCurrentIndex(index, flag.Select | flag.Rows)
    plot = page.comparison.findChild(TimePlot)
    assert isinstance(plot, TimePlot)
    plot.refresh()
    return plot


def chosen(page: RunsPage) -> list[str]:
    return sorted(run.path.name for run in page.table.selected())


def current(page: RunsPage) -> str:
    return str(page.table.currentIndex().siblingAtColumn(Column.NAME).data())


def look_closer(page: RunsPage, plot: TimePlot) -> tuple[object, int]:
    """Zoom in and show earlier samples."""
    plot._view.zoom(0.5, 40.0)
    plot._view.zoom(0.5, 1.5, values=True)
    page.comparison.filmstrip.show_step(50)
    return seen(page, plot)


def seen(page: RunsPage, plot: TimePlot) -> tuple[object, int]:
    plot.refresh()
    return plot.canvas.ranges(), page.comparison.filmstrip.shown_step()


@pytest.mark.parametrize("newer", [[], [summary("newest", 4, 1)]], ids=["a checkpoint", "a new run"])
def test_changes_of_other_runs_keep_the_view(
    qtbot: QtBot, page: RunsPage, asked: list[str], newer: list[RunSummary]
) -> None:
    plot = choose(qtbot, page, "old", "older")
    before, read = look_closer(page, plot), list(asked)
    assert before[1] == 50
    tell(page, *newer, training(11), OLD, OLDER)
    assert not page.comparison._read_timer.isActive() and asked == read  # no run is read, now or later
    assert seen(page, plot) == before
    assert chosen(page) == ["old", "older"] and current(page) == "older"
    assert page.table.model().index(len(newer), Column.STEPS).data() == "11"


def test_training_run_updates_in_place(qtbot: QtBot, page: RunsPage, asked: list[str]) -> None:
    plot = choose(qtbot, page, "new", "old")
    before, steps = look_closer(page, plot), page.comparison.filmstrip.steps()
    asked_before = len(asked)
    with qtbot.waitSignal(page.session.runs.read, timeout=LONG_MS):
        tell(page, training(12), OLD, OLDER)
        assert seen(page, plot) == before  # the shown curves stay until newer values arrive
    assert asked[asked_before:] == ["new"]
    assert seen(page, plot) == before
    assert len(page.comparison.filmstrip.steps()) == len(steps) + 2
    page.comparison.filmstrip.go_live()
    plot.auto_range()
    plot.refresh()
    assert plot.canvas.ranges()[0][1] >= 299  # losses 200 to 299


def test_new_selection_resets_the_view(qtbot: QtBot, page: RunsPage) -> None:
    plot = choose(qtbot, page, "old", "older")
    look_closer(page, plot)
    plot = choose(qtbot, page, "new")
    assert plot.canvas.ranges()[0][0] <= 0 and plot.canvas.ranges()[0][1] >= 99
    assert page.comparison.filmstrip.is_live()


def test_filter_without_match_has_a_clear_button(page: RunsPage) -> None:
    assert not page.show_all.isVisible()
    page.filter.setText("olde")
    page.filter.setText("nothing like it")
    page.starred.setChecked(True)
    assert page.table.model().rowCount() == 0 and "No run matches the filter." in shown_texts(page)
    click(page.show_all)
    assert page.table.model().rowCount() == 3 and page.filter.text() == "" and not page.show_all.isVisible()


def test_filter_typed_with_shift_selects_a_run(page: RunsPage) -> None:
    assert chosen(page) == ["new"]
    QTest.keyClicks(page.filter, "OLD", Qt.KeyboardModifier.ShiftModifier)
    assert page.filter.text() == "OLD" and page.table.model().rowCount() == 2 and chosen(page) == [current(page)]


def test_runs_load_during_an_import(qtbot: QtBot, session: Session, asked: list[str], tmp_path: Path) -> None:
    is_over = threading.Event()

    def endless() -> Events:
        while not is_over.is_set():
            yield Progress(0, 0, "files read")

    session.job_queue.start("files", "Opening", endless(), lambda event: None)
    with qtbot.waitSignal(session.runs.listed, timeout=LONG_MS):
        session.runs.list_runs()
    with qtbot.waitSignal(session.runs.read, timeout=LONG_MS):
        session.runs.read_runs([tmp_path])
    is_over.set()


def test_empty_page_tells_loading_from_no_runs(qtbot: QtBot, session: Session) -> None:
    page = RunsPage(session)
    qtbot.addWidget(page)
    page.show()
    assert "Loading runs…" in shown_texts(page)
    with qtbot.waitSignal(session.runs.listed, timeout=LONG_MS):
        session.runs.list_runs()
    assert any(text.startswith("No runs yet") for text in shown_texts(page))


def test_visible_page_polls_a_training_run(page: RunsPage, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[bool] = []
    monkeypatch.setattr(page.session.runs, "list_runs", lambda: listed.append(True))
    page.list_timer.timeout.emit()
    assert len(listed) == 1
    tell(page, OLD, OLDER)  # no run trains
    page.list_timer.timeout.emit()
    tell(page, training(11), OLD, OLDER)
    page.hide()
    page.list_timer.timeout.emit()
    assert len(listed) == 1


def shown_texts(page: RunsPage) -> list[str]:
    return [label.text() for label in page.findChildren(QLabel) if label.isVisible()]


def test_unreadable_run_is_reported_and_the_next_is_read(tmp_path: Path, run_path: Path) -> None:
    list(train_generator(run_path, make_sprites(), steps=1))
    (tmp_path / "damaged").mkdir()
    told, read = jobs.read_runs(RunReader(), [tmp_path / "damaged", run_path])
    assert isinstance(told, Notice) and "damaged" in told.title
    assert isinstance(read, HistoryRead) and read.path == run_path


def test_fault_34_damaged_run_is_listed_with_its_field(qapp: QApplication) -> None:
    problem = "run.json of old is damaged. 'created' holds a whole number where a text belongs."
    table = RunTable()
    table.show_runs([OLD, RunSummary(Path("bad"), None, None, "damaged", problem)], {})
    row = [table.index(1, column) for column in range(table.columnCount())]
    assert [row[Column.NAME].data(), row[Column.STATE].data()] == ["bad", "Damaged"]
    assert table.index(0, Column.NAME).data() == "old"
    assert all(index.data(Qt.ItemDataRole.ToolTipRole) == problem for index in row[Column.NAME :])
    strange = RunSummary(Path("strange"), replace(OLD.record, created="0001-01-01"), OLD.progress, "stopped")  # type: ignore[type-var]
    table.show_runs([strange], {})
    assert "1" in table.index(0, Column.STARTED).data()


def test_save_a_report_of_selected_runs(
    qtbot: QtBot, session: Session, run_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(train_generator(run_path, make_sprites(), steps=2))
    monkeypatch.setattr(dialogs, "choose_save_file", lambda *_: tmp_path / "report.html")
    actions = RunActions(session)
    qtbot.addWidget(actions)
    assert not actions.report.isEnabled() and "select" in actions.report.toolTip()
    actions.set_runs([summarise(run_path)])
    with qtbot.waitSignal(session.runs.saved, timeout=LONG_MS) as saved:
        actions.report.menu().actions()[0].trigger()
    assert saved.args[0] == [tmp_path / "report.html"]
    assert run_path.name in (tmp_path / "report.html").read_text()
    monkeypatch.setattr(dialogs, "choose_save_folder", lambda *_: tmp_path / "logs")
    with qtbot.waitSignal(session.runs.saved, timeout=LONG_MS) as saved:
        actions.report.menu().actions()[1].trigger()
    assert saved.args[0] == [tmp_path / "logs" / run_path.name]


def test_retrain_with_settings_or_from_model(qtbot: QtBot, own_run: Path, ready: Session, sprite_folder: Path) -> None:
    actions, setup = RunActions(ready), ready.setup
    qtbot.addWidget(actions)
    qtbot.waitUntil(lambda: bool(ready.runs.runs), timeout=LONG_MS)
    found = summarise(own_run)
    assert found.record is not None
    actions.set_runs([found])
    setup.choose_recipe("classifier")
    like, start = actions.anew.menu().actions()
    with qtbot.waitSignal(actions.train_requested):
        like.trigger()
    assert setup.recipe is not None and setup.recipe.name == "generator" and setup.config is not None
    assert setup.config.to_json() == found.record.chosen_config and setup.parents.source_for(setup.recipe) is None
    assert setup.problem() == "Opening sprites…"
    qtbot.waitUntil(lambda: ready.open_sprites.sprites is not None, timeout=LONG_MS)
    qtbot.waitUntil(lambda: not setup.problem(), timeout=LONG_MS)
    request = setup.request()
    assert request is not None and request.sprites.fingerprint == found.record.data_fingerprint
    with qtbot.waitSignal(actions.train_requested):
        start.trigger()
    assert setup.parents.source_for(setup.recipe) == own_run
    assert not ready.open_sprites.is_busy()
    open_sprites(qtbot, ready, sprite_folder)
    start.trigger()
    assert not ready.open_sprites.is_busy()  # the model trains on the open sprites
    with qtbot.waitSignal(ready.noticed) as noticed, qtbot.waitSignal(ready.open_sprites.imported, timeout=LONG_MS):
        like.trigger()
    assert "replace the open sprites" in noticed.args[0].title and sprites_of(ready).title == found.record.data_title
    like.trigger()
    assert not ready.open_sprites.is_busy()  # they are open
    stranger = replace(found, record=replace(found.record, recipe="unheard"))
    actions.set_runs([stranger])
    with qtbot.waitSignal(ready.failed) as failed:
        like.trigger()
    assert "unheard" in failed.args[0].title


def test_train_a_run_longer(qtbot: QtBot, own_run: Path, ready: Session) -> None:
    actions = RunActions(ready)
    qtbot.addWidget(actions)
    actions.set_runs([summarise(own_run)])
    assert not actions.resume.isEnabled() and "Train longer" in actions.resume.toolTip()
    steps = RunDir(own_run).progress().step
    with qtbot.waitSignal(actions.train_requested):
        actions.longer.menu().actions()[0].trigger()
    qtbot.waitUntil(lambda: ready.training.chunk is not None, timeout=LONG_MS)
    assert ready.training.chunk is not None and ready.training.chunk.first_step >= steps
    ready.training.stop()
    qtbot.waitUntil(lambda: not ready.training.is_busy(), timeout=LONG_MS)
    assert RunDir(own_run).progress().minutes > 2


def _columns(page: RunsPage) -> list[Column]:
    return [column for column in Column if not page.table.isColumnHidden(column)]


def test_narrow_table_hides_the_least_important_columns(page: RunsPage) -> None:
    tell(page, replace(OLD, notes=RunNotes("a very long name of a run, longer than every column")), OLDER)
    page.resize(2000, 900)
    assert len(_columns(page)) == len(Column) - 1  # no run has tags
    header, view, widths = page.table.horizontalHeader(), page.table.viewport(), list[int]()
    for width in (1280, 900, 640):
        page.resize(width, 900)
        widths.append(len(_columns(page)))
        assert header.length() == view.width() and page.table.columnWidth(Column.NAME) >= 150
        assert {Column.STAR, Column.NAME, Column.STATE} <= set(_columns(page))
    assert widths == sorted(widths, reverse=True) and widths[-1] < len(Column) - 4
    assert Column.DEVICE not in _columns(page)
    page.table.sortByColumn(Column.DEVICE, Qt.SortOrder.AscendingOrder)
    assert Column.DEVICE in _columns(page) and header.length() == view.width()


def _scrolls(area: QScrollArea, expected: bool) -> bool:
    return (area.verticalScrollBar().maximum() > 0) == expected


def test_low_page_scrolls_and_keeps_the_plot_and_the_buttons_whole(qtbot: QtBot, page: RunsPage) -> None:
    plot, row = choose(qtbot, page, "new", "old", "older"), page.actions_row
    scroll = page.findChild(QScrollArea)
    assert scroll is not None
    for width, height, scrolls in ((1100, 1000, False), (820, 480, True)):
        page.resize(width, height)
        qtbot.waitUntil(partial(_scrolls, scroll, scrolls))
        assert plot.canvas.height() >= factory.LEAST_PLOT and row.height() >= row.heightForWidth(row.width()) > 0
        for part in (row, plot.canvas):
            above = part.parentWidget()
            assert above is not None and above.rect().contains(part.geometry())
    for tabs in (plot.bar, page.comparison.sections):
        before = tabs.currentIndex()
        turn_wheel(tabs, QPoint(5, 5), -120)
        assert tabs.currentIndex() == before and not tabs.hasFocus()
