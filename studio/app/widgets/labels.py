"""Texts in the few sizes that a page has."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy

from studio.app import theme


class RunningLabel(QLabel):
    """A line that changes often: nothing beside it moves with its length.

    What doesn't fit is shortened, and whole in the tool tip.
    """

    def __init__(self, role: theme.Role = "") -> None:
        super().__init__()
        self._whole = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        theme.set_role(self, role)

    def say(self, text: str) -> None:
        """Show this from now on."""
        self._whole = text
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as much as there is room for."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        text = self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, self.width())
        if text != self.text():
            self.setText(text)
        self.setToolTip(self._whole if text != self._whole else "")


def title(text: str) -> QLabel:
    """The name of a page."""
    return _label(text, "title")


def heading(text: str) -> QLabel:
    """The name of a section."""
    return _label(text, "heading")


def caption(text: str) -> QLabel:
    """A quiet line of explanation; it wraps."""
    label = _label(text, "muted")
    label.setWordWrap(True)
    return label


def badge(text: str) -> QLabel:
    """A short fact on a quiet ground."""
    return _label(text, "badge")


def _label(text: str, role: theme.Role) -> QLabel:
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)  # names of files and classes may hold anything
    theme.set_role(label, role)
    return label
