"""The list of runs: those in the studio's own folder, and others that are remembered. No torch here."""

from __future__ import annotations

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
from studio.engine.runs.folder import (
    METRICS_FILE,
    RECORD_FILE,
    RunDir,
    RunProgress,
    RunRecord,
    file_exists,
    wrap_read_errors,
)
from studio.engine.runs.metrics import newest_loss_line
from studio.engine.runs.notes import RunNotes, display_name, read_notes

_MAX_REMEMBERED = 1000

RunStatus = Literal["queued", "training", "interrupted", "finished", "stopped", "failed", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    """One row of the list of runs.

    problem: why a damaged run can't be read. notes: the user's name, note, star and tags. saved_step: step of the
    newest checkpoint; 0 without a checkpoint. step, elapsed_s: trained up to now; ahead of `progress` in a training.
    """

    path: Path
    record: RunRecord | None
    progress: RunProgress | None
    standing: RunStatus
    problem: str = ""
    notes: RunNotes = field(default_factory=RunNotes)
    saved_step: int = 0
    step: int = 0
    elapsed_s: float = 0.0

    @property
    def title(self) -> str:
        """What it is called: the name that it was given, or that of its folder."""
        return self.notes.name or nfc(self.path.name)


@dataclass(frozen=True)
class RunsListed(Event):
    runs: tuple[RunSummary, ...]


def runs_by_name(paths: Iterable[Path]) -> dict[str, Path]:
    """Runs, each once, by what they are called; where two share it, by their folder and the one around it."""
    found = {path: display_name(path) for path in {path.resolve(): path for path in paths}}
    short = list(found.values())
    return {name if short.count(name) == 1 else f"{path.parent.name}/{path.name}": path for path, name in found.items()}


def data_label(record: RunRecord) -> str:
    """What a run learnt from, in words: 'items (60)', 'items (60), from starter'."""
    start = f", from {record.parent}" if record.parent else ""
    return f"{record.data_title} ({formatting.number(record.data_count)}){start}"


def list_runs(extra: Iterable[Path] = ()) -> Events:
    """Every run in the studio's folder and at the `extra` paths, the newest first; yields one RunsListed.

    Raises RunError when the studio's folder can't be read.
    """
    runs = [summarise(path) for path in run_folders(extra)]
    runs.sort(key=lambda run: run.record.created if run.record else "", reverse=True)
    yield RunsListed(tuple(runs))


def run_folders(extra: Iterable[Path] = ()) -> list[Path]:
    """The runs in the studio's folder and at the `extra` paths, each once. Raises RunError."""
    try:
        with wrap_read_errors(paths.runs()):
            inside = list(paths.runs().iterdir())
    except FileNotFoundError:
        inside = []
    return list({path.resolve(): path for path in [*extra, *inside] if _may_be_run(path)}.values())


def _may_be_run(path: Path) -> bool:
    """Return whether the folder has a run.json, or a drive that can't tell."""
    try:
        return file_exists(path / RECORD_FILE)
    except OSError:
        return True


def summarise(path: Path) -> RunSummary:
    """What the list of runs says of one; a damaged run is listed as such."""
    run, notes = RunDir(path), read_notes(path)
    try:
        record, is_busy = run.record(), run.is_busy()
        progress = run.progress()  # only now: how a training has ended is written before its lock is given back
    except RunError as error:
        return RunSummary(path, None, None, "damaged", str(error), notes)
    standing: RunStatus = progress.state
    if is_busy:
        standing = "training"
    elif progress.state == "training":
        standing = "training" if run.is_busy() else "interrupted"  # it may have begun just now
    step, elapsed_s = progress.step, progress.elapsed_s
    if standing == "training":
        step, elapsed_s = _trained_so_far(path) or (step, elapsed_s)
    return RunSummary(
        path, record, progress, standing, notes=notes, saved_step=run.saved_step(), step=step, elapsed_s=elapsed_s
    )


def _trained_so_far(path: Path) -> tuple[int, float] | None:
    """Return steps and seconds of a run in training; None if metrics.jsonl has no new steps, or can't be read."""
    try:
        tick = newest_loss_line(path / METRICS_FILE)
    except OSError:
        return None
    return None if tick is None else (tick.step + len(tick.loss), tick.elapsed_s)


def resume_hint(saved_step: int) -> str:
    """Return a sentence on what Resume will do. saved_step: as in RunSummary."""
    if saved_step:
        return f"Resume continues from the checkpoint at step {formatting.number(saved_step)}."
    return "No checkpoint was saved: Resume starts again from step 0."


def remembered_runs() -> list[Path]:
    """The remembered run folders, the newest first; some may be gone or on a drive that is unplugged."""
    try:
        return _read_remembered()
    except OSError:
        return []


def remember(run: Path) -> None:
    """Add a run folder to the list, unless it lies in the studio's own.

    A list that can't be written stops nothing, and one that can't be read is not written anew: all others are in it.
    """
    path = run.resolve()
    if path.parent == paths.runs().resolve():
        return
    with contextlib.suppress(OSError):
        paths.home().mkdir(parents=True, exist_ok=True)
        lock = file_systems.acquire_lock(paths.home() / ".known_runs.lock", wait_s=2.0)
        if lock is None:
            return
        try:
            entries = [str(path), *(str(other) for other in _read_remembered() if other != path)]
            files.write_atomic(_file(), json.dumps(entries[:_MAX_REMEMBERED], indent=2).encode())
        finally:
            lock.release()


def _read_remembered() -> list[Path]:
    """What is remembered; nothing where the list is missing or damaged. Raises OSError when it can't be read."""
    try:
        found = records.parse(_file().read_bytes(), list[Any])
    except (FileNotFoundError, ValueError):
        return []
    return [Path(entry) for entry in found if isinstance(entry, str) and "\0" not in entry]


def _file() -> Path:
    return paths.home() / "known_runs.json"
