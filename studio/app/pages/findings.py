"""What an import left out or found odd: groups with counts, and the files of a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHeaderView, QListWidget, QListWidgetItem, QTableView, QWidget

from studio.app import parts
from studio.core import wording
from studio.data.importing import Quarantined

_HEADERS = ("File", "What was found")
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
    """A list of groups and, beside it, the files of the chosen one. A double click shows the file in its folder."""

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
        self._table.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self._table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._table.horizontalHeader().setHighlightSections(False)
        self._table.setColumnWidth(0, 280)
        parts.describe(self._table, "Files", "Double-click a file to see it in its folder.")
        self._body = parts.panel(parts.row(self._groups, self._table, spacing=2 * parts.GRID))
        self.setLayout(parts.column(self._empty, self._body, margin=parts.GRID))
        self._groups.currentRowChanged.connect(self._choose)
        self._table.activated.connect(self._open)

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

    @Slot(QModelIndex)
    def _open(self, index: QModelIndex) -> None:
        path = self._model.at(index.row()).path
        if path is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent)))
