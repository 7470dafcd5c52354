"""The window's jobs that keep runs in order: what is said of them, what they take on the disk, the trash."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QFile, QStandardPaths

from studio.app.background.job_events import NotesChanged, RunsRestored, RunsTrashed, Trashed
from studio.core.errors import StudioError
from studio.core.events import Events, Notice
from studio.engine.runs.folder import RunDir
from studio.engine.runs.maintenance.disk_use import Removable
from studio.engine.runs.notes import change_notes as write_notes


def change_notes(
    path: Path, name: str | None, note: str | None, starred: bool | None, tags: Sequence[str] | None
) -> Events:
    """Say this of a run; what is None stays."""
    yield NotesChanged(path, write_notes(path, name=name, note=note, starred=starred, tags=tags))


def find_space(paths: Sequence[Path], *, with_cache: bool) -> Events:
    """What of these runs can go, and of the studio's own."""
    from studio.engine.runs.maintenance.free_space import find_space

    yield from find_space(paths, with_cache=with_cache)


def free_space(items: Sequence[Removable]) -> Events:
    """Remove what was found."""
    from studio.engine.runs.maintenance.free_space import free_space

    yield from free_space(items)


def trash_runs(paths: Sequence[Path]) -> Events:
    """Move runs to the system's trash: yields a Notice for each that must stay, and RunsTrashed for the others.

    They lie in no place of the studio's own in between: whatever ends the window, the system gives them back.
    """
    moved = []
    for path in paths:
        try:
            moved.append(Trashed(path, _move_to_trash(path)))
        except StudioError as error:
            yield Notice("error", error.title, error.hint)
    if moved:
        yield RunsTrashed(tuple(moved))


def restore_runs(trashed: Sequence[Trashed]) -> Events:
    """Move runs back from the trash: yields a Notice for each that can't be, and RunsRestored for the others."""
    restored = []
    for run in trashed:
        try:
            _move_back(run)
            restored.append(run.path)
        except StudioError as error:
            yield Notice("error", error.title, error.hint)
    if restored:
        yield RunsRestored(tuple(restored))


def _move_to_trash(path: Path) -> Path | None:
    """Move a run to the trash, unless some process trains it: where it is then; None where the system does not tell.

    Where there is no trash (drives of a network, some containers) the run stays as it is. Raises StudioError.
    """
    if not path.is_dir():
        raise StudioError(
            f"The folder of '{path.name}' is no longer there.", "It was moved or removed, or its drive is gone."
        )
    if RunDir(path).is_busy():
        raise StudioError(f"'{path.name}' is being trained.", "Stop it first.")
    with contextlib.suppress(OSError):  # Qt creates the trash, but not its parent folder
        data = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericDataLocation)
        Path(data).mkdir(parents=True, exist_ok=True)
    folder = QFile(str(path))
    if not folder.moveToTrash():  # what the system says of it ('Bad file descriptor') helps nobody
        title = f"'{path.name}' can't be moved to the trash: there is none for that drive, or it can't be written."
        raise StudioError(title, f"Nothing was removed. To be rid of it, delete the folder {path} yourself.")
    place = Path(folder.fileName()) if folder.fileName() else path
    return place if place != path and place.is_dir() else None


def _move_back(run: Trashed) -> None:
    """Raises StudioError."""
    if run.place is None or not run.place.is_dir():
        raise StudioError(f"'{run.path.name}' is not in the trash any more.", "Look for it in the system's trash.")
    if os.path.lexists(run.path):
        raise StudioError(
            f"There is something else at {run.path} by now.", "Move it, then take the run back from the system's trash."
        )
    try:
        run.place.rename(run.path)
    except OSError as error:
        title = f"'{run.path.name}' can't be moved back: {error.strerror or error}."
        raise StudioError(title, "It is still in the system's trash.") from error
    if run.place.parent.name == "files":  # as freedesktop.org has it: beside them is where each came from
        with contextlib.suppress(OSError):
            (run.place.parent.parent / "info" / f"{run.place.name}.trashinfo").unlink()
