"""Texts in the few sizes that a page has."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel


def title(text: str) -> QLabel:
    """The name of a page."""
    return QLabel(text)


def heading(text: str) -> QLabel:
    """The name of a section."""
    return QLabel(text)


def caption(text: str) -> QLabel:
    """A quiet line of explanation; it wraps."""
    return QLabel(text)
