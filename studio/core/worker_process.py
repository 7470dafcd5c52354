"""The studio's own processes that work for it: how they are started, and what is said through their pipes.

Messages are pickles in pipes between the two: nothing of it is ever on the disk. `multiprocessing` would run the
program's main script once more in each process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

BUFFER_BYTES = 256 << 10  # of a pipe as well: systems give only so many pages to one user
CONNECTION_ERRORS = (OSError, EOFError, pickle.UnpicklingError)  # when the other process has died

_START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = sys.argv[2:]; "
    "import importlib; importlib.import_module(sys.argv[1]).main()"
)


class Streams(NamedTuple):
    """The two pipes of a process, as it sees them itself."""

    requests: BinaryIO
    answers: BinaryIO


def can_start() -> bool:
    """Whether this program is a Python that can be started once more."""
    return "python" in Path(sys.executable or "").name.lower() and not getattr(sys, "frozen", False)


def start(module: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a process that calls `main()` of that module; it heeds no Ctrl+C.

    environment: variables beside those of this process. What it writes to its stderr is lost. Raises OSError.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-X", f"utf8={sys.flags.utf8_mode}", "-c", _START, module, *sys.path],
        bufsize=BUFFER_BYTES,
        pipesize=BUFFER_BYTES,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def streams_of(process: subprocess.Popen[bytes]) -> Streams:
    """The pipes to a process that `start` has started: write to `requests`, read from `answers`."""
    return Streams(cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout))


def own_streams() -> Streams:
    """In such a process: the pipes, on handles of their own. What its code prints or reads must not get in between."""
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
    """The next message. Raises one of CONNECTION_ERRORS when there is none any more."""
    return pickle.load(stream)
