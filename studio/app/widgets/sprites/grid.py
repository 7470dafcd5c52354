"""A grid of sprites that stays fast with a million sprites."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractListModel, QModelIndex, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFontMetrics,
    QKeySequence,
    QPainter,
    QPen,
    QPolygon,
    QShortcut,
)
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from studio.app import keys, theme
from studio.app.widgets import factory
from studio.app.widgets.menu import ContextMenu
from studio.app.widgets.sprites.captions import fitting_caption, short_captions
from studio.app.widgets.sprites.cell_view import NO_INDEX, Index
from studio.app.widgets.sprites.large_view import LargeView, ShownSprite
from studio.app.widgets.sprites.list import SpriteList
from studio.app.widgets.sprites.painting import draw_sprite, shrink_divisor, shrunk
from studio.app.widgets.sprites.zoom import GridZoom
from studio.core.arrays import Rgba

LARGE_VIEW = "View the sprite large; the arrow keys go on. (Enter, or double-click)"
_THUMBNAIL_BYTES = 32 << 20  # of shrunk sprites in memory
_MARGIN = 4  # logical pixels around a sprite
_MARK = 12  # side of the corner mark
_SELECTED, _FOCUSED = QStyle.StateFlag.State_Selected.value, QStyle.StateFlag.State_HasFocus.value
_NO_LABELS = np.zeros(0, np.int64)


class SpriteModel(QAbstractListModel):
    """List model of sprites. visible: sprite index by row; None: all in order. marked: indices of kept sprites."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self.names: Sequence[str] = ()
        self.captions: Sequence[str] = ()
        self.short_captions: Sequence[str] = ()  # where the captions have no room
        self.labels: NDArray[np.int64] = _NO_LABELS
        self.class_names: Sequence[str] = ()
        self.visible: NDArray[np.int64] | None = None
        self.marked: frozenset[int] = frozenset()

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rgba if self.visible is None else self.visible)

    def number(self, row: int) -> int:
        """Return the sprite index of a row."""
        return row if self.visible is None else int(self.visible[row])

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the caption, or name and class for the tooltip and screen readers."""
        number = self.number(index.row())
        if role == Qt.ItemDataRole.DisplayRole:
            return self.captions[number] if self.captions else ""
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.about(number)
        return None

    def about(self, number: int) -> str:
        """Return a sprite's name, class and mark as text."""
        name = self.names[number] if self.names else ""
        label = int(self.labels[number]) if len(self.labels) else -1
        mark = "kept" if number in self.marked else ""
        return " – ".join(text for text in (name, self.class_names[label] if label >= 0 else "", mark) if text)


class SpriteDelegate(QStyledItemDelegate):
    """Delegate that draws a sprite with caption, selection and mark."""

    def __init__(self, model: SpriteModel, parent: QWidget, caption: int) -> None:
        """Create a delegate. caption: see SpriteGrid."""
        super().__init__(parent)
        self._model, self._caption = model, caption
        self.zoom = 1.0
        self._shrunk: dict[int, Rgba] = {}  # thumbnails of large sprites by sprite index, oldest first
        self._divisor = 1  # of the sprites in `_shrunk`
        model.modelReset.connect(self.forget_thumbnails)

    def cell(self, metrics: QFontMetrics) -> QSize:
        """Return the size of a cell with caption, in logical pixels."""
        side = self._side() + 2 * _MARGIN
        text = metrics.height() if self._model.captions else 0
        return QSize(max(side, self._caption if text else 20), max(side, 20) + text)

    def _side(self) -> int:
        """Return the side of a drawn sprite in logical pixels."""
        return max(1, int(self._model.rgba.shape[1] * self.zoom))

    @Slot()
    def forget_thumbnails(self) -> None:
        """Shrink large sprites again at the next paint, since their pixels have changed."""
        self._shrunk.clear()

    def _pixels(self, number: int, ratio: float) -> Rgba:
        """Return a sprite, shrunk if larger than its thumbnail. ratio: device pixels for a logical pixel."""
        sprite: Rgba = self._model.rgba[number]
        divisor = shrink_divisor(self._side(), len(sprite), ratio)
        if divisor == 1:
            return sprite
        if divisor != self._divisor:
            self._divisor = divisor
            self._shrunk.clear()
        found = self._shrunk.get(number)
        if found is None:
            found = self._shrunk[number] = shrunk(sprite, divisor)
            if len(self._shrunk) * found.nbytes > _THUMBNAIL_BYTES:
                del self._shrunk[next(iter(self._shrunk))]
        return found

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row's sprite."""
        self.draw(painter, option.rect, self._model.number(index.row()), option.state.value)

    def draw(self, painter: QPainter, area: QRect, number: int, state: int) -> None:
        """Draw a sprite in a cell. Called for thousands of sprites, so keep it fast. state: QStyle.StateFlag bits."""
        model = self._model
        if state & (_SELECTED | _FOCUSED):
            draw_state(painter, area, state)
        side, ratio = self._side(), painter.device().devicePixelRatioF()
        top = area.y() + _MARGIN
        draw_sprite(painter, QRect(area.x() + (area.width() - side) // 2, top, side, side), self._pixels(number, ratio))
        if number in model.marked:
            _draw_mark(painter, area)
        if model.captions:
            line = QRect(area.x() + 2, top + side, area.width() - 4, area.bottom() - top - side)
            _draw_caption(painter, line, model.captions[number], model.short_captions[number], bool(state & _SELECTED))


def draw_state(painter: QPainter, area: QRect, state: int) -> None:
    """Draw the selection in the accent colour, and a dotted frame at the keyboard focus."""
    colours = theme.colours()
    if state & _SELECTED:
        painter.fillRect(area.adjusted(1, 1, -1, -1), QColor(colours.accent))
    if state & _FOCUSED:
        painter.setPen(QPen(QColor(colours.text), 1, Qt.PenStyle.DotLine))
        painter.drawRect(area.adjusted(0, 0, -1, -1))


def _draw_mark(painter: QPainter, area: QRect) -> None:
    """Draw a folded corner, with a border visible on all sprites."""
    corner = area.topRight()
    points = [corner + QPoint(-_MARK, 0), corner, corner + QPoint(0, _MARK)]
    colours = theme.colours()
    painter.setPen(QPen(QColor(colours.surface), 1))
    painter.setBrush(QColor(colours.good))
    painter.drawPolygon(QPolygon(points))


def _draw_caption(painter: QPainter, line: QRect, caption: str, short: str, selected: bool) -> None:
    colours = theme.colours()
    painter.setPen(QColor(colours.on_accent if selected else colours.muted))
    text = fitting_caption(caption, short, painter.fontMetrics(), line.width())
    painter.drawText(line, Qt.AlignmentFlag.AlignCenter, text)


class SpriteGrid(QWidget):
    """A grid of thumbnails at whole-number zoom. Indices are positions in the array of `set_sprites`.

    activated: index of a double-clicked sprite, or of the current sprite on Enter. menu: the context menu of the
    selected sprites, which the page fills. menu_requested: by keys, while another view is shown instead.
    """

    activated = Signal(int)
    selection_changed = Signal()
    menu_requested = Signal()

    def __init__(self, thumbnail: int = 64, caption: int = 64) -> None:
        """Create an empty grid. thumbnail: see GridZoom. caption: least width of a sprite's caption, logical pixels."""
        super().__init__()
        self.zoom = GridZoom(self, thumbnail)
        self.model = SpriteModel(self)
        self.delegate = SpriteDelegate(self.model, self, caption)
        self.view = SpriteList(self.model, self.delegate)
        self._other: QWidget | None = None  # shown instead of `view`
        self.menu = ContextMenu(self, "Selected sprites")
        self.setFocusProxy(self.view)
        self._box = factory.column(self.view)
        self.setLayout(self._box)
        self.zoom.changed.connect(self._fit_cells)
        self.view.zoomed.connect(self.zoom.step)
        self.view.activated.connect(self._on_activated)
        self.view.selectionModel().selectionChanged.connect(self.selection_changed)
        keys.fixed_shortcut("Shift+F10", self, self.open_menu)
        for standard, other, slot in (
            (QKeySequence.StandardKey.ZoomIn, "Ctrl+=", self.zoom.zoom_in),  # the same key without Shift
            (QKeySequence.StandardKey.ZoomOut, "Ctrl+_", self.zoom.zoom_out),
        ):
            shortcut = QShortcut(self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.setKeys([*QKeySequence.keyBindings(standard), QKeySequence(other)])
            shortcut.activated.connect(slot)

    def show_instead(self, other: QWidget | None) -> None:
        """Show another view of the sprites, inside the grid, instead of the thumbnails; None: the thumbnails."""
        if self._other is not None:
            self._other.hide()
        self._other = other
        self.view.setVisible(other is None)
        if other is not None:
            self._box.addWidget(other)
            other.show()
        self.setFocusProxy(other or self.view)

    def set_sprites(
        self,
        rgba: Rgba,
        names: Sequence[str] = (),
        captions: Sequence[str] = (),
        labels: NDArray[np.int64] = _NO_LABELS,
        class_names: Sequence[str] = (),
        *,
        stays: bool = False,
    ) -> None:
        """Show `rgba` uint8 [N, S, S, 4], in memory or memory-mapped (not copied, so don't change the array).

        names, captions: empty, or a text for each sprite. labels: empty, or int64 [N] of indices into `class_names`, -1
        for no class. Captions are shown below the sprites, without folders where room is short; name and class are the
        tooltip. stays: keep the scroll position.
        """
        top = self.view.verticalScrollBar().value() if stays else 0
        self.model.beginResetModel()
        self.model.rgba, self.model.names, self.model.captions = np.asarray(rgba), names, captions
        self.model.short_captions = short_captions(captions)
        self.model.labels, self.model.class_names, self.model.visible = labels, class_names, None
        self.model.marked = frozenset()
        self.model.endResetModel()
        self.zoom.set_size(rgba.shape[1] if len(rgba) else 0)
        self.view.verticalScrollBar().setValue(top)
        self.selection_changed.emit()

    def replace_labels(self, labels: NDArray[np.int64], class_names: Sequence[str]) -> None:
        """Replace the classes; see `set_sprites`. Selection and scroll position stay."""
        self.model.labels, self.model.class_names = labels, class_names
        self.selection_changed.emit()

    def replace_pixels(self, rgba: Rgba) -> None:
        """Replace the pixels by an array of the same shape. Selection and scroll position stay."""
        assert rgba.shape == self.model.rgba.shape, rgba.shape
        self.model.rgba = np.asarray(rgba)
        self.delegate.forget_thumbnails()
        self.view.viewport().update()

    def set_marked(self, indices: Collection[int]) -> None:
        """Mark only these sprites as kept."""
        self.model.marked = frozenset(indices)
        self.view.viewport().update()

    def go_to(self, index: int) -> bool:
        """Select only this sprite, make it current and scroll to it. Return False for a hidden sprite."""
        visible = self.model.visible
        rows = [index] if visible is None else np.flatnonzero(visible == index)[:1].tolist()
        if rows:
            self.view.go_to(rows[0])
        return bool(rows)

    def set_visible(self, indices: NDArray[np.int64] | Sequence[int] | None, *, stays: bool = False) -> None:
        """Show only these sprites, in this order; None: all. Clears the selection. stays: keep the scroll position."""
        top = self.view.verticalScrollBar().value() if stays else 0
        self.model.beginResetModel()
        self.model.visible = None if indices is None else np.asarray(indices, np.int64)
        self.model.endResetModel()
        self.view.verticalScrollBar().setValue(top)
        self.selection_changed.emit()

    def visible_count(self) -> int:
        return self.model.rowCount()

    def current_row(self) -> int:
        """Return the row of the current sprite; -1 for none."""
        return self.view.currentIndex().row()

    def go_to_row(self, row: int) -> None:
        """Select only the sprite of this row, make it current and scroll to it."""
        self.view.go_to(row)

    def shown_sprite(self, row: int) -> ShownSprite:
        """Return the sprite of a row for the large view."""
        number, model = self.model.number(row), self.model
        label = int(model.labels[number]) if len(model.labels) else -1
        name = model.names[number] if model.names else f"Sprite {number + 1:,}"
        return ShownSprite(model.rgba[number], name, model.class_names[label] if label >= 0 else "")

    @Slot()
    def open_large(self) -> None:
        """Show the current sprite, or else the first selected one, in a large view."""
        if not self.view.currentIndex().isValid() and len(spans := self.view.spans()):
            self.view.go_to(int(spans[0, 0]))
        if self.view.currentIndex().isValid():
            LargeView(self, self).open()

    def selected(self) -> list[int]:
        """Return the selected sprites' indices, ascending."""
        ranges = [np.arange(first, last + 1) for first, last in self.view.spans()]
        rows = np.concatenate(ranges) if ranges else np.zeros(0, np.int64)
        found: list[int] = np.sort(rows if self.model.visible is None else self.model.visible[rows]).tolist()
        return found

    def after_selection(self) -> list[int]:
        """Return the index of the visible sprite after the selection, or before a selection at the end; [] for none."""
        spans = self.view.spans()
        rows = (spans[-1, 1] + 1, spans[0, 0] - 1) if len(spans) else ()
        return [self.model.number(int(row)) for row in rows if 0 <= row < self.visible_count()][:1]

    def selected_count(self) -> int:
        spans = self.view.spans()
        return int((spans[:, 1] - spans[:, 0] + 1).sum())

    def select(self, indices: Sequence[int]) -> None:
        """Select exactly these sprites, if visible, and scroll to the first."""
        wanted = np.unique(np.asarray(indices, np.int64))
        if self.model.visible is None:
            rows = wanted[(wanted >= 0) & (wanted < len(self.model.rgba))]
        else:
            rows = np.flatnonzero(np.isin(self.model.visible, wanted))
        self.view.select_rows(rows)

    @Slot()
    def open_menu(self) -> None:
        """Open the context menu at the current sprite, which is selected unless it already is."""
        index = self.view.currentIndex()
        if self._other is not None:
            self.menu_requested.emit()
            return
        if not index.isValid():
            return
        if not self.view.selectionModel().isSelected(index):
            self.view.go_to(index.row())
        self.view.scrollTo(index)
        self.menu.open_at(self.view.viewport().mapToGlobal(self.view.visualRect(index).center()))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the context menu for the sprite under the mouse, or for the current sprite by the Menu key."""
        place = self.view.viewport().mapFromGlobal(event.globalPos())
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.open_menu()
        elif self.view.indexAt(place).isValid():  # the press has selected the sprite
            self.menu.open_at(event.globalPos())

    @Slot()
    def _fit_cells(self) -> None:
        self.delegate.zoom = self.zoom.value
        self.view.resize_cells(self.delegate.cell(self.view.fontMetrics()))

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        self.activated.emit(self.model.number(index.row()))
