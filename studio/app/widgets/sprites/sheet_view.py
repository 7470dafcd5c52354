"""A view of a few sprites that fills its area, as for the samples of a training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QContextMenuEvent, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio.app import keys, theme
from studio.app.widgets.input import ARROWS, PlaceTips
from studio.app.widgets.menu import ContextMenu
from studio.app.widgets.sprites.captions import fitting_caption
from studio.app.widgets.sprites.large_view import LargeView, ShownSprite
from studio.app.widgets.sprites.painting import draw_sprite
from studio.app.widgets.sprites.sheet_content import GIVEN, PAIRS, SheetContent
from studio.app.widgets.sprites.sheet_layout import PAIR_GAP, SheetViewLayout
from studio.core.arrays import Rgba
from studio.core.events import SamplesReady

_TIP = "Double-click a sprite to view it large."


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
        self._shown = SheetContent(np.zeros((0, 1, 1, 4), np.uint8))
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

    def set_sprites(
        self, rgba: Rgba, captions: Sequence[str] = (), originals: Rgba | None = None, parts: tuple[int, ...] = ()
    ) -> None:
        """Show `rgba` uint8 [N, S, S, 4] with captions below; an empty array clears the view. See `SheetContent`."""
        self._shown = SheetContent(rgba, tuple(captions), originals, parts)
        self._current = min(self._current, len(rgba) - 1)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if len(rgba) else Qt.FocusPolicy.NoFocus)
        self._refresh()

    def places(self) -> SheetViewLayout:
        """Return the places of the sprites in the widget; see `SheetContent.places` for the captions."""
        return self._shown.places(self.size(), self.devicePixelRatioF(), self.fontMetrics())

    def visible_count(self) -> int:
        return len(self._shown.rgba)

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
        name = self._shown.captions[row] if self._shown.captions else f"Sample {row + 1}"
        about = self._shown.part_of(row) if self._shown.originals is None else "Reconstruction"
        return ShownSprite(self._shown.rgba[row], name, about)

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
        self.setAccessibleDescription(self._shown.describe(self._current) or self._placeholder)
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
        if step is not None and len(self._shown.rgba):
            row = self._current + step[0] + self.places().columns * step[1]
            if 0 <= row < len(self._shown.rgba):
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
        if not len(self._shown.rgba):
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
            elif self._shown.part_of(number) == GIVEN:
                painter.drawRect(sprite.adjusted(-3, -3, 2, 2))
            if self._shown.originals is None:
                draw_sprite(painter, sprite, self._shown.rgba[number])
            else:
                side, middle = sprite.height(), sprite.center().x() + 1
                left, top, apart = middle - side - PAIR_GAP // 2, sprite.y(), side + PAIR_GAP
                draw_sprite(painter, QRect(left, top, side, side), self._shown.originals[number])
                draw_sprite(painter, QRect(left + apart, top, side, side), self._shown.rgba[number])
            if height:
                line = QRect(box.x() - 2, box.bottom() + 1 - height, box.width() + 4, height)
                metrics = painter.fontMetrics()
                text = fitting_caption(self._shown.captions[number], self._shown.short[number], metrics, line.width())
                painter.drawText(line, Qt.AlignmentFlag.AlignCenter, text)
        if self._shown.originals is not None:
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom, PAIRS)

    def _tip_at(self, point: QPoint) -> str:
        """Return the full caption at a point, since the shown caption may be elided or missing."""
        at = self.places().at(point) if self._shown.captions else -1
        about = _TIP if self._shown.originals is None else PAIRS
        if at < 0:
            return about if len(self._shown.rgba) else ""
        return (
            f"{self._shown.captions[at]}, {self._shown.part_of(at).lower()}"
            if self._shown.parts
            else self._shown.captions[at]
        )


def show_samples(view: SpriteSheetView, samples: SamplesReady) -> None:
    """Show the live samples of a step in a view: sprites, reconstructions beside their originals, or sets in rows."""
    if samples.given:
        view.set_sprites(samples.cells(), samples.cell_captions(), parts=samples.parts())
    else:
        view.set_sprites(samples.sprites, samples.captions, samples.originals)
