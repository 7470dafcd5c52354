"""The empty Sprites page: a drop zone, buttons, and recent folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QDragEnterEvent, QDragLeaveEvent, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from studio.app import theme
from studio.app.widgets import factory

_MOST_RECENT = 5
_RECENT_WIDTH = 420


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
        self._picture = QLabel()
        title = factory.title("Drop a folder of sprites here")
        hint = factory.caption("Subfolders become classes. Your files are never changed.")
        browse = factory.button("Browse…", "Choose a folder of sprites.", "open", "primary", self.browse_requested)
        tip = "Open the bundled demo sprites."
        demo = factory.button("Open the demo sprites", tip, "image", slot=self.demo_requested)
        self._recent_title = factory.heading("Recent")
        self._recent_list = factory.column(spacing=0)
        for label in (self._picture, title, hint, self._recent_title):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        head = factory.column(self._picture, title, hint)
        recent = factory.column(self._recent_title, self._recent_list)
        parts = (2, head, factory.row(1, browse, demo, 1), recent, 3)
        self.setLayout(factory.column(*parts, margin=factory.GRID, spacing=3 * factory.GRID))
        self._paint_picture()
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
        if factory.local_paths(event.mimeData()):
            event.acceptProposedAction()
            self._set_hovered(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._set_hovered(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._set_hovered(False)
        event.acceptProposedAction()
        self.paths_chosen.emit(factory.local_paths(event.mimeData()))

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
            self._paint_picture()

    def _paint_picture(self) -> None:
        self._picture.setPixmap(theme.icon("folder", "muted").pixmap(QSize(48, 48)))
