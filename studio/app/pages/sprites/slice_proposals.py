"""Opens the slicing view: from a proposal above the grid, from a finding, or from the import settings."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QFrame, QPushButton

from studio.app import theme
from studio.app.background.job_events import OnlySheets
from studio.app.pages.sprites.slice_texts import (
    SheetsToSlice,
    count_skipped_cells,
    describe_characters,
    describe_hidden_folders,
    describe_proposal,
    describe_result,
    describe_skipped_images,
    has_names,
    sliced_sheets,
)
from studio.app.pages.sprites.slice_view import SliceView
from studio.app.pages.sprites.view_orders import ViewOrders
from studio.app.state.sprites.sprites import OpenSprites, OptionsChange
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.data.doctor.findings import Fix, canvas_fix, characters_fix, slice_fix
from studio.data.images.canvas import COMMON_SIZES
from studio.data.import_result import SheetSummary
from studio.data.importing.importing import ImportOptions, SpritesImported

_GROUPS = ("looks like a sheet", "cut sheet", "partly described")
_NO_SHEETS = "No image looks like a sheet. Select a sprite to preview its slicing."
_SLICE = "Slice each image by its detected cells. Undo restores the images. Your files are not changed."
_CHARACTERS = "Slice each character's sheet by a common grid. Undo restores the images. Your files are not changed."
_CLOSE = "Hide this message. The Doctor tab still lists the sheets."
_TOO_LARGE = "These images are too large for sprites. Check the cells, then slice the sheet."


class SliceOpener(QObject):
    """Opens sheets in the slicing view, from the Sprites page."""

    opened = Signal()  # a sheet was opened

    def __init__(
        self, open_sprites: OpenSprites, view: SliceView, grid: SpriteGrid, button: QPushButton, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._open_sprites, self._view, self._grid, self._button = open_sprites, view, grid, button
        self._names: list[str] = []  # names of all sheets, sliced or not
        button.clicked.connect(self._on_preview_clicked)
        grid.selection_changed.connect(self._refresh_button)
        open_sprites.imported.connect(self._on_imported)
        open_sprites.only_sheets.connect(self._on_only_sheets)

    @Slot(str)
    def open_sheet(self, name: str) -> None:
        """Open a sheet, given its name or the name of a sprite cut from the sheet."""
        known = name if name in self._names else name.rpartition("#")[0]
        if known in self._names:
            self._open(self._names, self._names.index(known))
        else:
            self._open([name])

    @Slot()
    def _on_preview_clicked(self) -> None:
        """Open all sheets. Without sheets, open the selected sprites, which may be small sheets."""
        sprites = self._open_sprites.sprites
        assert sprites is not None
        self._open(self._names or [sprites.names[index] for index in self._grid.selected()])

    @Slot(object)
    def _on_only_sheets(self, found: OnlySheets) -> None:
        names, options, reason = tuple(item.name for item in found.sheets), ImportOptions(), _TOO_LARGE
        summary = found.summary
        if found.proposed_sets is not None:
            options = options.replace(**characters_fix(options).changes)
            reason = f"Looks like {describe_characters(found.proposed_sets)} Check the cells, then slice the sheets."
            summary = replace(summary, classes="folder")  # an import of characters makes folders classes
        sheets = SheetsToSlice(found.paths, names, options, found.recognised, summary, reason=reason)
        self._view.open(sheets)
        self.opened.emit()

    @Slot(object)
    def _on_imported(self, result: SpritesImported) -> None:
        both = (result.quarantine_groups, result.note_groups)
        named = {item.name for groups in both for group in _GROUPS for item in groups.get(group, ())}
        self._names = sorted(named | {sheet.name for sheet in result.sheets})
        self._refresh_button()

    @Slot()
    def _refresh_button(self) -> None:
        reason = "" if self._names or self._grid.selected_count() else _NO_SHEETS
        factory.set_enabled(self._button, reason, "Preview how the sheets are sliced, and adjust the cells.")

    def _open(self, names: list[str], at: int = 0) -> None:
        result, opened = self._open_sprites.result, self._open_sprites.opened
        assert result is not None
        sprites, summary, chosen = result.sprites, result.sheet_summary, set(names)
        if not summary.classes and len(sprites.class_names) > 1:
            summary = SheetSummary("folder")  # a grid set for one image slices all images
        singles = sum("#" not in name and name not in chosen for name in sprites.names)
        sheets = SheetsToSlice(
            opened.paths, tuple(names), opened.options, result.sheets, summary, singles, sprites.size
        )
        self._view.open(sheets, at)
        self.opened.emit()


def _proposal(result: SpritesImported, options: ImportOptions) -> str:
    """Describe what slicing the detected sheets will do."""
    summary, hidden = result.sheet_summary, describe_hidden_folders(result)
    if result.proposed_sets is not None:  # the common grid also slices images that are skipped otherwise
        parts = [f"Looks like {describe_characters(result.proposed_sets)}", hidden]
    else:
        question = describe_proposal(result.sheets, summary.count_classes(options.sheet_classes))
        parts = [question, hidden, describe_skipped_images(summary, options)]
    return " ".join(filter(None, parts))


def _is_uncut(options: ImportOptions) -> bool:
    """Return whether an import leaves sheets whole."""
    return options.sheets == "as they are" and options.sets != "sheets"


_LARGER = f"Import again with a larger canvas, up to {COMMON_SIZES[-1]} × {COMMON_SIZES[-1]} pixels."


class SliceProposal(QFrame):
    """A line that offers to slice the open sheets, or to undo the slicing, or to show the recognised characters."""

    cells_requested = Signal(str)  # name of a sheet to preview
    characters_sliced = Signal()  # the user chose to slice sheets into characters

    def __init__(self, open_sprites: OpenSprites) -> None:
        super().__init__()
        self._open_sprites = open_sprites
        self._first = ""  # name of the first sheet
        self._closed_for: Sequence[Path] = ()
        self._shows_table = False
        self.text = factory.text("")
        self.slice_button = factory.button("Slice into sprites", "", role="primary", slot=self._on_slice_clicked)
        tip = "Show the characters as rows of a table."
        self.show_table = factory.button("Show table", tip, role="primary")
        tip = "Preview the cells before slicing."
        self.preview_slicing = factory.button("Preview slicing…", tip, slot=self._on_preview_clicked)
        self.larger = factory.button("Use larger canvas", _LARGER, slot=self._on_larger_clicked)
        self.undo = factory.button("Undo", "Undo the slicing. ({undo})", slot=self._on_undo_clicked)
        self.close_line = factory.tool_button("close", "Close", _CLOSE, self._on_close_clicked)
        self.orders = ViewOrders()
        theme.set_role(self, "card")
        step, parts = factory.GRID, (self.slice_button, self.show_table, self.larger, self.preview_slicing, self.undo)
        line = factory.row(self.text, self.close_line, grows=0)
        self.setLayout(
            factory.column(line, self.orders, FlowLayout(step, step, *parts), margin=(2 * step, step, step, step))
        )
        self.hide()
        open_sprites.imported.connect(self._refresh)
        self.orders.chosen.connect(self._on_order_chosen)

    def set_table_shown(self, shown: bool) -> None:
        """Follow the view of the sprites: characters in the table need no line."""
        self._shows_table = shown
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        result, opened, latest = self._open_sprites.result, self._open_sprites.opened, self._open_sprites.history.latest
        if result is None:
            return
        uncut, sets = _is_uncut(opened.options), result.sprites.sets
        was_uncut = isinstance(latest, OptionsChange) and _is_uncut(latest.before)
        names = [sheet.name for sheet in result.sheets] if uncut else sliced_sheets(result)
        has_slicing = bool(names) and (uncut or was_uncut)
        is_known = self._open_sprites.was_reopened() and bool(opened.options.changed())  # another line tells
        has_table = len(sets) > 0 and not self._shows_table and not is_known
        offers_orders = not is_known and self.orders.show_sprites(result.sprites)
        self.orders.setVisible(offers_orders)
        self.setVisible((has_slicing or has_table or offers_orders) and opened.paths != self._closed_for)
        texts = [describe_characters(sets)] if has_table or (offers_orders and not has_slicing) else []
        if self._shows_table and len(sets) and not has_names(sets) and not offers_orders:
            texts.append(f"To name the views, double-click {sets.rows[0]}.")
        fix = None
        if has_slicing:
            self._first = names[0]
            texts.insert(0, _proposal(result, opened.options) if uncut else describe_result(result, opened.options))
            fix = canvas_fix(result) if not uncut and count_skipped_cells(result, "wrong size") else None
        self.text.setText(" ".join(texts))
        if fix is not None:
            factory.set_button_text(self.larger, fix.title)
        self.larger.setVisible(fix is not None)
        factory.set_button_text(self.slice_button, self._slice_fix().title)
        factory.set_enabled(self.slice_button, "", _SLICE if result.proposed_sets is None else _CHARACTERS)
        self.slice_button.setVisible(has_slicing and uncut)
        self.preview_slicing.setVisible(has_slicing and not offers_orders)  # room for the orders
        self.show_table.setVisible(has_table)
        self.undo.setVisible(has_slicing and not uncut)

    def _slice_fix(self) -> Fix:
        """Return the offered slicing."""
        result, options = self._open_sprites.result, self._open_sprites.latest.options
        is_set = result is not None and result.proposed_sets is not None
        return characters_fix(options) if is_set else slice_fix(options)

    @Slot()
    def _on_slice_clicked(self) -> None:
        result = self._open_sprites.result
        self._open_sprites.apply_fix(self._slice_fix())
        if result is not None and result.proposed_sets is not None:
            self.characters_sliced.emit()

    @Slot(str)
    def _on_order_chosen(self, names: str) -> None:
        self._open_sprites.change_options(self._open_sprites.latest.options.replace(rows=names), "name views")

    @Slot()
    def _on_larger_clicked(self) -> None:
        """Enlarge the canvas to fit the skipped sprites."""
        result = self._open_sprites.result
        if result is not None and (fix := canvas_fix(result)) is not None:
            self._open_sprites.apply_fix(fix)

    @Slot()
    def _on_undo_clicked(self) -> None:
        if self._open_sprites.latest is self._open_sprites.opened:  # otherwise Undo would revert a later change
            self._open_sprites.history.undo()

    @Slot()
    def _on_preview_clicked(self) -> None:
        self.cells_requested.emit(self._first)

    @Slot()
    def _on_close_clicked(self) -> None:
        self._closed_for = self._open_sprites.opened.paths
        self.hide()
