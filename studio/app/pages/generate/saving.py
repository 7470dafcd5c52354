"""Saves generated sprites, and shows the saved files in the file manager."""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from studio.app import dialogs
from studio.app.file_manager import show_in_folder
from studio.app.pages.generate.results import Results
from studio.app.state.session import Session
from studio.app.widgets.menu import set_action_enabled
from studio.core import formatting


class ResultSaver(QObject):
    """Saves the selected results, or all. page: the parent of the dialogs."""

    def __init__(self, page: QWidget, session: Session, results: Results) -> None:
        super().__init__(page)
        self._page, self._session, self._results = page, session, results
        tip = "Show the saved files of the selected sprites in the file manager."
        self._show_in_folder = results.grid.menu.add("Show in folder", tip, self._on_show_in_folder, "folder")
        results.buttons.save_files.clicked.connect(self._on_save_files_clicked)
        session.saving.saved.connect(self.refresh)

    def save_one_file(self) -> bool:
        """Save the selected or all results in one file. Return False without results."""
        selection = self._results.to_save()
        if selection is None:
            return False
        batch = self._results.content.batch()
        name = f"{batch.file_name() if batch else 'kept-sprites'}{'.gif' if selection.is_animation else ''}"
        what, is_tile_set = "frame" if selection.is_animation else "sprite", selection.tile_set is not None
        title = f"Save {formatting.count(len(selection.sprites), what)} as one file"
        title, settings = "Save tile set" if is_tile_set else title, self._session.settings
        chosen = dialogs.choose_save_sprites(self._page, settings, title, name, is_tile_set=is_tile_set)
        if chosen is not None:
            is_arranged = selection.is_animation or is_tile_set
            columns = None if is_arranged else max(1, math.isqrt(len(selection.sprites)))
            self._session.saving.save_sprites(*chosen, selection, columns)
        return True

    @Slot()
    def refresh(self) -> None:
        """Enable 'Show in folder' if a selected sprite was saved."""
        set_action_enabled(self._show_in_folder, "" if self._saved_files() else "Save the selected sprites first.")

    @Slot()
    def _on_show_in_folder(self) -> None:
        show_in_folder(self._saved_files())

    def _saved_files(self) -> list[Path]:
        """Return the saved files of the selected sprites, without repeats."""
        sprites = (self._results.content.sprite(number).rgba for number in self._results.grid.selected())
        found = (self._session.saving.file_of(sprite) for sprite in sprites)
        return list(dict.fromkeys(path for path in found if path is not None))

    @Slot()
    def _on_save_files_clicked(self) -> None:
        selection, settings, saving = self._results.to_save(), self._session.settings, self._session.saving
        if selection is None:
            return
        if len(selection.sprites) == 1:
            kinds, name = "PNG image (*.png)", f"{selection.names[0]}.png"
            path = dialogs.choose_save_file(self._page, settings, "Save sprite", name, kinds)
            if path is not None:
                saving.save_file(path, selection)
            return
        title = f"Choose a folder for {formatting.count(len(selection.sprites), 'PNG file')}"
        folder = dialogs.choose_save_folder(self._page, settings, title)
        if folder is not None:
            saving.save_files(folder, selection)
