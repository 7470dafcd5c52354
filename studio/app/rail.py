"""The pages' names at the left edge."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QFrame, QToolButton

from studio.app import parts, theme

PAGES = ("sprites", "train", "generate", "runs")
_TIPS = {
    "sprites": "What the model will learn from.",
    "train": "Train a model on the sprites and watch it learn.",
    "generate": "Make new sprites with a model, or let it name yours.",
    "runs": "Everything that was ever trained.",
}


class Rail(QFrame):
    """chosen: the name of the page that the user wants."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._group = QButtonGroup(self)
        self._buttons: dict[str, QToolButton] = {}
        for number, name in enumerate(PAGES, 1):
            button = parts.tool(name, name.capitalize(), f"{_TIPS[name]} (Ctrl+{number})")
            button.setText(name.capitalize())
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            button.setIconSize(QSize(24, 24))
            button.setFixedSize(80, 64)
            button.setCheckable(True)
            self._group.addButton(button, number)
            self._buttons[name] = button
        self._group.idClicked.connect(self._choose)
        self.setLayout(parts.column(*self._buttons.values(), 1, margin=parts.GRID))
        theme.set_role(self, "")

    def show_page(self, name: str) -> None:
        """Mark a page as the one on show."""
        self._buttons[name].setChecked(True)

    @Slot(int)
    def _choose(self, number: int) -> None:
        self.chosen.emit(PAGES[number - 1])
