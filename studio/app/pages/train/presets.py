"""A recipe's presets, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QPushButton, QWidget

from studio.app.widgets import factory
from studio.core import wording
from studio.core.config import TrainingConfig

if TYPE_CHECKING:
    from studio.recipes.base import Preset, Recipe, TrainingBudget


class Presets(QWidget):
    """chosen: (the config that the preset makes)."""

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._configs: list[TrainingConfig] = []
        self._presets: Sequence[Preset] = ()
        self.marked = ""  # title of the preset whose settings are on show; empty for the user's own
        self._group = QButtonGroup(self)
        self._buttons: Sequence[QPushButton] = ()
        self._row = factory.row()
        self._help = factory.text("", "muted")
        self._summary = ""  # of the preset that is marked
        self._locked = False
        self.setLayout(factory.column(self._row, self._help))
        self._group.idClicked.connect(self._choose)

    def show_recipe(self, recipe: Recipe, means: TrainingBudget) -> None:
        """Offer the presets of this recipe, as they suit these means."""
        presets = recipe.presets(means)
        configs = [recipe.Config().replace(**preset.changes) for preset in presets]
        if configs == self._configs:
            return
        self._configs, self._presets = configs, presets
        for button in self._buttons:
            self._group.removeButton(button)
            self._row.removeWidget(button)
            button.deleteLater()
        made = []
        for number, (preset, config) in enumerate(zip(presets, configs, strict=True)):
            button = factory.button(f"{preset.title}\n{_length(config)}", preset.help)
            button.setCheckable(True)
            button.setMinimumHeight(48)
            self._group.addButton(button, number)
            self._row.addWidget(button)
            made.append(button)
        self._buttons = made

    def config(self, title: str) -> TrainingConfig | None:
        """The settings of the preset of that title; where there is none, of the one in the middle."""
        if not self._configs:
            return None
        titles = [preset.title for preset in self._presets]
        return self._configs[titles.index(title) if title in titles else len(titles) // 2]

    def mark(self, config: TrainingConfig) -> None:
        """Mark the preset that these settings are, if they are one's; few sprites may make two presets the same."""
        matches = [preset for preset, made in zip(self._presets, self._configs, strict=True) if made == config]
        titles = [preset.title for preset in matches]
        self.marked = self.marked if self.marked in titles else next(iter(titles), "")
        self._group.setExclusive(False)
        for button, preset in zip(self._buttons, self._presets, strict=True):
            button.setChecked(preset.title == self.marked)
        self._group.setExclusive(True)
        self._summary = matches[0].help if matches else ""
        self._say()

    def set_locked(self, locked: bool) -> None:
        """A run trains, with the settings that it has, or the user may choose."""
        self._locked = locked
        self.setEnabled(not locked)
        self._say()

    def _say(self) -> None:
        own = "The settings of this run." if self._locked else "Your own settings."
        self._help.setText(self._summary or own)

    @Slot(int)
    def _choose(self, number: int) -> None:
        self.marked = self._presets[number].title
        self.chosen.emit(self._configs[number])


def _length(config: TrainingConfig) -> str:
    return wording.count(config.steps, "step") if config.steps else wording.duration(60 * config.minutes)
