"""Fixtures of the window's tests. Networks are tiny, and no object outlives its test."""

from __future__ import annotations

import functools
import gc
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.background import jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.jobs import TrainingRequest
from studio.app.pages.base import Page
from studio.app.pages.sprites.page import SpritesPage
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.app.state.training.training import CurrentTraining
from studio.app.window import Window
from studio.core import paths
from studio.core.config import TrainingConfig
from studio.core.events import Events, LossChunk, Progress
from studio.data.sprites import Sprites
from studio.engine.devices.types import Device, DevicesFound
from tests.conftest import make_sprites
from tests.engine.tools import kept_run

_STEPS_PER_S = 12.0  # of each device, as on two idle cores

_BUS = """
<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
</busconfig>
"""

PageKind = TypeVar("PageKind", bound=Page)

LONG_MS = 60_000  # for importing torch and training a model on a busy machine


@pytest.fixture(autouse=True, scope="session")
def _release_at_end() -> Iterator[None]:
    """Unfreeze all objects when the tests end, like the application at exit, and empty the clipboard.

    Qt's offscreen clipboard outlives the interpreter: the process would crash when it frees data made in Python.
    """
    yield
    if QApplication.instance() is not None:
        QApplication.clipboard().clear()
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _collect_on_main_thread() -> None:
    """Never collect windows on a worker, like the application. Check that few widgets have outlived their tests."""
    gc.disable()
    assert len(QApplication.topLevelWidgets()) < 500, "Each test gets slower by the windows that outlive theirs."


def pytest_runtest_logfinish() -> None:
    """Delete the test's widgets, now that pytest holds none of them: whatever is frozen with them stays until the end.

    What is left, torch above all, is there to stay: to walk it after each test would take longer than most tests do.
    """
    if QApplication.instance() is not None:
        QTest.keyRelease(QWidget(), Qt.Key.Key_Shift)  # else Qt holds a test's Shift, and `selectRow` of the next fails
        _delete_closed_widgets()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_background_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start background jobs without a delay."""
    monkeypatch.setattr("studio.app.background.job_queue._BACKGROUND_DELAY_MS", 0)


@pytest.fixture(autouse=True)
def _few_feature_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train the feature network for one small step only."""
    monkeypatch.setattr("studio.engine.quality.features._STEPS", 1)
    monkeypatch.setattr("studio.engine.quality.features._BATCH", 4)


@pytest.fixture(autouse=True)
def _fixed_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the devices a fixed speed: a probe takes seconds, and on a busy machine it changes the presets."""

    def find_devices() -> Events:
        yield _devices()

    monkeypatch.setattr(jobs, "find_devices", find_devices)


@pytest.fixture
def job_queue(qtbot: QtBot) -> Iterator[JobQueue]:
    """A job queue that shuts down with the test."""
    made = JobQueue()
    yield made
    assert made.shut_down(5000)


@pytest.fixture
def session(qtbot: QtBot) -> Iterator[Session]:
    """A session before its engine starts."""
    made = Session(Settings())
    yield made
    assert made.close()


@pytest.fixture
def ready(qtbot: QtBot, session: Session) -> Session:
    """A session with recipes and devices."""
    session.open()
    qtbot.waitUntil(lambda: bool(session.catalog.recipes and session.catalog.devices), timeout=LONG_MS)
    return session


@pytest.fixture
def stray_windows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record widgets that become windows by accident, because they are shown before they get a parent."""
    found: list[str] = []

    def noting(show: Callable[..., None]) -> Callable[..., None]:
        def shown(widget: QWidget, *visible: bool) -> None:
            show(widget, *visible)
            # A plain window is no dialog, menu or tool tip. Most shown widgets are no window at all.
            is_plain = widget.isWindow() and widget.windowType() == Qt.WindowType.Window
            if is_plain and widget.isVisible() and not isinstance(widget, Window):
                found.append(repr(widget))

        return shown

    for name in ("show", "setVisible"):  # an event filter would see all, and cost a tenth of the tests' time
        monkeypatch.setattr(QWidget, name, noting(getattr(QWidget, name)))
    return found


@pytest.fixture
def window(qtbot: QtBot, qapp: QApplication, session: Session, stray_windows: list[str]) -> Iterator[Window]:
    """The shown window, while its engine starts. Check that no widget becomes a window by accident or outlives it."""
    before = set(QApplication.topLevelWidgets())
    made = Window(session, theme.apply(qapp, "light"))
    qtbot.addWidget(made, before_close_func=_let_go)
    made.painted.connect(session.open)
    made.show()
    qtbot.waitUntil(
        lambda: bool(session.catalog.recipes and session.catalog.devices and made.train.monitor.plot),
        timeout=LONG_MS,
    )
    yield made
    if session.training.is_busy():
        session.training.stop()
        wait_idle(qtbot, session)
    assert not stray_windows
    _delete_closed_widgets()
    left = [widget for widget in QApplication.topLevelWidgets() if widget not in before and widget.parent() is None]
    # The garbage collector deletes a widget after its attributes, and Qt calls its methods in between.
    assert not [widget for widget in left if type(widget).__module__.startswith("studio.")]


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, session: Session) -> SpritesPage:
    """The Sprites page alone, shown."""
    made = SpritesPage(session)
    made.setStyleSheet(theme.apply(qapp, "light").stylesheet())
    qtbot.addWidget(made)
    made.resize(1100, 700)
    made.show()
    return made


@pytest.fixture
def sprite_folder(tmp_path: Path) -> Path:
    """24 sprites of 8x8 pixels in two sub-folders, and a text file."""
    folder = tmp_path / "discs"
    sprites = make_sprites()
    for rgba, name in zip(sprites.rgba, sprites.names, strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rgba).save(path)
    (folder / "class0" / "broken.png").write_text("not a picture")
    return folder


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a small generator that learnt to fill, trained once."""
    return kept_run(tmp_path_factory, make_sprites(), steps=40, batch_size=8, lr_warmup_steps=0, inpaint_share=1.0)


@pytest.fixture
def own_run(trained_run: Path) -> Path:
    """A copy of the trained run in the test's runs folder. Request it before the window."""
    return shutil.copytree(trained_run, paths.runs() / trained_run.name)


@pytest.fixture
def opened(qtbot: QtBot, window: Window, sprite_folder: Path) -> Window:
    """The window with the sprites open."""
    open_sprites(qtbot, window.session, sprite_folder)
    return window


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A private bus that starts no services."""
    if sys.platform != "linux" or shutil.which("dbus-daemon") is None:
        pytest.skip("dbus-daemon is missing.")
    (tmp_path / "bus.conf").write_text(_BUS)
    command = ["dbus-daemon", f"--config-file={tmp_path}/bus.conf", "--nofork", "--print-address=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as daemon:
        assert daemon.stdout is not None
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", daemon.stdout.readline().strip())
        yield
        daemon.terminate()


def show_alone(qtbot: QtBot, session: Session, kind: type[PageKind]) -> PageKind:
    """Show a page without the window, which takes long to create, and wait for the engine."""
    page = kind(session)
    qtbot.addWidget(page)
    page.resize(1200, 700)
    session.open()
    qtbot.waitUntil(lambda: bool(session.catalog.recipes and session.catalog.devices), timeout=LONG_MS)
    page.before_show()
    page.show()
    return page


def open_sprites(qtbot: QtBot, session: Session, *paths: Path) -> None:
    """Open files and wait for their sprites."""
    with qtbot.waitSignal(session.open_sprites.imported, timeout=LONG_MS):
        session.open_sprites.open_paths(paths)


def sprites_of(session: Session) -> Sprites:
    """Return the open sprites."""
    assert session.open_sprites.sprites is not None
    return session.open_sprites.sprites


def classes(qtbot: QtBot, session: Session) -> Mapping[str, str]:
    """Return the class of each open sprite by name, once no import is running."""
    qtbot.waitUntil(lambda: not session.open_sprites.is_busy(), timeout=LONG_MS)
    sprites = sprites_of(session)
    return {name: sprites.class_names[label] for name, label in zip(sprites.names, sprites.labels, strict=True)}


def cpu_of(session: Session) -> Device:
    """Return the CPU among the found devices."""
    device = session.catalog.device("cpu")
    assert device is not None
    return device


def tiny(session: Session, recipe: str = "generator", **changes: float) -> TrainingConfig:
    """Settings that train in a second or two."""
    config: TrainingConfig = session.catalog.recipes[recipe].Config()
    small = {"width": 16, "batch_size": 8, "steps": 6, "lr_warmup_steps": 0, "sample_every_s": 10.0, "holdout": 0.25}
    return config.replace(**{**small, **changes})


def start_tiny(session: Session, recipe: str = "generator", **changes: float) -> None:
    """Start a tiny training on the CPU."""
    sprites = session.open_sprites.sprites or make_sprites()
    config = tiny(session, recipe, **changes)
    session.training.start(TrainingRequest(sprites, session.catalog.recipes[recipe], config, cpu_of(session)))


def start_endless(qtbot: QtBot, session: Session) -> CurrentTraining:
    """Start a tiny training without end, and wait until steps are being taken."""
    start_tiny(session, steps=1_000_000)
    wait_for_steps(qtbot, session)
    return session.training


def wait_for_steps(qtbot: QtBot, session: Session) -> None:
    """Wait until a training takes steps."""
    training = session.training
    qtbot.waitUntil(lambda: training.state == "training" and training.chunk is not None, timeout=LONG_MS)


def wait_idle(qtbot: QtBot, session: Session) -> None:
    """Wait until the training has ended."""
    qtbot.waitUntil(lambda: not session.training.is_busy(), timeout=LONG_MS)


def chunk(first_step: int, count: int = 1) -> LossChunk:
    """Return the losses of `count` steps; each loss is the number of its step."""
    losses = np.arange(first_step, first_step + count, dtype=np.float32)
    return LossChunk(first_step, losses, losses, 0.1, 1.0, 1.0, 1.0, 0.0, 0)


def endless(*asked: object) -> Events:
    """A substitute for any job; runs until it is cancelled."""
    never = threading.Event()
    while not never.wait(0.002):
        yield Progress(1, 0, "things")


def click(widget: QWidget) -> None:
    """Click an enabled, visible control with the mouse."""
    assert widget.isEnabled(), widget.toolTip()
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def double_click(widget: QWidget, in_its_place: QWidget | None = None) -> None:
    """Click a control twice. in_its_place: the control that is under the mouse after the first click, if another."""
    click(widget)
    second, left = in_its_place or widget, Qt.MouseButton.LeftButton
    at = QPointF(second.rect().center())
    for kind in (QEvent.Type.MouseButtonDblClick, QEvent.Type.MouseButtonRelease):
        event = QMouseEvent(kind, at, second.mapToGlobal(at), left, left, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(second, event)


def _delete_closed_widgets() -> None:
    """Delete the widgets that pytest-qt has closed, then the pages that are deleted after their window."""
    for _ in range(2):
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _let_go(window: Window) -> None:
    window._may_close = True


@functools.cache
def _devices() -> DevicesFound:
    from studio.engine.devices import detection

    known = detection.list_devices()
    devices = tuple(replace(device, probed=True, steps_per_s=_STEPS_PER_S) for device in known)
    return DevicesFound(devices, detection.choose_device(devices, detection.AUTO).id)
