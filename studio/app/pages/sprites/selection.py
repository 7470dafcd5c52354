"""Actions for the selected sprites: the line below the grid, the grid's context menu, and drags."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app import keys
from studio.app.background.model_jobs import SpriteSelection
from studio.app.file_manager import show_in_folder
from studio.app.pages.drag_and_drop import SpriteDragger
from studio.app.pages.recolour_dialog import RecolourDialog
from studio.app.pages.sprites.attribute_dialogs import AttributeSetter
from studio.app.pages.sprites.class_menu import ClassMover
from studio.app.state.session import Session
from studio.app.state.sprites.attributes import AttributeEdits
from studio.app.state.sprites.edits import SpriteEdits
from studio.app.widgets import factory
from studio.app.widgets.menu import set_action_enabled
from studio.app.widgets.sprites.grid import LARGE_VIEW, SpriteGrid
from studio.core.formatting import count, number
from studio.data.colour.ramp_exchange import RampExchange
from studio.data.pixels.editing import NamedSprite

_MOST_SHOWN = 20  # limit of files to show in the file manager, because every file takes a search
_MOST_COPIED = 4096
_EXCLUDE = "Exclude the selected sprites from training; Undo brings them back. ({exclude})"
_EDIT = "Edit this sprite on the Generate page."
_RECOLOUR = "Exchange colours of a material in the selected sprites, such as red for blue cloth."
_COPY = "Copy the selected sprites to paste them into another program."


class SelectionBar(QWidget):
    """A line below the grid with the number of selected sprites and buttons. Fills the grid's context menu."""

    edit_requested = Signal()  # the selected sprite was opened in the editor

    def __init__(self, grid: SpriteGrid, session: Session) -> None:
        super().__init__()
        self._grid, self._session = grid, session
        self.dragger = SpriteDragger(grid.view, session.drag_files, self._selection)
        self.edit = factory.button("Edit", _EDIT, slot=self._on_edit)
        self._label = factory.ElidedLabel("muted")
        self.exclude = factory.button("Exclude", _EXCLUDE, slot=self._on_exclude)
        self.recolour = factory.button("Recolour…", _RECOLOUR, slot=self._on_recolour)
        self.setLayout(factory.row(self._label, self.exclude, self.recolour, self.edit, grows=0))
        menu = grid.menu
        self._view = menu.add("View large", LARGE_VIEW, grid.open_large, "zoom-in")
        self._copy = menu.add("Copy", _COPY, self.dragger.copy, "copy", "copy")
        tip = "Show the files of the selected sprites in the file manager."
        self._show = menu.add("Show in folder", tip, self._on_show_in_folder, "folder")
        self._open_editor = menu.add(
            "Open in editor", "Edit this sprite on the Generate page.", self._on_edit, "pencil"
        )
        menu.leave_after(self._open_editor)
        menu.addSeparator()
        self.class_mover = ClassMover(grid, session.open_sprites, grid.selected)
        self._recolour = menu.add("Recolour…", _RECOLOUR, self._on_recolour, "bucket")
        self.attribute_setter = AttributeSetter(grid, AttributeEdits(session.open_sprites))
        self._exclude = menu.add("Exclude", _EXCLUDE, self._on_exclude, command="exclude")
        menu.in_large_view += [self._open_editor, self._exclude]
        grid.selection_changed.connect(self._refresh)
        self.dragger.failed.connect(session.show_error)
        keys.table().changed.connect(self._refresh)
        session.open_sprites.located.connect(self._on_located)
        factory.retain_size_when_hidden(self.exclude)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        selected = self._grid.selected_count()
        text = (
            f"{count(selected, 'sprite')} selected"
            if selected
            else keys.tip("Select sprites to exclude them ({exclude})")
        )
        self._label.show_text(text)
        self.exclude.setVisible(selected > 0)
        self.edit.setVisible(selected == 1)
        self.recolour.setVisible(selected > 0)
        factory.set_enabled(self.recolour, _too_many(selected, _MOST_COPIED))
        none = "" if selected else "Select some sprites first."
        for action in (self._view, self._exclude):
            set_action_enabled(action, none)
        set_action_enabled(self._recolour, none or _too_many(selected, _MOST_COPIED))
        set_action_enabled(self._copy, none or _too_many(selected, _MOST_COPIED))
        set_action_enabled(self._show, none or _too_many(selected, _MOST_SHOWN))
        set_action_enabled(self._open_editor, none or _too_many(selected, 1))

    def _selection(self) -> SpriteSelection | None:
        """Return the selected sprites; None without a selection, and for too many sprites."""
        sprites, chosen = self._session.open_sprites.sprites, self._grid.selected()
        if sprites is None or not 0 < len(chosen) <= _MOST_COPIED:
            return None
        names = [sprites.names[index] for index in chosen]
        classes = [sprites.class_names[sprites.labels[index]] for index in chosen]
        return SpriteSelection(sprites.rgba[chosen], names, {}, classes)

    @Slot(str)
    def move_to_class(self, class_name: str) -> None:
        """Move the selected sprites to a class, or say why that is impossible."""
        reason = self.class_mover.why_not()
        if reason:
            self._session.notify("Sprites can't be moved now.", reason)
        else:
            self.class_mover.move(class_name)

    @Slot()
    def _on_edit(self) -> None:
        sprites = self._session.open_sprites.sprites
        if sprites is not None:
            (index,) = self._grid.selected()
            class_name = sprites.class_names[sprites.labels[index]]
            self._session.editing.open(NamedSprite(sprites.rgba[index].copy(), sprites.names[index], class_name))
            self.edit_requested.emit()

    @Slot()
    def _on_recolour(self) -> None:
        chosen = self._selection()
        if chosen is not None:
            dialog = RecolourDialog(self, self._session, chosen, SpriteEdits(self._session.open_sprites).problem())
            dialog.recoloured.connect(self._on_recoloured)
            dialog.open()

    @Slot(object)
    def _on_recoloured(self, exchange: RampExchange) -> None:
        SpriteEdits(self._session.open_sprites).recolour(self._grid.selected(), exchange)

    @Slot()
    def _on_exclude(self) -> None:
        self._session.doctor.exclude(self._names())

    @Slot()
    def _on_show_in_folder(self) -> None:
        self._session.open_sprites.locate(self._names())

    @Slot(object)
    def _on_located(self, found: list[Path]) -> None:
        show_in_folder(found)

    def _names(self) -> list[str]:
        """Return the names of the selected sprites."""
        sprites = self._session.open_sprites.sprites
        return [sprites.names[index] for index in self._grid.selected()] if sprites is not None else []


def _too_many(selected: int, most: int) -> str:
    """Return why an action can't apply to so many sprites; '' if possible."""
    if selected <= most:
        return ""
    return "Select a single sprite." if most == 1 else f"Select at most {number(most)} sprites."
