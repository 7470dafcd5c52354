"""A line of readings."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from studio.app import parts, theme
from studio.app.widgets.flow import Flow

_DASH = "–"


class Readings(QWidget):
    """Label and value pairs in a line that wraps where it is narrow."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._values: dict[str, QLabel] = {}
        self._layout = Flow(24, 8)
        self.setLayout(self._layout)

    def set_reading(self, label: str, value: str, tip: str = "") -> None:
        """Show `value` under `label`; a new label is added at the end. Widths do not jump with the digits."""
        shown = self._values.get(label) or self._add(label)
        if shown.text() != value:
            shown.setText(value)
            shown.setAccessibleName(f"{label}: {value}")  # a screen reader says both
            width = shown.fontMetrics().horizontalAdvance(value)
            if width > shown.minimumWidth():  # grow, never shrink: the line must not dance
                shown.setMinimumWidth(width)
        if tip:
            shown.setToolTip(tip)

    def value(self, label: str) -> str:
        """What is shown under `label`."""
        return self._values[label].text()

    def clear(self) -> None:
        """Show a dash for every value."""
        for shown in self._values.values():
            shown.setText(_DASH)

    def _add(self, label: str) -> QLabel:
        name, shown = QLabel(label), QLabel(_DASH)
        theme.set_role(name, "muted")
        theme.set_role(shown, "heading")
        shown.setTextFormat(Qt.TextFormat.PlainText)
        shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._layout.addWidget(parts.panel(parts.column(name, shown, spacing=0)))
        self._values[label] = shown
        return shown
