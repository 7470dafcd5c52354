"""Watch a run from outside its process and send it requests, through files in the run folder."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from studio.core.errors import DamagedError, RunError, UnwritableError
from studio.core.events import (
    Blocked,
    CheckpointSaved,
    Event,
    Events,
    LossChunk,
    Notice,
    RunFinished,
    RunStarted,
    SamplesReady,
    Validated,
)
from studio.core.observers import observed
from studio.data.sprites import Sprites
from studio.engine.control import protocol, watcher
from studio.engine.control import server as speaking
from studio.engine.control.control import Control
from studio.engine.control.protocol import read_heartbeat, send_request
from studio.engine.control.server import RunControlServer
from studio.engine.control.watcher import RunWatcher, TrainingLost, TrainingSeen
from studio.engine.runs.folder import HEARTBEAT_FILE, REQUEST_FILE, RunDir
from studio.engine.runs.history import HistoryRead
from studio.engine.training.loop import train_resumed
from tests.engine.remote.machine import wait_until
from tests.engine.tools import CPU, bare_run, of_kind, own_clock, train_classifier, train_toy


class Clock:
    """Replaces `time`: advances by `step_s` at each call, and calls `on_sleep` instead of waiting."""

    def __init__(self, step_s: float) -> None:
        self.now_s, self.step_s = 0.0, step_s
        self.on_sleep: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        self.now_s += self.step_s
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.on_sleep()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The control server writes and polls after every event."""
    clock = Clock(3600.0)
    monkeypatch.setattr(speaking, "time", clock)
    monkeypatch.setattr(speaking, "BEAT_S", clock.step_s)  # too long for the thread
    return clock


@pytest.fixture
def watcher_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The watcher's clock, which stands still unless a test moves it."""
    clock = Clock(0.0)
    monkeypatch.setattr(watcher, "time", clock)
    return clock


def controlled(events: Events, control: Control, *, can_pause: bool) -> Events:
    """The events of a training that publishes its heartbeat and executes requests."""
    return observed(events, [RunControlServer(control, can_pause=can_pause)])


def until(events: Events, kind: type[Event]) -> list[Event]:
    """Return the events up to the first event of a class."""
    found: list[Event] = []
    for event in events:
        found.append(event)
        if isinstance(event, kind):
            return found
    raise AssertionError(f"no {kind.__name__} came")


@pytest.mark.parametrize("train", [train_toy, train_classifier])
def test_watcher_yields_the_trainings_events(
    train: Callable[..., Events], run_path: Path, sprites: Sprites, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_clock(monkeypatch)
    control = Control()
    training = controlled(train(run_path, sprites, control, checkpoint_every_s=1.0), control, can_pause=True)
    said = until(training, LossChunk)
    watcher = RunWatcher(run_path)
    read, started, *_, seen = watcher.poll()
    assert isinstance(read, HistoryRead) and isinstance(started, RunStarted) and isinstance(seen, TrainingSeen)
    known = read.history.series["loss"].values.tolist()
    told = of_kind(said, RunStarted)[0]
    assert (started.train_count, started.heldout_count, started.first_step) == (told.train_count, told.heldout_count, 0)
    assert (started.parameters, started.precision) == (told.parameters, told.precision)
    seen_later: list[Event] = []
    for event in training:
        said.append(event)
        seen_later += watcher.poll()
        if isinstance(event, LossChunk):
            shown = of_kind(seen_later, LossChunk)[-1]
            assert (shown.first_step, shown.lr) == (event.first_step, event.lr)
            assert shown.epoch == read_heartbeat(run_path).epoch  # type: ignore[union-attr]
    seen_later += watcher.poll()
    losses = [*known, *np.concatenate([chunk.losses for chunk in of_kind(seen_later, LossChunk)]).tolist()]
    np.testing.assert_allclose(losses, np.concatenate([chunk.losses for chunk in of_kind(said, LossChunk)]), rtol=1e-6)
    seen_samples = [*read.samples, *of_kind(seen_later, SamplesReady)]
    if train is train_toy:  # what others say of validation sprites is not kept
        assert [samples.step for samples in seen_samples] == [samples.step for samples in of_kind(said, SamplesReady)]
    saved = [event.step for event in of_kind(seen_later, CheckpointSaved)]
    assert saved == [event.step for event in of_kind(said, CheckpointSaved)]
    shown_last, said_last = of_kind(seen_later, Validated)[-1], of_kind(said, Validated)[-1]
    assert shown_last.metrics == said_last.metrics
    assert (shown_last.confusion is None) == (said_last.confusion is None) == (train is train_toy)
    np.testing.assert_array_equal(shown_last.confusion, said_last.confusion)
    assert seen_later[-1] == of_kind(said, RunFinished)[-1]
    assert not {HEARTBEAT_FILE, REQUEST_FILE} & {path.name for path in run_path.iterdir()}


def test_requests_pause_save_and_stop_a_training(run_path: Path, sprites: Sprites, clock: Clock) -> None:
    control = Control()
    training = controlled(train_toy(run_path, sprites, control, steps=10_000), control, can_pause=True)
    until(training, LossChunk)
    send_request(run_path, save=True, sample=True)
    saved = until(training, CheckpointSaved)[-1]
    assert isinstance(saved, CheckpointSaved)
    assert of_kind(until(training, SamplesReady), SamplesReady)[-1].step > 0
    send_request(run_path, pause=True)
    looks: list[bool] = []

    def wait() -> None:
        seen = read_heartbeat(run_path)
        looks.append(seen is not None and seen.is_paused)
        if len(looks) == 3:
            send_request(run_path, pause=False)

    clock.on_sleep = wait
    until(training, Notice)
    step = RunDir(run_path).progress().step
    assert until(training, Notice) and looks == [True, True, True]
    assert RunDir(run_path).progress().step == step  # nothing was trained meanwhile
    assert isinstance(until(training, LossChunk)[-1], LossChunk) and not read_heartbeat(run_path).is_paused  # type: ignore[union-attr]
    send_request(run_path, pause=True)
    send_request(run_path, stop=True)
    *_, end = training
    assert isinstance(end, RunFinished) and end.reason == "stopped" and end.step > saved.step
    control = Control()
    resumed = controlled(train_resumed(run_path, CPU, control), control, can_pause=True)
    until(resumed, LossChunk)
    assert not control.stop  # what was asked of the training before counts no more
    resumed.close()


def test_training_that_cannot_pause_continues(run_path: Path, sprites: Sprites, clock: Clock) -> None:
    training = controlled(train_toy(run_path, sprites), Control(), can_pause=False)
    until(training, LossChunk)
    assert read_heartbeat(run_path).can_pause is False  # type: ignore[union-attr]
    send_request(run_path, pause=True)
    assert isinstance(until(training, RunFinished)[-1], RunFinished)


def test_unreadable_request_file_changes_nothing(run_path: Path, sprites: Sprites, clock: Clock) -> None:
    control = Control()
    training = controlled(train_toy(run_path, sprites, control, steps=10_000), control, can_pause=True)
    until(training, LossChunk)
    send_request(run_path, save=True)
    until(training, CheckpointSaved)
    send_request(run_path, pause=True)
    asked, waits = (run_path / REQUEST_FILE).read_bytes(), list[bool]()

    def wait() -> None:
        waits.append(True)
        if len(waits) == 2:
            (run_path / REQUEST_FILE).write_bytes(b"")
        elif len(waits) == 4:
            (run_path / REQUEST_FILE).unlink()
        elif len(waits) == 6:
            (run_path / REQUEST_FILE).write_bytes(asked.replace(b'"pause": true', b'"pause": false'))

    clock.on_sleep = wait
    until(training, Notice)
    until(training, Notice)
    assert len(waits) == 6
    later = [next(training) for _ in range(20)]
    assert not of_kind(later, CheckpointSaved)
    training.close()


def test_a_paused_generator_keeps_its_heartbeat_and_reports_the_pause(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speaking, "BEAT_S", 0.01)
    control = Control()
    training = controlled(train_toy(run_path, sprites, control), control, can_pause=False)
    until(training, LossChunk)
    control.is_paused = True
    first = read_heartbeat(run_path)
    wait_until(lambda: (seen := read_heartbeat(run_path)) is not None and seen.is_paused and seen != first)
    control.is_paused = False
    wait_until(lambda: (seen := read_heartbeat(run_path)) is not None and not seen.is_paused)
    training.close()
    assert read_heartbeat(run_path) is None


def test_a_training_that_is_not_advanced_reads_a_stop_request(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speaking, "BEAT_S", 0.01)
    monkeypatch.setattr(speaking, "POLL_S", 0.01)
    control = Control()
    training = controlled(train_toy(run_path, sprites, control), control, can_pause=False)
    until(training, LossChunk)
    send_request(run_path, stop=True)
    wait_until(lambda: control.stop)
    training.close()


def test_a_heartbeat_on_a_full_disk_overwrites_the_old_file(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_path.parent.mkdir(exist_ok=True)
    bare_run(run_path)
    long, short = protocol.Heartbeat(1, 0, 0.0, 1, 1, halted="Can't write." * 9), protocol.Heartbeat(2, 0, 0.0, 1, 1)
    protocol.write_heartbeat(run_path, long)
    monkeypatch.setattr(Path, "write_bytes", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    protocol.write_heartbeat(run_path, short)
    assert read_heartbeat(run_path) == short
    (run_path / HEARTBEAT_FILE).unlink()
    with pytest.raises(UnwritableError):
        protocol.write_heartbeat(run_path, short)


def test_watcher_sees_the_end_of_a_training(
    run_path: Path, sprites: Sprites, clock: Clock, watcher_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = controlled(train_toy(run_path, sprites), Control(), can_pause=True)
    until(training, LossChunk)
    watcher = RunWatcher(run_path)
    assert isinstance([*watcher.poll()][-1], TrainingSeen)
    kept = (run_path / HEARTBEAT_FILE).read_bytes()
    training.close()
    (run_path / HEARTBEAT_FILE).write_bytes(kept)  # as if it had been killed
    watcher_clock.now_s = 5.0
    assert [*watcher.poll()] == [TrainingSeen(read_heartbeat(run_path), 5.0)]
    watcher_clock.now_s = 7.0
    (lost,) = watcher.poll()
    assert isinstance(lost, TrainingLost) and "The training of trial no longer responds." in lost.title
    (run_path / HEARTBEAT_FILE).unlink()

    control = Control()
    failing = controlled(train_resumed(run_path, CPU, control), control, can_pause=True)
    until(failing, RunStarted)
    until(failing, LossChunk)
    assert of_kind([*watcher.poll()], RunStarted)  # it has begun again
    monkeypatch.setattr(control, "give_up", True)
    monkeypatch.setattr(RunDir, "append", _full)
    with pytest.raises(UnwritableError):
        list(failing)
    lost = [*watcher.poll()][-1]
    assert isinstance(lost, TrainingLost) and lost.title == "trial has failed." and "No space" in lost.hint


def _full(run: RunDir, line: object) -> None:
    raise UnwritableError(run.path, "No space left on device")


def test_without_locks_long_silence_ends_a_training(
    run_path: Path, sprites: Sprites, clock: Clock, watcher_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a drive that another machine shares and that has no locks."""
    training = controlled(train_toy(run_path, sprites), Control(), can_pause=True)
    until(training, LossChunk)
    monkeypatch.setattr(RunDir, "is_busy", lambda self: False)
    watcher = RunWatcher(run_path)
    list(watcher.poll())
    for watcher_clock.now_s in (10.0, 59.0):
        assert isinstance([*watcher.poll()][-1], TrainingSeen)
    next(training)
    next(training)
    watcher_clock.now_s = 100.0
    assert [event.silent_s for event in of_kind([*watcher.poll()], TrainingSeen)] == [0.0]
    watcher_clock.now_s = 161.0
    assert isinstance([*watcher.poll()][-1], TrainingLost)
    training.close()


def test_watcher_sees_why_a_training_is_blocked(
    run_path: Path, sprites: Sprites, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = controlled(train_toy(run_path, sprites), Control(), can_pause=True)
    until(training, LossChunk)
    with monkeypatch.context() as full:
        full.setattr(RunDir, "append", _full)
        until(training, Blocked)
        seen = read_heartbeat(run_path)  # before the training is advanced: a window waits for its user
    assert seen is not None and seen.halted == f"Can't write to {run_path}."
    assert seen.eta_s is None or math.isfinite(seen.eta_s)
    training.close()


def test_damaged_files_are_ignored_and_a_missing_run_raises(run_path: Path, sprites: Sprites, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run"):
        RunWatcher(tmp_path / "none")
    list(train_toy(run_path, sprites, steps=2))
    for text in (b"{", b'{"beat": -1, "saves": -1}', b"\xff"):
        (run_path / HEARTBEAT_FILE).write_bytes(text)
        (run_path / REQUEST_FILE).write_bytes(text)
        assert read_heartbeat(run_path) is None
        assert protocol.read_requests(run_path, protocol.ControlRequest(saves=3)) == protocol.ControlRequest(saves=3)
        with pytest.raises(DamagedError, match=r"asked\.json"):
            send_request(run_path, save=True)
        assert (run_path / REQUEST_FILE).read_bytes() == text
    assert isinstance([*RunWatcher(run_path).poll()][-1], TrainingSeen)
