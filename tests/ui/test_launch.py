"""Opening and leaving the window, each time in an interpreter of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PySide6.QtCore import qInstallMessageHandler, qWarning

from studio.app import launch
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
from studio.core import places

places.demo_sprites = lambda: Path(sys.argv[1])
sys.exit(launch.main(demo=True))
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
    assert "no screen" in done.stderr
    assert "Traceback" not in done.stderr


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
@pytest.mark.parametrize("name", [pytest.param("SIGINT", marks=pytest.mark.slow), "SIGTERM"])
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


def test_what_qt_says_is_logged_and_said(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    before = qInstallMessageHandler(launch._keep_message)
    qWarning("an odd font")
    qInstallMessageHandler(before)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("WARNING", "Qt: an odd font")]
    assert capsys.readouterr().err == "an odd font\n"
