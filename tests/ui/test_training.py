"""The one training of the window, really trained: its states, and what is left of it."""

from __future__ import annotations

import threading
import time

from PySide6.QtCore import QObject, Slot
from pytestqt.qtbot import QtBot

from studio.app.background.job_events import RunDescribed
from studio.app.background.worker import JobPaused
from studio.app.state.session import Session
from studio.core.events import Event, JobFailed, LossChunk, RunFinished, RunStarted, SamplesReady, Validated
from studio.engine.runs.history import HistoryRead
from studio.engine.runs.listing import summarise
from studio.engine.types import GenerateSettings
from tests.ui.conftest import LONG_MS, start_tiny, trains


class Listener(QObject):
    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.events: list[Event] = []
        self.states: list[str] = []
        self.failures: list[JobFailed] = []
        self.threads: set[int] = set()
        session.training.event_received.connect(self.take)
        session.training.state_changed.connect(self.note)
        session.job_queue.failed.connect(self.fail)

    @Slot(object)
    def take(self, event: Event) -> None:
        self.events.append(event)
        self.threads.add(threading.get_ident())

    @Slot()
    def note(self) -> None:
        self.states.append(self.session.training.state)

    @Slot(object)
    def fail(self, failure: JobFailed) -> None:
        self.failures.append(failure)

    def kinds(self) -> set[type[Event]]:
        return {type(event) for event in self.events}


def state(session: Session) -> str:
    return session.training.state


def wait_idle(qtbot: QtBot, session: Session) -> None:
    qtbot.waitUntil(lambda: session.training.state == "idle", timeout=LONG_MS)


def test_a_run_from_start_to_end(qtbot: QtBot, ready: Session) -> None:
    listener = Listener(ready)
    start_tiny(ready)
    assert ready.training.state == "starting"
    wait_idle(qtbot, ready)
    assert listener.states == ["starting", "training", "idle"]
    assert listener.failures == []
    assert {RunStarted, RunDescribed, LossChunk, SamplesReady, Validated, RunFinished} <= listener.kinds()
    assert listener.threads == {threading.get_ident()}
    assert sum(len(event.losses) for event in listener.events if isinstance(event, LossChunk)) == 12
    assert ready.training.path is not None
    assert summarise(ready.training.path).standing == "finished"


def test_pause_holds_the_steps_and_stop_ends_a_paused_run(qtbot: QtBot, ready: Session) -> None:
    listener = Listener(ready)
    start_tiny(ready, steps=1_000_000)
    qtbot.waitUntil(trains(ready), timeout=LONG_MS)
    begun = time.perf_counter()
    ready.training.pause()
    assert state(ready) == "paused"
    assert time.perf_counter() - begun < 0.1
    qtbot.waitUntil(lambda: JobPaused in listener.kinds(), timeout=LONG_MS)
    held = ready.training.chunk
    qtbot.wait(700)
    assert ready.training.chunk is held
    ready.training.resume()
    qtbot.waitUntil(lambda: ready.training.chunk is not held, timeout=LONG_MS)
    ready.training.pause()
    ready.training.stop()
    assert state(ready) == "stopping"
    wait_idle(qtbot, ready)
    assert ready.training.path is not None
    assert summarise(ready.training.path).standing == "stopped"


def test_a_stopped_run_is_resumed_with_its_curves(qtbot: QtBot, ready: Session) -> None:
    start_tiny(ready, steps=1_000_000)
    qtbot.waitUntil(trains(ready), timeout=LONG_MS)
    ready.training.stop()
    wait_idle(qtbot, ready)
    path = ready.training.path
    assert path is not None
    step = summarise(path).progress.step  # type: ignore[union-attr]
    listener = Listener(ready)
    with qtbot.waitSignal(ready.runs.listed, timeout=LONG_MS):
        ready.runs.list_runs()
    ready.resume_run(path)
    qtbot.waitUntil(trains(ready), timeout=LONG_MS)
    read = next(event for event in listener.events if isinstance(event, HistoryRead))
    assert len(read.history.series["loss"].steps) == step
    started = next(event for event in listener.events if isinstance(event, RunStarted))
    assert started.first_step == step
    ready.training.stop()
    wait_idle(qtbot, ready)
    ready.training._receive(read)
    assert ready.training.heldout["loss"] == read.history.validation["loss"].values[-1]
    assert ready.training.samples is read.samples[-1] and len(read.samples[-1].captions) == 16


def test_generating_works_while_training_and_while_paused(qtbot: QtBot, ready: Session) -> None:
    start_tiny(ready, steps=1_000_000)
    qtbot.waitUntil(trains(ready), timeout=LONG_MS)
    control, device = ready.training.control, ready.training.device
    assert control is not None
    assert device is not None
    for _ in ("training", "paused"):
        with qtbot.waitSignal(ready.inference.generated, timeout=LONG_MS) as caught:
            ready.inference.generate(control, device, GenerateSettings(count=3, steps=2))
        assert caught.args[0].sprites.shape == (3, 8, 8, 4)
        ready.training.pause()
    assert ready.training.state == "paused"
    ready.training.stop()
    wait_idle(qtbot, ready)


def test_a_failed_start_is_told_and_leaves_the_window_idle(qtbot: QtBot, ready: Session) -> None:
    listener = Listener(ready)
    start_tiny(ready, "classifier", smallest_class=100)
    wait_idle(qtbot, ready)
    assert "two classes" in listener.failures[0].title
    assert listener.failures[0].details == ""
    start_tiny(ready)
    wait_idle(qtbot, ready)
    assert len(listener.failures) == 1


def test_a_second_start_changes_nothing(qtbot: QtBot, ready: Session) -> None:
    start_tiny(ready)
    start_tiny(ready)
    assert sum(job.background for job in ready.job_queue.running()) == 1
    wait_idle(qtbot, ready)
