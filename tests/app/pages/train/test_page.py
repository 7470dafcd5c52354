"""A real training in the window: its states, its files, and jobs that yield to it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from studio.app.background.job_events import RunDescribed
from studio.app.background.worker import JobPaused
from studio.app.state.feature_training import TITLE
from studio.app.state.session import Session
from studio.app.status_bar import StatusBar
from studio.app.widgets.factory import ElidedLabel
from studio.app.window import Window
from studio.core import paths
from studio.core.events import (
    CheckpointSaved,
    Event,
    Events,
    JobFailed,
    LossChunk,
    RunFinished,
    RunStarted,
    SamplesReady,
    Validated,
)
from studio.engine.control.protocol import send_request
from studio.engine.devices.types import DeviceMeasured
from studio.engine.quality import features
from studio.engine.runs.history import HistoryRead
from studio.engine.runs.listing import summarise
from studio.engine.sampling.settings import GenerateSettings
from tests.app.conftest import (
    LONG_MS,
    click,
    cpu_of,
    double_click,
    endless,
    open_sprites,
    start_endless,
    start_tiny,
    wait_for_steps,
    wait_idle,
)
from tests.engine.tools import of_kind


class Listener:
    """Records a training's events, states and the receiving thread."""

    def __init__(self, session: Session) -> None:
        self.events: list[Event] = []
        self.states: list[str] = []
        self.failures: list[JobFailed] = []
        self.threads: set[int] = set()
        session.training.event_received.connect(self.take)
        session.training.state_changed.connect(lambda: self.states.append(session.training.state))
        session.job_queue.failed.connect(self.failures.append)

    def take(self, event: Event) -> None:
        self.events.append(event)
        self.threads.add(threading.get_ident())

    def kinds(self) -> set[type[Event]]:
        return {type(event) for event in self.events}


def state(session: Session) -> str:
    return session.training.state


def test_run_from_start_to_end(qtbot: QtBot, ready: Session) -> None:
    listener = Listener(ready)
    start_tiny(ready)
    assert ready.training.state == "starting"
    wait_idle(qtbot, ready)
    assert listener.states == ["starting", "training", "idle"]
    assert listener.failures == []
    assert {RunStarted, RunDescribed, LossChunk, SamplesReady, Validated, RunFinished} <= listener.kinds()
    assert listener.threads == {threading.get_ident()}
    assert sum(len(event.losses) for event in of_kind(listener.events, LossChunk)) == 6
    assert ready.training.path is not None
    assert summarise(ready.training.path).standing == "finished"


def test_external_stop_ends_a_paused_run(qtbot: QtBot, ready: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.control.server.BEAT_S", 0.02)
    listener, training = Listener(ready), start_endless(qtbot, ready)
    training.pause()
    qtbot.waitUntil(lambda: JobPaused in listener.kinds(), timeout=LONG_MS)
    path = training.path
    assert path is not None
    send_request(path, stop=True)
    wait_idle(qtbot, ready)
    assert listener.states[-2:] == ["stopping", "idle"] and summarise(path).standing == "stopped"


def test_pause_and_stop(qtbot: QtBot, ready: Session) -> None:
    listener, training = Listener(ready), start_endless(qtbot, ready)
    begun = time.perf_counter()
    training.pause()
    assert state(ready) == "paused"
    assert time.perf_counter() - begun < 0.1
    qtbot.waitUntil(lambda: JobPaused in listener.kinds(), timeout=LONG_MS)
    held = training.chunk
    qtbot.wait(700)
    assert training.chunk is held
    control = training.control
    assert control is not None
    told = [control.is_paused]  # to the heartbeat, for watchers
    training.resume()
    assert [*told, control.is_paused] == [True, False]
    qtbot.waitUntil(lambda: training.chunk is not held, timeout=LONG_MS)
    training.pause()
    training.stop()
    assert state(ready) == "stopping"
    wait_idle(qtbot, ready)
    assert training.path is not None
    assert summarise(training.path).standing == "stopped"


def test_a_double_click_starts_and_does_not_pause(qtbot: QtBot, window: Window, sprite_folder: Path) -> None:
    session, controls = window.session, window.train.controls
    open_sprites(qtbot, session, sprite_folder)
    window.show_page("train")
    double_click(controls.start, controls.pause)
    wait_for_steps(qtbot, session)
    QTest.keyClick(controls.pause, Qt.Key.Key_Return)
    assert state(session) == "training"
    double_click(controls.pause)
    assert state(session) == "paused"
    QTest.keyClick(controls.pause, Qt.Key.Key_Return)
    assert state(session) == "training"
    session.training.stop()
    wait_idle(qtbot, session)


def test_save_checkpoint_on_request(qtbot: QtBot, window: Window) -> None:
    session = window.session
    assert not window.menus.checkpoint.isEnabled()
    training, saved = start_endless(qtbot, session), list[Event]()
    training.event_received.connect(saved.append)
    window.menus.checkpoint.trigger()
    qtbot.waitUntil(lambda: any(isinstance(event, CheckpointSaved) for event in saved), timeout=LONG_MS)
    assert window.train.monitor.readings.value("Time left") != "–"
    training.stop()
    wait_idle(qtbot, session)
    assert window.train.monitor.readings.value("Time left") == "–"  # no step remains


def test_resume_restores_the_curves(qtbot: QtBot, ready: Session) -> None:
    training = start_endless(qtbot, ready)
    training.stop()
    wait_idle(qtbot, ready)
    assert training.path is not None
    step = summarise(training.path).progress.step  # type: ignore[union-attr]
    listener = Listener(ready)
    with qtbot.waitSignal(ready.runs.listed, timeout=LONG_MS):
        ready.runs.list_runs()
    ready.resume_run(training.path)
    wait_for_steps(qtbot, ready)
    (read,), (started,) = of_kind(listener.events, HistoryRead), of_kind(listener.events, RunStarted)
    assert len(read.history.series["loss"].steps) == started.first_step == step
    training.stop()
    wait_idle(qtbot, ready)
    training._receive(read)
    assert training.heldout["loss"] == read.history.validation["loss"].values[-1]
    assert training.samples is read.samples[-1] and len(read.samples[-1].captions) == 16


def test_generate_while_training_and_paused(qtbot: QtBot, ready: Session) -> None:
    training = start_endless(qtbot, ready)
    assert training.control is not None
    for _ in ("training", "paused"):
        with qtbot.waitSignal(ready.inference.generated, timeout=LONG_MS) as caught:
            ready.inference.generate(training.control, cpu_of(ready), GenerateSettings(count=3, steps=2))
        assert caught.args[0].sprites.shape == (3, 8, 8, 4)
        training.pause()
    assert state(ready) == "paused"
    training.stop()
    wait_idle(qtbot, ready)


def test_failed_start_is_reported(qtbot: QtBot, ready: Session) -> None:
    listener = Listener(ready)
    start_tiny(ready, "classifier", smallest_class=100)
    wait_idle(qtbot, ready)
    start_tiny(ready)
    wait_idle(qtbot, ready)
    (failure,) = listener.failures
    assert "two classes" in failure.title and failure.details == ""


def test_second_start_is_ignored(qtbot: QtBot, ready: Session) -> None:
    start_tiny(ready)
    start_tiny(ready)
    assert sum(job.title.startswith("Training") for job in ready.job_queue.running()) == 1
    wait_idle(qtbot, ready)


def _measure(*settings: object) -> Events:
    """Report the other device as faster, then continue forever."""
    yield DeviceMeasured("cpu", "fp32", 1.0, 0.1, 1.0)
    yield DeviceMeasured("other", "fp32", 9.0, 0.1, 1.0)
    yield from endless()


def test_training_ends_measuring(
    qtbot: QtBot, ready: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.app.background.jobs.measure", _measure)
    cpu = cpu_of(ready)
    open_sprites(qtbot, ready, sprite_folder)
    ready.catalog.devices = (cpu, replace(cpu, id="other", name="Another"))
    ready.catalog.devices_found.emit()
    ready.device_choice.choose("cpu")
    with qtbot.waitSignals([ready.catalog.measured] * 2, timeout=LONG_MS):
        ready.setup.measure()
    start_tiny(ready, steps=1_000_000)
    qtbot.waitUntil(lambda: not ready.catalog.is_measuring(), timeout=LONG_MS)
    assert ready.training.is_busy()
    assert ready.device_choice.device == cpu
    ready.training.stop()
    wait_idle(qtbot, ready)
    assert ready.training.failure is None


def known_features() -> list[Path]:
    return list(paths.features().glob("*.safetensors"))


def titles(session: Session) -> list[str]:
    return [job.title for job in session.job_queue.running()]


def test_sprites_are_analysed_while_idle(qtbot: QtBot, ready: Session, sprite_folder: Path) -> None:
    assert not known_features()
    ready.open_sprites.open_paths([sprite_folder])
    qtbot.waitUntil(lambda: bool(known_features()), timeout=LONG_MS)
    qtbot.waitUntil(lambda: not titles(ready), timeout=LONG_MS)  # no further events


@pytest.mark.slow
def test_analysis_pauses_for_a_training(
    qtbot: QtBot, ready: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "_STEPS", 1_000_000)  # an endless job
    ready.open_sprites.open_paths([sprite_folder])
    qtbot.waitUntil(lambda: TITLE in titles(ready), timeout=LONG_MS)
    start_tiny(ready, steps=3)
    wait_idle(qtbot, ready)
    assert ready.training.chunk is not None
    qtbot.waitUntil(lambda: TITLE in titles(ready), timeout=LONG_MS)


def test_analysis_shows_progress_and_can_be_cancelled(
    qtbot: QtBot, ready: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = StatusBar(ready)
    qtbot.addWidget(line)
    line.resize(1200, 32)
    line.show()
    monkeypatch.setattr(features, "_STEPS", 1_000_000)
    open_sprites(qtbot, ready, sprite_folder)
    text, cancel = line.findChild(ElidedLabel), line.findChild(QPushButton)
    assert isinstance(text, ElidedLabel) and isinstance(cancel, QPushButton)
    qtbot.waitUntil(lambda: f"{TITLE}: " in text.text() and "of 1,000,000" in text.text(), timeout=LONG_MS)
    assert "The Doctor" in text.toolTip()
    click(cancel)
    qtbot.waitUntil(lambda: not titles(ready), timeout=LONG_MS)
    ready.training.state_changed.emit()
    assert TITLE not in titles(ready)
    open_sprites(qtbot, ready, *sorted(sprite_folder.rglob("*.png"))[:12])  # other sprites
    qtbot.waitUntil(lambda: TITLE in titles(ready), timeout=LONG_MS)
