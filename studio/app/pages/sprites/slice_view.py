"""The slicing view: a sheet with its cells, and the form beside it."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from studio.app import keys
from studio.app.pages.sprites.slice_form import SliceForm
from studio.app.pages.sprites.slice_texts import (
    SLICE_TITLE,
    SheetsToSlice,
    SliceOutcome,
    boxes_outcome,
    describe_effects,
    grid_outcome,
    with_fitting_canvas,
)
from studio.app.state.sprites.sheets import SheetLoader
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.widgets import factory
from studio.app.widgets.sheet.area import ZoomBar, fitting_zoom
from studio.app.widgets.sheet.canvas import SheetCanvas
from studio.data.importing.sheet_grids import match_sheet_grids, replace_sheet_grids
from studio.data.importing.sheet_preview import SheetPreview
from studio.data.options import ImportOptions, SheetGrid
from studio.data.sheets.cells import find_cells
from studio.data.sheets.leftover import describe_leftover_cells
from studio.data.sheets.slicing import grid_from_options

_READING = "Reading the sheet…"
_UNSURE = "This may be a single sprite, so Auto leaves it whole. Change a number to slice it."
_PROBLEM, _SHEET = range(2)


class SliceView(QWidget):
    """View of a sheet with its cells and a form, to adjust the slicing."""

    closed = Signal()  # the user goes back

    def __init__(self, open_sprites: OpenSprites, reader: SheetLoader) -> None:
        super().__init__()
        self._open_sprites, self._reader = open_sprites, reader
        self._sheets = SheetsToSlice((), (), ImportOptions())
        self._at = 0
        self._is_opening = False  # the first sheet is still loading
        self._outcome = SliceOutcome(0, "")
        self._own_grids: dict[str, SheetGrid] = {}  # own grids by sheet name
        self.is_open = False  # whether the Sprites page shows this view
        self.canvas = SheetCanvas()
        self.form = SliceForm()
        self.count = factory.text("", "heading")
        self.back = factory.button("Back", "Go back without slicing. (Esc)", "chevron-left", slot=self.closed)
        tip = "Import again and slice all sheets like this. Your files are not changed."
        self.slice_button = factory.button("Slice", tip, role="primary", slot=self._on_slice_clicked)
        tip = "Show the previous sheet. ({previous_sheet})"
        self.previous = factory.tool_button("chevron-left", "Previous sheet", tip, self._on_previous_sheet)
        tip = "Show the next sheet. ({next_sheet})"
        self.next = factory.tool_button("chevron-right", "Next sheet", tip, self._on_next_sheet)
        keys.bind(self.previous, "previous_sheet")
        keys.bind(self.next, "next_sheet")
        self.zoom = ZoomBar(self.canvas)
        self.problem = factory.text()
        self.hint = factory.caption("")
        self._title = factory.ElidedLabel("heading", Qt.TextElideMode.ElideMiddle)
        self._reason = factory.caption("")
        self._which = factory.text("", "muted", wrap=False)
        problem = factory.panel(factory.column(1, self.problem, 1, margin=4 * factory.GRID))
        self._stack = factory.stack(problem, self.canvas)
        self.canvas.setMinimumSize(200, 160)
        step = factory.GRID
        margin = (3 * step, step, 2 * step, step)
        numbers = factory.column(self.form, self.slice_button, self.hint, 1, spacing=2 * step, margin=margin)
        side = factory.scroll_area(factory.panel(numbers))
        side.setFixedWidth(296)
        sheets = factory.row(self.previous, self._which, self.next, spacing=4)
        head = factory.row(self.back, 1, sheets, self.zoom)
        self.problem.setAlignment(Qt.AlignmentFlag.AlignCenter)
        parts, margin = (head, self._title, self._reason, self._stack, self.count), (step, 0, 3 * step, 2 * step)
        self.setLayout(factory.row(side, factory.column(*parts, margin=margin, grows=3), spacing=0, grows=1))
        self.canvas.grid_moved.connect(self.form.set_moved_grid)
        self.form.changed.connect(self._on_form_changed)
        reader.loaded.connect(self._on_sheet_read)
        reader.boxes_changed.connect(self._refresh)
        reader.failed.connect(self._on_read_failed)

    def open(self, sheets: SheetsToSlice, at: int = 0) -> None:
        """Show the sheet at index `at`, with the import's settings in the form."""
        self.is_open = self._is_opening = True
        self._sheets, self._at = sheets, at
        self._own_grids = dict(self._stored_own_grids())
        name = sheets.names[at]
        others = self._known_names() - {name, name.rpartition("#")[0]}
        self.form.set_options(sheets.options, sheets.summary, has_others=bool(others))
        self._reason.setText(sheets.reason)
        self._reason.setVisible(bool(sheets.reason))
        self._read()

    def close_view(self) -> None:
        self.is_open = False
        self._reader.close()
        self.canvas.show_sheet(None)
        self.canvas.show_cells(None)

    def options(self) -> ImportOptions:
        """Return the import settings for slicing."""
        options, sheet = self.form.options(), self._reader.sheet
        if self._own_grids != self._stored_own_grids():
            grids = replace_sheet_grids(options.sheet_grids, self._known_names(), self._own_grids)
            options = options.replace(sheet_grids=grids)
        return options if sheet is None else with_fitting_canvas(options, self._sheets, sheet, self._outcome.side)

    def _known_names(self) -> set[str]:
        return {*self._sheets.names, *self._sheets.grids}

    def _stored_own_grids(self) -> dict[str, SheetGrid]:
        """Return the grids stored for single sheets in the import settings, by sheet name."""
        return match_sheet_grids(self._sheets.options.sheet_grids, self._known_names())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)

    def _read(self) -> None:
        names = self._sheets.names
        name = names[self._at]
        self._which.setText(f"Sheet {self._at + 1:,} of {len(names):,}")
        self.previous.setEnabled(self._at > 0)
        self.next.setEnabled(self._at + 1 < len(names))
        for widget in (self._which, self.previous, self.next):
            widget.setVisible(len(names) > 1)
        recognised = None if name in self._stored_own_grids() else self._sheets.grids.get(name)
        self._reader.load(self._sheets.paths, name, recognised)
        if self._is_opening:
            self._on_read_failed(_READING, "")
        else:  # until the new sheet is read, keep the last sheet, without cells
            self.canvas.show_cells(None)
            self._outcome = SliceOutcome(0, f"Reading {name}…")
            self._refresh_texts()

    @Slot()
    def _on_previous_sheet(self) -> None:
        self._at -= 1
        self._read()

    @Slot()
    def _on_next_sheet(self) -> None:
        self._at += 1
        self._read()

    @Slot()
    def _on_sheet_read(self) -> None:
        sheet = self._reader.sheet
        assert sheet is not None
        self._title.show_text(self._sheets.names[self._at])
        self.form.show_grid(self._own_grids.get(sheet.name))
        grid = self._grid(sheet)
        height, width = sheet.rgba.shape[:2]
        cell = min(grid.tile_width, grid.tile_height) if grid else min(width, height)
        self._stack.setCurrentIndex(_SHEET)
        self.canvas.set_zoom(fitting_zoom(self.canvas, width, height, cell))
        self.canvas.show_sheet(sheet.rgba)
        self._refresh()
        if self._is_opening:
            self.canvas.setFocus()
        self._is_opening = False

    def _grid(self, sheet: SheetPreview) -> SheetGrid | None:
        """Return the grid that slices the shown sheet; None for a sheet without a grid."""
        options = self.form.options()
        return self.form.own_grid() or (grid_from_options(options) if options.tile else sheet.proposed)

    @Slot()
    def _on_form_changed(self) -> None:
        """Store the shown sheet's own grid, if set, and redraw the cells."""
        sheet, grid = self._reader.sheet, self.form.own_grid()
        if sheet is None:
            return
        if grid is not None:
            self._own_grids[sheet.name] = grid
        else:
            self._own_grids.pop(sheet.name, None)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        """Draw the cells, and show how many sprites they give."""
        sheet = self._reader.sheet
        if sheet is None:
            return
        options, own = self.form.options(), self.form.own_grid()
        self.form.show_proposal(sheet.proposed)
        if options.sheets == "packed" and own is None:
            boxes = self._reader.boxes(options.gap)
            self._outcome = boxes_outcome(boxes, self._reader.error)
            self.canvas.show_boxes(boxes)
        else:
            grid = self._grid(sheet)
            cells = find_cells(grid, sheet.foreground) if grid else None
            by_itself = own is None and options.uses_detected_grids
            unsure = by_itself and self._sheets.grids and sheet.name not in self._sheets.grids
            seen = [sheet.proposed] if sheet.proposed else []
            left_over = describe_leftover_cells(cells, sheet.foreground, seen) if cells else ""
            self._outcome = SliceOutcome(0, _UNSURE) if cells and unsure else grid_outcome(cells, left_over)
            self.canvas.show_cells(cells)
        self._refresh_texts()

    @Slot(str, str)
    def _on_read_failed(self, title: str, hint: str) -> None:
        """Show an error in place of the sheet."""
        self._title.show_text(self._sheets.names[self._at])
        self.form.proposal.clear()
        self.problem.setText(f"{title}\n\n{hint}".strip())
        self._stack.setCurrentIndex(_PROBLEM)
        self._outcome = SliceOutcome(0, "")
        self._refresh_texts()

    def _refresh_texts(self) -> None:
        self.count.setText(self._outcome.text)
        reason = "" if self._outcome.sprites else self._outcome.text or self.problem.text()
        factory.set_enabled(self.slice_button, reason)
        alone = self.form.own_grid() is not None
        effects = describe_effects(self.options(), self._sheets, alone=alone) if self._outcome.sprites else ""
        self.hint.setText(effects)

    @Slot()
    def _on_slice_clicked(self) -> None:
        open_sprites, options = self._open_sprites, self.options()
        if open_sprites.paths != self._sheets.paths:
            open_sprites.open_paths(self._sheets.paths, options)
        elif open_sprites.options != options:
            open_sprites.change_options(options, SLICE_TITLE)
        else:
            self.closed.emit()
