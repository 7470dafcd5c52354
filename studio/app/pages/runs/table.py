"""The table model of all runs, with filtering and sorting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSortFilterProxyModel, Qt, Signal
from PySide6.QtWidgets import QLineEdit, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from studio.app import keys, theme
from studio.app.pages import run_texts
from studio.core import formatting
from studio.core.names import nfc
from studio.engine.runs.listing import RunSummary, data_label
from studio.engine.runs.maintenance.disk_use import DiskUse
from studio.engine.runs.notes import MAX_NAME_LENGTH

if TYPE_CHECKING:
    from studio.recipes.base import Recipe


Column = IntEnum("Column", "STAR NAME TAGS STATE RECIPE SPRITES VALIDATION STEPS TIME STARTED DEVICE DISK", start=0)
HEADERS = (
    "", "Name", "Tags", "Status", "Recipe", "Sprites", "Validation", "Steps", "Time", "Started", "Device", "On disk",
)  # fmt: skip
SORT_ROLE = Qt.ItemDataRole.UserRole
RUN_ROLE = SORT_ROLE + 1
_NUMBERS = (Column.STEPS, Column.VALIDATION, Column.TIME, Column.DISK)
_STAR_TIP = "Star or unstar this run. ({star})"
_EDITOR_PX = 240
_Index = QModelIndex | QPersistentModelIndex


class RunTable(QAbstractTableModel):
    """Table model with a run in each row. `SORT_ROLE` returns sort keys, `RUN_ROLE` the row's RunSummary."""

    renamed = Signal(object, str)  # run folder and new name

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.runs: Sequence[RunSummary] = ()
        self._titles: Mapping[str, str] = {}
        self._uses: Mapping[Path, DiskUse] = {}
        self._star_data = {  # without and with a star
            Qt.ItemDataRole.DecorationRole: (theme.icon("star", "muted"), theme.icon("starred", "accent")),
            Qt.ItemDataRole.AccessibleTextRole: ("Not starred", "Starred"),
        }

    def show_runs(self, runs: Sequence[RunSummary], recipes: Mapping[str, Recipe]) -> None:
        """Show these runs. If only values have changed, keep the rows and their selection."""
        titles = {name: recipe.title for name, recipe in recipes.items()}
        if runs == self.runs and titles == self._titles:
            return
        if [run.path for run in runs] == [run.path for run in self.runs]:
            self.runs, self._titles = runs, titles
            self._announce_change(0, len(HEADERS) - 1)
        else:
            self.beginResetModel()
            self.runs, self._titles = runs, titles
            self.endResetModel()

    def show_uses(self, uses: Mapping[Path, DiskUse]) -> None:
        """Show the runs' disk space; runs may be missing."""
        if uses != self._uses:
            self._uses = dict(uses)
            self._announce_change(Column.DISK, Column.DISK)

    def _announce_change(self, first: int, last: int) -> None:
        """Announce that the values in these columns have changed."""
        if self.runs:
            self.dataChanged.emit(self.index(0, first), self.index(len(self.runs) - 1, last))

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.runs)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(HEADERS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        if role == Qt.ItemDataRole.AccessibleTextRole and section == Column.STAR:
            return "Star"
        return HEADERS[section] if role == Qt.ItemDataRole.DisplayRole else None

    def flags(self, index: _Index) -> Qt.ItemFlag:
        found = super().flags(index)
        return found | Qt.ItemFlag.ItemIsEditable if index.column() == Column.NAME else found

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, star, tooltip, alignment or sort key, or the row's run."""
        run, column = self.runs[index.row()], index.column()
        if role == RUN_ROLE:
            return run
        if role == Qt.ItemDataRole.DisplayRole or (role == Qt.ItemDataRole.EditRole and column == Column.NAME):
            return self._texts(run)[column]
        if role == Qt.ItemDataRole.ToolTipRole:
            return keys.tip(_STAR_TIP) if column == Column.STAR else _tip(run)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if column == Column.STAR and role in self._star_data:
            return self._star_data[Qt.ItemDataRole(role)][run.notes.starred]
        return self._sort_keys(run)[column] if role == SORT_ROLE else None

    def setData(self, index: _Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Report a new name by `renamed`. The table shows the name once it is stored."""
        run = self.runs[index.row()]
        if role != Qt.ItemDataRole.EditRole or index.column() != Column.NAME or value == run.title:
            return False
        self.renamed.emit(run.path, value)
        return True

    def words_of(self, row: int) -> str:
        """Return all searchable text of a run: its row, note and path."""
        run = self.runs[row]
        return " ".join((*self._texts(run), run.notes.note, str(run.path)))

    def _texts(self, run: RunSummary) -> tuple[str, ...]:
        state, tags = run.standing.capitalize(), ", ".join(run.notes.tags)
        use = formatting.memory(self._uses[run.path].size_bytes) if run.path in self._uses else ""
        if run.record is None or run.progress is None:
            return ("", run.title, tags, state, "", "", "", "", "", "", "", use)
        record, progress = run.record, run.progress
        started = formatting.local_time(record.created)
        return (
            "", run.title, tags, state, self._titles.get(record.recipe, record.recipe), data_label(record),
            run_texts.figures(progress.headline), formatting.number(run.step),
            formatting.duration(run.elapsed_s) if run.elapsed_s else "–", started, record.device_name, use,
        )  # fmt: skip

    def _sort_keys(self, run: RunSummary) -> list[Any]:
        progress, found = run.progress, list[Any](self._texts(run))
        found[Column.STAR] = not run.notes.starred
        found[Column.NAME] = run.title.casefold()
        found[Column.STEPS] = -1 if progress is None else run.step
        found[Column.VALIDATION] = -1.0 if progress is None else next(iter(progress.headline.values()), -1.0)
        found[Column.TIME] = -1.0 if progress is None else run.elapsed_s
        found[Column.DISK] = self._uses[run.path].size_bytes if run.path in self._uses else -1
        found[Column.STARTED] = "" if run.record is None else run.record.created
        return found


class RunFilter(QSortFilterProxyModel):
    """Filter for the table of runs: each word must occur in the run's text; 'tag:boss' matches the start of a tag."""

    def __init__(self, rows: RunTable) -> None:
        super().__init__(rows)
        self._rows = rows
        self._texts: list[str] = []
        self._starred = False
        self.setSourceModel(rows)
        self.setSortRole(SORT_ROLE)

    def look_for(self, text: str, *, starred: bool) -> None:
        """Set the filter text. starred: show only starred runs."""
        self._texts, self._starred = nfc(text).casefold().split(), starred
        self.invalidate()

    def filterAcceptsRow(self, row: int, parent: _Index) -> bool:
        notes = self._rows.runs[row].notes
        if self._starred and not notes.starred:
            return False
        text, tags = self._rows.words_of(row).casefold(), [tag.casefold() for tag in notes.tags]
        for word in self._texts:
            head, _, tag = word.partition(":")
            if not (any(each.startswith(tag) for each in tags) if head == "tag" else word in text):
                return False
        return True


class NameDelegate(QStyledItemDelegate):
    """Editor for run names. Keeps a half-typed name when the list is refreshed."""

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setMaxLength(MAX_NAME_LENGTH)
        editor.setAccessibleName("Name")
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:
        """Make the field wide enough for a name, even in a narrow column."""
        super().updateEditorGeometry(editor, option, index)
        editor.resize(max(editor.width(), _EDITOR_PX), editor.height())

    def setEditorData(self, editor: QWidget, index: _Index) -> None:
        """Show the name, unless the user has changed the text."""
        if not (isinstance(editor, QLineEdit) and editor.isModified()):
            super().setEditorData(editor, index)


def _tip(run: RunSummary) -> str:
    return run.problem or (run.progress.message if run.progress else "") or run.notes.note or str(run.path)


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in _NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
