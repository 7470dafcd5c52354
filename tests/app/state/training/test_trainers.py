"""Runs that other processes train, shown and steered by the window: really trained, beside it or in a process."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.background.jobs import TrainingRequest
from studio.app.background.model_jobs import SavedModel
from studio.app.pages import run_texts
from studio.app.pages.train.page import TrainPage
from studio.app.state.session import Session
from studio.app.window import Window
from studio.core import paths
from studio.core.errors import UnwritableError
from studio.core.events import CheckpointSaved, Event, LossChunk, RunFinished
from studio.core.observers import observed
from studio.engine.control.control import Control
from studio.engine.control.protocol import read_heartbeat, send_request
from studio.engine.control.server import RunControlServer
from studio.engine.control.watcher import RunWatcher
from studio.engine.devices.types import Device, DevicesFound
from studio.engine.distributed.launching import TrainingProcesses
from studio.engine.runs.folder import HEARTBEAT_FILE, PROCESS_LOG, RunDir
from studio.engine.runs.history import HistoryRead
from studio.engine.training.loop import train_resumed
from tests.app.conftest import LONG_MS, click, cpu_of, show_alone, start_tiny, tiny, wait_idle
from tests.app.pages.train.test_page import state
from tests.conftest import make_sprites
from tests.engine.runs.test_damaged_runs import flip
from tests.engine.tools import CPU, of_kind, train_generator

linux = pytest.mark.skipif(sys.platform != "linux", reason="Several processes train one run on Linux alone")


@pytest.fixture(autouse=True)
def _short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the intervals of heartbeats and polls."""
    monkeypatch.setattr("studio.engine.control.server.BEAT_S", 0.02)
    monkeypatch.setattr("studio.engine.control.server.POLL_S", 0.02)
    monkeypatch.setattr("studio.app.state.training.trainers._POLL_MS", 20)


class Elsewhere:
    """A training in a thread; the window knows only its run folder."""

    def __init__(self, run: Path, events: Callable[[Control], Iterator[Event]], *, can_pause: bool = True) -> None:
        self.run, self.control, self.failed = run, Control(), False
        server = RunControlServer(self.control, can_pause=can_pause)
        self._events = observed(events(self.control), [server])  # type: ignore[arg-type]
        self._leaves, self._trains = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._thread.start()
        assert self._trains.wait(LONG_MS / 1000)

    def _train(self) -> None:
        for event in self._events:
            if isinstance(event, LossChunk):
                self._trains.set()
            if self._leaves.wait(0.02):  # else its steps would leave the window little time
                return
        self._events.close()

    def stop(self) -> None:
        """Stop the training like its owner would."""
        self.control.stop = True
        self.wait()

    def die(self) -> None:
        """Leave the files of a killed process."""
        self._leaves.set()
        self.wait()
        said = (self.run / HEARTBEAT_FILE).read_bytes()
        self._events.close()
        (self.run / HEARTBEAT_FILE).write_bytes(said)

    def wait(self) -> None:
        self._thread.join(LONG_MS / 1000)
        assert not self._thread.is_alive()


@pytest.fixture
def begun() -> Iterator[list[Elsewhere]]:
    """The trainings started by a test, stopped with the test."""
    found: list[Elsewhere] = []
    yield found
    for one in found:
        one.stop()


def begin(begun: list[Elsewhere], run: Path | None = None, **settings: bool) -> Elsewhere:
    """A training without end, among the studio's runs unless another folder is named."""
    run = run or paths.runs() / "far"
    training = partial(train_generator, run, make_sprites(), steps=1_000_000, sample_every_s=0.2)
    begun.append(Elsewhere(run, training, **settings))
    return begun[-1]


def heard(session: Session) -> list[Event]:
    """What the training says from now on."""
    events: list[Event] = []
    session.training.event_received.connect(events.append)
    return events


def wait_for_state(qtbot: QtBot, session: Session, state: str) -> None:
    qtbot.waitUntil(lambda: session.training.state == state, timeout=LONG_MS)


def show_row(qtbot: QtBot, window: Window, run: Path, standing: str = "training") -> None:
    """Choose a run on the Runs page when it is listed with this state."""
    session = window.session
    window.show_page("runs")

    def is_listed() -> bool:
        found = session.runs.at(run)
        if found is None or found.standing != standing:
            session.runs.list_runs()
            return False
        return True

    qtbot.waitUntil(is_listed, timeout=LONG_MS)
    table = window.runs.table
    table.selectRow([table.model().index(row, 1).data() for row in range(9)].index(run.name))


def head(window: Window) -> str:
    return run_texts.state(window.session.training)


def test_a_watched_run_is_paused_resumed_and_stopped(qtbot: QtBot, window: Window, begun: list[Elsewhere]) -> None:
    session, controls = window.session, window.train.controls
    training, events, states = session.training, heard(session), list[str]()
    training.state_changed.connect(lambda: states.append(training.state))
    far = begin(begun)
    show_row(qtbot, window, far.run)
    click(window.runs.actions_row.watch)
    assert window.page() is window.train and training.path == far.run and state(session) == "starting"
    assert head(window) == "Watching: waiting for the training's first heartbeat"
    assert controls.stop.toolTip() == "Stop: waiting for the training's first heartbeat."
    wait_for_state(qtbot, session, "training")
    qtbot.waitUntil(lambda: training.chunk is not None and training.samples is not None, timeout=LONG_MS)
    assert head(window).startswith("Watching: another process trains this run")
    assert window.train.monitor.readings.value("Step") != "–" and of_kind(events, HistoryRead)
    assert training.record is not None and training.device is not None and training.device.name == CPU.name
    assert not any(job.title.startswith("Training") for job in session.job_queue.running())  # the engine is free
    assert training.model() is None
    window.menus.checkpoint.trigger()
    qtbot.waitUntil(lambda: training.model() == SavedModel(far.run, "last"), timeout=LONG_MS)

    click(controls.pause)
    assert state(session) == "pausing" and controls.pause.text().strip() == "Pausing…"
    wait_for_state(qtbot, session, "paused")
    said = read_heartbeat(far.run)
    assert said is not None and said.is_paused and head(window) == "Paused. Resume when you like."
    click(controls.pause)
    wait_for_state(qtbot, session, "training")
    samples = training.samples
    click(window.train.sample)
    qtbot.waitUntil(lambda: training.samples is not samples, timeout=LONG_MS)
    click(controls.stop)
    wait_idle(qtbot, session)
    far.wait()
    assert states == ["starting", "training", "pausing", "paused", "training", "stopping", "idle"]
    assert RunDir(far.run).progress().state == "stopped" and training.failure is None
    assert of_kind(events, RunFinished)[-1].reason == "stopped" and head(window).startswith("Ended at step ")


def test_generating_takes_the_newest_checkpoint_of_a_run_that_is_watched(
    qtbot: QtBot, window: Window, begun: list[Elsewhere]
) -> None:
    session, events = window.session, heard(window.session)
    far = begin(begun)
    show_row(qtbot, window, far.run)
    click(window.runs.actions_row.watch)
    wait_for_state(qtbot, session, "training")
    assert window.train.steps.generate.toolTip() == "Generate: the run has no checkpoint yet."
    send_request(far.run, save=True)
    qtbot.waitUntil(window.train.steps.generate.isEnabled, timeout=LONG_MS)
    click(window.train.steps.generate)
    assert window.page() is window.generate
    wanted = SavedModel(far.run, "last")
    qtbot.waitUntil(lambda: window.generate.choice.source() == wanted, timeout=LONG_MS)
    assert of_kind(events, CheckpointSaved)


def test_pause_is_disabled_for_trainings_that_cannot_pause(
    qtbot: QtBot, window: Window, begun: list[Elsewhere]
) -> None:
    """A training in another window, which can't be paused from outside."""
    far = begin(begun, can_pause=False)
    window.session.watch(far.run)
    wait_for_state(qtbot, window.session, "training")
    assert not window.train.controls.pause.isEnabled() and not window.menus.pause.isEnabled()
    assert window.train.controls.pause.toolTip() == "Pause: pause this run in the window that trains it."
    assert window.train.controls.stop.isEnabled()


def test_closing_the_window_ends_the_watching(qtbot: QtBot, window: Window, begun: list[Elsewhere]) -> None:
    session, training = window.session, window.session.training
    far = begin(begun)
    session.watch(far.run)
    wait_for_state(qtbot, session, "training")
    assert window.close_guard.may_close()
    qtbot.waitUntil(lambda: training.chunk is not None, timeout=LONG_MS)
    window.show_page("train")
    click(window.train.controls.stop_watching)
    assert training.state == "idle" and training.failure is None
    assert head(window).startswith("No longer watched. Last seen at step ")
    assert window.train.controls.stop_watching.isHidden()
    assert RunDir(far.run).is_busy() and not far.control.stop


def test_a_training_of_the_windows_own_ends_the_watching(qtbot: QtBot, ready: Session, begun: list[Elsewhere]) -> None:
    far = begin(begun)
    ready.watch(far.run)
    wait_for_state(qtbot, ready, "training")
    start_tiny(ready, steps=1_000_000)
    training = ready.training
    assert training.runs_in_window() and training.state == "starting"
    wait_for_state(qtbot, ready, "training")
    assert training.path is not None and training.path != far.run
    ready.watch(far.run)  # in the other order, a message says why not
    assert training.runs_in_window()
    training.stop()
    wait_idle(qtbot, ready)
    assert RunDir(far.run).is_busy() and not far.control.stop


@pytest.mark.slow
def test_a_queue_does_not_wait_for_a_run_that_is_only_watched(
    qtbot: QtBot, ready: Session, begun: list[Elsewhere]
) -> None:
    far = begin(begun)
    sprites, recipe = make_sprites(), ready.catalog.recipes["generator"]
    ready.queue.add(TrainingRequest(sprites, recipe, tiny(ready, steps=2), cpu_of(ready)), ready.setup.history)
    qtbot.waitUntil(lambda: len(ready.queue.runs) == 1, timeout=LONG_MS)
    ready.watch(far.run)
    wait_for_state(qtbot, ready, "training")
    with qtbot.waitSignal(ready.queue.emptied, timeout=LONG_MS) as emptied:
        ready.queue.start()
    assert emptied.args == [1, 0] and ready.training.path == paths.runs() / "discs generator"


def test_a_queued_run_that_others_stop_keeps_its_place(qtbot: QtBot, ready: Session, begun: list[Elsewhere]) -> None:
    sprites, recipe = make_sprites(), ready.catalog.recipes["generator"]
    ready.queue.add(TrainingRequest(sprites, recipe, tiny(ready, steps=1_000_000), cpu_of(ready)), ready.setup.history)
    qtbot.waitUntil(lambda: len(ready.queue.runs) == 1, timeout=LONG_MS)
    run = ready.queue.runs[0].path
    begun.append(Elsewhere(run, lambda control: train_resumed(run, CPU, control)))
    ready.watch(run)
    wait_for_state(qtbot, ready, "training")
    send_request(run, stop=True)  # by a command
    wait_idle(qtbot, ready)
    with qtbot.waitSignal(ready.runs.listed, timeout=LONG_MS):
        ready.runs.list_runs()
    assert ready.queue.has(run) and "queue.json" in {path.name for path in paths.home().iterdir()}


def test_a_lost_training_is_reported(
    qtbot: QtBot, window: Window, begun: list[Elsewhere], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = begin(begun)
    window.session.watch(far.run)
    wait_for_state(qtbot, window.session, "training")
    qtbot.waitUntil(lambda: window.session.training.chunk is not None, timeout=LONG_MS)
    monkeypatch.setattr(run_texts, "_LONG_SILENCE_S", 0.0)
    far.die()
    window.show_page("train")
    qtbot.waitUntil(lambda: "No heartbeat for " in window.train.card.text.text(), timeout=LONG_MS)
    monkeypatch.setattr("studio.engine.control.watcher._QUIET_S", 0.0)
    wait_idle(qtbot, window.session)
    failure = window.session.training.failure
    assert failure is not None and failure.title == "The training of far no longer responds."
    assert failure.title in [card.texts[0] for card in window.notices.cards()]


def test_a_failed_request_is_reported_and_the_training_continues(
    qtbot: QtBot, window: Window, begun: list[Elsewhere], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests fail like on a read-only drive."""

    def refuse(run: Path, **asked: object) -> None:
        raise UnwritableError(run, "Read-only file system")

    monkeypatch.setattr("studio.engine.control.protocol.send_request", refuse)
    session, controls = window.session, window.train.controls
    window.show_page("train")
    far = begin(begun)
    session.watch(far.run)
    for button in (controls.pause, controls.stop):
        wait_for_state(qtbot, session, "training")
        click(button)
        assert state(session) in ("pausing", "stopping")
    wait_for_state(qtbot, session, "training")
    assert f"Can't write to {far.run}." in [card.texts[0] for card in window.notices.cards()]
    assert not far.control.stop


def test_watching_ends_for_ended_runs_and_other_folders(
    qtbot: QtBot, own_run: Path, ready: Session, tmp_path: Path
) -> None:
    ready.watch(tmp_path)
    wait_idle(qtbot, ready)
    assert ready.training.failure is not None and "is not a run" in ready.training.failure.title
    ready.watch(own_run)
    wait_idle(qtbot, ready)
    assert ready.training.end is not None and ready.training.end.reason == "finished"
    assert run_texts.state(ready.training).startswith("Ended at step 40 after ")


def test_a_run_in_any_folder_is_watched_and_listed_from_then_on(
    qtbot: QtBot, window: Window, begun: list[Elsewhere], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run like on a drive shared with another machine."""
    far = begin(begun, tmp_path / "shared" / "far")
    monkeypatch.setattr(dialogs, "choose_folder", lambda *asked: far.run)
    window.menus.watch.trigger()
    assert window.page() is window.train
    wait_for_state(qtbot, window.session, "training")
    qtbot.waitUntil(lambda: window.session.runs.at(far.run) is not None, timeout=LONG_MS)


class Thread(TrainingProcesses):
    """In place of processes: a training in a thread, which torchrun starts once more after it has died."""

    began: list[Elsewhere]

    def start(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.began.append(Elsewhere(self.run, lambda control: train_resumed(self.run, CPU, control)))

    def is_running(self) -> bool:
        return any(one._thread.is_alive() for one in self.began)

    def has_failed(self) -> bool:
        return False


@pytest.fixture
def launched(begun: list[Elsewhere], monkeypatch: pytest.MonkeyPatch) -> list[Elsewhere]:
    """The trainings that the window has processes begin."""
    monkeypatch.setattr(Thread, "began", begun, raising=False)
    monkeypatch.setattr("studio.app.state.training.trainers.TrainingProcesses", Thread)
    return begun


def start_processes(session: Session, **changes: float) -> None:
    config = tiny(session, "generator", **changes)
    recipe = session.catalog.recipes["generator"]
    session.training.start(TrainingRequest(make_sprites(), recipe, config, cpu_of(session), processes=2))


def test_processes_train_a_run_that_the_window_makes(qtbot: QtBot, ready: Session, launched: list[Elsewhere]) -> None:
    events = heard(ready)
    start_processes(ready, steps=1_000_000)
    training = ready.training
    assert training.state == "starting" and run_texts.state(training) == "Starting 2 processes…"
    assert training.owns_run() and not training.runs_in_window()
    wait_for_state(qtbot, ready, "training")
    qtbot.waitUntil(lambda: training.chunk is not None, timeout=LONG_MS)
    assert training.path == paths.runs() / "discs generator" and not ready.queue.runs
    assert run_texts.state(training).startswith("Training by 2 processes")
    start_tiny(ready)  # the window has a run
    assert not training.runs_in_window()
    training.stop()
    wait_idle(qtbot, ready)
    assert of_kind(events, RunFinished)[-1].reason == "stopped" and training.failure is None
    assert RunDir(training.path).record().device == "cpu"


def test_the_queue_waits_for_processes_of_the_windows_own(
    qtbot: QtBot, ready: Session, launched: list[Elsewhere]
) -> None:
    sprites, recipe = make_sprites(), ready.catalog.recipes["generator"]
    ready.queue.add(TrainingRequest(sprites, recipe, tiny(ready, steps=2), cpu_of(ready)), ready.setup.history)
    qtbot.waitUntil(lambda: len(ready.queue.runs) == 1, timeout=LONG_MS)
    start_processes(ready, steps=1_000_000)
    wait_for_state(qtbot, ready, "training")
    with qtbot.waitSignal(ready.runs.listed, timeout=LONG_MS):
        ready.queue.start()
    assert ready.training.watched is not None and ready.queue.is_on
    with qtbot.waitSignal(ready.queue.emptied, timeout=LONG_MS) as emptied:
        ready.training.stop()
    assert emptied.args == [1, 0]


def test_a_batch_too_small_for_all_processes_fails_before_the_run_is_created(qtbot: QtBot, ready: Session) -> None:
    start_processes(ready, batch_size=1)
    wait_idle(qtbot, ready)
    assert ready.training.failure is not None and "can't be shared by 2 processes" in ready.training.failure.title
    assert not paths.runs().exists() or not list(paths.runs().iterdir())


@linux
def test_a_stopped_start_leaves_a_run_without_steps(qtbot: QtBot, ready: Session) -> None:
    """torchrun is still importing when it is stopped."""
    start_processes(ready)
    training = ready.training
    qtbot.waitUntil(lambda: training.record is not None, timeout=LONG_MS)
    training.stop()
    assert training.state == "stopping" and training.why_no_stop() == "Saving the run…"
    wait_idle(qtbot, ready)
    assert (
        training.failure is None
        and training.model() is None
        and run_texts.state(training).startswith("Ended at step 0 ")
    )
    assert [training.path] == [*paths.runs().iterdir()] and training.path is not None
    assert RunDir(training.path).progress().state == "stopped" and not RunDir(training.path).is_busy()


def test_all_gpus_are_offered_if_one_of_several_is_chosen(
    qtbot: QtBot, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = show_alone(qtbot, session, TrainPage)
    box = page.setup.cards
    assert box.isHidden()
    cpu = cpu_of(session)
    cards = tuple(_card(number) for number in range(2))
    monkeypatch.setattr("studio.app.state.training.device_choice.can_launch", lambda: True)
    session.catalog._on_device_event(DevicesFound((*cards, cpu), "cuda:0"))
    assert box.isVisible() and box.text() == "Use all 2 cards" and not box.isChecked()
    assert session.device_choice.processes(cards[0]) == 1
    usual = session.setup.presets[0][1].batch_size
    box.click()
    assert session.device_choice.processes(cards[1]) == 2 and session.device_choice.processes(cpu) == 1
    assert session.setup.presets[0][1].batch_size == 2 * usual  # for both GPUs
    assert session.settings.text("all_cards") == "yes"
    session.device_choice.choose("cpu")
    assert box.isHidden()
    session.device_choice.choose("cuda:1")
    assert box.isVisible() and box.isChecked()
    monkeypatch.setattr("studio.app.state.training.device_choice.can_launch", lambda: False)
    session.setup.changed.emit()
    assert box.isHidden() and session.device_choice.processes(cards[0]) == 1


def _card(number: int) -> Device:
    return Device(f"cuda:{number}", "cuda", "NVIDIA Test", 8 << 30, 8 << 30)


@linux
@pytest.mark.slow
def test_two_processes_train_one_run_from_the_window_to_its_end(qtbot: QtBot, ready: Session) -> None:
    events = heard(ready)
    start_processes(ready, minutes=0.1, steps=0)
    training = ready.training
    wait_for_state(qtbot, ready, "training")
    training.pause()
    wait_for_state(qtbot, ready, "paused")
    training.resume()
    wait_idle(qtbot, ready)
    assert training.failure is None and of_kind(events, RunFinished)[-1].reason == "finished"
    assert training.path is not None and RunDir(training.path).progress().state == "finished"
    assert "2 processes share each batch" in (training.path / PROCESS_LOG).read_text()


@linux
@pytest.mark.slow
def test_processes_that_fail_to_start_say_why(qtbot: QtBot, ready: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.distributed.launching._RESTARTS", 0)
    monkeypatch.setattr("studio.app.background.jobs.RunWatcher", _Spoiling)
    start_processes(ready)
    wait_idle(qtbot, ready)
    failure = ready.training.failure
    assert failure is not None and failure.title == "The processes that train discs generator have ended."
    assert "is damaged" in failure.hint


class _Spoiling(RunWatcher):
    """Damage the run before the processes read it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        flip(path / "data.safetensors")


@pytest.mark.slow
def test_a_killed_command_is_reported_as_lost(qtbot: QtBot, sprite_folder: Path, ready: Session) -> None:
    run = paths.runs() / "far"
    words = ["train", str(sprite_folder), "--out", str(run), "--minutes", "60", "--width", "16", "--device", "cpu"]
    with subprocess.Popen([sys.executable, "-m", "studio", *words], stderr=subprocess.DEVNULL) as process:
        qtbot.waitUntil((run / "run.json").exists, timeout=LONG_MS)
        ready.watch(run)
        wait_for_state(qtbot, ready, "training")
        ready.training.pause()
        wait_for_state(qtbot, ready, "paused")
        ready.training.resume()
        wait_for_state(qtbot, ready, "training")
        process.send_signal(signal.SIGKILL)
    wait_idle(qtbot, ready)
    failure = ready.training.failure
    assert failure is not None and "The training of far no longer responds." in failure.title
