"""The context menu of a training's samples, on the pages Train and Runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication

from studio.app import dialogs
from studio.app.background.model_jobs import SpriteSelection
from studio.app.file_manager import show_in_folder
from studio.app.pages.drag_and_drop import mime_data
from studio.app.state.session import Session
from studio.app.widgets.sprites.grid import LARGE_VIEW
from studio.app.widgets.sprites.sheet_view import SpriteSheetView
from studio.data.pixels.editing import NamedSprite
from studio.engine.runs.folder import RunDir


class SampleMenu(QObject):
    """Fills the context menu in a view of samples. edit_requested: the user opened a sample in the editor."""

    edit_requested = Signal()

    def __init__(self, view: SpriteSheetView, session: Session, shown: Callable[[], tuple[Path, int] | None]) -> None:
        """Fill the menu. shown: returns the shown samples' run folder and step; None without samples."""
        super().__init__(view)
        self._view, self._session, self._shown = view, session, shown
        menu = view.menu
        menu.add("View large", LARGE_VIEW, view.open_large, "zoom-in")
        menu.add("Copy", "Copy the sample to paste it into another program.", self._on_copy, "copy", "copy")
        self._edit = menu.add("Open in editor", "Edit the sample on the Generate page.", self._on_edit, "pencil")
        menu.leave_after(self._edit)
        menu.in_large_view.append(self._edit)
        menu.addSeparator()
        menu.add("Save as…", "Save the sample as an image file.", self._on_save, "save")
        tip = "Show the file with the samples of this step in the file manager."
        menu.add("Show in folder", tip, self._on_show_in_folder, "folder")
        view.selection_changed.connect(self._refresh)

    @Slot()
    def _refresh(self) -> None:
        """Offer the editor, except for models of sets, which can't edit single sprites."""
        shown, training = self._shown(), self._session.training
        run = self._session.runs.at(shown[0]) if shown is not None else None
        record = run.record if run is not None else training.record
        recipe = self._session.catalog.recipes.get(record.recipe) if record is not None else None
        self._edit.setVisible(recipe is None or recipe.makes != "sets")

    def _sprite(self) -> NamedSprite | None:
        """Return the current sample; None without a current sample."""
        row, shown = self._view.current_row(), self._shown()
        if row < 0 or shown is None:
            return None
        sample = self._view.shown_sprite(row)
        return NamedSprite(sample.rgba.copy(), f"{shown[0].name}-step-{shown[1]}-{row + 1:02d}")

    def _selection(self) -> SpriteSelection | None:
        sprite = self._sprite()
        return SpriteSelection(sprite.rgba[None], [sprite.name], {}) if sprite is not None else None

    @Slot()
    def _on_copy(self) -> None:
        selection = self._selection()
        if selection is None:
            return
        try:
            QGuiApplication.clipboard().setMimeData(mime_data(selection, self._session.drag_files))
        except OSError as error:
            self._session.show_error(error)

    @Slot()
    def _on_edit(self) -> None:
        sprite = self._sprite()
        if sprite is not None:
            self._session.editing.open(sprite)
            self.edit_requested.emit()

    @Slot()
    def _on_save(self) -> None:
        selection, shown = self._selection(), self._shown()
        if selection is None or shown is None:
            return
        chosen = dialogs.choose_save_sprites(self._view, self._session.settings, "Save sample", selection.names[0])
        if chosen is not None:
            self._session.saving.save_samples(*shown, *chosen, selection, 1)

    @Slot()
    def _on_show_in_folder(self) -> None:
        shown = self._shown()
        if shown is not None:
            show_in_folder([RunDir(shown[0]).samples / f"{shown[1]:08d}.png"])
