"""A recipe's presets, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QPushButton, QWidget

from studio.app import parts
from studio.core import wording
from studio.core.config import TrainingConfig

if TYPE_CHECKING:
    from studio.recipes.base import Recipe


class Presets(QWidget):
    """chosen: (the config that the preset makes)."""

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._configs: list[TrainingConfig] = []
        self._helps: list[str] = []
        self._group = QButtonGroup(self)
        self._buttons: Sequence[QPushButton] = ()
        self._row = parts.row()
        self._help = parts.text("", "muted")
        self.setLayout(parts.column(self._row, self._help))
        self._group.idClicked.connect(self._choose)

    def show_recipe(self, recipe: Recipe) -> None:
        """Offer the presets of this recipe."""
        for button in self._buttons:
            self._group.removeButton(button)
            self._row.removeWidget(button)
            button.deleteLater()
        self._configs = [recipe.Config().replace(**preset.changes) for preset in recipe.presets]
        self._helps = [preset.help for preset in recipe.presets]
        made = []
        for number, (preset, config) in enumerate(zip(recipe.presets, self._configs, strict=True)):
            button = parts.button(f"{preset.title}\n{_length(config)}", preset.help)
            button.setCheckable(True)
            button.setMinimumHeight(48)
            self._group.addButton(button, number)
            self._row.addWidget(button)
            made.append(button)
        self._buttons = made

    def standard(self) -> TrainingConfig | None:
        """What to begin with: the one in the middle."""
        return self._configs[len(self._configs) // 2] if self._configs else None

    def mark(self, config: TrainingConfig) -> None:
        """Mark the preset that these settings are; none when the user has settings of their own."""
        self._group.setExclusive(False)
        for button, preset in zip(self._buttons, self._configs, strict=True):
            button.setChecked(preset == config)
        self._group.setExclusive(True)
        matches = [words for words, preset in zip(self._helps, self._configs, strict=True) if preset == config]
        self._help.setText(matches[0] if matches else "Your own settings.")

    @Slot(int)
    def _choose(self, number: int) -> None:
        self.chosen.emit(self._configs[number])


def _length(config: TrainingConfig) -> str:
    return wording.count(config.steps, "step") if config.steps else wording.duration(60 * config.minutes)
