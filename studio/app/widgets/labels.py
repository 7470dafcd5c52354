"""Texts in the few sizes that a page has."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from studio.app import theme


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
