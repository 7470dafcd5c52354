"""The queue shows the progress of its running run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pytestqt.qtbot import QtBot

from studio.app.pages.runs.queue_panel import QueuePanel
from studio.app.state.session import Session
from studio.engine.runs.folder import RunProgress, RunRecord
from studio.engine.runs.listing import RunSummary
from tests.app.conftest import chunk
from tests.app.widgets.tools import shown


def _queued(name: str, standing: Literal["queued", "training"]) -> RunSummary:
    config = {"steps": 200, "minutes": 5.0}
    record = RunRecord(
        name, "generator", config, 8, ("a",), "discs", 24, "", "cpu", "CPU", "fp32", 100, "2026-01-01", {}, "group"
    )
    return RunSummary(Path(name), record, RunProgress(standing, 50, 1.0, {}), standing, step=50, elapsed_s=1.0)


def _rows(panel: QueuePanel) -> list[str]:
    return [panel.list.item(row).text() for row in range(panel.list.count())]


def test_running_run_shows_its_share_and_time_left(qtbot: QtBot, session: Session) -> None:
    panel = shown(qtbot, QueuePanel(session), 264, 300)
    session.queue.runs = (_queued("first", "queued"), _queued("second", "queued"))
    session.queue.changed.emit()
    assert _rows(panel) == ["first", "second"] and not panel.bar.isVisible()
    session.queue.runs = (_queued("first", "training"), _queued("second", "queued"))
    session.queue.changed.emit()
    assert _rows(panel) == ["first: 25 %", "second"] and panel.progress.text() == "25 %"  # by another process
    session.training.path, session.training.state = Path("first"), "training"
    session.training.chunk = replace(chunk(98, 2), eta_s=80.0)
    session.queue.changed.emit()
    assert _rows(panel) == ["first: 50 %", "second"] and panel.progress.text() == "50 %, 1 min 20 s left"
    assert panel.bar.isVisible() and panel.bar.value() * 2 == panel.bar.maximum()
    panel.list.setCurrentRow(1)
    session.training.chunk = replace(chunk(148, 2), eta_s=math.inf)
    qtbot.waitUntil(lambda: panel.progress.text() == "75 %")  # every second
    assert panel.list.currentRow() == 1
    session.training.state = "paused"
    session.queue.changed.emit()
    assert panel.progress.text() == "75 %, paused"
