"""The sprite in the editor, its undo history, and its file between sessions."""

import errno
from functools import partial
from pathlib import Path

from filelock import BaseFileLock
from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_events import UndoOffered
from studio.app.background.job_queue import JobQueue
from studio.core import file_systems, files, paths
from studio.data.importing.single_sprite import load_image
from studio.data.pixels.editing import EditedSprite, EditHistory, NamedSprite, SavedEdit

_MOST_WINDOWS = 9  # further windows do not store their editor


class SpriteEditing(QObject):
    """Holds the sprite in the editor and its undo history. Opening another sprite is also an undo step."""

    changed = Signal()  # the sprite changed, or was opened or closed
    closed = Signal()  # the editor is empty
    read = Signal(object, object)  # Path and uint8 [H, W, 4] of an image file
    undo_offered = Signal(object)  # UndoOffered: a sprite with unsaved edits was closed and can be restored
    withdrawn = Signal(object)  # UndoOffered: the offer has expired

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._file = EditFile()
        self.history = EditHistory(self._file.stored) if self._file.stored is not None else None
        self._is_closed = False
        self._saved: EditedSprite | None = None  # the sprite when opened or last saved
        self._offer: UndoOffered | None = None

    @property
    def current(self) -> SavedEdit | None:
        """The sprite in the editor; None if the editor is empty."""
        return self.history.now if self.history is not None and not self._is_closed else None

    @Slot(object)
    def open(self, sprite: NamedSprite) -> None:
        """Open a square sprite in the editor."""
        opened, offer = SavedEdit(EditedSprite.of(sprite.rgba), *sprite[1:]), self._unsaved()
        if self.history is None:
            self.history = EditHistory(opened)
        else:
            self.history.open(opened)
        self._is_closed = False
        self._saved = opened.edit
        self._announce_step(offer)

    @Slot()
    def add_step(self) -> None:
        """Announce a step that the editor has added to the history."""
        self._announce_step()

    def mark_saved(self) -> None:
        """Mark the sprite in the editor as saved."""
        self._saved = self.current.edit if self.current is not None else None

    @Slot()
    def close(self) -> None:
        """Close the sprite; `undo` opens it again."""
        offer, self._is_closed = self._unsaved(), True
        self._announce_step(offer)
        self.closed.emit()

    def undo_title(self) -> str:
        """Return the title of the next undo step; empty without a step."""
        if self.history is None:
            return ""
        now, before = self.history.now, self.history.undo_state()
        if self._is_closed:
            return f"close {now.name}"
        return _title(before, now) if before is not None else ""

    def redo_title(self) -> str:
        """Return the title of the next redo step; empty without a step."""
        after = self.history.redo_state() if self.history is not None and not self._is_closed else None
        return _title(self.history.now, after) if self.history is not None and after is not None else ""

    @Slot()
    def undo(self) -> None:
        """Undo the last step; after `close`, open the sprite again."""
        if self._is_closed:
            self._is_closed = False
        elif self.history is not None:
            self.history.undo()
        self._announce_step()

    @Slot()
    def redo(self) -> None:
        """Redo the last undone step."""
        if self.history is not None and not self._is_closed:
            self.history.redo()
        self._announce_step()

    def read_file(self, path: Path) -> None:
        """Read an image file; `read` follows."""
        self._job_queue.run("files", f"Opening {path.name}", lambda: load_image(path), partial(self.read.emit, path))

    def store(self) -> None:
        """Store the sprite in the editor for the next session. Raises OSError."""
        self._file.store(self.current)

    def release(self) -> None:
        """Unlock the editor's file for other windows."""
        self._file.release()

    def _announce_step(self, offer: UndoOffered | None = None) -> None:
        """Announce a step of the history: withdraw the previous undo offer and make the new offer, if any."""
        before, self._offer = self._offer, offer
        if before is not None:
            self.withdrawn.emit(before)
        self.changed.emit()
        if offer is not None:
            self.undo_offered.emit(offer)

    def _unsaved(self) -> UndoOffered | None:
        """Return an offer to restore the sprite in the editor; None without unsaved changes."""
        current = self.current
        if current is None or (self._saved is not None and current.edit.equals(self._saved)):
            return None
        hint = "To reopen the sprite, press Undo (Ctrl+Z)."
        return UndoOffered("info", f"Closed {current.name} without saving.", hint)


class EditFile:
    """The file that stores the sprite in a window's editor. Each open window locks its own file.

    A new window locks the first free file with a sprite, else the first free name. stored: the sprite in the file.
    """

    def __init__(self) -> None:
        self._path: Path | None = None
        self._lock: BaseFileLock | None = None
        stored: SavedEdit | None = None
        for number in range(1, _MOST_WINDOWS + 1):
            path = paths.home() / (f"edit {number}.json" if number > 1 else "edit.json")
            lock = _lock_file(path) if path.exists() or self._lock is None else None
            if lock is not None:
                self.release()
                self._path, self._lock, stored = path, lock, _read(path)
            if stored is not None:
                break
        self.stored = stored

    def store(self, edit: SavedEdit | None) -> None:
        """Write the sprite `edit` to the file if the sprite has changed; None removes the file. Raises OSError."""
        if edit is self.stored:
            return
        if self._path is None:
            raise OSError(errno.EACCES, "The folder can't be written, or too many windows are open", str(paths.home()))
        if edit is None:
            files.remove(self._path)
        else:
            files.write_atomic(self._path, edit.to_json())
        self.stored = edit

    def release(self) -> None:
        """Unlock the file for other windows."""
        if self._lock is not None:
            self._lock.release()
        self._lock = self._path = None


def _lock_file(path: Path) -> BaseFileLock | None:
    """Lock the file of an editor; return None if the lock is taken or the folder is read-only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return file_systems.acquire_lock(path.with_name(f".{path.stem}.lock"), 0.0)
    except OSError:
        return None


def _read(path: Path) -> SavedEdit | None:
    """Read the sprite of an editor; return None for a missing or damaged file."""
    try:
        return SavedEdit.from_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _title(before: SavedEdit, after: SavedEdit) -> str:
    """Return the undo title of the step from `before` to `after`: 'edit NAME' or 'open NAME'."""
    return f"edit {after.name}" if after.is_same_sprite(before) else f"open {after.name}"
