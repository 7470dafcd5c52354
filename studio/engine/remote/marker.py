"""Whether a run is out, trained on another machine: elsewhere.json in its folder says so. No torch here."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from studio.core import files, records
from studio.core.errors import DamagedError, RunError
from studio.core.shell import command_line
from studio.engine.runs.folder import REMOTE_FILE, RunDir, wrap_read_errors, wrap_write_errors


class _RemoteMarker(msgspec.Struct, frozen=True):
    """elsewhere.json. on: as it was typed after --on."""

    on: str


def remote_target_of(run: Path) -> str:
    """Where a run is out; empty when it is not. Raises RunError."""
    try:
        with wrap_read_errors(run / REMOTE_FILE):
            return records.parse((run / REMOTE_FILE).read_bytes(), _RemoteMarker).on
    except FileNotFoundError:
        return ""
    except ValueError:
        hint = "If no other machine trains the run, remove the file."
        raise DamagedError(f"{REMOTE_FILE} of {run.name} is damaged.", hint) from None


def mark_remote(run: Path, place: str) -> None:
    """Note that the run is out. Raises UnwritableError."""
    with RunDir(run).wrap_write_errors():
        files.write_atomic(run / REMOTE_FILE, json.dumps({"on": place}).encode())


def unmark_remote(run: Path) -> None:
    """All of the run is here again, and nothing trains it elsewhere. Raises UnwritableError."""
    with wrap_write_errors(run):
        files.remove(run / REMOTE_FILE)


def raise_if_remote(run: Path) -> None:
    """Raise RunError where the run is out: two machines would go on with it, each in its own way."""
    if place := remote_target_of(run):
        again = command_line("studio", "resume", str(run), "--on", place)
        raise RunError(
            f"{run.name} is being trained on {place}.",
            f"Take it up again with: {again}. If that machine is gone for good, remove {REMOTE_FILE} from the run's "
            "folder: the run goes on here from the last checkpoint that has come home.",
        )
