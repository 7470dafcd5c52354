"""Training processes, with a script in place of torchrun."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from studio.core.errors import RunError
from studio.engine.distributed.launching import TrainingProcesses, last_output_lines
from studio.engine.runs.folder import RunProgress
from tests.conftest import posix
from tests.engine.tools import bare_run

pytestmark = posix
_LONGEST_S = 60.0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "far"
    path.mkdir()
    return path


def started(run: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> TrainingProcesses:
    """Processes whose torchrun is this script."""
    torchrun = run.parent / "torchrun"
    torchrun.write_text(f"#!/bin/sh\n{script}\n")
    torchrun.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(torchrun))
    processes = TrainingProcesses(run, 3, "cuda", more_min=2.0)
    assert not processes.is_running() and not processes.has_failed()
    processes.start()
    return processes


def wait(processes: TrainingProcesses) -> None:
    end_s = time.monotonic() + _LONGEST_S
    while processes.is_running():
        assert time.monotonic() < end_s


def test_last_output_is_the_reason_of_a_failure(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = started(run, 'echo "$PYTHONSAFEPATH $@"; exit 3', monkeypatch)
    wait(processes)
    failure = processes.failure()
    assert processes.has_failed() and failure.title == "The processes that train far have ended."
    torchrun, _, studio = failure.hint.partition(" -m studio ")
    assert torchrun == "1 -m torch.distributed.run --standalone --nproc-per-node 3 --max-restarts 3"
    assert studio == f"resume {run} --device cuda --more-minutes 2.0"
    bare_run(run).write_progress(RunProgress("failed", 3, 1.0, {}, "The card has gone."))
    assert str(processes.failure()) == "far has failed. The card has gone."


def test_end_is_not_a_failure(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = started(run, "exec sleep 600", monkeypatch)
    assert processes.is_running()
    processes.terminate()
    wait(processes)
    assert not processes.has_failed()


def test_end_before_start_starts_nothing(run: Path) -> None:
    processes = TrainingProcesses(run, 2, "cpu")
    processes.terminate()
    processes.start()
    assert not processes.is_running() and not list(run.iterdir())


def test_missing_drive_raises_an_error(run: Path) -> None:
    run.rmdir()
    with pytest.raises(RunError, match="Can't write to"):
        TrainingProcesses(run, 2, "cpu").start()


def test_torchruns_lines_are_not_the_last_output() -> None:
    log = (
        "Training on the CPU\nThere is no run 'far'.\n'studio runs' lists all.\n"
        "W1125 21:07:41.156000 32526 torch/distributed: Sending process 32595 closing signal SIGTERM\n"
        "E1125 21:07:41.220000 32526 torch/distributed: failed (exitcode: 2) local_rank: 0 (pid: 32594)\n"
        "Traceback (most recent call last):\n  File 'run.py'\n=====\n"
    )
    assert last_output_lines(log) == "There is no run 'far'. 'studio runs' lists all."
    assert last_output_lines("It broke.\nMend it.\nMore: studio help troubleshooting\n") == "It broke. Mend it."
    assert last_output_lines("No module named torch\n") == "No module named torch" and last_output_lines("") == ""
