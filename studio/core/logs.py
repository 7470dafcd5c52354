"""A process's log file with jobs, errors and crashes. Logs stay on this computer.

Every process writes its own file, so no process renames a file that another process has open. A crash in Python itself
(in torch, Qt or a driver) writes every thread's stack to the same file. An unwritable log never stops the work.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import platform
import sys
import threading
import time
from importlib import metadata
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

import studio
from studio.core import paths
from studio.core.events import Advised, Event, Notice, RolledBack, RunFinished, RunStarted

LARGEST_BYTES = 1 << 20  # per file; one older file is kept
KEPT_FILES = 20
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SUFFIX = ".log"
_LOGGED = (Advised, Notice, RunFinished, RunStarted, RolledBack)
_LIBRARIES = ("torch", "torchvision", "PySide6-Essentials", "pyqtgraph", "numpy", "pillow", "safetensors")

_log = logging.getLogger(__name__)


class ProcessLog(RotatingFileHandler):
    """A log file that begins with the versions of all libraries; faulthandler writes crashes to the same file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=LARGEST_BYTES, backupCount=1, encoding="utf-8", delay=True)
        self._crash_handle = -1  # separate from the stream: stays open until exit, where crashes are common
        self.setFormatter(logging.Formatter(_FORMAT))

    def doRollover(self) -> None:  # noqa: N802 - logging's name
        """Continue in a new file. Windows can't rename an open file, so faulthandler closes it first."""
        if self._crash_handle >= 0:
            faulthandler.disable()
            os.close(self._crash_handle)
            self._crash_handle = -1
        super().doRollover()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Ignore a full disk or a missing folder: logging must never stop the work."""

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        stream = super()._open()
        stream.write(f"{version_line()}\n")
        stream.flush()
        if not faulthandler.is_enabled():  # PYTHONFAULTHANDLER already writes to stderr
            self._crash_handle = os.dup(stream.fileno())
            faulthandler.enable(self._crash_handle)
        return stream


def start() -> None:
    """Start logging this process, uncaught errors included. The first message creates the file."""
    root = logging.getLogger()
    if any(isinstance(handler, ProcessLog) for handler in root.handlers):
        return
    now = time.strftime("%Y-%m-%d %H.%M.%S")
    root.addHandler(ProcessLog(paths.logs() / f"{now} {os.getpid()}{_SUFFIX}"))
    logging.getLogger("studio").setLevel(logging.INFO)
    sys.excepthook = _report
    threading.excepthook = _report_thread


def version_line() -> str:
    """Return the versions of the studio, Python, the system and the main libraries."""
    libraries = []
    for name in _LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            libraries.append(f"{name} {metadata.version(name)}")
    return (
        f"Sprite Training Studio {studio.__version__}, Python {platform.python_version()}, {platform.platform()}, "
        f"{os.cpu_count()} cores, {', '.join(libraries)}"
    )


def log_event(event: Event) -> None:
    """Log the few events that describe the course of a job; skip frequent events."""
    if isinstance(event, _LOGGED):
        _log.info("%s", event)


def _sweep(own: Path) -> None:
    """Remove the oldest log files beyond KEPT_FILES, except files of running processes. own: this process's file."""
    files = sorted(own.parent.glob(f"*{_SUFFIX}"))  # names begin with the date
    for path in files[: max(0, len(files) - KEPT_FILES + 1)]:
        if path != own and not _is_running(path.stem.rpartition(" ")[2]):
            with contextlib.suppress(OSError):  # Windows can't remove open files
                path.with_name(f"{path.name}.1").unlink(missing_ok=True)
                path.unlink()


def _is_running(pid: str) -> bool:
    """Return whether another process has the id. In containers, a new process may get an old process's id."""
    if os.name == "nt" or not pid.isdecimal() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except OverflowError:
        return False
    except OSError as error:
        return isinstance(error, PermissionError)  # a process of another user
    return True


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _log.critical("Uncaught exception", exc_info=(kind, error, trace))
    sys.__excepthook__(kind, error, trace)


def _report_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is not SystemExit:
        error = args.exc_value or args.exc_type()
        _log.critical("Uncaught exception", exc_info=(args.exc_type, error, args.exc_traceback))
    threading.__excepthook__(args)
