"""The dialog that verifies whether a file is unchanged and belongs to its run."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QWidget

from studio.app import theme
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.core.events import Check, Verified
from studio.exports.model_cards import LIMITS

_MARKS = {True: ("check", "Yes"), False: ("warning", "No"), None: ("info", "Unknown")}
_ICON_PX = 20


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
        self.close_button = factory.button("Close", "Close this window.", role="primary")
        self.close_button.clicked.connect(self.accept)
        note = factory.caption(LIMITS)
        foot = factory.row(1, self.close_button)
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
                self._add(row, check)

    def _add(self, row: int, check: Check) -> None:
        name, words = _MARKS[check.holds]
        mark = QLabel()
        mark.setPixmap(theme.icon(name).pixmap(_ICON_PX, _ICON_PX))
        mark.setAccessibleName(words)
        mark.setToolTip(words)
        self.checks.addWidget(mark, row, 0, Qt.AlignmentFlag.AlignTop)
        self.checks.addWidget(factory.text(check.words), row, 1)

    @Slot()
    def _on_failed(self) -> None:
        """Close the dialog: the window shows the error."""
        self.reject()
