"""Start the studio's worker processes and exchange messages with them.

Messages are pickles sent through pipes, never stored on disk. `multiprocessing` is not used: it would run the program's
main script again in each process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

BUFFER_BYTES = 256 << 10  # also the size of the pipe: systems limit the total per user
CONNECTION_ERRORS = (OSError, EOFError, pickle.UnpicklingError)  # the other process has ended

_START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = sys.argv[2:]; "
    "import importlib; importlib.import_module(sys.argv[1]).main()"
)


class Streams(NamedTuple):
    """The two pipes between a worker process and its parent: requests to the worker, answers back."""

    requests: BinaryIO
    answers: BinaryIO


def can_start() -> bool:
    """Whether this program is a Python interpreter that can be started again."""
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
