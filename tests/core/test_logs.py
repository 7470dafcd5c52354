"""Logs of processes that crash or end, each run in its own interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import studio
from studio.core import logs, paths
from studio.core.events import Blocked

_LOGGED = """
import ctypes, logging, threading
from studio.core import logs
logs.LARGEST_BYTES = 2000
logs.start()
log = logging.getLogger("studio.trial")
"""
_CRASH = "ctypes.string_at(0)\n"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", _LOGGED + code], capture_output=True, text=True, check=False)


def written() -> Iterator[str]:
    for path in sorted(paths.logs().glob("*.log")):
        yield path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "code",
    [
        f"log.info('begun')\n{_CRASH}",
        f"log.info('begun')\nlogging.shutdown()\n{_CRASH}",  # when Python has put the log away
        f"for number in range(100): log.info('begun %d', number)\n{_CRASH}",  # in the file that follows a full one
    ],
    ids=["at work", "at the end", "after a roll-over"],
)
def test_a_native_crash_leaves_its_stack(code: str) -> None:
    done = run(f"def deep():\n    {code.replace(chr(10), chr(10) + '    ')}\ndeep()")
    assert done.returncode != 0
    (text,) = written()
    assert text.startswith(f"Sprite Training Studio {studio.__version__}, Python {sys.version.split()[0]}, ")
    assert "torch 2." in text.splitlines()[0]
    assert "studio.trial: begun" in text
    assert "in deep" in text[text.index("begun") :]
    assert "Fatal Python error: Segmentation fault" in text or sys.platform == "win32"
    files = list(paths.logs().iterdir())
    assert len(files) == (2 if "number" in code else 1)
    assert all(path.stat().st_size < 2 * 2000 for path in files)


def test_uncaught_errors_are_logged_and_printed() -> None:
    code = "thread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\n[][1]"
    done = run(code)
    (text,) = written()
    for error in ("ZeroDivisionError: division by zero", "IndexError: list index out of range"):
        assert error in text
        assert error in done.stderr


def test_processes_write_separate_logs() -> None:
    code = f"{_LOGGED}for number in range(100): log.info('line %d', number)"
    both = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[1] for process in both] == ["", ""]
    assert [text.splitlines()[-1].endswith("line 99") for text in written()] == [True, True]


def test_unwritable_log_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_way = tmp_path / "home"
    in_the_way.write_text("a file where the folder should be")
    monkeypatch.setenv("STUDIO_HOME", str(in_the_way))
    done = run("log.info('begun')\nlog.info('done')\nprint('alive')")
    assert (done.stdout, done.stderr, done.returncode) == ("alive\n", "", 0)


def test_old_logs_are_removed_except_of_running_processes() -> None:
    paths.logs().mkdir(parents=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    living = paths.logs() / f"2026-01-01 00.00.00 {os.getpid()}.log"
    dead = [paths.logs() / f"2026-01-01 00.00.{second:02} {gone.pid}.log" for second in range(1, 30)]
    for path in (living, *dead, dead[0].with_name(f"{dead[0].name}.1")):
        path.touch()
    run("log.info('begun')")
    left = sorted(paths.logs().iterdir())
    assert len(left) == logs.KEPT_FILES + 1  # the running process does not count
    assert living in left and dead[0] not in left and dead[-1] in left
    assert not list(paths.logs().glob("*.1"))


def test_logs_of_reused_process_ids_are_removed() -> None:
    run(
        "import os\n"
        "from studio.core import paths\n"
        "paths.logs().mkdir(parents=True)\n"
        "for second in range(30): (paths.logs() / f'2026-01-01 00.00.{second:02} {os.getpid()}.log').touch()\n"
        "for number in range(100): log.info('begun %d', number)"  # in the file that follows a full one, too
    )
    left = sorted(path.name for path in paths.logs().glob("*.log"))
    assert len(left) == logs.KEPT_FILES and left[-2].startswith("2026-01-01 00.00.29")
    assert "begun 99" in list(written())[-1]


def test_full_disk_while_training_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "studio"):
        logs.log_event(Blocked("error", "The disk is full.", "Training waits."))
    assert "The disk is full." in caplog.text and "Training waits." in caplog.text


def test_command_logs_its_arguments_and_result(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "studio", "inspect", str(tmp_path / "nothing here")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (text,) = written()
    assert f"studio inspect '{tmp_path / 'nothing here'}'" in text
    assert done.stderr.splitlines()[0] in text
    assert "Traceback (most recent call last)" in text
