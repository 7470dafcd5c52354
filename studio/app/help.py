"""First steps and shortcuts, on one sheet."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QWidget

from studio.app import parts
from studio.app.widgets import labels

_STEPS = (
    "Drop a folder of sprites on the window. Its sub-folders become classes.",
    "On the Train page, press Start. The fastest device is already chosen.",
    "Watch the samples. Pause or stop whenever you like: nothing is lost.",
    "On the Generate page, make new sprites, also while the training runs.",
    "Save them as PNG files or a sheet, or export the model for other programs.",
)
_SHORTCUTS = (
    ("Ctrl+O", "Open a folder of sprites"),
    ("Ctrl+R", "Start training"),
    ("Space", "Pause, or go on"),
    ("Ctrl+.", "Stop, and keep the work"),
    ("Ctrl+S", "Save the sprites on show"),
    ("Ctrl+E", "Export the model"),
    ("Delete", "Leave out the sprites that are chosen"),
    ("Ctrl+Z, Ctrl+Shift+Z", "Undo, and redo, what was done to the sprites"),
    ("Ctrl+1 to Ctrl+4", "The four pages"),
    ("F1", "This sheet"),
    ("Ctrl+Q", "Leave; what trains is saved"),
)


class HelpSheet(QDialog):
    """What a first-time user needs, and nothing more."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("First steps and shortcuts")
        self.setMinimumWidth(560)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        steps = QGridLayout()
        for number, words in enumerate(_STEPS, 1):
            steps.addWidget(labels.badge(str(number)), number, 0, Qt.AlignmentFlag.AlignTop)
            steps.addWidget(parts.text(words), number, 1)
        steps.setColumnStretch(1, 1)
        keys = QGridLayout()
        keys.setHorizontalSpacing(3 * parts.GRID)
        for line, (key, words) in enumerate(_SHORTCUTS):
            keys.addWidget(labels.badge(key), line, 0, Qt.AlignmentFlag.AlignLeft)
            keys.addWidget(parts.text(words), line, 1)
        keys.setColumnStretch(1, 1)
        close = parts.button("Close", "Close this sheet. (Esc)")
        close.clicked.connect(self.reject)
        heading = labels.heading
        self.setLayout(
            parts.column(
                heading("First steps"), steps, heading("Shortcuts"), keys, parts.row(1, close), margin=3 * parts.GRID
            )
        )
