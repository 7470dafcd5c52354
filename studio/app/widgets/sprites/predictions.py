"""Sprites with a model's predictions: class probabilities or numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QContextMenuEvent, QPainter, QPen
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from studio.app import keys, theme
from studio.app.widgets import factory
from studio.app.widgets.menu import ContextMenu
from studio.app.widgets.sprites.cell_view import Index, TextRows
from studio.app.widgets.sprites.grid import LARGE_VIEW
from studio.app.widgets.sprites.large_view import LargeView, ShownSprite
from studio.app.widgets.sprites.painting import draw_sprite
from studio.core.arrays import Indices, Rgba
from studio.core.formatting import predicted_and_true

_SPRITE, _BARS, _GAP = 64, 200, 8
_LINE = 21  # height of a bar and of the line with the true class
_MOST_CLASSES, _MOST_NUMBERS = 3, 4  # bars beside a sprite
_MARK = 2  # pixels
Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class _PredictionBar:
    """A prediction, drawn as a bar. what: class or number. much: value as text. share: length of the bar, 0 to 1.

    true: position of the true value, 0 to 1; NaN if unknown.
    """

    what: str
    much: str
    share: float
    true: float = math.nan


@dataclass(frozen=True)
class _Verdict:
    """A sprite's true class as text. is_right: True for a right prediction; None if unknown."""

    text: str
    is_right: bool | None


class _PredictionDelegate(QStyledItemDelegate):
    """Delegate that draws a sprite with its prediction bars. top: number of bars for each sprite."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self.bars: Callable[[int], list[_PredictionBar]] = lambda sprite: []
        self.verdict: Callable[[int], _Verdict] | None = None  # None if no true class is known
        self.names: Sequence[str] = ()
        self.order: Indices | None = None  # sprite index by row; None: all in order
        self.top = _MOST_CLASSES

    def sprite(self, row: int) -> int:
        """Return the sprite index of a row."""
        return row if self.order is None else int(self.order[row])

    def text_of(self, row: int) -> str:
        """Return a row's predictions as text, after the sprite's name if it is known."""
        words = self.predictions_of(row)
        return f"{self.names[self.sprite(row)]}: {words}" if self.names else words

    def predictions_of(self, row: int) -> str:
        """Return a row's predictions as text, with the true class if it is known."""
        sprite = self.sprite(row)
        texts = [f"{bar.what} {bar.much}" for bar in self.bars(sprite)]
        if self.verdict is not None:
            texts.append(self.verdict(sprite).text)
        return ", ".join(text for text in texts if text)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(_SPRITE + _BARS + 3 * _GAP, max(_SPRITE, self._lines() * _LINE) + _GAP)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw the sprite on the left; on the right the true class, if known, and a bar for each prediction."""
        colours, metrics, sprite = theme.colours(), painter.fontMetrics(), self.sprite(index.row())
        left, top = option.rect.x() + _GAP, option.rect.y() + _GAP // 2
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(option.rect, QColor(theme.mix(colours.surface, colours.accent, 0.15)))
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(colours.text), 1, Qt.PenStyle.DotLine))
            painter.drawRect(option.rect.adjusted(0, 0, -1, -1))
        lines = self._lines()
        height = max(_SPRITE, lines * _LINE) // lines
        draw_sprite(painter, QRect(left, top, _SPRITE, lines * height), self.rgba[sprite])
        if self.verdict is not None:
            line = QRect(left + _SPRITE + _GAP, top, _BARS, height - 2)
            _draw_verdict(painter, line, self.verdict(sprite))
        for number, prediction in enumerate(self.bars(sprite)[: self.top], lines - self.top):
            line = QRect(left + _SPRITE + _GAP, top + number * height, _BARS, height - 2)
            painter.fillRect(line, QColor(theme.mix(colours.surface, colours.text, 0.06)))
            bar = QRect(line.x(), line.y(), round(line.width() * prediction.share), line.height())
            painter.fillRect(bar, QColor(theme.mix(colours.surface, colours.accent, 0.45)))
            if not math.isnan(prediction.true):
                end = line.x() + round((line.width() - _MARK) * prediction.true)
                painter.fillRect(QRect(end, line.y(), _MARK, line.height()), QColor(colours.accent))
            painter.setPen(QColor(colours.text))
            inner = line.adjusted(6, 0, -6, 0)
            room = inner.width() - metrics.horizontalAdvance(prediction.much) - 8
            text = metrics.elidedText(prediction.what, Qt.TextElideMode.ElideMiddle, room)
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, prediction.much)

    def _lines(self) -> int:
        """Return the number of lines beside a sprite: the bars, and the true class if known."""
        return self.top + (self.verdict is not None)


def _draw_verdict(painter: QPainter, line: QRect, verdict: _Verdict) -> None:
    """Draw a mark and the true class, in the colour of right or wrong."""
    colours = theme.colours()
    colour = {True: colours.good, False: colours.error, None: colours.muted}[verdict.is_right]
    painter.setPen(QColor(colour))
    text = painter.fontMetrics().elidedText(verdict.text, Qt.TextElideMode.ElideMiddle, line.width() - 12)
    painter.drawText(line.adjusted(6, 0, -6, 0), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)


class PredictionsView(QWidget):
    """Sprites with bars for the most probable classes, or for numbers. menu: the context menu of the current sprite."""

    selection_changed = Signal()  # other sprites, another order or another current sprite

    def __init__(self) -> None:
        super().__init__()
        self.menu = ContextMenu(self, "Prediction")
        self.menu.add("View large", LARGE_VIEW, self.open_large, "zoom-in")
        self._rows, self._delegate = TextRows(), _PredictionDelegate(self)
        self.view = QListView(self)
        self.view.setModel(self._rows)
        self.view.setItemDelegate(self._delegate)
        self.view.setViewMode(QListView.ViewMode.IconMode)
        self.view.setUniformItemSizes(True)
        self.view.setResizeMode(QListView.ResizeMode.Adjust)
        self.view.setMovement(QListView.Movement.Static)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)  # for the arrow keys
        self.view.setSpacing(4)
        factory.set_name_and_tip(self.view, "Predictions", "Sprites with their predicted classes.")
        self.setLayout(factory.column(self.view))
        self.view.activated.connect(self.open_large)
        self.view.selectionModel().currentChanged.connect(self.selection_changed)
        keys.fixed_shortcut("Shift+F10", self, self.open_menu)

    def visible_count(self) -> int:
        return self._rows.rowCount()

    def current_row(self) -> int:
        """Return the row of the current sprite; -1 for none."""
        return self.view.currentIndex().row()

    def go_to_row(self, row: int) -> None:
        """Make the sprite of this row current, and scroll to it."""
        self.view.setCurrentIndex(self._rows.index(row, 0))

    def shown_sprite(self, row: int) -> ShownSprite:
        """Return the sprite of a row for the large view."""
        sprite, names = self._delegate.sprite(row), self._delegate.names
        name = names[sprite] if names else f"Sprite {sprite + 1:,}"
        return ShownSprite(self._delegate.rgba[sprite], name, self._delegate.predictions_of(row))

    @Slot()
    def open_large(self) -> None:
        """Show the current sprite in a large view."""
        if self.current_row() >= 0:
            LargeView(self, self).open()

    @Slot()
    def open_menu(self) -> None:
        """Open the context menu at the current sprite."""
        if self.current_row() >= 0:
            place = self.view.visualRect(self.view.currentIndex()).center()
            self.menu.open_at(self.view.viewport().mapToGlobal(place))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the context menu for the sprite under the mouse, or for the current sprite by the Menu key."""
        place = self.view.viewport().mapFromGlobal(event.globalPos())
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.open_menu()
        elif self.view.indexAt(place).isValid():  # the press has made the sprite current
            self.menu.open_at(event.globalPos())

    def set_classes(
        self, rgba: Rgba, probabilities: Numbers, class_names: Sequence[str], true: Indices | None = None,
        sprite_names: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Show sprites uint8 [N, S, S, 4] with probabilities float32 [N, K].

        true: true classes int64 [N], -1 for unknown; None if all are unknown.
        """

        def bars(sprite: int) -> list[_PredictionBar]:
            best = np.argsort(-probabilities[sprite], kind="stable")[:_MOST_CLASSES]
            shares = [(class_names[i], float(probabilities[sprite, i])) for i in best]
            return [_PredictionBar(name, f"{100 * share:.0f} %", share) for name, share in shares]

        def verdict(sprite: int) -> _Verdict:
            label = -1 if true is None else int(true[sprite])
            if label < 0:
                return _Verdict("true class unknown", None)
            is_right = label == int(probabilities[sprite].argmax())
            return _Verdict(f"✓ {class_names[label]}" if is_right else f"✗ is {class_names[label]}", is_right)

        top = min(_MOST_CLASSES, len(class_names))
        self._show(rgba, bars, top, sprite_names, None if true is None else verdict)

    def set_numbers(
        self, rgba: Rgba, numbers: Numbers, names: Sequence[str], true: Numbers, sprite_names: Sequence[str] = ()
    ) -> None:
        """Show sprites uint8 [N, S, S, 4] with predicted and true numbers float32 [N, T], NaN for unknown.

        Bars scale from the lowest to the highest shown number; a mark shows the true number.
        """
        both = np.concatenate([numbers, np.where(np.isnan(true), numbers, true)])
        lowest = both.min(0, initial=np.inf)
        spread = np.maximum(both.max(0, initial=-np.inf) - lowest, 1e-30)

        def bars(sprite: int) -> list[_PredictionBar]:
            ends = ((np.stack([numbers[sprite], true[sprite]], 1) - lowest[:, None]) / spread[:, None]).tolist()
            rows = zip(names, numbers[sprite].tolist(), true[sprite].tolist(), ends, strict=True)
            return [_PredictionBar(name, predicted_and_true(number, known), *end) for name, number, known, end in rows]

        self._show(rgba, bars, min(_MOST_NUMBERS, max(2, len(names))), sprite_names)

    def set_order(self, sprites: Indices | None) -> None:
        """Show only these sprites, in this order; None: all."""
        self._delegate.order = sprites
        count = len(self._delegate.rgba) if sprites is None else len(sprites)
        self._rows.set_rows(count, self._delegate.text_of)
        self.selection_changed.emit()

    def _show(
        self, rgba: Rgba, bars: Callable[[int], list[_PredictionBar]], top: int, sprite_names: Sequence[str],
        verdict: Callable[[int], _Verdict] | None = None,
    ) -> None:  # fmt: skip
        delegate = self._delegate
        delegate.rgba, delegate.bars, delegate.top = rgba, bars, top
        delegate.names, delegate.verdict = sprite_names, verdict
        self.set_order(None)
