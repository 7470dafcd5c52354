"""The queue: runs that train one after another, in the window or with `studio queue run`.

A queued run has the state 'queued' in state.json. queue.json in the studio's folder holds the order of queued and
interrupted runs; an interrupted run resumes at its turn. Without queue.json, queued runs train in order of creation. A
process must hold a run's lock to train the run, so no run trains twice at once.
"""

import contextlib
import dataclasses
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from studio.core import file_systems, files, paths, records
from studio.core.errors import RunError
from studio.core.events import Event
from studio.engine.runs.folder import RunDir, RunState, wrap_write_errors
from studio.engine.runs.listing import RunSummary

_FILE = "queue.json"
_WAIT_S = 2.0  # maximum wait for the lock while another process changes the queue
_ENDED = ("finished", "failed", "damaged")


@dataclass(frozen=True)
class RunQueued(Event):
    """Yielded after a new run entered the queue."""

    path: Path


@dataclass(frozen=True)
class _QueueEntry:
    """An entry in queue.json. created: from run.json; distinguishes the run from a later run in the folder."""

    run: str
    created: str


def queued_runs(runs: Iterable[RunSummary]) -> tuple[RunSummary, ...]:
    """Return the runs listed in queue.json, then other queued runs in order of creation. Leaves out ended runs."""
    known = {_entry_of(run.path, run.record.created): run for run in runs if run.record is not None}
    listed: list[_QueueEntry] = []
    with contextlib.suppress(OSError):
        listed = [entry for entry in _read_entries() if entry in known]
    others = [entry for entry, run in known.items() if run.standing == "queued"]
    order = dict.fromkeys([*listed, *sorted(others, key=lambda entry: entry.created)])
    return tuple(known[entry] for entry in order if known[entry].standing not in _ENDED)


def next_run(queue: Iterable[RunSummary], passed: Collection[Path] = ()) -> RunSummary | None:
    """Return the first run of the queue not yet in training; None without a run. passed: folders to skip."""
    return next((run for run in queue if run.standing != "training" and run.path not in passed), None)


def append(run: Path) -> None:
    """Add a run at the end of the queue. Raises RunError."""
    entry = _entry_of(run, RunDir(run).record().created)
    with _locked_entries() as order:
        order[:] = [*(other for other in order if other != entry), entry]  # a queued run moves to the end


def move(run: Path, to: int, queue: Collection[RunSummary]) -> None:
    """Move a run to index `to`, from 0, in the queue. queue: result of `queued_runs`. Raises RunError."""
    shown = [_entry_of(queued.path, queued.record.created) for queued in queue if queued.record is not None]
    moved = next((entry for entry in shown if entry.run == str(run.resolve())), None)
    if moved is None:
        raise RunError(f"{run.name} is no longer in the queue.", "The other runs keep their order.")
    others = [entry for entry in shown if entry != moved]
    new = [*others[:to], moved, *others[to:]]
    with _locked_entries() as order:  # hidden entries, such as runs on an unplugged drive, go to the end
        order[:] = [*new, *(entry for entry in order if entry not in new)]


def remove(run: Path) -> None:
    """Remove a run from the queue and mark the run as stopped. The user can resume the run later. Raises RunError."""
    if not RunDir(run).is_busy():
        _set_state(run, "stopped", only=("queued",))
    remove_entry(run)


def mark_failed(run: Path, why: str) -> None:
    """Mark a run as failed because its training could not start, and unqueue the run. Raises RunError.

    Does nothing while a process trains the run. A finished or failed run keeps its state.
    """
    if not RunDir(run).is_busy():
        _set_state(run, "failed", why, only=("queued", "training", "stopped"))
        remove_entry(run)


def remove_if_ended(run: Path) -> None:
    """Remove a run from the queue after its end. Does nothing for unreadable or unwritable files."""
    with contextlib.suppress(RunError):
        if RunDir(run).progress().state in _ENDED:
            remove_entry(run)


def remove_entry(run: Path) -> None:
    """Remove a run from queue.json. Raises RunError."""
    name = str(run.resolve())
    with contextlib.suppress(OSError):
        if not any(entry.run == name for entry in _read_entries()):  # nothing to remove: no lock, no write
            return
    with _locked_entries() as order:
        order[:] = [entry for entry in order if entry.run != name]


def _set_state(path: Path, state: RunState, message: str = "", *, only: Collection[str]) -> None:
    run = RunDir(path)
    with run.held():
        progress = run.progress()
        if progress.state in only:
            run.write_progress(msgspec.structs.replace(progress, state=state, message=message))


@contextlib.contextmanager
def _locked_entries() -> Iterator[list[_QueueEntry]]:
    """Lock queue.json and yield the entries for changes. Writes the entries if the block succeeds. Raises RunError."""
    with wrap_write_errors(paths.home()):
        paths.home().mkdir(parents=True, exist_ok=True)
        lock = file_systems.acquire_lock(paths.home() / ".queue.lock", _WAIT_S)
        if lock is None:
            raise RunError("Another window or command is changing the queue.", "Try again.")
        try:
            order = _read_entries()
            yield order
            kept = [dataclasses.asdict(entry) for entry in order if not _is_gone(Path(entry.run))]
            files.write_atomic(paths.home() / _FILE, json.dumps(kept, indent=2).encode())
        finally:
            lock.release()


def _read_entries() -> list[_QueueEntry]:
    """Return the valid entries of queue.json; none for a missing or damaged file. Raises OSError if unreadable."""
    try:
        found = records.parse((paths.home() / _FILE).read_bytes(), list[Any])
    except (FileNotFoundError, ValueError):
        return []
    order: list[_QueueEntry] = []
    for values in found:
        with contextlib.suppress(ValueError):
            order.append(records.convert(values, _QueueEntry))
    return order


def _is_gone(run: Path) -> bool:
    """Return whether a run folder was deleted. False for a run on an unplugged drive."""
    return run.parent.is_dir() and not run.is_dir()


def _entry_of(run: Path, created: str) -> _QueueEntry:
    return _QueueEntry(str(run.resolve()), created)
