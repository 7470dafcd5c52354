"""A view of a few sprites that fills its area, as for the samples of a training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QContextMenuEvent, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio.app import keys, theme
from studio.app.widgets.input import ARROWS, PlaceTips
from studio.app.widgets.menu import ContextMenu
from studio.app.widgets.sprites.captions import fitting_caption, short_captions
from studio.app.widgets.sprites.large_view import LargeView, ShownSprite
from studio.app.widgets.sprites.painting import draw_sprite
from studio.app.widgets.sprites.sheet_layout import PAIR_GAP, SetRows, SheetLayout
from studio.core.arrays import Rgba
from studio.core.events import SamplesReady

_TIP = "Double-click a sprite to view it large."
_PAIRS = "Left: original. Right: reconstruction."
_SET_PARTS = ("Given", "True", "Drawn")
_SETS = "Rows of given, true and drawn cells"
_READABLE = 8  # characters; shorter elided captions tell nothing


class SpriteSheetView(QWidget):
    """Up to some hundred sprites in a grid that fills the widget at the largest whole zoom, or shrunk to fit it.

    The arrow keys and clicks choose the current sprite; Enter or a double-click shows it large. menu: the context menu
    of the current sprite, which the page fills.
    """

    selection_changed = Signal()  # other sprites, or another current sprite

    def __init__(self) -> None:
        super().__init__()
        self.menu = ContextMenu(self, "Sample")
        self._current = -1  # index of the current sprite; -1 for none
        self._rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self._captions: tuple[str, ...] = ()
        self._short: list[str] = []  # the captions where the whole ones have no room
        self._originals: Rgba | None = None
        self._parts: tuple[int, ...] = ()  # for sets, the numbers of given, true and drawn cells in a row
        self._placeholder = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Samples")
        self.setToolTip(_TIP)
        PlaceTips(self, self._tip_at)
        keys.fixed_shortcut("Shift+F10", self, self.open_menu)

    def sizeHint(self) -> QSize:
        """Return room for two rows of eight 32-pixel sprites at double size."""
        return QSize(8 * 70, 2 * 70 + 20)

    def minimumSizeHint(self) -> QSize:
        """Return room for the sprites at actual size."""
        return QSize(8 * 34, 2 * 34)

    def show_samples(self, samples: SamplesReady) -> None:
        """Show the live samples of a step: sprites, reconstructions beside their originals, or sets in rows."""
        if samples.given:
            self.set_sprites(samples.cells(), samples.cell_captions(), parts=samples.parts())
        else:
            self.set_sprites(samples.sprites, samples.captions, samples.originals)

    def set_sprites(
        self, rgba: Rgba, captions: Sequence[str] = (), originals: Rgba | None = None, parts: tuple[int, ...] = ()
    ) -> None:
        """Show `rgba` uint8 [N, S, S, 4] with captions below; an empty array clears the view.

        originals: uint8 [N, S, S, 4], a sprite to show on the left of each, for reconstructions. parts: the numbers of
        given, true and drawn cells in a row of `rgba`, for sets.
        """
        self._rgba, self._captions, self._originals, self._parts = rgba, tuple(captions), originals, parts
        self._short = short_captions(captions)
        self._current = min(self._current, len(rgba) - 1)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if len(rgba) else Qt.FocusPolicy.NoFocus)
        self._refresh()

    def places(self) -> SheetLayout:
        """Return the places of the sprites in the widget, without captions if these would be unreadable."""
        (count, size), metrics, none = self._rgba.shape[:2], self.fontMetrics(), QSize(0, 0)
        has_pairs, area = self._originals is not None, self.size()
        if self._parts and count:
            return self._places_of_sets()
        if has_pairs:
            area -= QSize(0, metrics.height())  # the last line explains the pairs
        fill = partial(SheetLayout.fill, area, self.devicePixelRatioF(), count, size, has_pairs=has_pairs)
        if not (self._captions and count):
            return fill(caption=none)
        longest = max(map(metrics.horizontalAdvance, self._short))
        found = fill(caption=QSize(longest, metrics.height()))
        readable = min(longest, _READABLE * metrics.averageCharWidth())
        has_room = found.boxes[0].width() >= readable and found.boxes[-1].bottom() < area.height()
        return found if has_room else fill(caption=none)

    def _places_of_sets(self) -> SheetLayout:
        """Return the places of sets, without the names of cells if these would make the sprites smaller."""
        (count, size), columns = self._rgba.shape[:2], sum(self._parts)
        found = []
        for names in (self._short[:columns], ()):
            sets = SetRows(count // columns, size, self._parts, _SET_PARTS, names)
            found.append(SheetLayout.fill_sets(self.size(), self.devicePixelRatioF(), sets, self.fontMetrics()))
        named, bare = found
        has_room = max((line.right() for line, _ in named.names), default=0) < self.width()
        return named if has_room and named.boxes[0].width() >= bare.boxes[0].width() else bare

    def _part_of(self, row: int) -> str:
        """Return 'Given', 'True' or 'Drawn' for a cell of sets; '' for other sprites."""
        if not self._parts:
            return ""
        column, ends = row % sum(self._parts), np.cumsum(self._parts)
        return _SET_PARTS[int(np.searchsorted(ends, column, side="right"))]

    def visible_count(self) -> int:
        return len(self._rgba)

    def current_row(self) -> int:
        """Return the index of the current sprite; -1 for none."""
        return self._current

    def go_to_row(self, row: int) -> None:
        """Make this sprite current."""
        if row != self._current:
            self._current = row
            self._refresh()

    def shown_sprite(self, row: int) -> ShownSprite:
        """Return a sprite for the large view."""
        name = self._captions[row] if self._captions else f"Sample {row + 1}"
        return ShownSprite(self._rgba[row], name, self._part_of(row) if self._originals is None else "Reconstruction")

    @Slot()
    def open_large(self) -> None:
        """Show the current sprite in a large view."""
        if self._current >= 0:
            LargeView(self, self).open()

    @Slot()
    def open_menu(self) -> None:
        """Open the context menu at the current sprite."""
        if self._current >= 0:
            self.menu.open_at(self.mapToGlobal(self.places().boxes[self._current].center()))

    def _refresh(self) -> None:
        """Redraw, and describe the sprites for screen readers."""
        count, captions = len(self._rgba), self._captions
        about = ", ".join(captions) or (f"{count} sprites" if count else self._placeholder)
        if self._current >= 0:
            part = f", {self._part_of(self._current).lower()}" if self._parts else ""
            about = f"{captions[self._current] if captions else 'Sample'}{part}, {self._current + 1} of {count}"
        elif self._parts:
            about = f"{_SETS}: {', '.join(dict.fromkeys(captions))}"
        if self._originals is not None:
            about = f"{about}. {_PAIRS}"
        self.setAccessibleDescription(about)
        self.update()
        self.selection_changed.emit()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self.places().at(event.position().toPoint())
        if at >= 0:
            self.go_to_row(at)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.places().at(event.position().toPoint()) >= 0:
            self.open_large()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the context menu for the sprite under the mouse, or for the current sprite by the Menu key."""
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.open_menu()
        elif self.places().at(event.pos()) >= 0:
            self.menu.open_at(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the current sprite with the arrow keys; Enter shows it large."""
        step = ARROWS.get(Qt.Key(event.key()))
        if step is not None and len(self._rgba):
            row = self._current + step[0] + self.places().columns * step[1]
            if 0 <= row < len(self._rgba):
                self.go_to_row(row)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.open_large()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Make the first sprite current if none is."""
        super().focusInEvent(event)
        if self._current < 0:
            self.go_to_row(0)

    def set_placeholder(self, text: str) -> None:
        """Set the text shown without sprites."""
        if text != self._placeholder:
            self._placeholder = text
            self._refresh()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QColor(theme.colours().muted))
        if not len(self._rgba):
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(16, 16, -16, -16), flags, self._placeholder)
            return
        places = self.places()
        height = places.caption
        for heavy, headings in ((False, places.names), (True, places.titles)):
            font = self.font()
            font.setBold(heavy)
            painter.setFont(font)
            for line, text in headings:
                painter.drawText(line, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip, text)
        painter.setFont(self.font())
        for number, box in enumerate(places.boxes):
            sprite = box.adjusted(0, 0, 0, -height)
            if number == self._current and self.hasFocus():
                painter.setPen(QPen(QColor(theme.colours().accent), 2))
                painter.drawRect(sprite.adjusted(-2, -2, 2, 2))
                painter.setPen(QColor(theme.colours().muted))
            elif self._part_of(number) == _SET_PARTS[0]:
                painter.drawRect(sprite.adjusted(-3, -3, 2, 2))
            if self._originals is None:
                draw_sprite(painter, sprite, self._rgba[number])
            else:
                side, middle = sprite.height(), sprite.center().x() + 1
                left, top, apart = middle - side - PAIR_GAP // 2, sprite.y(), side + PAIR_GAP
                draw_sprite(painter, QRect(left, top, side, side), self._originals[number])
                draw_sprite(painter, QRect(left + apart, top, side, side), self._rgba[number])
            if height:
                line = QRect(box.x() - 2, box.bottom() + 1 - height, box.width() + 4, height)
                metrics = painter.fontMetrics()
                text = fitting_caption(self._captions[number], self._short[number], metrics, line.width())
                painter.drawText(line, Qt.AlignmentFlag.AlignCenter, text)
        if self._originals is not None:
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom, _PAIRS)

    def _tip_at(self, point: QPoint) -> str:
        """Return the full caption at a point, since the shown caption may be elided or missing."""
        at = self.places().at(point) if self._captions else -1
        about = _TIP if self._originals is None else _PAIRS
        if at < 0:
            return about if len(self._rgba) else ""
        return f"{self._captions[at]}, {self._part_of(at).lower()}" if self._parts else self._captions[at]
