"""The queue: runs that are trained one after the other, in the window or by `studio queue run`. No torch here.

That a run waits is said by its own state.json, and so is how it ended. queue.json, in the studio's folder, holds the
order, and with it the places of runs that were begun: one that was interrupted is taken up again where it stands.
Without that file all that has not begun still waits, in the order in which it was made. Who trains a run holds its
lock, so that no two processes take the same.
"""

from __future__ import annotations

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

_WAIT_S = 2.0  # for another process that changes the queue
_ENDED = ("finished", "failed", "damaged")


@dataclass(frozen=True)
class RunQueued(Event):
    """A new run waits in the queue."""

    path: Path


@dataclass(frozen=True)
class _QueueEntry:
    """One line of queue.json. created: as in the run's record, since another run may be in its folder one day."""

    run: str
    created: str


def queued_runs(runs: Iterable[RunSummary]) -> tuple[RunSummary, ...]:
    """Of all runs those in the queue, in its order, with those that are being trained. Runs that have ended are none of
    it, nor are places of runs that are gone, and a queue.json that can't be read costs the order alone.
    """
    known = {_entry_of(run.path, run.record.created): run for run in runs if run.record is not None}
    listed: list[_QueueEntry] = []
    with contextlib.suppress(OSError):
        listed = [place for place in _read_entries() if place in known]
    others = [place for place, run in known.items() if run.standing == "queued"]
    order = dict.fromkeys([*listed, *sorted(others, key=lambda place: place.created)])
    return tuple(known[place] for place in order if known[place].standing not in _ENDED)


def next_run(queue: Iterable[RunSummary], passed: Collection[Path] = ()) -> RunSummary | None:
    """The run to train next: the first that nobody trains, those that were `passed` over aside."""
    return next((run for run in queue if run.standing != "training" and run.path not in passed), None)


def append(run: Path) -> None:
    """Put a run at the end of the queue. Raises RunError."""
    place = _entry_of(run, RunDir(run).record().created)
    with _locked_entries() as order:
        order[:] = [*(other for other in order if other != place), place]


def move(run: Path, to: int, queue: Collection[RunSummary]) -> None:
    """Give a run of the queue, which is as `queued_runs` found it, another place, counted from 0. Raises RunError."""
    shown = [_entry_of(one.path, one.record.created) for one in queue if one.record is not None]
    moved = next((place for place in shown if place.run == str(run.resolve())), None)
    if moved is None:
        raise RunError(f"{run.name} is not in the queue any more.", "The other runs keep their order.")
    others = [place for place in shown if place != moved]
    new = [*others[:to], moved, *others[to:]]
    with _locked_entries() as order:  # what is not shown, on a drive that is unplugged, comes after it
        order[:] = [*new, *(place for place in order if place not in new)]


def remove(run: Path) -> None:
    """Take a run out of the queue; it is kept, as one that was stopped and can be resumed. Raises RunError."""
    if not RunDir(run).is_busy():
        _set_state(run, "stopped", only=("queued",))
    remove_entry(run)


def mark_failed(run: Path, why: str) -> None:
    """Note of a run that could not even be begun that it has failed, and why: the queue goes on without it.

    Nothing happens where another process has it, or where it has said itself how it ended. Raises RunError.
    """
    if not RunDir(run).is_busy():
        _set_state(run, "failed", why, only=("queued", "training", "stopped"))
        remove_entry(run)


def remove_if_ended(run: Path) -> None:
    """Take a run out of the queue if it has ended; what keeps that from being written stops nothing."""
    with contextlib.suppress(RunError):
        if RunDir(run).progress().state in _ENDED:
            remove_entry(run)


def remove_entry(run: Path) -> None:
    """Take a run out of queue.json, if it is there. Raises RunError."""
    name = str(run.resolve())
    with contextlib.suppress(OSError):
        if not any(place.run == name for place in _read_entries()):
            return
    with _locked_entries() as order:
        order[:] = [place for place in order if place.run != name]


def _set_state(path: Path, state: RunState, message: str = "", *, only: Collection[str]) -> None:
    """Change what state.json says, if it says one of `only`. Raises RunError."""
    run = RunDir(path)
    run.acquire()
    try:
        progress = run.progress()
        if progress.state in only:
            run.write_progress(msgspec.structs.replace(progress, state=state, message=message))
    finally:
        run.release()


@contextlib.contextmanager
def _locked_entries() -> Iterator[list[_QueueEntry]]:
    """The places in queue.json, to be changed: they are written when the block ends well.

    Raises RunError; one that can't be read is not written anew.
    """
    with wrap_write_errors(paths.home()):
        paths.home().mkdir(parents=True, exist_ok=True)
        lock = file_systems.acquire_lock(paths.home() / ".queue.lock", _WAIT_S)
        if lock is None:
            raise RunError("The queue is being changed by another window or command.", "Try again.")
        try:
            order = _read_entries()
            yield order
            kept = [dataclasses.asdict(place) for place in order if not _is_gone(Path(place.run))]
            files.write_atomic(_file(), json.dumps(kept, indent=2).encode())
        finally:
            lock.release()


def _read_entries() -> list[_QueueEntry]:
    """The sound places of queue.json; none where it is missing or damaged. Raises OSError when it can't be read."""
    try:
        found = records.parse(_file().read_bytes(), list[Any])
    except (FileNotFoundError, ValueError):
        return []
    order: list[_QueueEntry] = []
    for values in found:
        with contextlib.suppress(ValueError):
            order.append(records.convert(values, _QueueEntry))
    return order


def _is_gone(run: Path) -> bool:
    """Whether a folder was removed; one on a drive that is unplugged may come back."""
    return run.parent.is_dir() and not run.is_dir()


def _entry_of(run: Path, created: str) -> _QueueEntry:
    return _QueueEntry(str(run.resolve()), created)


def _file() -> Path:
    return paths.home() / "queue.json"
