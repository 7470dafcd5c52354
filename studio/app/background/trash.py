"""Jobs that move runs to the system's trash and back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QFile, QStandardPaths

from studio.core.errors import StudioError
from studio.core.events import Event, Notice
from studio.engine.runs.folder import RunDir


@dataclass(frozen=True)
class TrashedRun:
    """A run in the system's trash. path: its former folder. trash_path: its folder now; None if the system hides it."""

    path: Path
    trash_path: Path | None


def trash_runs(paths: Sequence[Path]) -> Generator[Event, None, list[TrashedRun]]:
    """Move runs to the system's trash and return the moved runs; yield a Notice for each run that can't be moved.

    The studio has no trash of its own, so that the runs can be restored even if the window ends meanwhile.
    """
    moved = []
    for path in paths:
        try:
            moved.append(TrashedRun(path, _move_to_trash(path)))
        except StudioError as error:
            yield Notice("error", error.title, error.hint)
    return moved


def restore_runs(trashed: Sequence[TrashedRun]) -> Generator[Event, None, list[Path]]:
    """Move runs back from the trash and return their folders; yield a Notice for each run that can't be moved."""
    restored = []
    for run in trashed:
        try:
            _move_back(run)
            restored.append(run.path)
        except StudioError as error:
            yield Notice("error", error.title, error.hint)
    return restored


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


def _move_back(run: TrashedRun) -> None:
    """Raises StudioError."""
    if run.trash_path is None or not run.trash_path.is_dir():
        raise StudioError(f"'{run.path.name}' is not in the trash any more.", "Look for it in the system's trash.")
    if os.path.lexists(run.path):
        raise StudioError(
            f"There is something else at {run.path} by now.", "Move it, then take the run back from the system's trash."
        )
    try:
        run.trash_path.rename(run.path)
    except OSError as error:
        title = f"'{run.path.name}' can't be moved back: {error.strerror or error}."
        raise StudioError(title, "It is still in the system's trash.") from error
    if run.trash_path.parent.name == "files":  # as freedesktop.org has it: beside them is where each came from
        with contextlib.suppress(OSError):
            (run.trash_path.parent.parent / "info" / f"{run.trash_path.name}.trashinfo").unlink()
