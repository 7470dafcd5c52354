"""A table of results that fits its page: texts wrap, and a wide table with few rows is turned."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QScrollArea

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.input import PageWheel
from studio.lab.outcome import Table

_GAP, _NARROW_GAP = 3 * factory.GRID, 3 * factory.GRID // 2  # between columns; narrow if texts wrap
_SPARE = factory.GRID // 2  # extra width of a label: Qt wraps a text of exactly the width of the label
_BREAK, _NO_BREAK = "\u200b", "\u00a0"  # a place where Qt may break a long word; a space where Qt may not
_LONG = 12  # letters of a word that may be broken, as in 'criterion(network(x.to(device)), y)'
_AFTER = re.compile(r"(?<=[(\[.,=/_])(?=\w)")


class ResultTable(QScrollArea):
    """A table of labels. If the words are wider than the page, the table scrolls sideways and takes the focus."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._is_right = [name.startswith(">") for name in table.columns]
        names = [name.removeprefix(">") for name in table.columns]
        self._cells = [[_label(name, "muted") for name in names]]  # by row, the heading first
        for row in table.rows:
            texts = zip(row, self._is_right, strict=True)
            self._cells.append([_label(text.replace(" ", _NO_BREAK) if is_right else text) for text, is_right in texts])
        self._grid = QGridLayout()
        self._grid.setVerticalSpacing(factory.GRID // 2)
        # Not at once: a new height within a resize event would leave the viewport as high as before.
        self._refit = QTimer(self, singleShot=True, interval=0)
        self._refit.timeout.connect(self.fit)
        self.setWidget(factory.panel(self._grid))
        self._grid.setContentsMargins(*4 * [factory.GRID // 2])
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        PageWheel(self)
        factory.set_name_and_tip(self, "Table of results", "Scroll sideways with Left and Right.")
        self.setObjectName("table")  # shows the focus
        self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._refit.start()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Scroll sideways with Left and Right; leave other keys to the page."""
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            super().keyPressEvent(event)
        else:
            event.ignore()

    @Slot()
    def fit(self) -> None:
        """Choose the direction and the widths of the columns for the table's width, then set the height."""
        margins = self._grid.contentsMargins()
        room = self.viewport().width() - margins.left() - margins.right()
        turned = [list(row) for row in zip(*self._cells, strict=True)]
        is_turned = _least(self._cells) > room >= _least(turned)
        cells = turned if is_turned else self._cells
        self._place(cells, is_turned)
        widths = _shared(cells, room)
        has_room = sum(widths) + _GAP * (len(widths) - 1) <= room
        self._grid.setHorizontalSpacing(_GAP if has_room else _NARROW_GAP)
        for row in cells:
            for label, width in zip(row, widths, strict=True):
                label.setMinimumSize(0, 0)  # Qt counts the minimum into the height for a width
                label.setFixedSize(width, max(0, label.heightForWidth(width)))  # -1 without a text
        is_wide = _least(cells) > room
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if is_wide else Qt.FocusPolicy.NoFocus)
        bar = self.horizontalScrollBar().sizeHint().height() if is_wide else 0
        self.setFixedHeight(self._grid.sizeHint().height() + bar + 2)

    def _place(self, cells: Sequence[Sequence[QLabel]], is_turned: bool) -> None:
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 0)
        for row, labels in enumerate(cells):
            for column, label in enumerate(labels):
                is_right = not is_turned and self._is_right[column]
                side = Qt.AlignmentFlag.AlignRight if is_right else Qt.AlignmentFlag.AlignLeft
                label.setAlignment(side | Qt.AlignmentFlag.AlignTop)
                self._grid.removeWidget(label)
                self._grid.addWidget(label, row, column, Qt.AlignmentFlag.AlignTop)
        self._grid.setColumnStretch(len(cells[0]), 1)


def _label(text: str, role: theme.Role = "") -> QLabel:
    """Return a label that may break a long word after a bracket, a dot, a comma, '=', '/' or '_'."""
    parts = re.split("([ \n]+)", text)
    return factory.text("".join(_AFTER.sub(_BREAK, part) if len(part) > _LONG else part for part in parts), role)


def _natural_width(label: QLabel) -> int:
    """Return the width of a label's text on one line."""
    return label.fontMetrics().horizontalAdvance(label.text().replace(_BREAK, "")) + _SPARE


def _least_width(label: QLabel) -> int:
    """Return the width of a label's longest word."""
    words = re.split(f"[ \n{_BREAK}]", label.text())
    return max(map(label.fontMetrics().horizontalAdvance, words)) + _SPARE


def _least(cells: Sequence[Sequence[QLabel]]) -> int:
    """Return the least width of a table: the longest words of all columns, with gaps."""
    columns = list(zip(*cells, strict=True))
    return sum(max(map(_least_width, column)) for column in columns) + _NARROW_GAP * (len(columns) - 1)


def _shared(cells: Sequence[Sequence[QLabel]], room: int) -> list[int]:
    """Return the widths of the columns: natural widths if they fit, else least widths and a share of the rest."""
    columns = list(zip(*cells, strict=True))
    least = [max(map(_least_width, column)) for column in columns]
    more = [max(map(_natural_width, column)) - width for column, width in zip(columns, least, strict=True)]
    rest = max(0, room - sum(least) - _NARROW_GAP * (len(columns) - 1))
    share = min(1.0, rest / max(1, sum(more)))
    return [width + int(share * extra) for width, extra in zip(least, more, strict=True)]
