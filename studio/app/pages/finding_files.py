"""The files of a finding: their names and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget

from studio.app import parts
from studio.data.imported import SHEET_GROUPS, Quarantined

_HEADERS = ("File", "What was found")
_Index = QModelIndex | QPersistentModelIndex


class _Model(QAbstractTableModel):
    """Stays fast with a million rows."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: Sequence[Quarantined] = ()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(_HEADERS)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        item = self.rows[index.row()]
        return (item.name, item.reason)[index.column()]

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> str | None:
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return _HEADERS[section]
        return None


class FileTable(QTableView):
    """A double click opens a sheet to be cut, and shows any other file in its folder.

    cut_wanted: the name of a sheet.
    """

    cut_wanted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._model = _Model(self)
        self.setModel(self._model)
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.horizontalHeader().setHighlightSections(False)
        self.setColumnWidth(0, 200)
        parts.describe(self, "Files", "Double-click a sheet to see how it is cut, another file to see its folder.")
        self.activated.connect(self._open)

    def show_items(self, items: Sequence[Quarantined]) -> None:
        """Show these files."""
        self._model.beginResetModel()
        self._model.rows = items
        self._model.endResetModel()

    @Slot()
    def open_chosen(self) -> None:
        """What a double click on the chosen file does, or on the first one where none is chosen."""
        self._open(self.currentIndex() if self.currentIndex().isValid() else self._model.index(0, 0))

    @Slot(QModelIndex)
    def _open(self, index: QModelIndex) -> None:
        item = self._model.rows[index.row()]
        if item.group in SHEET_GROUPS:
            self.cut_wanted.emit(item.name)
        elif item.path is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(item.path.parent)))
