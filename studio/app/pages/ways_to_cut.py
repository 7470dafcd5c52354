"""How a user comes to see a sheet's cells: from what was found, from the settings, or because there is nothing else."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QPushButton

from studio.app import parts
from studio.app.answers import OnlySheets
from studio.app.importing import Importing
from studio.app.pages.cut_words import Sheets
from studio.app.pages.cutting import CutView
from studio.app.widgets.sprite_grid import SpriteGrid
from studio.data.grids import Grid
from studio.data.importing import ImportOptions, SpritesImported

_GROUPS = ("looks like a sheet", "cut sheet")
_SEE = "See the sheets with their cells drawn over them, and cut them by looking."
_NO_SHEETS = "No picture looks like a sheet: select one among the sprites to see its cells."
_TOO_LARGE = "What was opened is too large for single sprites: see whether these are the cells of a sheet, and cut it."


class WaysToCut(QObject):
    """opened: the view shows a sheet, and wants to be shown."""

    opened = Signal()

    def __init__(
        self, importing: Importing, view: CutView, grid: SpriteGrid, button: QPushButton, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._importing, self._view, self._grid, self._button = importing, view, grid, button
        self._names: list[str] = []  # of all pictures that are sheets, cut or not
        self._grids: dict[str, Grid] = {}  # that were recognised
        button.clicked.connect(self._see_cells)
        grid.selection_changed.connect(self._offer)
        importing.imported.connect(self._look)
        importing.only_sheets.connect(self._cut_dropped)

    @Slot(str)
    def cut(self, name: str) -> None:
        """Show the sheet of this name, or the one that this part is of, among the others."""
        names = self._names
        known = name if name in names else name.rpartition("#")[0]
        if known in names:
            self._open(names, names.index(known))
        else:
            self._open([name])

    @Slot()
    def _see_cells(self) -> None:
        """The sheets, or where there are none, the sprites that are selected: they may be small sheets."""
        sprites = self._importing.sprites
        assert sprites is not None
        self._open(self._names or [sprites.names[index] for index in self._grid.selected()])

    @Slot(object)
    def _cut_dropped(self, found: OnlySheets) -> None:
        names = tuple(item.name for item in found.sheets)
        grids = {sheet.name: sheet.grid for sheet in found.recognised}
        self._view.open(Sheets(found.paths, names, ImportOptions(), reason=_TOO_LARGE, grids=grids))
        self.opened.emit()

    @Slot(object)
    def _look(self, result: SpritesImported) -> None:
        both = (result.quarantine_groups, result.note_groups)
        named = {item.name for groups in both for group in _GROUPS for item in groups.get(group, ())}
        self._grids = {sheet.name: sheet.grid for sheet in result.sheets}
        self._names = sorted(named | self._grids.keys())
        self._offer()

    @Slot()
    def _offer(self) -> None:
        """Enable the button where there is something to see."""
        parts.enable(self._button, "" if self._names or self._grid.selected_count() else _NO_SHEETS, _SEE)

    def _open(self, names: list[str], at: int = 0) -> None:
        sprites = self._importing.sprites
        assert sprites is not None
        chosen = set(names)
        singles = sum("#" not in name and name not in chosen for name in sprites.names)
        options = self._importing.options
        sheets = Sheets(self._importing.paths, tuple(names), options, singles, sprites.size, grids=self._grids)
        self._view.open(sheets, at)
        self.opened.emit()
