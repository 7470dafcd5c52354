"""Start worker processes and exchange messages with them. `ChildProcess` is a worker for jobs with a Cancel button.

Messages are pickles sent through pipes, never stored on disk. `multiprocessing` is not used: it would run the program's
main script again in each process.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

BUFFER_BYTES = 256 << 10  # also the size of the pipe: systems limit the total per user
CONNECTION_ERRORS = (OSError, EOFError, pickle.UnpicklingError)  # the other process has ended

_WAIT_S = 0.025
_SHUTDOWN_S = 0.1
_ENDED = object()  # queued when the process has ended

_START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = sys.argv[2:]; "
    "import importlib; importlib.import_module(sys.argv[1]).main()"
)


class Streams(NamedTuple):
    """The two pipes between a worker process and its parent: requests to the worker, answers back."""

    requests: BinaryIO
    answers: BinaryIO


def can_start() -> bool:
    """Return whether this program is a Python interpreter, which can run a worker process."""
    return "python" in Path(sys.executable or "").name.lower() and not getattr(sys, "frozen", False)


def start(module: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a process that calls `main()` of `module` and ignores Ctrl+C.

    environment: additional environment variables. The process's stderr is discarded. Raises OSError.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-X", f"utf8={sys.flags.utf8_mode}", "-c", _START, module, *sys.path],
        bufsize=BUFFER_BYTES, pipesize=BUFFER_BYTES, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})},
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )  # fmt: skip


def streams_of(process: subprocess.Popen[bytes]) -> Streams:
    """Return the pipes to a process started by `start`: write to `requests`, read from `answers`."""
    return Streams(cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout))


def own_streams() -> Streams:
    """Return this worker process's pipes, on new descriptors; print then writes to the null device instead."""
    streams = Streams(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", BUFFER_BYTES))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    return streams


def send(stream: BinaryIO, message: object) -> None:
    """Write a message for `receive`. Raises OSError."""
    pickle.dump(message, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Return the next message. Raises one of CONNECTION_ERRORS when the other process has ended."""
    return pickle.load(stream)


def exit_with_parent(requests: BinaryIO) -> None:
    """Wait on a thread until the parent process ends, which closes the pipe, and end this worker process."""
    threading.Thread(target=_exit_at_end, args=(requests,), daemon=True).start()


def _exit_at_end(requests: BinaryIO) -> None:
    try:
        receive(requests)
    except CONNECTION_ERRORS:
        pass
    finally:
        os._exit(0)


class ChildProcess:
    """A worker process: receives one request, sends messages, ends when closed. Raises OSError."""

    def __init__(self, module: str, request: object) -> None:
        """Start the process and send the request. module: as for `start`."""
        self._messages: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # a killed process leaves files behind
        try:
            self._process = start(module, {"TMPDIR": self._scratch.name})
        except OSError:
            self._scratch.cleanup()
            raise
        self._requests, self._answers = streams_of(self._process)
        self._thread = threading.Thread(target=self._exchange, args=(request,), name="child process", daemon=True)
        self._thread.start()

    def messages(self) -> Iterator[object]:
        """Yield the messages of the process until its end, and None after each 25 ms without a message."""
        while True:
            try:
                message = self._messages.get(timeout=_WAIT_S)
            except queue.Empty:
                yield None
                continue
            if message is _ENDED:
                return
            yield message

    def death_signal(self) -> int:
        """Return the number of the signal that killed the process; 0 without a signal."""
        with suppress(subprocess.TimeoutExpired):
            return max(0, -self._process.wait(1.0))
        return 0

    def cpu_s(self) -> float:
        """Return the seconds of processor time that the process has used; 0 after its end."""
        import psutil

        with suppress(psutil.Error):
            times = psutil.Process(self._process.pid).cpu_times()
            return float(times.user + times.system)
        return 0.0

    def close(self) -> None:
        """Kill the process and its children, and delete its temporary files."""
        import psutil  # workers start faster without this import

        with suppress(psutil.Error):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    process.kill()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SHUTDOWN_S)
        self._thread.join(_SHUTDOWN_S)
        self._scratch.cleanup()

    def _exchange(self, request: object) -> None:
        """Send the request to the process and queue the messages that arrive; runs on a thread."""
        try:
            send(self._requests, request)
            while True:
                self._messages.put(receive(self._answers))
        except CONNECTION_ERRORS:
            self._messages.put(_ENDED)
        finally:
            self._answers.close()
            with suppress(OSError):
                self._requests.close()
