"""All runs as a table that can be filtered and sorted."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from studio.app.pages import run_words
from studio.core import wording
from studio.engine.runs.listing import data_of

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from studio.engine.runs.listing import RunSummary
    from studio.recipes.base import Recipe

HEADERS = ("Name", "Recipe", "Sprites", "Device", "Steps", "Held out", "Time", "State", "Begun")
SORT_ROLE = Qt.ItemDataRole.UserRole
_NUMBERS = (4, 5, 6)
_Index = QModelIndex | QPersistentModelIndex


class RunTable(QAbstractTableModel):
    """One run a row; `SORT_ROLE` gives what a column sorts by."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runs: Sequence[RunSummary] = ()
        self._titles: Mapping[str, str] = {}

    def show_runs(self, runs: Sequence[RunSummary], recipes: Mapping[str, Recipe]) -> None:
        """Show these runs. Where they are the ones that are here, their rows stay: only what they say is new."""
        titles = {name: recipe.title for name, recipe in recipes.items()}
        if runs == self._runs and titles == self._titles:
            return
        same_rows = [run.path for run in runs] == [run.path for run in self._runs]
        if not same_rows:
            self.beginResetModel()
        self._runs, self._titles = runs, titles
        if not same_rows:
            self.endResetModel()
        elif runs:
            self.dataChanged.emit(self.index(0, 0), self.index(len(runs) - 1, len(HEADERS) - 1))

    def at(self, row: int) -> RunSummary:
        """The run in that row."""
        return self._runs[row]

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        """One row a run."""
        return 0 if parent.isValid() else len(self._runs)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        """One column for each of `HEADERS`."""
        return 0 if parent.isValid() else len(HEADERS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The name of a column, numbers to the right."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return HEADERS[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text, tool tip, alignment, or what to sort by."""
        run, column = self._runs[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self._words(run)[column]
        if role == Qt.ItemDataRole.ToolTipRole:
            return run.problem or (run.progress.message if run.progress else "") or str(run.path)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        return self._sortable(run)[column] if role == SORT_ROLE else None

    def _words(self, run: RunSummary) -> tuple[str, ...]:
        state = run_words.STANDINGS[run.standing]
        if run.record is None or run.progress is None:
            return (run.path.name, "", "", "", "", "", "", state, "")
        record, progress = run.record, run.progress
        return (
            run.path.name,
            self._titles.get(record.recipe, record.recipe),
            data_of(record),
            record.device_name,
            wording.number(progress.step),
            run_words.figures(progress.headline),
            wording.duration(progress.elapsed_s) if progress.elapsed_s else "–",
            state,
            _day(record.created),
        )

    def _sortable(self, run: RunSummary) -> tuple[Any, ...]:
        words = self._words(run)
        if run.record is None or run.progress is None:
            return (*words[:4], -1, -1.0, -1.0, *words[7:])
        progress = run.progress
        figure = next(iter(progress.headline.values()), -1.0)
        return (*words[:4], progress.step, figure, progress.elapsed_s, words[7], run.record.created)


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in _NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def _day(created: str) -> str:
    """'2026-11-21T04:03:00+00:00' -> '2026-11-21 04:03' of the clock on the wall."""
    try:
        return datetime.datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):  # not a date, or one that no clock shows
        return created
