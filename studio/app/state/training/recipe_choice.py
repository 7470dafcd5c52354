"""The chosen settings of a recipe, and the presets for the sprites, the device and the parent model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.state.settings import Settings
from studio.core.config import TrainingConfig
from studio.core.errors import UsageError
from studio.engine.devices.types import NOTHING, STARTER, ParentSource

if TYPE_CHECKING:
    from studio.recipes.base import Preset, Recipe, TrainingBudget


@dataclass(eq=False)
class RecipeChoice:
    """The chosen settings of a recipe."""

    config: TrainingConfig  # the last valid settings
    suited: ParentSource  # the parent model that the settings were last adjusted to
    preset: str = ""  # title of the preset with these settings; empty for custom settings
    invalid: str = ""  # why the typed settings are invalid


@dataclass(frozen=True)
class Presets:
    """The presets of a recipe. offered: presets with distinct settings. configs: the settings of all presets by title.

    usual: the settings before the user chooses a preset. defaults: the settings that presets change.
    """

    offered: tuple[tuple[Preset, TrainingConfig], ...]
    configs: Mapping[str, TrainingConfig]
    usual: TrainingConfig
    defaults: TrainingConfig

    @classmethod
    def of(cls, recipe: Recipe, budget: TrainingBudget) -> Presets:
        """Return the presets of a recipe for this budget.

        If several presets have equal settings, only one preset is offered, preferably the middle one.
        """
        defaults = recipe.defaults(budget)
        made = [(preset, defaults.replace(**preset.changes)) for preset in recipe.presets(budget)]
        offered: list[tuple[Preset, TrainingConfig]] = []
        for preset, config in [*made[len(made) // 2 :], *made[: len(made) // 2]]:
            if config not in (other for _, other in offered):
                offered.append((preset, config))
        configs = {preset.title: config for preset, config in made}
        usual = defaults.replace(**recipe.usual_changes(budget))
        return cls(tuple(sorted(offered, key=made.index)), configs, usual, defaults)

    def title_of(self, config: TrainingConfig) -> str:
        """Return the title of the offered preset with these settings; empty for custom settings."""
        return next((preset.title for preset, settings in self.offered if settings == config), "")


def load_choice(settings: Settings, recipe: Recipe, presets: Presets, source: ParentSource) -> RecipeChoice:
    """Load the choice of the last session: custom settings, a preset, or else the usual settings."""
    values, title = settings.values(recipe.name), settings.text(f"{recipe.name} preset")
    with contextlib.suppress(UsageError):  # settings that this version does not know
        if values and not title:
            suited: ParentSource = STARTER if settings.text(f"{recipe.name} suited") == STARTER else None
            return RecipeChoice(recipe.Config.from_json(values), suited)
    return RecipeChoice(presets.configs.get(title, presets.usual), source)


def store_choice(settings: Settings, recipe: Recipe, choice: RecipeChoice) -> None:
    """Store the choice for the next session, except settings that were adjusted to a parent run."""
    if not isinstance(choice.suited, Path):
        settings.set_values(recipe.name, choice.config.to_json())
        settings.set_text(f"{recipe.name} preset", choice.preset)
        settings.set_text(f"{recipe.name} suited", choice.suited or NOTHING)
