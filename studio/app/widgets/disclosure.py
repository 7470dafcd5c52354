"""A section that folds."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget


class Disclosure(QWidget):
    """A heading with a chevron; a click shows or hides what is under it."""

    toggled = Signal(bool)

    def __init__(self, text: str, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def is_open(self) -> bool:
        """Whether the content is shown."""
        return False

    def set_open(self, opened: bool) -> None:
        """Show or hide the content."""
