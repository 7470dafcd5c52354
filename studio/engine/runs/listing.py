"""List the runs in the chosen runs folder, in former runs folders, and remembered runs elsewhere."""

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from studio.core import file_systems, files, formatting, paths, records
from studio.core.errors import RunError
from studio.core.events import Event, Events
from studio.core.names import nfc
from studio.engine.runs import folder
from studio.engine.runs.folder import RunDir, RunProgress, RunRecord, wrap_read_errors
from studio.engine.runs.metrics import newest_loss_line
from studio.engine.runs.notes import RunNotes, display_name, folder_name, read_notes

_FILE, _MAX_REMEMBERED = "known_runs.json", 1000

RunStatus = Literal["queued", "training", "interrupted", "finished", "stopped", "failed", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    """A run in the list of runs."""

    path: Path
    record: RunRecord | None
    progress: RunProgress | None
    standing: RunStatus
    problem: str = ""  # why a damaged run can't be read
    notes: RunNotes = field(default_factory=RunNotes)
    saved_step: int = 0  # the newest checkpoint's step, 0 without a checkpoint
    step: int = 0  # trained so far; during a training, newer than `progress`
    elapsed_s: float = 0.0
    folder_name: str = ""  # of a link's target; '' stands for the path's name

    @property
    def title(self) -> str:
        """The run's display name: the user's name for the run, or the folder's name."""
        return self.notes.name or self.folder_name or nfc(self.path.name)


@dataclass(frozen=True)
class RunsListed(Event):
    """Yielded by `list_runs`: all runs, newest first."""

    runs: tuple[RunSummary, ...]


def runs_by_name(paths: Iterable[Path]) -> dict[str, Path]:
    """Return run folders by display name. Runs with equal display names appear as 'parent folder/folder'."""
    found = {path: display_name(path) for path in {path.resolve(): path for path in paths}}
    short = list(found.values())
    return {name if short.count(name) == 1 else f"{path.parent.name}/{path.name}": path for path, name in found.items()}


def data_label(record: RunRecord) -> str:
    """Return sprites, number of examples and parent model as text: 'items (60), from starter'."""
    start = f", from {record.parent}" if record.parent else ""
    return f"{record.data_title} ({formatting.number(record.example_count)}){start}"


def list_runs(extra: Iterable[Path] = ()) -> Events:
    """List runs in the runs folders and `extra`, newest first; yields RunsListed. Raises RunError."""
    runs = [summarise(path) for path in run_folders(extra)]
    runs.sort(key=lambda run: run.record.created if run.record else "", reverse=True)  # ISO 8601 sorts by time
    yield RunsListed(tuple(runs))


def run_folders(extra: Iterable[Path] = ()) -> list[Path]:
    """Return the run folders in all runs folders and at the `extra` paths, without duplicates.

    Raises RunError if the folder for new runs is unreadable; a former folder may lie on an unplugged drive.
    """
    chosen, *former = paths.runs_folders()
    inside: list[Path] = []
    with contextlib.suppress(FileNotFoundError), wrap_read_errors(chosen):
        inside += chosen.iterdir()
    for folder_path in former:
        with contextlib.suppress(OSError):
            inside += folder_path.iterdir()
    return list({path.resolve(): path for path in [*extra, *inside] if _may_be_run(path)}.values())


def _may_be_run(path: Path) -> bool:
    """Return whether the folder has a run.json; True for an unreadable drive."""
    try:
        return folder.file_exists(path / folder.RECORD_FILE)
    except OSError:
        return True


def summarise(path: Path) -> RunSummary:
    """Read a run folder and return its summary. An unreadable run has the standing 'damaged' and a problem text."""
    run, notes, name = RunDir(path), read_notes(path), folder_name(path)  # here, because resolving a link may be slow
    try:
        record, is_busy = run.record(), run.is_busy()
        progress = run.progress()  # read after is_busy: a training writes its end before it releases the lock
    except RunError as error:
        return RunSummary(path, None, None, "damaged", str(error), notes, folder_name=name)
    standing: RunStatus = progress.state
    if is_busy:
        standing = "training"
    elif progress.state == "training":
        standing = "training" if run.is_busy() else "interrupted"  # the training may have started just now
    step, elapsed_s = progress.step, progress.elapsed_s
    if standing == "training":
        step, elapsed_s = _newest_tick_end(path) or (step, elapsed_s)
    return RunSummary(path, record, progress, standing, "", notes, run.saved_step(), step, elapsed_s, name)


def _newest_tick_end(path: Path) -> tuple[int, float] | None:
    """Return the trained steps and seconds at the end of the newest tick; None without new steps or a readable file."""
    try:
        tick = newest_loss_line(path / folder.METRICS_FILE)
    except OSError:
        return None
    return None if tick is None else (tick.step + len(tick.loss), tick.elapsed_s)


def resume_hint(saved_step: int) -> str:
    """Return a text on where Resume continues. saved_step: the newest checkpoint's step, 0 without a checkpoint."""
    if saved_step:
        return f"Resume continues from the checkpoint at step {formatting.number(saved_step)}."
    return "No checkpoint was saved: Resume starts again from step 0."


def remembered_runs() -> list[Path]:
    """Return the remembered runs, newest first, with deleted runs and runs on unplugged drives."""
    try:
        return _read_remembered()
    except OSError:
        return []


def remember(run: Path) -> None:
    """Add a run folder outside the runs folders to the remembered runs. Does nothing if their file is unwritable."""
    path = run.resolve()
    if path.parent in [parent.resolve() for parent in paths.runs_folders()]:  # always listed
        return
    with contextlib.suppress(OSError):
        paths.home().mkdir(parents=True, exist_ok=True)
        lock = file_systems.acquire_lock(paths.home() / ".known_runs.lock", wait_s=2.0)
        if lock is None:
            return
        try:
            entries = [str(path), *(str(other) for other in _read_remembered() if other != path)]  # newest first
            files.write_atomic(paths.home() / _FILE, json.dumps(entries[:_MAX_REMEMBERED], indent=2).encode())
        finally:
            lock.release()


def _read_remembered() -> list[Path]:
    """Return the remembered run folders; none for a missing or damaged file. Raises OSError for an unreadable file."""
    try:
        found = records.parse((paths.home() / _FILE).read_bytes(), list[Any])
    except (FileNotFoundError, ValueError):
        return []
    return [Path(entry) for entry in found if isinstance(entry, str) and "\0" not in entry]
