"""One line on the Sprites page: some pictures look like sheets of many sprites, and can be cut with one click."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFrame

from studio.app import parts, theme
from studio.app.importing import Importing
from studio.app.pages.cut_words import proposal
from studio.core import wording
from studio.data.findings import cutting
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
        self.cut = parts.button("Cut them into sprites", _CUT, role="primary")
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
        self.undo.clicked.connect(self._undo)
        self.close_line.clicked.connect(self._close)
        importing.imported.connect(self._refresh)

    @Slot(object)
    def _refresh(self, result: SpritesImported) -> None:
        opened, sheets = self._importing.opened, result.sheets
        uncut = opened.options.sheets == "as they are"
        was_uncut = any(choice.before.sheets == "as they are" for choice in opened.past[-1:])
        just_cut = was_uncut and opened.options.cuts_each_by_its_own
        self.setVisible(bool(sheets) and opened.paths != self._closed_for and (uncut or just_cut))
        if not sheets:
            return
        self._first = sheets[0].name
        if uncut:
            self.words.setText(proposal(sheets))
            parts.relabel(self.cut, "Cut it into sprites" if len(sheets) == 1 else "Cut them into sprites")
        else:
            pieces = wording.count(sum(sheet.sprites for sheet in sheets), "sprite")
            were = "was" if len(sheets) == 1 else "were"
            self.words.setText(f"{wording.count(len(sheets), 'picture')} {were} cut into {pieces}.")
        self.cut.setVisible(uncut)
        self.undo.setVisible(not uncut)

    @Slot()
    def _cut(self) -> None:
        options = self._importing.newest.options
        fix = cutting(options)
        self._importing.change_options(options.replace(**fix.changes), fix.title)

    @Slot()
    def _undo(self) -> None:
        if self._importing.newest is self._importing.opened:  # else it would take back what was chosen since
            self._importing.undo()

    @Slot()
    def _see_cells(self) -> None:
        self.cells_wanted.emit(self._first)

    @Slot()
    def _close(self) -> None:
        self._closed_for = self._importing.opened.paths
        self.hide()
