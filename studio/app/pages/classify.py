"""What a classifier says of sprites that are dropped here."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from studio.app import parts
from studio.app.widgets import labels
from studio.app.widgets.flow import Flow
from studio.app.widgets.probabilities import ProbabilitiesView
from studio.core import wording
from studio.core.events import Classified, Rgba


class ClassifyPanel(QWidget):
    """paths_given: list of paths to look at. browse_wanted, open_wanted: the user wants to choose others."""

    paths_given = Signal(list)
    browse_wanted = Signal()
    open_sprites_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setAcceptDrops(True)
        self.view = ProbabilitiesView()
        self.browse = parts.button("Choose sprites…", "Choose files for the model to name.", "folder")
        self.open_sprites = parts.button("The open sprites", "Let the model name the sprites of the Sprites page.")
        self._title = labels.heading("")
        self._stack = QStackedWidget()
        empty = labels.caption("Drop sprites here and the model says what they are.")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        scroll = parts.scrolling(self.view)
        self._stack.addWidget(parts.panel(parts.column(1, empty, 1)))
        self._stack.addWidget(scroll)
        buttons = Flow(parts.GRID, parts.GRID)
        for button in (self.browse, self.open_sprites):
            buttons.addWidget(button)
        head = parts.row(self._title, buttons)
        head.setStretch(0, 1)
        self.setLayout(parts.column(head, self._stack, spacing=2 * parts.GRID))
        self.browse.clicked.connect(self.browse_wanted)
        self.open_sprites.clicked.connect(self.open_sprites_wanted)

    @Slot(object, object)
    def show_answer(self, rgba: Rgba, answer: Classified) -> None:
        """Show the sprites with their most probable classes."""
        self._title.setText(wording.count(len(rgba), "sprite"))
        self.view.set_predictions(rgba, answer.probabilities, answer.class_names)
        self._stack.setCurrentIndex(1)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files are welcome."""
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Name what was dropped."""
        event.acceptProposedAction()
        self.paths_given.emit([Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()])
