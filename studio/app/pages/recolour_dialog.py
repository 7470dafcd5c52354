"""The dialog that exchanges colour ramps of sprites, with a preview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app import dialogs
from studio.app.background.model_jobs import SpriteSelection
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.ramp_table import RampTable
from studio.app.widgets.sprites.before_after import BeforeAfter
from studio.core.arrays import Rgba
from studio.core.errors import StudioError
from studio.core.formatting import count
from studio.data.colour.ramps import Ramp, Ramps

_MOST_SHOWN = 12  # sprites in the preview
_FINDING = "Finding the ramps…"
_HELP = "Choose a new ramp for a material. Click a colour to move it to another ramp."
_APPLY = "Recolour the sprites. Your files are not changed; Undo brings the colours back."
_SAVE = "Save recoloured copies as PNG files in a folder."


class RecolourDialog(Dialog):
    """Exchanges ramps of sprites. recoloured: the RampExchange that the user applied."""

    recoloured = Signal(object)

    def __init__(self, parent: QWidget, session: Session, chosen: SpriteSelection, why_not: str = "") -> None:
        """Create the dialog. chosen: the sprites. why_not: why they can't be recoloured here, only copied; or ''."""
        super().__init__(f"Recolour {count(len(chosen.sprites), 'sprite')}", parent)
        self._session, self._chosen, self._why_not = session, chosen, why_not
        self._file_for = ""  # name of the ramp to exchange, while a palette file loads
        self._has_ramps = False
        self.table = RampTable()
        self.pairs = [BeforeAfter() for _ in chosen.sprites[:_MOST_SHOWN]]
        self.save = factory.button("Save copies…", _SAVE, "save-files", slot=self._on_save_clicked)
        self.apply = factory.button("Recolour", _APPLY, role="primary", slot=self._on_apply_clicked)
        self.apply.setDefault(True)
        cancel = factory.button("Cancel", "Close without changes. (Esc)", slot=self.reject)
        self._note = factory.caption(_FINDING)
        more = len(chosen.sprites) - len(self.pairs)
        rest = [factory.caption(f"and {count(more, 'more sprite')}")] if more else []
        preview = factory.panel(factory.column(FlowLayout(2 * factory.GRID, factory.GRID, *self.pairs), *rest, 1))
        areas = factory.scroll_area(self.table), factory.scroll_area(preview, "Preview")
        middle = factory.row(*areas, spacing=2 * factory.GRID)
        middle.setStretch(0, 3)
        middle.setStretch(1, 2)
        buttons = factory.row(self.save, 1, cancel, self.apply)
        self.setLayout(factory.column(self._note, middle, buttons, margin=2 * factory.GRID, grows=1))
        self.resize(760, 520)  # fits into the smallest window
        self.table.changed.connect(self._on_changed)
        self.table.file_requested.connect(self._on_file_requested)
        session.palettes.ramps_found.connect(self._on_ramps_found)
        session.palettes.ramps_loaded.connect(self._on_ramps_loaded)
        self._on_changed()
        sprites = session.open_sprites.sprites
        session.palettes.find_ramps(chosen.sprites, sprites.rgba if sprites is not None else None)

    @Slot(object, object, object)
    def _on_ramps_found(self, rgba: Rgba, ramps: Ramps, others: Ramps) -> None:
        if rgba is self._chosen.sprites:
            self._has_ramps = True
            self._note.setText(_HELP if ramps else "The sprites have no opaque pixels.")
            if others:
                self.table.add_source("all sprites", others)
            self.table.set_ramps(ramps)
            if ramps:
                self.table.rows[0].box.setFocus()

    @Slot(str)
    def _on_file_requested(self, name: str) -> None:
        path = dialogs.choose_palette(self, self._session.settings)
        if path is not None:
            self._file_for = name
            self._session.palettes.load_ramps(path)

    @Slot(str, object)
    def _on_ramps_loaded(self, title: str, loaded: Sequence[Ramp] | StudioError) -> None:
        if not self._file_for:
            return
        if isinstance(loaded, StudioError):
            self._note.setText(f"{loaded.title} {loaded.hint}")
        else:
            self._note.setText(_HELP)
            self.table.add_source(title, loaded, self._file_for)
        self._file_for = ""

    @Slot()
    def _on_changed(self) -> None:
        """Show the sprites with the chosen ramps."""
        exchange = self.table.exchange()
        for sprite, pair in zip(self._chosen.sprites, self.pairs, strict=False):
            pair.set_pair(sprite, exchange(sprite) if exchange is not None else sprite)
        reason = "" if exchange is not None else "Choose a new ramp first." if self._has_ramps else _FINDING
        factory.set_enabled(self.save, reason)
        factory.set_enabled(self.apply, self._why_not or reason)

    @Slot()
    def _on_apply_clicked(self) -> None:
        self.recoloured.emit(self.table.exchange())
        self.accept()

    @Slot()
    def _on_save_clicked(self) -> None:
        exchange = self.table.exchange()
        title = f"Choose a folder for {count(len(self._chosen.sprites), 'PNG file')}"
        folder = dialogs.choose_save_folder(self, self._session.settings, title)
        if folder is not None and exchange is not None:
            copies = replace(self._chosen, sprites=exchange(self._chosen.sprites), palette=None)
            self._session.saving.save_files(folder, copies)
