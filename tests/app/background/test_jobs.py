"""Jobs of the window: what they report, and what they leave out."""

from __future__ import annotations

from pathlib import Path

from studio.app.background.jobs import read_runs
from studio.core.events import Notice
from studio.engine.runs.history import RunReader


def test_a_run_that_has_vanished_is_not_reported(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (notice,) = read_runs(RunReader(), [tmp_path / "in the trash", damaged])
    assert isinstance(notice, Notice) and "damaged is not a run" in notice.title
