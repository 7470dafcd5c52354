"""While sprites are being read."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QProgressBar, QWidget

from studio.app import parts
from studio.app.importing import Importing
from studio.app.widgets import labels
from studio.core.events import Progress


class Waiting(QWidget):
    """How far the import is, and a way out."""

    def __init__(self, importing: Importing) -> None:
        super().__init__()
        self.cancel = parts.button("Cancel", "Stop reading; what was open before stays.")
        self._words = labels.RunningLabel("heading")
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedWidth(320)
        parts.describe(self._bar, "Progress", "How many of the files have been read.")
        bar, cancel = parts.row(1, self._bar, 1), parts.row(1, self.cancel, 1)
        self.setLayout(parts.column(1, self._words, bar, cancel, 1, spacing=2 * parts.GRID))
        self.cancel.clicked.connect(importing.cancel)
        importing.started.connect(self._begin)
        importing.progressed.connect(self._show_progress)

    @Slot()
    def _begin(self) -> None:
        self._words.say("Reading sprites…")
        self._bar.setRange(0, 0)

    @Slot(object)
    def _show_progress(self, progress: Progress) -> None:
        of = f" of {progress.total:,}" if progress.total else ""
        self._words.say(f"{progress.done:,}{of} {progress.what}")
        self._bar.setRange(0, progress.total)
        self._bar.setValue(progress.done)
