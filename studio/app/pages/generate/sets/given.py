"""The given cells of a character: a table that takes dropped, pasted, opened and painted images."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QMimeData, QPoint, QSize, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from studio.app import dialogs
from studio.app.state.session import Session
from studio.app.widgets import factory, pasted
from studio.app.widgets.input import KeyCommands
from studio.app.widgets.menu import ContextMenu
from studio.app.widgets.overflow_bar import OverflowBar
from studio.app.widgets.sprites.cell_table import CellContent, GivenTable
from studio.app.widgets.sprites.painting import factor_for
from studio.data.sets.drafts import GIVEN, CellRef
from studio.data.sets.layout import GAP

_PROMPT = "Drop your first view here"
_TABLE = "The given cells: a row for each view, a column for each frame. Drop or paste images, or press Enter to paint."
_EXAMPLE = "Take the first view of a character of the training data. Press again for another."
_OPEN = "Open image files: a cell, or a sheet of all cells. You can also drop or paste them. ({paste})"
_CLEAR = "Clear the selected cells. (Del)"
_HINT = "Drop or paste images, or double-click a cell to paint it."
_SMALLEST, _LARGEST = 32, 64  # logical pixels of a cell's sprite
_ROOM, _NAME = 8, 24  # logical pixels around a sprite, and beside the name of a column


class GivenPanel(QWidget):
    """The table of given cells, with buttons, and a line for the error of the last images."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session, self._characters = session, session.characters
        self._area = QSize(0, 0)  # for the table, in logical pixels
        self.table = GivenTable(_PROMPT)
        factory.set_name_and_tip(self.table, "Given cells", _TABLE)
        self.example = factory.tool_button("dice", "Example", _EXAMPLE)
        self.open = factory.tool_button("open", "Open…", _OPEN, self._on_open_clicked)
        self.clear = factory.tool_button("trash", "Clear", _CLEAR, self.clear_selected)
        for button in (self.example, self.open, self.clear):
            button.setText(button.accessibleName())
        self.error = factory.FieldError(self.table, self.table.toolTip())
        self.menu = ContextMenu(self.table, "Given cells")
        self._fill_menu()
        buttons = OverflowBar((self.example, self.open, self.clear))
        head = factory.row(factory.heading("Given"), buttons, grows=1)
        self._hint = factory.caption(_HINT)
        self.setLayout(factory.column(head, self.table, self._hint, self.error, 1))
        KeyCommands(self.table, {}, {"Del": self.clear_selected, "Backspace": self.clear_selected})
        self.table.dropped.connect(self._on_dropped)
        self.table.opened.connect(self._on_opened)
        self.table.selection_changed.connect(self._refresh_buttons)
        self.table.customContextMenuRequested.connect(self._on_menu_requested)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._characters.changed.connect(self.refresh)
        self._characters.refused.connect(self._on_refused)
        self._characters.frames_placed.connect(self._on_frames_placed)
        self._characters.placed.connect(self.table.select)
        self.refresh()

    def take(self, data: QMimeData, target: int = GAP) -> bool:
        """Fill cells with dropped or pasted images or image files. Return False for other data. target: a cell."""
        paths, image = pasted.local_paths(data), pasted.image_in(data)
        if paths:
            self._characters.read_files(paths, target)
        elif image is not None:
            self._characters.place_images([("The pasted image", image)], target)
        return bool(paths) or image is not None

    def paste_target(self) -> int:
        """Return the cell for a pasted image: the current cell while the table has the focus, else GAP."""
        return self.table.current() if self.table.hasFocus() else GAP

    def fit(self, area: QSize) -> None:
        """Show the table in this area, in logical pixels, unless the cells would be too small."""
        self._area = area
        table, content, size = self.table, self.table.content(), self._characters.draft.size
        names = 0 if table.verticalHeader().isHidden() else table.verticalHeader().width()
        across = area.width() - names - _ROOM  # the table has a frame
        across //= max(1, len(content.columns))
        down = (area.height() - table.horizontalHeader().sizeHint().height()) // max(1, len(content.rows))
        side = min(max(min(across, down) - _ROOM, _SMALLEST), _LARGEST)
        metrics = table.horizontalHeader().fontMetrics()
        name = max(map(metrics.horizontalAdvance, content.columns), default=0) + _NAME
        self.table.set_side(min(side, round(factor_for(side, size, self.devicePixelRatioF()))), min(name, across))

    @Slot()
    def clear_selected(self) -> None:
        """Clear the selected cells."""
        self._characters.clear(self.table.selected())

    @Slot()
    def refresh(self) -> None:
        """Show the given cells of the draft."""
        draft, edited = self._characters.draft, self._characters.edited
        table, rows, columns = draft.grid.table, draft.grid.rows, draft.grid.columns
        if len(columns) == 1:  # views without frames fit into a row
            table, rows, columns = table.T, ("",), rows
        none = np.zeros(len(draft.cells), np.bool_)
        self.table.verticalHeader().setHidden(rows == ("",))
        content = CellContent(draft.cells, table, rows, columns, draft.grid.names, none, none, none)
        is_given = edited is not None and edited.key == GIVEN
        self.table.show_cells(content, edited.cell if is_given and edited is not None else -1)
        self.fit(self._area)
        self._refresh_buttons()

    def _fill_menu(self) -> None:
        menu = self.menu
        paint = "Paint the cell in the editor."
        menu.add("Paint", paint, self._on_paint, "pencil")
        menu.add("Paste", "Paste an image into the cell.", self._on_paste)
        for button in (self.open, self.clear):
            menu.add_button(button)

    @Slot()
    def _refresh_buttons(self) -> None:
        given, selected = self._characters.draft.given, self.table.selected()
        is_filled = any(given[cell] for cell in selected)
        factory.set_enabled(self.clear, "" if is_filled else "Select a given cell first.")

    @Slot(str)
    def _on_refused(self, reason: str) -> None:
        """Show an error instead of the hint; '' shows the hint again."""
        self._hint.setVisible(not reason)
        self._hint.setText(_HINT)
        self.error.show_reason(reason)

    @Slot(str)
    def _on_frames_placed(self, sentence: str) -> None:
        """Replace the hint by a sentence on the frames in the cells; '' restores the hint."""
        self._hint.setText(sentence or _HINT)

    @Slot(int, object)
    def _on_dropped(self, cell: int, data: QMimeData) -> None:
        self.take(data, cell)

    @Slot(int)
    def _on_opened(self, cell: int) -> None:
        self._characters.edit(CellRef(GIVEN, cell))

    @Slot()
    def _on_paint(self) -> None:
        self._on_opened(max(0, self.table.current()))

    @Slot()
    def _on_paste(self) -> None:
        if not self.take(QGuiApplication.clipboard().mimeData(), max(0, self.table.current())):
            self._session.notify("The clipboard has no image or file.", "Copy a sprite in another program first.")

    @Slot()
    def _on_open_clicked(self) -> None:
        paths = dialogs.choose_files(self, self._session.settings, "Open cells or a sheet")
        if paths:
            selected, grid = self.table.selected(), self._characters.draft.grid
            is_named = any(grid.cell_of_file(path.name) != GAP for path in paths)
            self._characters.read_files(paths, selected[0] if len(selected) == 1 and not is_named else GAP)

    @Slot(QPoint)
    def _on_menu_requested(self) -> None:
        index = self.table.currentIndex()
        if index.isValid():
            self.menu.open_at(self.table.viewport().mapToGlobal(self.table.visualRect(index).center()))
