"""--on: what is said of a training on another machine, which is another folder here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from studio.cli import signal_handlers
from studio.cli.messages import FAILED, INTERRUPTED, WRONG_USAGE
from studio.core import paths
from studio.engine.remote import marker
from studio.engine.remote import training as remote_training
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import summarise
from tests.cli.tools import Studio, training
from tests.conftest import posix
from tests.engine.remote.machine import FarMachine, far_machine

pytestmark = posix


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarMachine:
    return far_machine(tmp_path / "far machine", monkeypatch)


@pytest.mark.slow
def test_remote_training_equals_local_training(
    folder: Path, far: FarMachine, tmp_path: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.has_studio("-m", "studio")
    monkeypatch.setattr(remote_training, "POLL_S", 0.5)  # to look takes from the training what it computes with
    here, there = tmp_path / "here", tmp_path / "there, too"
    studio(*training(folder, here, "classifier"))
    out, err = studio(*training(folder, there, "classifier"), "--on", "me@far:runs")
    assert "Sending there, too to me@far:runs" in err and "Done: 4 steps" in out and f"studio predict '{there}'" in out
    for name in ("loss", "grad_norm"):
        learnt = [read_history(run).series[name].values.tolist() for run in (here, there)]
        assert learnt[0] == learnt[1]
    weights = [path.read_bytes() for run in (here, there) for path in run.glob("checkpoints/*4/model.safetensors")]
    assert len(weights) == 2 and weights[0] == weights[1]
    assert "is finished. --more-minutes 10 trains it longer." in studio("resume", there).err


class CtrlC:
    """In place of `time`, it presses Ctrl+C so many times where somebody sleeps when there is this file."""

    def __init__(self, when: Path, times: int) -> None:
        self._when, self.times = when, times
        self.then: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if self._when.exists() and self.times:
            self.times -= 1
            os.kill(os.getpid(), signal.SIGINT)
            self.then()


def test_ctrl_c_stops_it_there_and_once_more_leaves_it_alone(
    folder: Path, far: FarMachine, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = paths.runs() / "mine"
    press = CtrlC(run / "metrics.jsonl", 2)
    monkeypatch.setattr(remote_training, "time", press)
    lines: list[str] = []  # written at the first signal, past Python's stderr
    monkeypatch.setattr(
        signal_handlers, "os", Mock(write=lambda end, line: lines.append(os.fsdecode(line)), fsencode=os.fsencode)
    )
    far.tell("deaf")  # so that there is time for another one
    err = studio(*training(folder, run, "classifier"), "--on", "me@far:runs", code=INTERRUPTED).err
    assert (
        f"me@far:runs may not have received the request to stop. Reconnect with: studio resume {run} --on me@far:runs"
        in err
    )
    assert len(lines) == 1 and "Asking me@far:runs to stop and save the run" in lines[0]
    assert "Ctrl+C again quits this command only" in lines[0] and f"studio resume {run} --on me@far:runs" in lines[0]
    assert marker.remote_target_of(run) == "me@far:runs"
    assert "is being trained on me@far:runs" in studio("resume", "mine", code=FAILED).err
    press.times, press.then = 1, partial(far.forget, "deaf")  # it may have heard before that it is to stop
    out = studio("resume", "mine", "--on", "me@far:runs", code=INTERRUPTED).out
    assert "Stopped and saved" in out and "studio resume mine --on me@far:runs" in out
    assert summarise(run).standing == "stopped" and RunDir(run).progress().step > 0


def test_remote_errors_come_before_the_run_is_created(
    folder: Path, far: FarMachine, studio: Studio, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = training(folder, tmp_path / "run", "classifier")
    assert "is not a folder on another machine" in studio(*words, "--on", ":x", code=WRONG_USAGE).err
    far.refuses("Permission denied (publickey).")
    assert "me@far denied access." in studio(*words, "--on", "me@far:runs", code=FAILED).err
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    assert "torchrun can't be combined with --on." in studio(*words, "--on", "me@far:runs", code=WRONG_USAGE).err
    assert not (tmp_path / "run").exists()
