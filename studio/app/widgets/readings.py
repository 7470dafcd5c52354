"""A line of readings."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget


class Readings(QWidget):
    """Label and value pairs in a line that wraps where it is narrow."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_reading(self, label: str, value: str, tip: str = "") -> None:
        """Show `value` under `label`; a new label is added at the end. Widths do not jump with the digits."""

    def clear(self) -> None:
        """Show a dash for every value."""
