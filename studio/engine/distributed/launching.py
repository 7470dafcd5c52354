"""Start torchrun from the window to train a run with several processes, which outlive the window."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

from studio.core import worker_process
from studio.core.errors import RunError, StudioError
from studio.core.guide import MORE
from studio.engine.runs.folder import PROCESS_LOG, RunDir, wrap_read_errors, wrap_write_errors

_RESTARTS = 3  # restarts by torchrun after a process has died
_OWN_WORDS = re.compile(r"[IWE]\d{4} ")  # start of torchrun's own log lines
_VERDICT = "failed (exitcode"  # in torchrun's line after the output of a failed process


def can_launch() -> bool:
    """Return whether this machine can train one run with several processes."""
    return sys.platform == "linux" and worker_process.can_start()


class TrainingProcesses:
    """The `count` processes that train one run, started with torchrun. Call `start` once, from any thread.

    kind: 'cuda', with a GPU for each, or 'cpu'. more_min: minutes to train from the newest checkpoint; 0: the budget.
    """

    def __init__(self, run: Path, count: int, kind: str, more_min: float = 0.0) -> None:
        self.run = run
        more = ("--more-minutes", str(more_min)) if more_min else ()
        self._torchrun_words = ("--standalone", "--nproc-per-node", str(count), "--max-restarts", str(_RESTARTS))
        self._studio_words = ("resume", str(run.absolute()), "--device", kind, *more)
        self._lock = threading.Lock()
        self._torchrun: subprocess.Popen[bytes] | None = None  # None before `start`
        self._is_ended = False  # by `terminate`

    def start(self) -> None:
        """Start torchrun in a new session, out of reach of Ctrl+C in this terminal. Raises StudioError."""
        with self._lock, wrap_write_errors(self.run):
            if not self._is_ended:
                with (self.run / PROCESS_LOG).open("wb") as log:
                    self._torchrun = self._start_torchrun(log.fileno())

    def terminate(self) -> None:
        """Terminate torchrun: the processes stop training and save their work."""
        with self._lock:
            self._is_ended = True
            if self._torchrun is not None:
                self._torchrun.terminate()  # SIGTERM: torchrun passes it on to all ranks

    def is_running(self) -> bool:
        """Return whether torchrun runs, also while it restarts the processes."""
        return self._torchrun is not None and self._torchrun.poll() is None

    def has_failed(self) -> bool:
        """Return whether torchrun ended with an error before `terminate` was called."""
        return not self._is_ended and self._torchrun is not None and self._torchrun.poll() not in (None, 0)

    def failure(self) -> StudioError:
        """Return the reason why the processes ended, from state.json or the end of their log."""
        progress = RunDir(self.run).progress()
        if progress.state == "failed":
            return RunError(f"{self.run.name} has failed.", progress.message)
        with wrap_read_errors(self.run / PROCESS_LOG):
            said = last_output_lines((self.run / PROCESS_LOG).read_text("utf-8", "replace"))
        return RunError(f"The processes that train {self.run.name} have ended.", said)

    def _start_torchrun(self, log: int) -> subprocess.Popen[bytes]:
        command = ["-m", "torch.distributed.run", *self._torchrun_words, "-m", "studio", *self._studio_words]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
        return subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
            start_new_session=True,  # no Ctrl+C or hang-up from this terminal
        )  # fmt: skip


def last_output_lines(log: str) -> str:
    """Return the last two lines by a failed process in `log`, which also has torchrun's lines."""
    lines = log.splitlines()
    verdicts = [number for number, line in enumerate(lines) if _VERDICT in line]
    before = lines[: verdicts[-1]] if verdicts else lines
    said = [line.strip() for line in before if line.strip() and not _OWN_WORDS.match(line)]
    said = [line for line in said if not line.startswith(MORE)]
    return " ".join(said[-2:])
