"""The settings of each recipe, one form for each; that of the chosen one is on show."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from studio.app import parts
from studio.app.form import ConfigForm
from studio.core.config import Config, TrainingConfig

if TYPE_CHECKING:
    from studio.recipes.base import Recipe


class RecipeForms(QWidget):
    """changed: a setting on show is another."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._forms: dict[str, ConfigForm] = {}
        self._shown = ""
        self._box = parts.column()
        self.setLayout(self._box)

    def show_recipe(self, recipe: Recipe, first: Callable[[], TrainingConfig]) -> None:
        """Show the settings of this recipe; `first` gives those that it begins with."""
        if recipe.name not in self._forms:
            form = ConfigForm(first())
            form.changed.connect(self.changed)
            self._forms[recipe.name] = form
            self._box.addWidget(form)
        self._shown = recipe.name
        for name, form in self._forms.items():
            form.setVisible(name == recipe.name)

    def config(self) -> TrainingConfig:
        """The settings on show. Raises UsageError."""
        config = self._forms[self._shown].config()
        assert isinstance(config, TrainingConfig)
        return config

    def set_config(self, config: Config) -> None:
        """Show these."""
        self._forms[self._shown].set_config(config)

    def problem(self) -> str:
        """What is wrong with the settings on show; empty when nothing is."""
        return self._forms[self._shown].problem()

    def set_locked(self, locked: bool) -> None:
        """Whether they can be changed."""
        for form in self._forms.values():
            form.set_locked(locked)
