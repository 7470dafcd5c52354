"""The drawn characters: a row for each, with buttons to lock, redraw, correct, use and save them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPoint, Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages.drag_and_drop import SpriteDragger
from studio.app.state.models.characters import CharacterDrafts
from studio.app.state.models.saving import DragFiles
from studio.app.widgets import factory
from studio.app.widgets.menu import ContextMenu, set_keys
from studio.app.widgets.overflow_bar import OverflowBar
from studio.app.widgets.sprites.cell_table import CellContent, CellTable
from studio.app.widgets.sprites.set_header import SetHeader
from studio.app.widgets.sprites.zoom import GridZoom, ZoomSlider
from studio.core import files, formatting
from studio.data.sets.drafts import Candidate, CellRef
from studio.data.sets.renaming import Axis
from studio.exports.sprites.cells import Cells

_EMPTY = "Give at least one view above, then press Draw the rest.\nOr press New characters without giving any."
_READY = "Press Draw the rest: the model draws the cells that are not given."
_TABLE = "The drawn characters: a row for each. Corner: given. Lock: stays when the others are redrawn."
_KINDS = "sheet, GIF, APNG, Aseprite or Godot"
_THUMBNAIL, _ROOM = 48, 4  # logical pixels: side of a sprite at first, and around a sprite
_LOWEST = 132  # logical pixels: room for the header and two rows


class FixedNames:
    """A `CellNamer` with fixed names."""

    def shown_name(self, axis: Axis, name: str) -> str:
        """Return the name itself."""
        return name

    def why_fixed(self, axis: Axis, name: str) -> str:
        """Return why a name can't be edited."""
        return "The model knows its cells by these names."

    def rename(self, axis: Axis, name: str, text: str) -> str:
        """Return why a name can't be edited."""
        return self.why_fixed(axis, name)


class CandidateButtons(OverflowBar):
    """The buttons of the drawn characters in a row."""

    def __init__(self) -> None:
        make = factory.tool_button
        self.lock = make("lock", "Lock", "Lock the selected cells: redrawing keeps their pixels. ({lock_cell})")
        self.redraw = make("dice", "Redraw", "Draw the selected cells again. ({redraw_cell})")
        self.redraw_rest = make("refresh", "Redraw rest", "Draw all unlocked cells again. ({redraw_rest})")
        self.edit = make("pencil", "Correct", "Open the cell in the editor. (Enter)")
        carry = "Redraw the unlocked cells to match your corrections. ({carry_over})"
        self.carry_over = make("arrow-right", "Carry over", carry)
        use = "Use the selected and the locked cells as given cells. ({use_as_given})"
        self.use = make("chevron-up", "Use as given", use)
        self.reject = make("close", "Reject", "Remove the selected characters; Undo restores. ({reject_character})")
        self.copy = make("copy", "Copy", "Copy the selected cells to paste them into another program. ({copy})")
        self.save_files = make("save-files", "Save files…", "Save a PNG file for each cell.")
        self.save_sheet = make("save", "Save as…", "Save as one file.")
        groups = (
            (self.lock, self.redraw, self.redraw_rest),
            (self.edit, self.carry_over, self.use),
            (self.reject,),
            (self.copy, self.save_files, self.save_sheet),
        )
        for group in groups:
            for button in group:
                button.setText(button.accessibleName())
        super().__init__(*groups)

    def refresh(self, chosen: Sequence[Candidate], cells: Sequence[tuple[Candidate, int]], count: int) -> None:
        """Enable the buttons; for a disabled button, show the reason.

        chosen: candidates with a selected cell. cells: the selected cells. count: total number of candidates.
        """
        none = "" if count else "No characters yet. Press Draw the rest."
        no_cell = none or ("" if cells else "Select a cell first.")
        all_locked = bool(cells) and all(one.locked[cell] for one, cell in cells)
        factory.set_enabled(self.lock, no_cell, _lock_tip(all_locked))
        self.lock.setText("Unlock" if all_locked else "Lock")
        factory.set_enabled(
            self.redraw, no_cell or ("All selected cells are locked. Press K to unlock." if all_locked else "")
        )
        is_full = all(one.locked.all() for one in chosen)
        rest = no_cell or ("All cells are locked. Unlock some first." if is_full else "")
        factory.set_enabled(self.redraw_rest, rest)
        factory.set_enabled(self.edit, no_cell or ("" if len(cells) == 1 else "Select a single cell."))
        is_corrected = any(one.painted.any() for one in chosen)
        factory.set_enabled(self.carry_over, rest or ("" if is_corrected else "Correct a cell first."))
        single = "" if len(chosen) == 1 else "Select cells of a single character."
        factory.set_enabled(self.use, no_cell or single)
        factory.set_enabled(self.reject, no_cell)
        factory.set_enabled(self.copy, no_cell)
        characters = formatting.count(len(chosen) or count, "selected character" if chosen else "character")
        factory.set_enabled(self.save_files, none, f"Save a PNG file for each cell of {characters}.")
        factory.set_enabled(self.save_sheet, none, f"Save {characters} as one file: {_KINDS}. ({{save}})")


def _lock_tip(all_locked: bool) -> str:
    if all_locked:
        return "Unlock the selected cells for redrawing. ({lock_cell})"
    return "Lock the selected cells: redrawing keeps their pixels. ({lock_cell})"


class CandidatesPanel(QWidget):
    """A table of drawn characters, with buttons."""

    def __init__(self, characters: CharacterDrafts, carried: DragFiles) -> None:
        super().__init__()
        self._characters = characters
        self._fitted = _THUMBNAIL  # sprite width that fits the window; another width means a zoom by the user
        self.table = CellTable()
        self._header = SetHeader(self.table, FixedNames())
        self.table.setHorizontalHeader(self._header)
        factory.set_name_and_tip(self.table, "Characters", _TABLE)
        self.zoom = GridZoom(self, _THUMBNAIL)
        self.zoom_slider = ZoomSlider(self.zoom)
        self.buttons = CandidateButtons()
        self.dragger = SpriteDragger(self.table, carried, self.selected_cells)
        self._title, self._facts = factory.ElidedLabel("heading"), factory.ElidedLabel("muted")
        self._facts.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._empty = factory.caption("")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = factory.stack(factory.panel(factory.column(1, self._empty, 1)), self.table)
        self._stack.setMinimumHeight(_LOWEST)
        self.menu = ContextMenu(self.table, "Drawn characters")
        self.carry_over = self._fill_menu()
        head = factory.row(self._title, self._facts)
        for at, stretch in enumerate((1, 2)):
            head.setStretch(at, stretch)
        legend = factory.ElidedLabel("muted")
        legend.show_text("Green corner: given. Lock: stays. Pencil: corrected.")
        foot = factory.row(legend, self.zoom_slider, grows=0)
        self.setLayout(factory.column(head, self.buttons, self._stack, foot, grows=2))
        self.zoom.changed.connect(self._on_zoomed)
        self.table.resized.connect(self._fit_cells)
        self.table.zoomed.connect(self.zoom.step)
        self._header.view_pressed.connect(self._on_view_pressed)
        self.table.selection_changed.connect(self._refresh_buttons)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._on_menu_requested)
        self.buttons.copy.clicked.connect(self.dragger.copy)
        characters.changed.connect(self.refresh)
        self.refresh()

    def _fill_menu(self) -> QAction:
        """Fill the context menu with the buttons; return the action that carries corrections over."""
        named = {
            self.buttons.lock: "lock_cell", self.buttons.redraw: "redraw_cell", self.buttons.redraw_rest: "redraw_rest",
            self.buttons.edit: "", self.buttons.carry_over: "carry_over", self.buttons.use: "use_as_given",
            self.buttons.reject: "reject_character", self.buttons.copy: "copy", self.buttons.save_files: "",
            self.buttons.save_sheet: "",
        }  # fmt: skip
        actions = {}
        for button, command in named.items():
            action = actions[button] = self.menu.add_button(button)
            if command:
                set_keys(action, self, command)
        return actions[self.buttons.carry_over]

    def candidate_at(self, cell: int) -> tuple[Candidate, int] | None:
        """Return candidate and cell index for a cell of the table; None for -1."""
        draft = self._characters.draft
        row, column = divmod(cell, max(1, len(draft.cells)))
        return (draft.candidates[row], column) if cell >= 0 and row < len(draft.candidates) else None

    def cells(self) -> list[tuple[Candidate, int]]:
        """Return the selected cells as candidates and cells."""
        found = (self.candidate_at(cell) for cell in self.table.selected())
        return [one for one in found if one is not None]

    def refs(self) -> list[CellRef]:
        """Return the selected cells."""
        return [CellRef(one.key, cell) for one, cell in self.cells()]

    def chosen(self) -> list[Candidate]:
        """Return the candidates with a selected cell."""
        return list({one.key: one for one, _ in self.cells()}.values())

    def current(self) -> Candidate | None:
        """Return the candidate with the current cell."""
        found = self.candidate_at(self.table.current())
        return found[0] if found is not None else None

    def selected_cells(self) -> SpriteSelection | None:
        """Return the selected cells as single sprites; None without a selection."""
        cells, names = self.cells(), self._characters.draft.grid.names
        if not cells:
            return None
        sprites, sources = np.stack([one.cells[cell] for one, cell in cells]), [one.source for one, _ in cells]
        titles = [files.output_name(names[cell].replace("/", "-")) for _, cell in cells]
        return SpriteSelection(sprites, titles, _about([one for one, _ in cells]), sources=sources)

    def to_save(self) -> SpriteSelection | None:
        """Return the selected characters, or without a selection every character; None without characters."""
        names, chosen = self._characters.draft.grid.names, self.chosen() or list(self._characters.draft.candidates)
        if not chosen:
            return None
        sprites = np.concatenate([one.cells for one in chosen])
        sources = [one.source for one in chosen for _ in names]
        cells = Cells.full(names, len(sprites))
        return SpriteSelection(sprites, [*names] * len(chosen), _about(chosen), sources=sources, cells=cells)

    @Slot()
    def refresh(self) -> None:
        """Show the draft's candidates."""
        draft, edited = self._characters.draft, self._characters.edited
        shown = draft.candidates
        is_new_kind = self.table.content().columns != draft.grid.names
        self._stack.setCurrentIndex(1 if shown else 0)
        self._empty.setText(_READY if draft.given.any() else _EMPTY)
        marks = [
            np.concatenate([getattr(one, mark) for one in shown]) if shown else np.zeros(0, np.bool_)
            for mark in ("given", "locked", "painted")
        ]
        sprites = np.concatenate([one.cells for one in shown]) if shown else draft.cells[:0]
        rows = tuple(str(number) for number in range(1, len(shown) + 1))
        names = tuple(f"Character {row}, {name}" for row in rows for name in draft.grid.names)
        table = np.arange(len(sprites)).reshape(len(shown), len(draft.cells))
        keys = [one.key for one in shown]
        at = keys.index(edited.key) * len(draft.cells) + edited.cell if edited and edited.key in keys else -1
        self.table.show_cells(CellContent(sprites, table, rows, draft.grid.names, names, *marks), at)
        if is_new_kind:
            self._header.set_cells(draft.grid.names, is_same=False)
            self.zoom.set_size(draft.size)
        self._title.show_text(formatting.count(len(shown), "character") if shown else "Characters")
        self._facts.show_text(f"{shown[0].model}, seed {shown[0].seed}" if shown else "")
        self._fit_cells()
        self._refresh_buttons()

    @Slot()
    def _refresh_buttons(self) -> None:
        self.buttons.refresh(self.chosen(), self.cells(), len(self._characters.draft.candidates))

    @Slot()
    def _fit_cells(self) -> None:
        """Fit the columns to the zoom; unless the user has zoomed, choose the largest zoom at which all columns fit."""
        if self.zoom.thumbnail == self._fitted:
            self._fitted = max(self._characters.draft.size, min(self._room() - 2 * _ROOM, _THUMBNAIL))
            self.zoom.set_thumbnail(self._fitted)
        else:
            self._on_zoomed()

    @Slot()
    def _on_zoomed(self) -> None:
        """Draw the cells at the zoom. Columns get the width of their names if the table has room."""
        side = max(1, round(self._characters.draft.size * self.zoom.value))
        cell = side + 2 * _ROOM
        self.table.set_side(side, max(cell, min(self._header.column_width(cell), self._room())))

    def _room(self) -> int:
        """Return the column width in logical pixels at which every column fits beside the scroll bar."""
        names, bar = self.table.verticalHeader().width(), self.table.verticalScrollBar().sizeHint().width()
        room = self.table.width() - names - bar - 2 * self.table.frameWidth()
        return max(1, room // max(1, len(self._characters.draft.cells)))

    @Slot(int, int)
    def _on_view_pressed(self, first: int, last: int) -> None:
        table = self.table.content().table
        self.table.select(table[:, first : last + 1].ravel().tolist())

    @Slot(QPoint)
    def _on_menu_requested(self) -> None:
        index = self.table.currentIndex()
        if index.isValid():
            self.menu.open_at(self.table.viewport().mapToGlobal(self.table.visualRect(index).center()))


def _about(chosen: Sequence[Candidate]) -> dict[str, str]:
    """Return metadata for files: the model and the seed of the first candidate."""
    return {"Model": chosen[0].model, "Seed": str(chosen[0].seed)}
