"""Whether a file is as it was, and belongs to its run: what was looked at, line by line."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QWidget

from studio.app import theme
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.core.events import Check, Verified
from studio.exports.model_cards import LIMITS

_MARKS = {True: ("check", "Yes"), False: ("warning", "No"), None: ("info", "Not known")}
_ICON_PX = 20


class VerifyDialog(QDialog):
    """Looks at a file as soon as it is made."""

    def __init__(self, session: Session, path: Path, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"Check of {path.name}")
        self.setMinimumWidth(560)
        self._path = path
        self.verdict = factory.title("Looking at the file…")
        self.checks = QGridLayout()
        self.checks.setColumnStretch(1, 1)
        self.close_button = factory.button("Close", "Close this window.", role="primary")
        self.close_button.clicked.connect(self.accept)
        note = factory.caption(LIMITS)
        foot = factory.row(1, self.close_button)
        self.setLayout(factory.column(self.verdict, self.checks, note, 1, foot, margin=3 * factory.GRID))
        session.inference.verified.connect(self._show_result)
        session.failed.connect(self._leave)
        session.inference.verify(path)

    @Slot(object)
    def _show_result(self, found: Verified) -> None:
        if found.path == self._path:
            name = found.path.name
            self.verdict.setText(f"{name} is as it was" if found.holds else f"{name} is not as it was")
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
    def _leave(self) -> None:
        """The window says why the file can't be looked at."""
        self.reject()
