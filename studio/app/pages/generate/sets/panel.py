"""The part of the Generate page for a model of sets: the cell editor beside the given cells and the characters."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, QObject, Slot

from studio.app import dialogs
from studio.app.pages.generate.drawing import DrawController
from studio.app.pages.generate.editor_splitter import EditorSplitter
from studio.app.pages.generate.request import RequestPanel
from studio.app.pages.generate.sets.cell_editor import CellEditor
from studio.app.pages.generate.sets.drawing import SetController
from studio.app.pages.generate.sets.view import SetsView
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.core import files, formatting

_DRAW_REST = "Draw the rest", "Draw the cells that are not given."
_NEW = "New characters", "Draw new characters, since no cell is given."


class SetsPanel(QObject):
    """Connects the cell editor, the view and the controller. area: the widget to show."""

    def __init__(self, session: Session, choice: ModelChoice, request: RequestPanel, drawing: DrawController) -> None:
        """Create the parts. drawing: knows why no model can draw."""
        super().__init__(session)
        self._session = session
        self.view, self.editing = SetsView(session), CellEditor(session)
        self.drawing = SetController(session, choice, request, self.view, drawing)
        self._splitter = EditorSplitter(session.settings, self.editing, self.view)
        self.area = self._splitter.area
        buttons = self.view.candidates.buttons
        buttons.save_files.clicked.connect(self._on_save_files_clicked)
        buttons.save_sheet.clicked.connect(self.save_samples)
        self.view.candidates.dragger.failed.connect(session.show_error)
        self.editing.addAction(self.view.candidates.carry_over)  # its key works in the editor, too
        self.editing.carry_over.clicked.connect(self.drawing.carry_over)
        self.drawing.drawn.connect(self._on_drawn)
        self.editing.changed.connect(self._on_editor_changed)
        session.characters.refused.connect(self._on_refused)

    def is_editing(self) -> bool:
        """Return whether the editor shows a cell."""
        return self.editing.is_open()

    def show_kind(self, names: tuple[str, ...], size: int) -> None:
        """Show the draft for a model with these cells, of `size` x `size` pixels."""
        self._session.characters.show_kind(names, size)

    def draw_text(self) -> tuple[str, str]:
        """Return the text and the tooltip of the button that draws."""
        return _DRAW_REST if self._session.characters.draft.given.any() else _NEW

    def take(self, data: QMimeData) -> bool:
        """Fill given cells with dropped or pasted images. Return False for other data."""
        return self.view.given.take(data, self.view.given.paste_target())

    def save_state(self) -> None:
        """Store the sizes of the parts."""
        self._splitter.save_state()

    @Slot()
    def save_samples(self) -> bool:
        """Save the selected characters, or all, as one file. Return False without characters."""
        selection = self.view.to_save()
        if selection is None or selection.cells is None:
            return False
        title = f"Save {formatting.count(len(selection.cells), 'character')} as one file"
        chosen = dialogs.choose_save_sprites(self.area, self._session.settings, title, self._file_name())
        if chosen is not None:
            self._session.saving.save_sprites(*chosen, selection, None)
        return True

    @Slot()
    def _on_save_files_clicked(self) -> None:
        selection, settings = self.view.to_save(), self._session.settings
        if selection is not None:
            title = f"Choose a folder for {formatting.count(len(selection.sprites), 'PNG file')}"
            folder = dialogs.choose_save_folder(self.area, settings, title)
            if folder is not None:
                self._session.saving.save_files(folder, selection)

    @Slot()
    def _on_drawn(self) -> None:
        self.view.show_first()
        self.area.ensureWidgetVisible(self.view.candidates)

    @Slot(str)
    def _on_refused(self, reason: str) -> None:
        """Scroll to the line that says why images can't be used."""
        if reason:
            self.area.ensureWidgetVisible(self.view.given.error)

    @Slot()
    def _on_editor_changed(self) -> None:
        """Scroll to the opened editor, or return the focus to the table that was used last."""
        if self.editing.is_open():
            self._splitter.show_editor()
        else:
            self.area.ensureWidgetVisible(self.view.focus_table())

    def _file_name(self) -> str:
        first = self._session.characters.draft.candidates[0]
        return files.output_name(f"{first.model.replace(',', '')} seed {first.seed}")
