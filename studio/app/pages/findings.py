"""What an import left out or found odd: groups with counts, and the files of a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHeaderView, QListWidget, QListWidgetItem, QTableView, QWidget

from studio.app import parts
from studio.core import wording
from studio.data.importing import SHEET_GROUPS, Quarantined

_HEADERS = ("File", "What was found")
_CUT = "See the sheet with its cells, and cut it into sprites."
_SHOW = "Open the folder that holds the file."
_Index = QModelIndex | QPersistentModelIndex


class _Table(QAbstractTableModel):
    """The files of one group; stays fast with a million of them."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows: list[Quarantined] = []

    def show(self, rows: list[Quarantined]) -> None:
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def at(self, row: int) -> Quarantined:
        return self._rows[row]

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(_HEADERS)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        item = self._rows[index.row()]
        return (item.name, item.reason)[index.column()]

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> str | None:
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return _HEADERS[section]
        return None


class FindingsView(QWidget):
    """A list of groups and, beside it, the files of the chosen one. A double click cuts a sheet or shows the folder.

    cut_wanted: the name of a sheet.
    """

    cut_wanted = Signal(str)

    def __init__(self, empty: str) -> None:
        super().__init__()
        self._items: list[Quarantined] = []
        self._empty = parts.text(empty, "muted")
        self._groups = QListWidget()
        self._groups.setMaximumWidth(180)
        parts.describe(self._groups, "Groups", "Choose a group to see its files.")
        self._model = _Table(self)
        self._table = QTableView()
        self._table.setModel(self._model)
        self._table.verticalHeader().hide()
        self._table.setShowGrid(False)
        self._table.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self._table.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self._table.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self._table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._table.horizontalHeader().setHighlightSections(False)
        self._table.setColumnWidth(0, 280)
        parts.describe(
            self._table, "Files", "Double-click a sheet to see how it is cut, another file to see its folder."
        )
        self.cut = parts.button("Cut…", _CUT)
        self.show_folder = parts.button("Show in folder", _SHOW, "folder")
        files = parts.column(self._table, parts.row(self.cut, self.show_folder, 1))
        self._body = parts.panel(parts.row(self._groups, files, spacing=2 * parts.GRID))
        self.setLayout(parts.column(self._empty, self._body, margin=parts.GRID))
        self._groups.currentRowChanged.connect(self._choose)
        self._table.activated.connect(self._open)
        self._table.selectionModel().selectionChanged.connect(self._refresh)
        self._model.modelReset.connect(self._refresh)
        self.cut.clicked.connect(self._cut)
        self.show_folder.clicked.connect(self._show_folder)
        self._refresh()

    def show_items(self, items: Sequence[Quarantined]) -> None:
        """Show these, the largest group first."""
        self._items = list(items)
        self._groups.clear()
        self._group_item("All", len(self._items), "")
        for group, count in Counter(item.group for item in self._items).most_common():
            self._group_item(group.capitalize(), count, group)
        self._groups.setCurrentRow(0)
        self._body.setVisible(bool(items))
        self._empty.setVisible(not items)

    def _group_item(self, words: str, count: int, group: str) -> None:
        item = QListWidgetItem(f"{words} ({wording.number(count)})", self._groups)
        item.setData(Qt.ItemDataRole.UserRole, group)

    @Slot(int)
    def _choose(self, row: int) -> None:
        chosen = self._groups.item(row)
        group = chosen.data(Qt.ItemDataRole.UserRole) if chosen else ""
        self._model.show([item for item in self._items if group in ("", item.group)])

    @Slot()
    def _open(self) -> None:
        if self.cut.isEnabled():
            self._cut()
        else:
            self._show_folder()

    @Slot()
    def _refresh(self) -> None:
        """Offer what can be done with the chosen file."""
        item = self._chosen()
        none = "" if item else "Choose a file first."
        is_sheet = item is not None and item.group in SHEET_GROUPS
        parts.enable(self.cut, none or ("" if is_sheet else "This is no sheet."), _CUT)
        parts.enable(self.show_folder, none or ("" if item and item.path else "It has no file."), _SHOW)

    @Slot()
    def _cut(self) -> None:
        item = self._chosen()
        if item is not None:
            self.cut_wanted.emit(item.name)

    @Slot()
    def _show_folder(self) -> None:
        item = self._chosen()
        if item is not None and item.path is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(item.path.parent)))

    def _chosen(self) -> Quarantined | None:
        rows = self._table.selectionModel().selectedRows()
        return self._model.at(rows[0].row()) if rows else None
