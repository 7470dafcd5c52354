"""The editor of a cell: every stroke changes the cell of the draft, as a step of the page's undo history."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.editor.editor import SpriteEditor
from studio.app.widgets.input import FocusWhenShown
from studio.core.arrays import Rgba
from studio.data.pixels.editing import EditedSprite, EditHistory, SavedEdit
from studio.data.sets.drafts import GIVEN, CellRef

_FORM = "Show the model, the seed and the other settings beside the editor."
_CLOSE = "Close the editor. The cell keeps its pixels."
_GIVEN = "A given cell: the model draws the others to fit it."
_CORRECT = "Corrected cells are locked. Carry over redraws the others to match."


class CellEditor(QWidget):
    """Edits a cell of the session's drafts; hidden without an edited cell. changed: the editor opened or closed."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._characters, self._undo = session.characters, session.generate_history
        self._shown: CellRef | None = None
        self._history = EditHistory(SavedEdit(EditedSprite.of(np.zeros((1, 1, 4), np.uint8)), ""))
        self._title = factory.ElidedLabel("heading")
        self._about = factory.caption("")
        self.carry_over = factory.button(
            "Carry over", "Draw the other cells again to fit this correction.", "arrow-right"
        )
        self.show_form = factory.tool_button("settings", "Model and settings", _FORM)
        self.show_form.setCheckable(True)
        self.close_editor = factory.tool_button("close", "Close", _CLOSE, self._on_close)
        self.editor = SpriteEditor(foot=factory.panel(factory.column(self._about, self.carry_over)))
        self.canvas_focus = FocusWhenShown(self.editor.canvas)  # for the keys of the tools
        head = factory.row(self._title, self.show_form, self.close_editor, grows=0)
        self.setLayout(factory.column(head, self.editor, grows=1))
        self.editor.changed.connect(self._on_painted)
        self.editor.undo_requested.connect(self._undo.undo)
        self.editor.redo_requested.connect(self._undo.redo)
        self._undo.changed.connect(self._on_history_changed)
        self._characters.changed.connect(self._refresh)
        self._on_history_changed()
        self.hide()

    def is_open(self) -> bool:
        """Return whether the editor shows a cell."""
        return self._shown is not None

    @Slot()
    def _refresh(self) -> None:
        """Show the edited cell's pixels, which undo may have changed; or close."""
        characters, before = self._characters, self._shown
        at = characters.edited
        sprite = characters.draft.pixels(at) if at is not None else None
        self._shown = at if sprite is not None else None
        if at is not None and sprite is not None:
            self._show(at, sprite, is_new=at != before)
        if self._shown != before:
            self.setVisible(self._shown is not None)
            self.changed.emit()

    def _show(self, at: CellRef, sprite: Rgba, *, is_new: bool) -> None:
        draft, candidate = self._characters.draft, self._characters.draft.candidate(at.key)
        name, is_given = draft.grid.names[at.cell], at.key == GIVEN
        if is_new:
            self._history = EditHistory(SavedEdit(EditedSprite.of(sprite), f"{at.key} {name}"))
            self.editor.set_history(self._history)
            self.editor.tools.choose_layer("paint")
            self.canvas_focus.request()
        elif not np.array_equal(sprite, self._history.now.edit.sprite):
            self._history.push(EditedSprite(sprite, self._history.now.edit.keep))
            self.editor.refresh()
        number = [one.key for one in draft.candidates].index(at.key) + 1 if candidate is not None else 0
        self._title.show_text(f"{name}, given" if is_given else f"{name}, character {number}")
        self._about.setText(_GIVEN if is_given else _CORRECT)
        self.carry_over.setVisible(not is_given)
        cells = draft.cells if candidate is None else candidate.cells
        visible = cells.reshape(-1, 4)[cells.reshape(-1, 4)[:, 3] > 0]
        self.editor.swatches.set_palette_of_model(np.unique(visible[:, :3], axis=0))

    @Slot()
    def _on_painted(self) -> None:
        self._characters.paint(self.editor.edit().sprite)

    @Slot()
    def _on_close(self) -> None:
        self._characters.edit(None)

    @Slot()
    def _on_history_changed(self) -> None:
        latest, following = self._undo.latest, self._undo.next
        self.editor.show_undo(latest.title if latest else "", following.title if following else "")
