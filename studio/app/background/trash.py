"""Jobs that move runs to the system's trash and back."""

import contextlib
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QFile, QStandardPaths

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


def trash_runs(paths: Sequence[Path]) -> Generator[Event, None, list[TrashedRun]]:
    """Move runs to the system's trash and return the moved runs; yield a Notice for each failure."""
    return (yield from _for_each(_move_to_trash, paths))


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


def _move_to_trash(path: Path) -> TrashedRun:
    """Move a run to the trash. Raises StudioError if a process trains the run, or if there is no trash."""
    if not path.is_dir():
        title = f"The folder of '{path.name}' does not exist."
        raise StudioError(title, "Check whether the folder was moved or its drive removed.")
    if RunDir(path).is_busy():
        raise StudioError(f"'{path.name}' is training.", "Stop it first.")
    with contextlib.suppress(OSError):  # Qt creates the trash, but not its parent folder
        data = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericDataLocation)
        Path(data).mkdir(parents=True, exist_ok=True)
    folder = QFile(str(path))
    if not folder.moveToTrash():  # network drives and some containers have no trash
        title = f"Can't move '{path.name}' to the trash: its drive has no writable trash."
        raise StudioError(title, f"Nothing was deleted. To delete the run, delete the folder {path}.")
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
