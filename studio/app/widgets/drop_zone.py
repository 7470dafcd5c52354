"""The empty Sprites page: a picture of sample sprites, a drop zone, buttons, and recent folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QDragEnterEvent, QDragLeaveEvent, QDropEvent, QImage, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from studio.app import theme
from studio.app.widgets import factory, pasted
from studio.app.widgets.sprites.painting import draw_sprite
from studio.core import paths
from studio.core.arrays import Rgba

_MOST_RECENT = 5
_RECENT_WIDTH = 420
_TILE, _GAP = 48, 4  # logical pixels of a sprite in the picture, and between sprites
_TRAINED_ON = 4  # real sprites at the start of the picture's file; a model generated the other sprites


class DropZone(QWidget):
    """A page to drop files on, with buttons and recent folders."""

    paths_chosen = Signal(object)  # list of Path: dropped files, or a recent folder
    browse_requested = Signal()
    demo_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setAcceptDrops(True)
        self.setAccessibleName("Drop a folder of sprites here")
        self._hovered = False
        self._recent: list[QPushButton] = []
        self._arrow = QLabel()
        promise = factory.text("Train a model on your sprites, and generate new ones in their style.", "title")
        title = factory.heading("Drop a folder of sprites here")
        hint = factory.caption("Subfolders become classes. Your files are never changed.")
        browse = factory.button("Browse…", "Choose a folder of sprites.", "open", "primary", self.browse_requested)
        tip = "Open the bundled demo sprites."
        demo = factory.button("Open the demo sprites", tip, "image", slot=self.demo_requested)
        self._recent_title = factory.heading("Recent")
        self._recent_list = factory.column(spacing=0)
        for label in (promise, title, hint, self._recent_title):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        head = factory.column(title, hint, spacing=factory.GRID // 2)
        recent = factory.column(self._recent_title, self._recent_list)
        parts = (2, promise, self._make_picture(), head, factory.row(1, browse, demo, 1), recent, 3)
        self.setLayout(factory.column(*parts, margin=3 * factory.GRID, spacing=2 * factory.GRID))
        self._paint_arrow()
        self.set_recent(())

    def set_recent(self, paths: Sequence[str]) -> None:
        """Show these recent folders, newest first."""
        factory.clear(self._recent_list)
        self._recent = []
        for path in paths[:_MOST_RECENT]:
            text = f"{Path(path).name}   –   {Path(path).parent}"
            text = self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, _RECENT_WIDTH)
            button = QPushButton(text.replace("&", "&&"))  # a single & would make a mnemonic
            button.setAccessibleName(f"Open {path} again")
            button.setToolTip(f"Open {path} again.")
            button.setProperty("path", path)
            theme.set_role(button, "flat")
            button.clicked.connect(self._on_recent_clicked)
            self._recent_list.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
            self._recent.append(button)
        self._recent_title.setVisible(bool(self._recent))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if pasted.local_paths(event.mimeData()):
            event.acceptProposedAction()
            self._set_hovered(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._set_hovered(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._set_hovered(False)
        event.acceptProposedAction()
        self.paths_chosen.emit(pasted.local_paths(event.mimeData()))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw a dashed frame, in the accent colour during a drag."""
        colours = theme.colours()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = colours.accent if self._hovered else theme.mix(colours.border, colours.text, 0.2)
        painter.setPen(QPen(QColor(colour), 2, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(9, 9, -9, -9), 12, 12)

    def _set_hovered(self, hovered: bool) -> None:
        self._hovered = hovered
        self.update()

    @Slot()
    def _on_recent_clicked(self) -> None:
        self.paths_chosen.emit([Path(self.sender().property("path"))])

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._paint_arrow()

    def _make_picture(self) -> QHBoxLayout:
        """Return sprites, an arrow, and sprites that a model generated from them."""
        sprites = _example_sprites()
        sides = (sprites[:_TRAINED_ON], "Your sprites"), (sprites[_TRAINED_ON:], "New sprites")
        tiles = [factory.column(Tiles(shown, words), _centred(words), spacing=_GAP) for shown, words in sides]
        self._arrow.setContentsMargins(0, 0, 0, _TILE // 2)  # level with the sprites, above the captions
        return factory.row(1, tiles[0], self._arrow, tiles[1], 1, spacing=2 * factory.GRID)

    def _paint_arrow(self) -> None:
        self._arrow.setPixmap(theme.icon("arrow-right", "accent").pixmap(QSize(32, 32), self.devicePixelRatioF()))


class Tiles(QWidget):
    """Two rows of sprites."""

    def __init__(self, sprites: Sequence[Rgba], name: str) -> None:
        """Create the widget. sprites: uint8 [H, W, 4] each. name: for assistive technology."""
        super().__init__()
        self._sprites, self._columns = sprites, -(-len(sprites) // 2)
        across, down = (count * (_TILE + _GAP) - _GAP for count in (self._columns, 2))
        self.setFixedSize(across, down)
        self.setAccessibleName(f"{name}, an example")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        for index, sprite in enumerate(self._sprites):
            row, column = divmod(index, self._columns)
            draw_sprite(painter, QRect(column * (_TILE + _GAP), row * (_TILE + _GAP), _TILE, _TILE), sprite)


def _example_sprites() -> list[Rgba]:
    """Return the sprites of the bundled example, uint8 [side, side, 4] each."""
    image = QImage(str(paths.assets() / "icons" / "example.png")).convertToFormat(QImage.Format.Format_RGBA8888)
    side = image.height()
    pixels = np.frombuffer(image.constBits(), np.uint8).reshape(side, image.bytesPerLine() // 4, 4)
    return [pixels[:, left : left + side].copy() for left in range(0, image.width(), side or 1)]


def _centred(words: str) -> QLabel:
    label = factory.caption(words)
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    return label
