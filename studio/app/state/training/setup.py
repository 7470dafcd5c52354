"""The setup of the next training: the chosen recipe and settings, the parent model and the device."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from studio.app.background.jobs import TrainingRequest
from studio.app.state.catalog import EngineCatalog
from studio.app.state.runs.runs import RunList
from studio.app.state.settings import Settings
from studio.app.state.sprites.rights import load_rights
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.chosen_settings import RecipeChoice, store_choice
from studio.app.state.training.device_choice import DeviceChoice
from studio.app.state.training.training import CurrentTraining
from studio.app.state.training.undoable_settings import UndoableSettings
from studio.core.errors import UsageError
from studio.engine.devices.types import STARTER
from studio.engine.runs.folder import RunDir, RunRecord

if TYPE_CHECKING:
    from studio.recipes.base import Recipe

_IDENTITY = ("paths", "options", "edits")  # keys of Sprites.origin that identify sprites


class TrainingSetup(UndoableSettings):
    """The setup for Start and for the queue: the open sprites with the chosen settings on the chosen device."""

    def __init__(
        self, settings: Settings, open_sprites: OpenSprites, catalog: EngineCatalog, training: CurrentTraining,
        runs: RunList, devices: DeviceChoice, parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(settings, open_sprites, catalog, runs, devices, parent)
        self._training = training
        catalog.ready.connect(self._on_recipes_loaded)
        catalog.devices_found.connect(self._update_presets)
        devices.changed.connect(self._update_presets)
        devices.measured.connect(self.changed)
        for signal in (open_sprites.started, open_sprites.ended):
            signal.connect(self.changed)
        open_sprites.imported.connect(self._on_imported)
        runs.listed.connect(self._on_runs_listed)
        training.state_changed.connect(self._update_presets)

    def use_settings(self, run: Path, record: RunRecord) -> None:
        """Choose the recipe and the settings of a run for the next training, and open the run's sprites.

        Also choose the starter model if the run used it, else random weights. This parent is not stored for later.
        Raises UsageError if the recipe or a setting is unknown.
        """
        recipe = self._recipe_of(record)
        config = recipe.Config.from_json(record.chosen_config)
        with self.step("use a run's settings"):
            self.choose_recipe(recipe.name)
            self.choose_parent(STARTER if record.parent == STARTER else None, remember=False)
            fixed = self.parents.fixed_settings(recipe) or {}  # the starter model may have changed
            self._choices[recipe.name].preset = ""
            self.set_config(config.replace(**fixed))
        if not self._has_sprites_of(run, record):
            self._open_sprites.open_paths([RunDir(run).data])

    def _has_sprites_of(self, run: Path, record: RunRecord) -> bool:
        """Return whether the open sprites come from the run, or from the run's files with the run's options."""
        sprites = self._open_sprites.sprites
        if sprites is None or self._open_sprites.paths == (RunDir(run).data,):
            return sprites is not None
        return all(sprites.origin.get(key) == record.data_origin.get(key) for key in _IDENTITY)

    def show_run(self, record: RunRecord) -> None:
        """Show the recipe and the settings of a resumed run until the next import.

        Do nothing if the recipe or a setting is unknown. The user's own settings stay stored.
        """
        with contextlib.suppress(UsageError):
            recipe = self._recipe_of(record)
            config = recipe.Config.from_json(record.chosen_config)
            with self.step(""):  # resuming a run can't be undone
                self.choose_recipe(recipe.name)
            self.parents.show_run(recipe, record)
            self._run_choices[recipe.name] = RecipeChoice(config, self.parents.source_for(recipe))
            self._update_title()

    def start_from(self, run: Path, record: RunRecord) -> None:
        """Choose a run as the parent model, and the run's recipe; without open sprites, open the run's sprites.

        Raises UsageError if the recipe is unknown.
        """
        with self.step(f"start from model {run.name}"):
            self.choose_recipe(self._recipe_of(record).name)
            self.choose_parent(run)
        if self._open_sprites.sprites is None:
            self._open_sprites.open_paths([RunDir(run).data])

    def _recipe_of(self, record: RunRecord) -> Recipe:
        recipe = self._catalog.recipes.get(record.recipe)
        if recipe is None:
            raise UsageError(f"Recipe {record.recipe!r} is not installed.", "Install its package.")
        return recipe

    def problem(self) -> str:
        """Return why Start is disabled; empty if a training can start."""
        return self.missing() or self.invalid() or self.unsuitable(self.recipe)

    def missing(self) -> str:
        """Return which of sprites, PyTorch and a device is missing for every training; empty if none."""
        if self._open_sprites.latest.paths != self._open_sprites.paths:
            return "Opening sprites…"
        if self._open_sprites.sprites is None:
            return "Open a folder of sprites first."
        if self.recipe is None:
            return "Loading PyTorch…"
        if self._devices.device is None:
            return "Choose a device." if self._catalog.devices else "Searching for devices…"
        return ""

    def unsuitable(self, recipe: Recipe | None) -> str:
        """Return why the open sprites don't suit a recipe, and what to do; empty if they may suit."""
        result = self._open_sprites.result
        if result is None or recipe is None:
            return ""
        if recipe.makes == "sets" and not len(result.sprites.sets) and result.proposed_sets is not None:
            return "Slice these sheets into characters on the Sprites page first."
        return recipe.obstacle(result.sprites)

    def offered_recipe(self) -> Recipe | None:
        """Return a recipe that learns the sets of the open sprites, if they have some; None if it is chosen already."""
        sprites, recipes = self._open_sprites.sprites, self._catalog.recipes.values()
        if sprites is None or not len(sprites.sets) or self.recipe is None or self.recipe.makes == "sets":
            return None
        return next((one for one in recipes if one.makes == "sets" and not one.obstacle(sprites)), None)

    def request(self) -> TrainingRequest | None:
        """Return the training that Start would begin; None if the setup has a `problem`."""
        sprites, recipe, config, device = self._open_sprites.sprites, self.recipe, self.config, self._devices.device
        if self.problem() or sprites is None or recipe is None or config is None or device is None:
            return None
        sprites = load_rights(self._settings, self._open_sprites.paths, sprites.origin).add_to(sprites)
        source = self.parents.source_for(recipe)
        return TrainingRequest(sprites, recipe, config, device, source, self._devices.processes(device))

    def start(self) -> None:
        """Train the open sprites, unless the setup has a `problem`."""
        if (request := self.request()) is not None:
            self.store()
            self._training.start(request)

    def measure(self) -> None:
        """Measure the training speed of each device, unless the setup has a `problem`."""
        if (request := self.request()) is not None:
            self._devices.reset_measurements(request.recipe, request.config)
            self._catalog.measure(request.recipe, request.config, request.sprites)

    def store(self) -> None:
        """Remember the recipe, its settings and the device for the next session."""
        recipe = self.recipe
        is_valid = self._devices.device is not None and not self.invalid()
        if recipe is not None and recipe.name in self._choices and is_valid:
            self._settings.set_text("recipe", recipe.name)
            store_choice(self._settings, recipe, self._choices[recipe.name])
            self._devices.store()

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
    def _on_runs_listed(self) -> None:
        """Choose another parent model if the chosen run was deleted."""
        if self.recipe is not None and self.parents.is_missing(self.recipe) and not self._training.is_busy():
            self.parents.forget(self.recipe)
            self._update_presets()
        else:
            self.changed.emit()
