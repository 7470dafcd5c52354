"""The sprite in the editor, and its file between sessions."""

from functools import partial
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_queue import JobQueue
from studio.app.state.undo import UndoHistory, UndoStep
from studio.app.state.window_file import WindowFile
from studio.core import paths
from studio.data.importing.single_sprite import load_image
from studio.data.pixels.editing import EditedSprite, EditHistory, NamedSprite, SavedEdit


class SpriteEditing(QObject):
    """Holds the sprite in the editor. Edits, opening and closing a sprite are steps of the undo history."""

    changed = Signal()  # the sprite changed, or was opened or closed
    opened = Signal()  # the user opened a sprite
    closed = Signal()  # the editor is empty
    read = Signal(object, object)  # Path and uint8 [H, W, 4] of an image file
    noticed = Signal(object)  # UndoOffered: a sprite with unsaved edits was closed and can be restored

    def __init__(self, job_queue: JobQueue, undo_history: UndoHistory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue, self._undo_history = job_queue, undo_history
        self._file = WindowFile(paths.home() / "edit.json", SavedEdit.from_json, SavedEdit.to_json)
        self.history = EditHistory(self._file.stored) if self._file.stored is not None else None
        self._is_closed = False
        self._saved: EditedSprite | None = None  # the sprite when it was opened or last saved

    @property
    def current(self) -> SavedEdit | None:
        """The sprite in the editor; None if the editor is empty."""
        return self.history.now if self.history is not None and not self._is_closed else None

    @Slot(object)
    def open(self, sprite: NamedSprite) -> None:
        """Open a square sprite in the editor."""
        before, unsaved = self.current, self._is_unsaved()
        opened = SavedEdit(EditedSprite.of(sprite.rgba), *sprite[1:])
        if self.history is None:
            self.history = EditHistory(opened)
            step = UndoStep(f"open {opened.name}", partial(self._set_closed, True), partial(self._set_closed, False))
        else:
            self.history.open(opened)
            verb = "edit" if before is not None and opened.is_same_sprite(before) else "open"
            step = UndoStep(f"{verb} {opened.name}", partial(self._step_back, is_closed=before is None), self._step_on)
        self._is_closed = False
        self._saved = opened.edit
        self._add_step(step)
        self.opened.emit()
        self._offer_undo(before if unsaved else None)

    @Slot()
    def add_step(self) -> None:
        """Add the newest change in the editor to the page's undo history."""
        if self.history is not None:
            self._add_step(UndoStep(f"edit {self.history.now.name}", self._step_back, self._step_on))

    def mark_saved(self) -> None:
        """Mark the sprite in the editor as saved."""
        self._saved = self.current.edit if self.current is not None else None

    @Slot()
    def close(self) -> None:
        """Close the sprite; undo opens it again."""
        before, unsaved = self.current, self._is_unsaved()
        if before is not None:
            self._set_closed(True)
            undo, redo = partial(self._set_closed, False), partial(self._set_closed, True)
            self._add_step(UndoStep(f"close {before.name}", undo, redo))
            self._offer_undo(before if unsaved else None)

    def read_file(self, path: Path) -> None:
        """Read an image file, then emit `read`."""
        self._job_queue.run("files", f"Opening {path.name}", lambda: load_image(path), partial(self.read.emit, path))

    def store(self) -> None:
        """Store the sprite in the editor for the next session. Raises OSError."""
        self._file.store(self.current)

    def release(self) -> None:
        """Unlock the editor's file for other windows."""
        self._file.release()

    def _add_step(self, step: UndoStep) -> None:
        self._undo_history.add(step)
        self.changed.emit()

    def _step_back(self, *, is_closed: bool = False) -> None:
        """Undo the last step of `history`. is_closed: whether the editor was empty before the step."""
        assert self.history is not None
        self.history.undo()
        self._set_closed(is_closed)

    def _step_on(self) -> None:
        """Redo the last undone step of `history`."""
        assert self.history is not None
        self.history.redo()
        self._set_closed(False)

    def _set_closed(self, is_closed: bool) -> None:
        was_closed, self._is_closed = self._is_closed, is_closed
        self.changed.emit()
        if is_closed and not was_closed:
            self.closed.emit()

    def _is_unsaved(self) -> bool:
        """Return whether the sprite in the editor has unsaved pixels; a changed selection does not count."""
        current = self.current
        if current is None:
            return False
        return self._saved is None or not np.array_equal(current.edit.sprite, self._saved.sprite)

    def _offer_undo(self, unsaved: SavedEdit | None) -> None:
        """Offer to undo the latest step, which closed the sprite `unsaved`; None makes no offer."""
        step = self._undo_history.latest
        if unsaved is not None and step is not None:
            title, hint = f"Closed {unsaved.name} without saving.", "To reopen the sprite, press Undo."
            self.noticed.emit(self._undo_history.offer(step, title, hint))
