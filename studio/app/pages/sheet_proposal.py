"""One line on the Sprites page: some pictures look like sheets of many sprites, and can be cut with one click."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFrame

from studio.app import parts, theme
from studio.app.importing import Importing
from studio.app.pages.cut_words import CUT_TITLE, proposal
from studio.core import wording
from studio.data.importing import SpritesImported

_CUT = "Cut each picture by its own cells; the files stay as they are, and Undo (Ctrl+Z) takes it back."
_SEE = "See the pictures with their cells drawn over them before you decide."
_UNDO = "Take the pictures whole again. (Ctrl+Z)"


class SheetProposal(QFrame):
    """Shown while it is about what is open. cells_wanted: the name of the first sheet, whose cells are to be seen."""

    cells_wanted = Signal(str)

    def __init__(self, importing: Importing) -> None:
        super().__init__()
        self._importing = importing
        self._first = ""  # name of the first sheet
        self._closed_for: Sequence[Path] = ()
        self.words = parts.text("")
        self.cut = parts.button("Cut them", _CUT, role="primary")
        self.see_cells = parts.button("See the cells…", _SEE)
        self.undo = parts.button("Undo", _UNDO)
        self.close_line = parts.tool("close", "Close", "Close this line; the Doctor still lists these pictures.")
        theme.set_role(self, "card")
        line = parts.row(self.words, self.cut, self.see_cells, self.undo, self.close_line)
        line.setStretch(0, 1)
        line.setContentsMargins(2 * parts.GRID, parts.GRID, parts.GRID, parts.GRID)
        self.setLayout(line)
        self.hide()
        self.cut.clicked.connect(self._cut)
        self.see_cells.clicked.connect(self._see_cells)
        self.undo.clicked.connect(importing.undo)
        self.close_line.clicked.connect(self._close)
        importing.imported.connect(self._refresh)

    @Slot(object)
    def _refresh(self, result: SpritesImported) -> None:
        opened, sheets = self._importing.opened, result.sheets
        uncut = opened.options.sheets == "as they are"
        just_cut = opened.options.cuts_each_by_its_own and any(choice.title == CUT_TITLE for choice in opened.past[-1:])
        self.setVisible(bool(sheets) and opened.paths != self._closed_for and (uncut or just_cut))
        if not sheets:
            return
        self._first = sheets[0].name
        if uncut:
            self.words.setText(proposal(sheets))
            parts.relabel(self.cut, "Cut it" if len(sheets) == 1 else "Cut them")
        else:
            pieces = wording.count(sum(sheet.sprites for sheet in sheets), "sprite")
            were = "was" if len(sheets) == 1 else "were"
            self.words.setText(f"{wording.count(len(sheets), 'picture')} {were} cut into {pieces}.")
        self.cut.setVisible(uncut)
        self.undo.setVisible(not uncut)

    @Slot()
    def _cut(self) -> None:
        whole_grid = {"tile": 0, "tile_height": 0, "margin": 0, "margin_top": -1, "spacing": 0}
        options = self._importing.newest.options.replace(sheets="grid", size=0, **whole_grid)
        self._importing.change_options(options, CUT_TITLE)

    @Slot()
    def _see_cells(self) -> None:
        self.cells_wanted.emit(self._first)

    @Slot()
    def _close(self) -> None:
        self._closed_for = self._importing.opened.paths
        self.hide()
