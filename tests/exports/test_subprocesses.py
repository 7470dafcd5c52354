"""Programs that checks run: how they end, and that closing a check kills them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from studio.exports.subprocesses import run_program

_LOUD = "import sys; print(len(sys.stdin.read())); sys.stderr.write('x' * 300_000); sys.exit(3)"
_LATE = "import os, sys\nwhile not os.path.exists('go'): pass\nprint(len(sys.stdin.read()))"
_ENDLESS = "import pathlib, os, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(1000)"


def _to_the_end(
    running: Generator[float, None, subprocess.CompletedProcess[str]],
) -> tuple[subprocess.CompletedProcess[str], list[float]]:
    """Return the program's result and the shares that it yielded."""
    shares = list[float]()
    while True:
        try:
            shares.append(next(running))
        except StopIteration as end:
            return end.value, shares


def test_a_program_gets_its_input_and_returns_its_output() -> None:
    running = run_program([sys.executable, "-c", _LOUD], 60, share=0.5, stdin="y" * 300_000)
    done, shares = _to_the_end(running)
    assert (done.returncode, done.stdout.strip(), len(done.stderr)) == (3, "300000", 300_000)
    assert set(shares) <= {0.5}


def test_a_program_that_reads_its_input_late_gets_all_of_it(tmp_path: Path) -> None:
    running = run_program([sys.executable, "-c", _LATE], 60, stdin="y" * 300_000, folder=tmp_path)
    next(running)
    (tmp_path / "go").touch()
    done, _ = _to_the_end(running)
    assert done.stdout.strip() == "300000"


def test_closing_kills_the_program_and_patience_ends(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _ENDLESS]
    running = run_program(words, 60, folder=tmp_path)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        next(running)
    running.close()
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))
    with pytest.raises(subprocess.TimeoutExpired):
        list(run_program(words, 0.1, folder=tmp_path))
