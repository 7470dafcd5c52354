"""The dialog that verifies whether a file is unchanged and belongs to its run."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QWidget

from studio.app import theme
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.core.events import Verified
from studio.exports.model_cards import LIMITS

_MARKS = {True: ("check", "Yes"), False: ("warning", "No"), None: ("info", "Unknown")}


class VerifyDialog(QDialog):
    """Verifies a file and lists the checks with their results."""

    def __init__(self, session: Session, path: Path, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"Verify {path.name}")
        self.setMinimumWidth(560)
        self._path = path
        self.verdict = factory.title("Verifying…")
        self.checks = QGridLayout()
        self.checks.setColumnStretch(1, 1)
        self.close_button = factory.button("Close", "Close this window.", role="primary", slot=self.accept)
        note, foot = factory.caption(LIMITS), factory.row(1, self.close_button)
        self.setLayout(factory.column(self.verdict, self.checks, note, 1, foot, margin=3 * factory.GRID))
        session.inference.verified.connect(self._on_verified)
        session.failed.connect(self._on_failed)
        session.inference.verify(path)

    @Slot(object)
    def _on_verified(self, found: Verified) -> None:
        if found.path == self._path:
            name = found.path.name
            self.verdict.setText(f"{name} is unchanged" if found.holds else f"{name} has changed")
            for row, check in enumerate(found.checks):
                icon, words = _MARKS[check.holds]
                mark = QLabel(pixmap=theme.icon(icon).pixmap(20, 20))
                factory.set_name_and_tip(mark, words, words)
                self.checks.addWidget(mark, row, 0, Qt.AlignmentFlag.AlignTop)
                self.checks.addWidget(factory.text(check.words), row, 1)

    @Slot()
    def _on_failed(self) -> None:
        """Close the dialog: the window shows the error."""
        self.reject()
