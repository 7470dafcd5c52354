"""The sprite that is being edited: where it came from, and kept from one time to the next."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from studio.app.background import sprite_jobs
from studio.app.background.job_events import PictureRead
from studio.app.background.job_queue import JobQueue
from studio.core import files, places
from studio.core.events import Event
from studio.data.editing import Edit, KeptEdit, NamedSprite


class SpriteEditing(QObject):
    """What is in the editor. opened: another sprite is. closed: none is any more. read: (PictureRead)."""

    opened = Signal()
    closed = Signal()
    read = Signal(object)

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._path = places.home() / "edit.json"
        self.current = self._kept()

    def open(self, sprite: NamedSprite) -> None:
        """Edit a square sprite."""
        self.current = KeptEdit(Edit.of(sprite.rgba), *sprite[1:])
        self.opened.emit()

    def change(self, edit: Edit) -> None:
        """It looks so by now."""
        if self.current is not None:
            self.current = dataclasses.replace(self.current, edit=edit)

    def close(self) -> None:
        """Edit no sprite any more."""
        self.current = None
        self.closed.emit()

    def read_file(self, path: Path) -> None:
        """Read a picture, to be edited."""
        self._job_queue.start("files", f"Opening {path.name}", sprite_jobs.read_picture(path), self._receive)

    def keep(self) -> None:
        """Remember it for the next time. Raises OSError."""
        if self.current is None:
            files.remove(self._path)
        else:
            files.write_atomic(self._path, self.current.to_json())

    def _kept(self) -> KeptEdit | None:
        """What was remembered; what is damaged is as if it had never been."""
        try:
            return KeptEdit.from_json(self._path.read_bytes())
        except (OSError, ValueError):
            return None

    def _receive(self, event: Event) -> None:
        if isinstance(event, PictureRead):
            self.read.emit(event)
