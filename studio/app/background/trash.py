"""Jobs that move runs to the system's trash and back, or delete them."""

import contextlib
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QFile, QStandardPaths

from studio.core import files
from studio.core.errors import StudioError
from studio.core.events import Event, Notice
from studio.engine.runs.folder import RunDir

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class TrashedRun:
    """A run in the system's trash."""

    path: Path  # the former folder
    trash_path: Path | None  # the folder in the trash; None if the system does not report it


@dataclass(frozen=True)
class TrashMissing(Event):
    """Runs that stay where they are, because their drive has no writable trash."""

    paths: tuple[Path, ...]


class _NoTrashError(StudioError):
    """The drive of a run has no writable trash."""


def trash_runs(paths: Sequence[Path]) -> Generator[Event, None, list[TrashedRun]]:
    """Move runs to the system's trash and return the moved runs; yield a Notice for each failure.

    Yields TrashMissing last, with the runs on drives without a writable trash.
    """
    moved, kept = [], []
    for path in paths:
        try:
            moved.append(_move_to_trash(path))
        except _NoTrashError:
            kept.append(path)
        except StudioError as error:
            yield Notice("error", error.title, error.hint)
    if kept:
        yield TrashMissing(tuple(kept))
    return moved


def delete_runs(paths: Sequence[Path]) -> Generator[Event, None, list[Path]]:
    """Delete runs permanently and return the former folders; yield a Notice for each failure."""
    return (yield from _for_each(_delete, paths))


def restore_runs(trashed: Sequence[TrashedRun]) -> Generator[Event, None, list[Path]]:
    """Move runs back from the trash and return their folders; yield a Notice for each failure."""
    return (yield from _for_each(_move_back, trashed))


def _for_each(move: Callable[[A], B], runs: Sequence[A]) -> Generator[Event, None, list[B]]:
    """Move each run and return the results; yield a Notice for each failure."""
    moved = []
    for run in runs:
        try:
            moved.append(move(run))
        except StudioError as error:
            yield Notice("error", error.title, error.hint)
    return moved


def _check_removable(path: Path) -> None:
    """Raise StudioError if the run's folder is missing or a process trains the run."""
    if not path.is_dir():
        title = f"The folder of '{path.name}' does not exist."
        raise StudioError(title, "Check whether the folder was moved or its drive removed.")
    if RunDir(path).is_busy():
        raise StudioError(f"'{path.name}' is training.", "Stop it first.")


def _delete(path: Path) -> Path:
    """Delete a run permanently and return its former folder. Raises StudioError if files of the run remain."""
    _check_removable(path)
    try:
        rest = files.remove(path)
    except OSError as error:
        raise StudioError(f"Can't delete '{path.name}': {error.strerror or error}.", "Nothing was deleted.") from error
    if rest is not None:
        title = f"Some files of '{path.name}' can't be deleted."
        raise StudioError(title, f"Close programs that use these files, then delete {rest}.")
    return path


def _move_to_trash(path: Path) -> TrashedRun:
    """Move a run to the trash. Raises _NoTrashError without a trash, StudioError if a process trains the run."""
    _check_removable(path)
    with contextlib.suppress(OSError):  # Qt creates the trash, but not its parent folder
        data = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericDataLocation)
        Path(data).mkdir(parents=True, exist_ok=True)
    folder = QFile(str(path))
    if not folder.moveToTrash():  # network drives and some containers have no trash
        title = f"Can't move '{path.name}' to the trash: its drive has no writable trash."
        raise _NoTrashError(title, "Nothing was deleted.")
    place = Path(folder.fileName()) if folder.fileName() else path
    return TrashedRun(path, place if place != path and place.is_dir() else None)


def _move_back(run: TrashedRun) -> Path:
    """Move a run from the trash to its former folder, and return the folder. Raises StudioError."""
    if run.trash_path is None or not run.trash_path.is_dir():
        raise StudioError(f"'{run.path.name}' is no longer in the trash.", "Look for the run in the system's trash.")
    if os.path.lexists(run.path):
        raise StudioError(f"{run.path} already exists.", "Move it, then restore the run from the system's trash.")
    try:
        run.trash_path.rename(run.path)
    except OSError as error:
        title = f"Can't restore '{run.path.name}': {error.strerror or error}."
        raise StudioError(title, "The run is still in the system's trash.") from error
    if run.trash_path.parent.name == "files":  # freedesktop.org layout: delete the file with the former path
        with contextlib.suppress(OSError):
            (run.trash_path.parent.parent / "info" / f"{run.trash_path.name}.trashinfo").unlink()
    return run.path
