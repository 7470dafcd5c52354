"""Experiments run in a process of their own: what they find out is kept, and cancelling leaves nothing behind."""

from __future__ import annotations

import json
import math
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import psutil
import pytest

from studio.core import paths, worker_process
from studio.core.errors import StudioError, TrainingError, UsageError
from studio.core.events import Event, JobFailed, Notice, Progress
from studio.engine.devices.types import Device
from studio.lab import child, running
from studio.lab.outcome import Outcome
from studio.lab.results import ExperimentDone, load_results, save_result
from studio.lab.running import result_of, run_experiment
from tests.lab import stuck_child
from tests.lab.fake_experiments import Broken, Dying, FakeExperiment, Refusing
from tests.lab.tools import InProcess, small_context


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STUDIO_HOME", str(tmp_path))


def test_result_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_Process", InProcess)
    _assert_stored(list(run_experiment(FakeExperiment(), small_context(seed=7))))


@pytest.mark.slow
def test_result_of_a_process_of_its_own_is_stored() -> None:
    events = list(run_experiment(FakeExperiment(), small_context(seed=7)))
    first = events[0]  # long before the process is up
    assert isinstance(first, Progress) and first.what == "loading PyTorch"
    _assert_stored(events)


def _assert_stored(events: list[Event]) -> None:
    assert Progress(1, 2, "things") in events
    done = events[-1]
    assert isinstance(done, ExperimentDone)
    assert done.result.outcome == Outcome(sentences=("24 sprites, seed 7.",))
    assert (done.result.recipe, done.result.settings["seed"], done.result.data_count) == ("classifier", 7, 24)
    assert load_results() == ([done.result], [])


def test_result_that_cannot_be_stored_is_still_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_Process", InProcess)
    (tmp_path / "lab").write_text("in the way")
    *_, notice, done = run_experiment(FakeExperiment(), small_context())
    assert isinstance(notice, Notice) and notice.level == "warning" and "could not be saved" in notice.title
    assert isinstance(done, ExperimentDone) and done.path is None and done.result.outcome.sentences


def _until_stuck(events: Iterator[Event]) -> int:
    """Advance until the experiment hangs; returns the number of the process that it has started."""
    return next(event.done for event in events if isinstance(event, Progress) and event.what == "child")


def test_cancelling_kills_all_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    start = worker_process.start
    monkeypatch.setattr(worker_process, "start", lambda module, environment: start(stuck_child.__name__, environment))
    before = set(psutil.Process().children(recursive=True))
    events = run_experiment(FakeExperiment(), small_context())
    grandchild = psutil.Process(_until_stuck(events))
    assert next(events) == Progress(grandchild.pid, 0, "child")  # again: nothing new comes, and others can work
    (child_process,) = set(psutil.Process().children()) - before
    kills, waits = list[int](), list[float | None]()

    def note_kill(process: psutil.Process | subprocess.Popen[bytes], kill: Callable[[Any], None]) -> None:
        assert not waits, "Cancel waits for a process that it has not killed yet."
        kills.append(process.pid)
        kill(process)

    def note_wait(waiting: Any, timeout: float | None = None, *, wait: Callable[[Any, float | None], Any]) -> Any:
        waits.append(timeout)
        return wait(waiting, timeout)

    with monkeypatch.context() as patch:
        for kind in (psutil.Process, subprocess.Popen):
            patch.setattr(kind, "kill", partialmethod(note_kill, kind.kill))
        patch.setattr(subprocess.Popen, "wait", partialmethod(note_wait, wait=subprocess.Popen.wait))
        patch.setattr(threading.Thread, "join", partialmethod(note_wait, wait=threading.Thread.join))
        events.close()
    assert set(kills) == {grandchild.pid, child_process.pid}
    # Cancel promises 200 ms: a busy machine may take longer to kill, but all that is waited for has its limit.
    assert waits and sum(math.inf if wait_s is None else wait_s for wait_s in waits) <= 0.2
    psutil.wait_procs([grandchild], timeout=5)
    assert not grandchild.is_running()
    assert set(psutil.Process().children(recursive=True)) <= before
    assert load_results() == ([], [])


@pytest.mark.slow
def test_death_of_the_process_is_reported() -> None:
    with pytest.raises(StudioError, match="ended unexpectedly"):
        list(run_experiment(Dying(), small_context()))


@pytest.mark.slow
def test_errors_of_the_process_are_raised_in_the_parent() -> None:
    with pytest.raises(StudioError, match="'Toy' failed") as caught:
        list(run_experiment(Broken(), small_context()))
    assert "ZeroDivisionError" in caught.value.hint and "in run" in str(caught.value.__cause__)


def test_studio_errors_are_passed_on_unchanged() -> None:
    *_, failed = child._messages(Refusing(), small_context())
    assert isinstance(failed, JobFailed)
    assert (failed.title, failed.hint) == ("These sprites won't do.", "Take others.")


def test_unsuitable_device_raises_at_once() -> None:
    class OnCardsOnly(FakeExperiment):
        def obstacle(self, device: Device) -> str:
            return f"{device.name} is no card."

    with pytest.raises(UsageError, match="test CPU is no card"):
        list(run_experiment(OnCardsOnly(), small_context()))


def test_unsuitable_sprites_are_refused() -> None:
    with pytest.raises(TrainingError, match="class"):
        small_context(smallest_class=20)


def test_damaged_result_is_reported_with_the_others(tmp_path: Path) -> None:
    result = result_of(FakeExperiment(), small_context(), Outcome(sentences=("Sound.",)), 1.0)
    path = save_result(result)
    (paths.lab() / "0 torn.json").write_bytes(path.read_bytes()[:100])
    sound = json.loads(path.read_text())
    crooked = {"title": "p", "x": {"title": "", "log": True}, "y": {"title": ""}, "lines": [], "marks": []}
    for name, change in {
        "a": {"experiment": 3},
        "b": {"created": "yesterday"},
        "c": {"outcome": {"plots": [{**crooked, "lines": [{"name": "l", "x": [0], "y": [1]}]}]}},
        "d": {"outcome": {"plots": [{**crooked, "lines": [{"name": "l", "x": [1, 2], "y": [1]}]}]}},
        "f": {"read_on": ["click me", "file:///etc"]},
        "e": {"outcome": {"tables": [{"columns": ["one"], "rows": [["1", "2"]]}]}},
    }.items():
        (paths.lab() / f"2020 {name}.json").write_text(json.dumps(sound | change))
    results, problems = load_results()
    assert results == [result]
    names = [problem.split()[1] for problem in problems]
    assert names == [*(f"{name}.json" for name in "fedcba"), "torn.json"]
    words = (
        "not a web address",
        "wrong number of cells",
        "invalid points",
        "logarithm",
        "yesterday",
        "a whole number where a text belongs",
    )
    assert all(word in problem for word, problem in zip(words, problems, strict=False))
