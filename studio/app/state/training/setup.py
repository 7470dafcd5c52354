"""What Start trains: the chosen recipe and its settings, the parent model and the device."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.jobs import TrainingRequest
from studio.app.state.catalog import EngineCatalog
from studio.app.state.runs.runs import RunList
from studio.app.state.settings import Settings
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.device_choice import DeviceChoice
from studio.app.state.training.parent_choice import ParentChoice
from studio.app.state.training.recipe_choice import Presets, RecipeChoice, load_choice, store_choice
from studio.app.state.training.training import CurrentTraining
from studio.core.config import TrainingConfig
from studio.core.errors import UsageError
from studio.engine.devices.types import STARTER, ParentSource

if TYPE_CHECKING:
    from pathlib import Path

    from studio.engine.runs.folder import RunRecord
    from studio.recipes.base import Preset, Recipe


class TrainingSetup(QObject):
    """Holds what Start trains: the chosen recipe (kind of model), its settings and the parent model.

    changed: the recipe, its settings, the presets, the parent model, the device or the measurements changed.
    """

    changed = Signal()

    def __init__(
        self, settings: Settings, open_sprites: OpenSprites, catalog: EngineCatalog, training: CurrentTraining,
        runs: RunList, devices: DeviceChoice, parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._settings, self._open_sprites, self._catalog, self._training = settings, open_sprites, catalog, training
        self._devices = devices
        self._recipe_name = settings.text("recipe")
        self._choices: dict[str, RecipeChoice] = {}  # by recipe
        self._run_choices: dict[str, RecipeChoice] = {}  # settings of resumed runs, shown until the next import
        self._presets: Presets | None = None  # of the chosen recipe
        self.parents = ParentChoice(settings, open_sprites, runs)
        catalog.ready.connect(self._on_recipes_loaded)
        catalog.devices_found.connect(self._update_presets)
        devices.changed.connect(self._update_presets)
        devices.measured.connect(self.changed)
        open_sprites.imported.connect(self._on_imported)
        runs.listed.connect(self._on_runs_listed)
        training.state_changed.connect(self._update_presets)

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
        choice = self._choice
        assert choice is not None
        self._adjust_to_parent(recipe, choice, presets)
        choice.config = presets.configs.get(choice.preset, choice.config)
        self._update_title()

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

    def use_settings(self, record: RunRecord) -> None:
        """Choose the recipe and the settings of a run for the next training.

        Also choose the starter model if the run used it, else random weights. This parent is not stored for later.

        Raises UsageError if the recipe or a setting is unknown.
        """
        recipe = self._recipe_of(record)
        config = recipe.Config.from_json(record.config)
        self.choose_recipe(recipe.name)
        self.choose_parent(STARTER if record.parent == STARTER else None, remember=False)
        fixed = self.parents.fixed_settings(recipe) or {}  # the starter model may have changed
        self._choices[recipe.name].preset = ""
        self.set_config(config.replace(**fixed))

    def show_run(self, record: RunRecord) -> None:
        """Show the recipe and the settings of a resumed run until the next import.

        Do nothing if the recipe or a setting is unknown. The user's own settings stay stored.
        """
        with contextlib.suppress(UsageError):
            recipe = self._recipe_of(record)
            config = recipe.Config.from_json(record.config)
            self.choose_recipe(recipe.name)
            self.parents.show_run(recipe, record)
            self._run_choices[recipe.name] = RecipeChoice(config, self.parents.source_for(recipe))
            self._update_title()

    def start_from(self, run: Path, record: RunRecord) -> None:
        """Choose a run as the parent model, and the run's recipe. Raises UsageError if the recipe is unknown."""
        self.choose_recipe(self._recipe_of(record).name)
        self.choose_parent(run)

    def _recipe_of(self, record: RunRecord) -> Recipe:
        recipe = self._catalog.recipes.get(record.recipe)
        if recipe is None:
            raise UsageError(f"Recipe {record.recipe!r} is not installed.", "Install its package.")
        return recipe

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

    def problem(self) -> str:
        """Return why Start is disabled; empty if a training can start."""
        return self._unready() if self._open_sprites.sprites is not None else "Open a folder of sprites first."

    def request(self) -> TrainingRequest | None:
        """Return the training that Start would begin; None if the setup has a `problem`."""
        sprites, recipe, config, device = self._open_sprites.sprites, self.recipe, self.config, self._devices.device
        if self.problem() or sprites is None or recipe is None or config is None or device is None:
            return None
        sprites = self._open_sprites.rights.add_to(sprites)
        source = self.parents.source_for(recipe)
        return TrainingRequest(sprites, recipe, config, device, source, self._devices.processes(device))

    def start(self) -> None:
        """Train the open sprites, unless the setup has a `problem`."""
        request = self.request()
        if request is not None:
            self.store()
            self._training.start(request)

    def measure(self) -> None:
        """Measure the training speed of each device, unless the setup has a `problem`."""
        request = self.request()
        if request is not None:
            self._devices.reset_measurements(request.recipe, request.config)
            self._catalog.measure(request.recipe, request.config, request.sprites)

    def store(self) -> None:
        """Remember the recipe, its settings and the device for the next session."""
        recipe = self.recipe
        choice = None if recipe is None else self._choices.get(recipe.name)
        if self._unready() or recipe is None or choice is None:
            return
        self._settings.set_text("recipe", recipe.name)
        store_choice(self._settings, recipe, choice)
        self._devices.store()

    def _unready(self) -> str:
        """Return why a training can't start, apart from missing sprites; empty if it can."""
        if self.recipe is None:
            return "Loading PyTorch…"
        if self._devices.device is None:
            return "Choose a device." if self._catalog.devices else "Searching for devices…"
        return self.invalid()

    @Slot()
    def _on_recipes_loaded(self) -> None:
        if self.recipe is not None:
            self.choose_recipe(self.recipe.name)

    @Slot()
    def _on_imported(self) -> None:
        self.parents.hide_runs()
        self._run_choices.clear()
        self._update_presets()

    @Slot()
    def _update_presets(self) -> None:
        """Adjust the presets to the open sprites, the device and the parent model; the chosen preset stays chosen."""
        if self.recipe is None or self._choice is None or self._choice.invalid:
            self.changed.emit()
            return
        presets = self._make_presets(self.recipe)
        self._adjust_to_parent(self.recipe, self._choice, presets)
        if self.preset in presets.configs:
            self.set_config(presets.configs[self.preset])
        else:
            self._update_title()

    @Slot()
    def _on_runs_listed(self) -> None:
        """Choose another parent model if the chosen run was deleted."""
        if self.recipe is not None and self.parents.is_missing(self.recipe) and not self._training.is_busy():
            self.parents.forget(self.recipe)
            self._update_presets()
        else:
            self.changed.emit()

    def _take_over(self) -> RecipeChoice:
        """Turn the shown settings, perhaps of a resumed run, into the user's own settings and return them."""
        assert self.recipe is not None and self._choice is not None
        self._choices[self.recipe.name] = choice = self._choice
        self._run_choices.pop(self.recipe.name, None)
        return choice

    def _adjust_to_parent(self, recipe: Recipe, choice: RecipeChoice, presets: Presets) -> None:
        """Reset the settings that depend on the parent model, if the parent has changed."""
        source = self.parents.source_for(recipe)
        if source != choice.suited:
            names = {*recipe.fine_tuning, *recipe.fixed_by_weights}
            choice.config = choice.config.replace(**{name: getattr(presets.defaults, name) for name in names})
            choice.suited = source

    def _update_title(self) -> None:
        """Find the preset with the chosen settings and discard measurements of other settings."""
        recipe, choice = self.recipe, self._choice
        if recipe is not None and choice is not None and not choice.invalid:
            choice.preset = "" if self._presets is None else self._presets.title_of(choice.config)
            self._devices.discard_outdated(recipe, choice.config)
        self.changed.emit()

    def _make_presets(self, recipe: Recipe) -> Presets:
        from studio.engine.steps.benchmark import training_budget  # torch is loaded with the recipes

        fixed, device = self.parents.fixed_settings(recipe), self._devices.device
        processes = self._devices.processes(device)
        budget = training_budget(recipe, self._open_sprites.sprites, device, fixed, processes)
        self._presets = Presets.of(recipe, budget)
        return self._presets
