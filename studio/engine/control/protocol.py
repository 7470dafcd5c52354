"""The two files in a run folder through which a training and other processes communicate, also on other machines.

    live.json    the training's heartbeat and state; removed when the training ends
    asked.json   requests from other processes: pause, stop, save

Clocks of different machines are never compared.
"""

import contextlib
import errno
import json
from pathlib import Path
from typing import TypeVar

import msgspec

from studio.core import files, records
from studio.engine.runs.folder import HEARTBEAT_FILE, REQUEST_FILE, RunDir, read_json

T = TypeVar("T")


class Heartbeat(msgspec.Struct, frozen=True):
    """The content of live.json: a training's heartbeat and state."""

    beat: records.Count  # a counter; a training is alive while it changes
    first_step: records.Count  # where this process began to train
    elapsed_s: records.Seconds
    train_count: records.Count
    heldout_count: records.Count
    can_pause: bool = False  # whether it pauses on request
    is_paused: bool = False
    is_stopping: bool = False
    halted: str = ""  # the error that blocks the training now, or ''
    eta_s: records.Seconds | None = None  # time left; None while unknown
    epoch: float = 0.0
    precision: str = ""


class ControlRequest(msgspec.Struct, frozen=True):
    """The content of asked.json: what other processes request from a training."""

    stop: bool = False
    pause: bool = False
    saves: records.Count = 0  # number of checkpoints requested since the start
    samples: records.Count = 0  # number of live samples requested since the start


def read_heartbeat(run: Path) -> Heartbeat | None:
    """Return the heartbeat in a run's live.json; None if no training writes one."""
    return _read(run / HEARTBEAT_FILE, Heartbeat)


def write_heartbeat(run: Path, live: Heartbeat) -> None:
    """Write a run's live.json; on a full disk, overwrite the old file in place. Raises UnwritableError."""
    folder = RunDir(run)
    with folder.wrap_write_errors():
        try:
            folder.write_file(HEARTBEAT_FILE, _content(live), durable=False)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            with (run / HEARTBEAT_FILE).open("r+b") as file:  # the old file's blocks suffice; a new file needs more
                file.write(_content(live))
                file.truncate()  # the old content may have been longer


def clear_control_files(run: Path) -> None:
    """Remove live.json and asked.json after a training has ended."""
    for name in (HEARTBEAT_FILE, REQUEST_FILE):
        with contextlib.suppress(OSError):  # drive unplugged: watchers will notice the missing heartbeat
            files.remove(run / name)


def read_requests(run: Path, known: ControlRequest) -> ControlRequest:
    """Return the requests in asked.json; return `known` if the file is missing or unreadable."""
    return _read(run / REQUEST_FILE, ControlRequest) or known


def send_request(
    run: Path, *, stop: bool | None = None, pause: bool | None = None, save: bool = False, sample: bool = False
) -> None:
    """Request something from a run's training by writing asked.json; None keeps a flag. Raises RunError."""
    # An unreadable file raises: to replace it would end a requested pause.
    repair = "The request was not sent. Remove the file and try again."
    before = read_json(run / REQUEST_FILE, ControlRequest, repair) or ControlRequest()
    asked = ControlRequest(
        before.stop if stop is None else stop,
        before.pause if pause is None else pause,
        before.saves + save,  # counters, so that a request read twice is executed once
        before.samples + sample,
    )
    folder = RunDir(run)
    with folder.wrap_write_errors():
        folder.write_file(REQUEST_FILE, _content(asked), durable=False)


def _read(path: Path, kind: type[T]) -> T | None:
    """Return the parsed file; None for a missing or unreadable file: the sender soon writes again."""
    try:
        return records.parse(path.read_bytes(), kind)
    except (OSError, ValueError):
        return None


def _content(message: msgspec.Struct) -> bytes:
    return json.dumps(msgspec.to_builtins(message)).encode()
