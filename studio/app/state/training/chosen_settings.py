"""The chosen recipe with its settings, its presets and the parent model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.state.catalog import EngineCatalog
from studio.app.state.late import benchmark
from studio.app.state.runs.runs import RunList
from studio.app.state.settings import Settings
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.device_choice import DeviceChoice
from studio.app.state.training.parent_choice import ParentChoice
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
    """The presets of a recipe: named sets of training settings, such as 'Quick'."""

    offered: tuple[tuple[Preset, TrainingConfig], ...]  # presets with distinct settings
    configs: Mapping[str, TrainingConfig]  # the settings of all presets, by title
    usual: TrainingConfig  # the settings before the user chooses a preset
    defaults: TrainingConfig  # the settings that presets change

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


class ChosenSettings(QObject):
    """The chosen recipe (kind of model) with its settings, its presets and the parent model."""

    changed = Signal()  # the recipe, settings, presets, parent model, device or measurements changed

    def __init__(
        self, settings: Settings, open_sprites: OpenSprites, catalog: EngineCatalog, runs: RunList,
        devices: DeviceChoice, parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._settings, self._open_sprites, self._catalog, self._devices = settings, open_sprites, catalog, devices
        self._recipe_name = settings.text("recipe")
        self._choices: dict[str, RecipeChoice] = {}  # by recipe
        self._run_choices: dict[str, RecipeChoice] = {}  # settings of resumed runs, shown until the next import
        self._presets: Presets | None = None  # of the chosen recipe
        self.parents = ParentChoice(settings, open_sprites, runs)

    @property
    def recipe(self) -> Recipe | None:
        """The chosen recipe, or the first recipe; None until the engine has started."""
        recipes = self._catalog.recipes
        return recipes.get(self._recipe_name) or next(iter(recipes.values()), None)

    @property
    def config(self) -> TrainingConfig | None:
        """The settings of the chosen recipe; None until the engine has started."""
        return None if self._choice is None else self._choice.config

    @property
    def preset(self) -> str:
        """The title of the preset with these settings; empty for custom settings."""
        return "" if self._choice is None else self._choice.preset

    @property
    def presets(self) -> tuple[tuple[Preset, TrainingConfig], ...]:
        """The presets to choose from, with their settings."""
        return () if self._presets is None else self._presets.offered

    @property
    def shows_run(self) -> bool:
        """Whether the shown settings come from a resumed run and were not chosen by the user."""
        return self.recipe is not None and self.recipe.name in self._run_choices

    @property
    def _choice(self) -> RecipeChoice | None:
        recipe = self.recipe
        return None if recipe is None else self._run_choices.get(recipe.name) or self._choices.get(recipe.name)

    def choose_recipe(self, name: str) -> None:
        """Choose a recipe and load its last settings."""
        self._recipe_name = name
        recipe = self.recipe
        assert recipe is not None
        presets = self._make_presets(recipe)
        if recipe.name not in self._choices:
            source = self.parents.source_for(recipe)
            self._choices[recipe.name] = load_choice(self._settings, recipe, presets, source)
        self._apply_presets(recipe, presets)

    def choose_preset(self, title: str) -> None:
        """Choose the settings of a preset."""
        assert self._presets is not None
        self._take_over().preset = title
        self.set_config(self._presets.configs[title])

    def choose_parent(self, source: ParentSource, *, remember: bool = True) -> None:
        """Choose the model to start from and adjust the preset or the custom settings to the model."""
        assert self.recipe is not None
        self._take_over().invalid = ""
        self.parents.choose(self.recipe, source, remember=remember)
        self._update_presets()

    def set_config(self, config: TrainingConfig) -> None:
        """Change the settings of the chosen recipe."""
        assert self._choice is not None
        self._choice.config, self._choice.invalid = config, ""
        self._update_title()

    def edit_config(self, config: TrainingConfig) -> None:
        """Use the settings that the user has edited in the form."""
        self.set_config(config.with_changed_minutes(self._take_over().config))

    def set_invalid(self, problem: str) -> None:
        """Mark the typed settings as invalid and disable Start."""
        assert self._choice is not None
        self._choice.invalid = problem
        self.changed.emit()

    def invalid(self) -> str:
        """Return why the typed settings are invalid; empty if valid."""
        return "" if self._choice is None else self._choice.invalid

    @Slot()
    def _update_presets(self) -> None:
        """Adjust the presets to the open sprites, the device and the parent model; the chosen preset stays chosen."""
        if self.recipe is None or self._choice is None or self._choice.invalid:
            self.changed.emit()
        else:
            self._apply_presets(self.recipe, self._make_presets(self.recipe))

    def _take_over(self) -> RecipeChoice:
        """Turn the shown settings, perhaps of a resumed run, into the user's own settings and return them."""
        assert self.recipe is not None and self._choice is not None
        self._choices[self.recipe.name] = choice = self._choice
        self._run_choices.pop(self.recipe.name, None)
        return choice

    def _apply_presets(self, recipe: Recipe, presets: Presets) -> None:
        """Use the new settings of the chosen preset. Reset settings that depend on the parent if it has changed."""
        choice, source = self._choice, self.parents.source_for(recipe)
        assert choice is not None
        if source != choice.suited:
            names = {*recipe.fine_tuning, *recipe.fixed_by_weights}
            choice.config = choice.config.replace(**{name: getattr(presets.defaults, name) for name in names})
            choice.suited = source
        choice.config = presets.configs.get(choice.preset, choice.config)
        self._update_title()

    def _update_title(self) -> None:
        """Find the preset with the chosen settings and discard measurements of other settings."""
        recipe, choice = self.recipe, self._choice
        if recipe is not None and choice is not None and not choice.invalid:
            choice.preset = "" if self._presets is None else self._presets.title_of(choice.config)
            self._devices.discard_outdated(recipe, choice.config)
        self.changed.emit()

    def _make_presets(self, recipe: Recipe) -> Presets:
        fixed, device = self.parents.fixed_settings(recipe), self._devices.device
        processes = self._devices.processes(device)
        budget = benchmark.training_budget(recipe, self._open_sprites.sprites, device, fixed, processes)
        self._presets = Presets.of(recipe, budget)
        return self._presets


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
