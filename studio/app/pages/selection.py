"""What can be done with the sprites that are selected."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from studio.app import parts
from studio.app.doctor import Doctor
from studio.app.importing import Importing
from studio.app.widgets.sprite_grid import SpriteGrid
from studio.core.wording import count


class SelectionBar(QWidget):
    """A line under a grid of all open sprites: how many are selected, or that they can be."""

    def __init__(self, grid: SpriteGrid, importing: Importing, doctor: Doctor) -> None:
        super().__init__()
        self._grid, self._importing, self._doctor = grid, importing, doctor
        self._words = parts.text("", "muted", wrap=False)
        self.leave_out = parts.button("Leave them out", "Don't learn from these (Delete); Ctrl+Z takes it back.")
        self.setLayout(parts.row(self._words, self.leave_out, 1))
        shortcut = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), grid)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(self._leave_out)
        self.leave_out.clicked.connect(self._leave_out)
        grid.selection_changed.connect(self._refresh)
        parts.keep_space(self.leave_out)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        selected = self._grid.selected_count()
        words = f"{count(selected, 'sprite')} selected" if selected else "Select sprites to leave them out."
        self._words.setText(words)
        self.leave_out.setVisible(selected > 0)

    @Slot()
    def _leave_out(self) -> None:
        sprites = self._importing.sprites
        chosen = self._grid.selected()
        if sprites is not None and chosen:
            self._doctor.leave_out([sprites.names[index] for index in chosen])
