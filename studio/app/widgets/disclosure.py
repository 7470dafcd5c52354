"""A section that folds."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from studio.app import theme


class Disclosure(QWidget):
    """A heading with a chevron; a click shows or hides what is under it."""

    toggled = Signal(bool)

    def __init__(self, text: str, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._content = content
        self._heading = QToolButton()
        self._heading.setText(text)
        self._heading.setCheckable(True)
        self._heading.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._heading.setToolTip(f"Show or hide: {text.lower()}.")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._heading)
        layout.addWidget(content)
        self._heading.toggled.connect(self._unfold)
        self._unfold(False)

    def is_open(self) -> bool:
        """Whether the content is shown."""
        return self._heading.isChecked()

    def set_open(self, opened: bool) -> None:
        """Show or hide the content."""
        self._heading.setChecked(opened)

    @Slot(bool)
    def _unfold(self, opened: bool) -> None:
        self._heading.setIcon(theme.icon("chevron-down" if opened else "chevron-right"))
        self._content.setVisible(opened)
        self.toggled.emit(opened)
