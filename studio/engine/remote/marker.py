"""Read and write elsewhere.json: a marker in a run's local folder while the run trains on another machine."""

import json
from pathlib import Path

import msgspec

from studio.core import files
from studio.core.errors import RunError
from studio.core.shell import command_line
from studio.engine.runs.folder import REMOTE_FILE, RunDir, read_json, wrap_write_errors


class _RemoteMarker(msgspec.Struct, frozen=True):
    """The content of elsewhere.json. on: machine and folder, as typed after --on."""

    on: str


def remote_target_of(run: Path) -> str:
    """Return the machine and folder of the run's remote training; '' for a local run. Raises RunError."""
    repair = "If no other machine trains the run, delete the file."
    found = read_json(run / REMOTE_FILE, _RemoteMarker, repair)
    return "" if found is None else found.on


def mark_remote(run: Path, target: str) -> None:
    """Write the marker file: the run trains at `target`. Raises UnwritableError."""
    folder = RunDir(run)
    with folder.wrap_write_errors():
        folder.write_file(REMOTE_FILE, json.dumps({"on": target}).encode())


def unmark_remote(run: Path) -> None:
    """Delete the marker file, once the ended training's files are copied back. Raises UnwritableError."""
    with wrap_write_errors(run):
        files.remove(run / REMOTE_FILE)


def raise_if_remote(run: Path) -> None:
    """Raise RunError if the run trains on another machine, because the remote training would overwrite a local one."""
    if target := remote_target_of(run):
        again = command_line("studio", "resume", str(run), "--on", target)
        hint = f"Reconnect with: {again}. If that machine is lost for good, delete {REMOTE_FILE} from the run folder "
        hint += "and resume here from the last checkpoint that was copied back."
        raise RunError(f"{run.name} is being trained on {target}.", hint)
