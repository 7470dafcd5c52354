"""Having a run trained by processes of their own, which torchrun starts: they outlive whoever started them. No torch
here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

from studio.core import worker_process
from studio.core.errors import RunError, StudioError
from studio.engine.runs.folder import PROCESS_LOG, RunDir, wrap_read_errors, wrap_write_errors

_RESTARTS = 3  # by torchrun, after a process of the training has died
_OWN_WORDS = re.compile(r"[IWE]\d{4} ")  # with which torchrun begins its lines
_VERDICT = "failed (exitcode"  # in the line of torchrun that follows what the process has said


def can_launch() -> bool:
    """Whether several processes can be started here that train one run."""
    return sys.platform == "linux" and worker_process.can_start()


class TrainingProcesses:
    """The processes that train one run: so many, on devices of one kind.

    `start` is called once, in any thread; the others at any time.
    """

    def __init__(self, run: Path, count: int, kind: str, more_min: float = 0.0) -> None:
        """kind: 'cuda', where each has a card of its own, or 'cpu'. more_min: as in `resumed_training`."""
        self.run = run
        more = ("--more-minutes", str(more_min)) if more_min else ()
        self._torchrun_words = ("--standalone", "--nproc-per-node", str(count), "--max-restarts", str(_RESTARTS))
        self._studio_words = ("resume", str(run.absolute()), "--device", kind, *more)
        self._lock = threading.Lock()
        self._torchrun: subprocess.Popen[bytes] | None = None  # None until it is started
        self._is_ended = False  # on purpose

    def start(self) -> None:
        """Start them, in a session of their own, so that no Ctrl+C here reaches them. Raises StudioError."""
        with self._lock, wrap_write_errors(self.run):
            if not self._is_ended:
                with (self.run / PROCESS_LOG).open("wb") as log:
                    self._torchrun = self._started(log.fileno())

    def end(self) -> None:
        """Have them end: what trains already stops and saves its work."""
        with self._lock:
            self._is_ended = True
            if self._torchrun is not None:
                self._torchrun.terminate()

    def is_running(self) -> bool:
        """Whether they are there, or torchrun is about to start them again."""
        return self._torchrun is not None and self._torchrun.poll() is None

    def has_failed(self) -> bool:
        """Whether they have ended with an error, and not on purpose."""
        return not self._is_ended and self._torchrun is not None and self._torchrun.poll() not in (None, 0)

    def failure(self) -> StudioError:
        """Why they have ended, as their run or else they themselves have said last."""
        progress = RunDir(self.run).progress()
        if progress.state == "failed":
            return RunError(f"{self.run.name} has failed.", progress.message)
        with wrap_read_errors(self.run / PROCESS_LOG):
            said = last_output_lines((self.run / PROCESS_LOG).read_text("utf-8", "replace"))
        return RunError(f"The processes that were to train {self.run.name} have ended.", said)

    def _started(self, log: int) -> subprocess.Popen[bytes]:
        """torchrun, which imports the studio from where it was imported here."""
        command = ["-m", "torch.distributed.run", *self._torchrun_words, "-m", "studio", *self._studio_words]
        return subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"},
            start_new_session=True,
        )


def last_output_lines(log: str) -> str:
    """What a process of a training has said before it ended, of all that it and torchrun have written."""
    lines = log.splitlines()
    verdicts = [number for number, line in enumerate(lines) if _VERDICT in line]
    before = lines[: verdicts[-1]] if verdicts else lines
    said = [line.strip() for line in before if line.strip() and not _OWN_WORDS.match(line)]
    return " ".join(said[-2:])
