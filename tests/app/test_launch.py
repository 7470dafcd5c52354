"""The application: opening and leaving the window in an interpreter of its own, signals, and the garbage collector."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import qInstallMessageHandler, qWarning
from pytestqt.qtbot import QtBot

from studio.app import launch
from studio.app.application import Interrupt, MainThreadCollector
from studio.app.background import jobs
from studio.app.background.jobs import find_devices
from studio.engine.runs.listing import summarise

_FIRST_PAINT = """
import sys
from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication
from studio.app.application import Studio

class Probe(QObject):
    @Slot()
    def look(self):
        print("painted", "torch" in sys.modules, "pyqtgraph" in sys.modules, flush=True)
        studio.window.close()

app, probe = QApplication([]), Probe()
studio = Studio(app)
studio.window.painted.disconnect()
studio.window.painted.connect(probe.look)
sys.exit(studio.run())
"""

_REFERENCES = """
import sys
from PySide6.QtWidgets import QApplication, QLabel
app = QApplication([])
label = QLabel()
label.setText("x")
before = sys.getrefcount(None)
for number in range(1000):
    label.setText(str(number))
    label.update()
print(sys.getrefcount(None) - before)
"""


# The demo with fewer sprites.
_DEMO = """
import sys
from pathlib import Path
from studio.app import launch
from studio.core import paths

paths.demo_sprites = lambda: Path(sys.argv[1])
sys.exit(launch.main(demo="sprites"))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=100, check=False)


def test_the_first_paint_needs_neither_torch_nor_pyqtgraph() -> None:
    done = run("-c", _FIRST_PAINT)
    assert done.stdout == "painted False False\n", done.stderr
    assert done.returncode == 0


def test_calls_that_return_nothing_keep_the_count_of_none() -> None:
    """PySide6 6.12.0 on Python 3.11 loses a reference with each, and dies after some ten thousand."""
    lost = int(run("-c", _REFERENCES).stdout)
    assert abs(lost) < 100


def test_launching_does_not_import_qt_before_it_is_known_to_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    code = "import sys; from studio.app import launch; print(launch.main(), 'PySide6.QtWidgets' in sys.modules)"
    done = run("-c", code)
    assert done.stdout == "1 False\n"
    assert "No display" in done.stderr and "Traceback" not in done.stderr


def test_a_dead_display_is_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":4217")
    assert not launch.has_screen()


def test_a_missing_library_is_named_with_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: str) -> None:
        raise OSError("libEGL.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.setattr("ctypes.CDLL", load)
    sentence = launch.missing_library()
    assert "libEGL.so.1" in sentence
    assert "libegl1" in sentence


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal to send")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_fault_28_and_36_ctrl_c_and_sigterm_save_a_training_and_end(sprite_folder: Path, name: str) -> None:
    home = Path(os.environ["STUDIO_HOME"])
    with subprocess.Popen([sys.executable, "-c", _DEMO, str(sprite_folder)]) as process:
        runs: list[Path] = []
        deadline = time.monotonic() + 90
        while not runs and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
            runs = [path.parent for path in home.glob("runs/*/metrics.jsonl")]
        process.send_signal(signal.Signals[name] if runs else signal.SIGKILL)
        code_at_end = process.wait(60)
    assert runs, "no training began"
    assert code_at_end == 0
    assert summarise(runs[0]).standing == "stopped"
    (log,) = (path.read_text(encoding="utf-8") for path in home.glob("logs/*.log"))
    told = ("The window opens", "engine: ", "Device(", "RunStarted(", "RunFinished(", ": done", "The window has closed")
    assert [words for words in told if words not in log] == []


def test_qt_messages_are_logged_and_printed(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    before = qInstallMessageHandler(launch._log_message)
    qWarning("an odd font")
    qInstallMessageHandler(before)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("WARNING", "Qt: an odd font")]
    assert capsys.readouterr().err == "an odd font\n"


class _Knot:
    """An object in a cycle that records the thread of its collection."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def automatic() -> Iterator[None]:
    """Restore the garbage collector after the test: on, with all objects frozen, which are slow to walk."""
    yield
    gc.enable()
    gc.freeze()


def test_cycles_are_collected_on_the_main_thread_only(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, automatic: None
) -> None:
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, 10, -1))  # always due, whatever ran before: all generations
    collector = MainThreadCollector()
    collector.begin()
    went: list[threading.Thread] = []

    def make() -> None:
        knots = [_Knot() for _ in range(5_000)]
        weakref.finalize(knots[0], lambda: went.append(threading.current_thread()))

    worker = threading.Thread(target=make)
    worker.start()
    worker.join()
    assert not gc.isenabled() and went == []
    qtbot.waitUntil(lambda: bool(went), timeout=5_000)
    assert went == [threading.main_thread()]
    collector.end()


def test_existing_objects_are_frozen(automatic: None) -> None:
    collector = MainThreadCollector()
    gc.unfreeze()  # whatever ran before
    collector.begin()
    there = gc.get_freeze_count()
    assert there > 1000
    later = [[number] for number in range(10_000)]
    collector.begin()  # no effect: a later failure of a job starts it again
    assert gc.get_freeze_count() <= there and len(later) == 10_000
    collector.end()
    assert gc.get_freeze_count() == 0


def test_imported_objects_are_frozen(monkeypatch: pytest.MonkeyPatch, automatic: None) -> None:
    walked: list[int] = []
    monkeypatch.setattr(gc, "get_threshold", lambda: (-1, -1, -1))  # always due
    monkeypatch.setattr("studio.app.application.gc.collect", lambda generation=2: walked.append(generation))
    collector = MainThreadCollector()
    gc.unfreeze()  # whatever ran before
    collector.begin()
    collector.skip_oldest()
    brought = [[number] for number in range(10_000)]
    collector.collect_due()
    assert walked == [1]
    before = gc.get_freeze_count()
    collector.stop_skipping(freeze=True)
    assert gc.get_freeze_count() - before >= len(brought)
    collector.collect_due()
    assert walked == [1, 2]
    collector.end()


def test_starting_the_engine_leaves_the_collector_off(automatic: None) -> None:
    collector = MainThreadCollector()
    jobs.load_torch_libraries()
    list(find_devices())
    jobs.find_plugins()
    assert not gc.isenabled()
    collector.end()


@pytest.mark.skipif(sys.platform == "win32", reason="no terminal hangs up there")
def test_fault_36_all_signals_of_one_shutdown_ask_the_window_once(
    qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "studio.app.application")
    before, asked = signal.getsignal(signal.SIGINT), list[bool]()
    interrupt = Interrupt()
    interrupt.happened.connect(lambda: asked.append(True))
    interrupt.install()
    try:
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGTERM, signal.SIGHUP):
            assert signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN)  # would end the tests
            signal.raise_signal(number)
        assert asked == [True] and signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        assert caplog.messages == ["SIGHUP asks the window to close."]
    finally:
        interrupt.uninstall()
    assert signal.getsignal(signal.SIGINT) is before
