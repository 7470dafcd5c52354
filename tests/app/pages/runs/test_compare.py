"""Comparison of several runs: settings, samples and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableView
from pytestqt.qtbot import QtBot

from studio.app.pages.runs.compare import Comparison
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.core.events import Events, SamplesReady
from studio.engine.runs.folder import RunProgress, RunRecord
from studio.engine.runs.history import ConfusionAtStep, HistoryRead, MetricCurve, RunHistory, RunReader
from studio.engine.runs.listing import RunSummary
from tests.app.conftest import LONG_MS
from tests.conftest import make_sprites

_RECORD = RunRecord(
    "run", "generator", {"batch_size": 64, "holdout": 0.2, "seed": 0}, 8, ("a",), "discs", 24, "", "cpu", "CPU", "fp32",
    100, "2026-01-01T00:00:00+00:00", {}, "group",
)  # fmt: skip
_STEPS = {"one": (0, 10, 20), "two": (0, 8, 16, 40), "none": ()}
_SPRITES = make_sprites().rgba


def _summary(name: str, batch_size: int = 64) -> RunSummary:
    record = replace(_RECORD, config={**_RECORD.config, "batch_size": batch_size})
    return RunSummary(Path(name), record, RunProgress("stopped", 40, 60.0, {}), "stopped")


ONE, TWO, NONE = _summary("one"), _summary("two", 32), _summary("none")


def _read(path: Path) -> HistoryRead:
    """Return losses that are lower for longer names. The first sprite's red value is the step."""
    history = RunHistory(validation={"loss": MetricCurve(np.array([40]), np.array([1 / len(path.name)]))})
    history.series["elapsed_s"] = MetricCurve(np.array([40]), np.array([60.0 if path.name == "one" else 120.0]))
    film = [SamplesReady(step, np.full_like(_SPRITES[:2], step)) for step in _STEPS[path.name]]
    return HistoryRead(path, history, tuple(film))


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hold back the reading of runs with these names."""
    names: list[str] = []

    def read_runs(reader: RunReader, paths: Sequence[Path]) -> Events:
        yield from (_read(path) for path in paths if path.name not in names)

    monkeypatch.setattr("studio.app.background.jobs.read_runs", read_runs)
    return names


@pytest.fixture
def shown(qtbot: QtBot, session: Session, held: list[str]) -> Iterator[Comparison]:
    made = Comparison(session)
    qtbot.addWidget(made)
    made.resize(900, 400)
    made.show()
    yield made
    qtbot.waitUntil(lambda: not session.job_queue.running(), timeout=LONG_MS)


def _choose(qtbot: QtBot, shown: Comparison, *runs: RunSummary, reads: int) -> None:
    with qtbot.waitSignals([shown._session.runs.read] * reads, timeout=LONG_MS):
        shown.show_runs(runs)


def _table(view: QTableView) -> dict[str, list[str]]:
    """Return the cells of each row by its title."""
    model = view.model()
    return {
        str(model.headerData(row, Qt.Orientation.Vertical)): [
            model.index(row, column).data() for column in range(model.columnCount())
        ]
        for row in range(model.rowCount())
    }


def _steps(shown: Comparison) -> list[int]:
    """Return each visible run's sample step."""
    lines = [line for line in shown.samples.rows if not line.isHidden()]
    return [int(line.view._shown.rgba[0, 0, 0, 0]) for line in lines if len(line.view._shown.rgba)]


def test_several_runs_get_tabs(qtbot: QtBot, shown: Comparison) -> None:
    _choose(qtbot, shown, ONE, reads=1)
    assert not shown.sections.isVisible() and shown.splitter.isVisible()
    _choose(qtbot, shown, ONE, TWO, reads=1)
    assert shown.sections.isVisible() and shown.splitter.isVisible()
    shown.sections.setCurrentIndex(1)
    assert shown.settings.isVisible() and _table(shown.settings.view) == {"Batch size": ["64 sprites", "32 sprites"]}
    shown.sections.setCurrentIndex(3)
    figures = _table(shown.figures.view)
    assert shown.figures.isVisible() and figures["Steps"] == ["", "40", "40"]
    assert figures["Validation loss"] == ["lower is better", "0.3333", "0.3333"]
    _choose(qtbot, shown, ONE, NONE, reads=1)
    shown.sections.setCurrentIndex(1)
    assert "No differences" in shown.settings._nothing.text() and not shown.settings.view.isVisible()
    shown.sections.setCurrentIndex(3)
    figures = _table(shown.figures.view)
    assert figures["Validation loss"] == ["lower is better", "0.3333", "best 0.25"]
    best = shown.figures.view.model().index(list(figures).index("Validation loss"), 2)
    assert best.data(Qt.ItemDataRole.FontRole).bold()
    shown.show_runs([ONE])
    qtbot.waitUntil(shown.splitter.isVisible, timeout=LONG_MS)


def test_samples_align_by_step_or_time(qtbot: QtBot, shown: Comparison) -> None:
    shown.sections.setCurrentIndex(2)
    _choose(qtbot, shown, ONE, TWO, NONE, reads=3)
    samples = shown.samples
    assert _steps(shown) == [20, 16] and samples.position.text() == "Step 20"
    assert "where the samples of 'one' end" in samples.note.text()
    samples.slider.setValue(1)
    assert samples.position.text() == "Step 8" and _steps(shown) == [10, 8]
    assert "Step 10, 15 s" in samples.rows[0].where._whole
    samples.alignment.setCurrentText("Same time")
    assert samples.position.text() == "30 s" and _steps(shown) == [20, 8]  # run 'two' needs twice the time for a step
    assert samples.rows[2].name._whole == "none" and not len(samples.rows[2].view._shown.rgba)


def test_values_of_other_runs_are_removed_while_reading(qtbot: QtBot, shown: Comparison, held: list[str]) -> None:
    shown.sections.setCurrentIndex(3)
    _choose(qtbot, shown, ONE, NONE, reads=2)
    held += ["two"]
    shown.show_runs([TWO, ONE])
    qtbot.waitUntil(lambda: "Still reading: 'two'." in shown.figures.note.text(), timeout=LONG_MS)
    assert _table(shown.figures.view)["Steps"] == ["", "40"]  # of the run read so far
    shown.sections.setCurrentIndex(2)
    assert [line.name._whole for line in shown.samples.rows if not line.isHidden()] == ["one"]
    shown.sections.setCurrentIndex(3)
    held.clear()
    _choose(qtbot, shown, TWO, replace(ONE, standing="finished"), reads=2)
    assert _table(shown.figures.view)["Steps"] == ["", "40", "40"] and "Still reading" not in shown.figures.note.text()
    model = shown.figures.view.model()
    with qtbot.assertNotEmitted(model.modelReset), qtbot.waitSignal(model.dataChanged, timeout=LONG_MS):
        _choose(qtbot, shown, TWO, ONE, reads=1)  # newer figures of the same runs keep the view


def test_too_many_runs_compare_the_first_eight(qtbot: QtBot, shown: Comparison) -> None:
    shown.sections.setCurrentIndex(2)
    many = [replace(ONE, path=Path(f"more/{number}/one")) for number in range(10)]
    _choose(qtbot, shown, *many, reads=8)
    assert len(shown.samples.rows) == 8 and shown._limit_note.text() == "The first 8 of 10"


def test_single_classifier_shows_its_confusion_matrix(qtbot: QtBot, session: Session, shown: Comparison) -> None:
    _choose(qtbot, shown, ONE, reads=1)
    assert not shown.sections.isVisible()
    session.runs.read.emit(replace(_read(ONE.path), history=RunHistory(confusion=ConfusionAtStep(40, np.array([[3]])))))
    titles = [shown.sections.tabText(index) for index in range(5) if shown.sections.isTabVisible(index)]
    assert shown.sections.isVisible() and titles == ["Curves", "Confusion matrix"]
    qtbot.waitUntil(lambda: shown.sections.width() >= shown.sections.sizeHint().width())
    shown.sections.setCurrentIndex(4)
    assert shown.confusion.isVisible() and shown.confusion.matrix.matrix.describe(0, 0) == "a correct: 3 of 3"
    assert shown.minimumSizeHint().height() > 2 * factory.LEAST_PLOT  # several rows, where the page scrolls
    _choose(qtbot, shown, NONE, reads=1)
    assert not shown.sections.isVisible() and shown.splitter.isVisible()
    _choose(qtbot, shown, ONE, reads=1)
    session.runs.read.emit(replace(_read(ONE.path), history=RunHistory(confusion=ConfusionAtStep(40, np.array([[3]])))))
    assert shown.confusion.isVisible()  # the tab chosen last


def test_damaged_run_says_what_to_do(qtbot: QtBot, session: Session) -> None:
    comparison = Comparison(session)
    qtbot.addWidget(comparison)
    view = comparison.filmstrip.view
    damaged = RunSummary(Path("broken"), None, None, "damaged", "run.json of broken is damaged.")
    comparison.show_runs([damaged])
    assert view.accessibleDescription().startswith("run.json of broken is damaged.")
    assert "Open folder" in view.accessibleDescription()
    comparison.show_runs([])
    assert view.accessibleDescription() == "Select a run to see its samples."
