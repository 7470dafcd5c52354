"""A training's curves, also if pyqtgraph loads after the first losses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from studio.app.background.worker import JobPaused
from studio.app.pages.train.monitor import Monitor
from studio.app.state.session import Session
from studio.core.events import Advised, CheckpointSaved, Event, QualityMeasured, RolledBack, SamplesSpaced, Validated
from studio.core.metrics import Quality
from studio.engine.runs.history import HistoryRead, MetricCurve, RunHistory
from tests.app.conftest import LONG_MS, chunk, endless


@pytest.fixture
def monitor(qtbot: QtBot, session: Session) -> Monitor:
    made = Monitor(session)
    qtbot.addWidget(made)
    return made


def said() -> list[Event]:
    """Return the events of a resumed run."""
    curve = MetricCurve(np.arange(4), np.arange(4.0))
    known = HistoryRead(
        Path("run"), RunHistory({"loss": curve}, {"loss": MetricCurve(np.array([3]), np.array([0.5]))}), ()
    )
    return [
        known,
        chunk(4, 2),
        chunk(6, 4),
        Validated(8, {"loss": 0.25}),
        CheckpointSaved(9, Path("run/checkpoints/9")),
        chunk(10, 5),
        RolledBack(14, 9, 0.5),
        chunk(9, 1),
        QualityMeasured(9, Quality(0.25, 0.01, 0.0, 0.0, 0.0)),
        Advised(9, "copying", "Copies.", 3),
    ]


def test_slow_samples_show_their_interval(session: Session, monitor: Monitor) -> None:
    session.training.state = "training"
    for actual_s, words in ((50.0, "Every 50 s"), (10.0, ""), (50.0, "Every 50 s")):
        session.training.event_received.emit(SamplesSpaced(10.0, actual_s, actual_s / 25))
        assert monitor.spacing.text() == words
    assert monitor.spacing.toolTip().startswith("Drawing samples takes 2 s")
    session.training.state = "idle"
    session.training.state_changed.emit()
    assert not monitor.spacing.text()


def test_plots_load_during_an_import(qtbot: QtBot, session: Session) -> None:
    got: list[Event] = []
    job = session.job_queue.start("files", "Opening a million files", endless(), got.append)
    qtbot.waitUntil(lambda: bool(got), timeout=LONG_MS)
    with qtbot.waitSignal(session.catalog.plots_ready, timeout=10_000):
        session.catalog._on_libraries_loaded(None)
    assert job in session.job_queue.running()


def test_curves_are_complete_on_pause(qtbot: QtBot, session: Session, monitor: Monitor) -> None:
    from studio.app.widgets.plot.loss_plot import LossPlot

    plot = LossPlot()
    monitor.set_plot(plot)
    monitor.show()
    plot.set_redraw_interval_ms(1_000_000)
    plot.refresh()
    session.training.event_received.emit(chunk(0, 4))
    with qtbot.waitSignal(plot.redrawn, timeout=LONG_MS):
        session.training.event_received.emit(JobPaused())


def test_early_events_are_drawn_with_the_plot(qtbot: QtBot, session: Session, monitor: Monitor, tmp_path: Path) -> None:
    from studio.app.widgets.plot.loss_plot import LossPlot

    late = Monitor(session)
    qtbot.addWidget(late)
    monitor.set_plot(LossPlot())
    for event in said():
        session.training.event_received.emit(event)
    late.set_plot(LossPlot())
    found = []
    for plot in (monitor.plot, late.plot):
        assert plot is not None
        plot.save(tmp_path / "loss.csv")
        marks = [(mark.step, mark.kind) for mark in plot.marks]
        found.append(((tmp_path / "loss.csv").read_text(), marks, list(plot.tabs)))
    assert found[1] == found[0]
    table, marks, _ = found[1]
    assert [line.split(",")[0] for line in table.splitlines()] == ["step", *map(str, range(10))]
    assert marks == [(9, "checkpoint"), (9, "incident"), (3, "best")]


def test_new_run_clears_everything(session: Session, monitor: Monitor) -> None:
    from studio.app.widgets.plot.loss_plot import LossPlot

    session.training.event_received.emit(chunk(0, 5))
    session.training._set_state("starting")
    session.training._set_state("idle")
    plot = LossPlot()
    monitor.set_plot(plot)
    assert not len(plot.tabs["Loss"].raw.steps)
