"""The user's changes of the training settings as steps of an undo history."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Slot

from studio.app.state.catalog import EngineCatalog
from studio.app.state.runs.runs import RunList
from studio.app.state.settings import Settings
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.chosen_settings import ChosenSettings, RecipeChoice
from studio.app.state.training.device_choice import DeviceChoice
from studio.app.state.undo import UndoHistory, UndoStep, change_title
from studio.core.config import TrainingConfig
from studio.engine.devices.types import STARTER, ParentSource


@dataclass(frozen=True)
class _Snapshot:
    """The chosen recipe with its settings and its parent model."""

    recipe: str
    config: TrainingConfig
    suited: ParentSource
    preset: str
    parent: ParentSource


class UndoableSettings(ChosenSettings):
    """The chosen recipe, settings, presets, parent model and device; the user's choices are steps of `history`."""

    def __init__(
        self, settings: Settings, open_sprites: OpenSprites, catalog: EngineCatalog, runs: RunList,
        devices: DeviceChoice, parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(settings, open_sprites, catalog, runs, devices, parent)
        self.history = UndoHistory(self)
        self._is_in_step = False

    def choose_recipe(self, name: str) -> None:
        """Choose a recipe with its last settings and add a step to `history`."""
        recipe = self._catalog.recipes.get(name)
        with self.step(f"choose {recipe.title if recipe is not None else name}"):
            super().choose_recipe(name)

    def choose_preset(self, title: str) -> None:
        """Choose a preset and add a step to `history`."""
        with self.step(f"choose {title}"):
            super().choose_preset(title)

    def choose_parent(self, source: ParentSource, *, remember: bool = True) -> None:
        """Choose the parent model and add a step to `history`."""
        what = "starter model" if source == STARTER else "no model" if source is None else f"model {source.name}"
        with self.step(f"start from {what}"):
            super().choose_parent(source, remember=remember)

    def edit_config(self, config: TrainingConfig) -> None:
        """Use the user's settings. Consecutive changes of a setting form a single step of `history`."""
        assert self.config is not None
        with self.step(change_title(self.config, config), joins=True):
            super().edit_config(config)

    @Slot(str)
    def choose_device(self, device_id: str) -> None:
        """Choose the device and add a step to `history`."""
        before = self._devices.device
        self._devices.choose(device_id)
        after = self._devices.device
        if before is not None and after is not None and before.id != after.id:
            undo, redo = partial(self._devices.choose, before.id), partial(self._devices.choose, after.id)
            self.history.add(UndoStep(f"choose {after.name}", undo, redo))

    @Slot(bool)
    def use_all_gpus(self, uses: bool) -> None:
        """Train with all GPUs together, or with the chosen GPU alone, and add a step to `history`."""
        choose = self._devices.use_all_gpus
        choose(uses)
        title = "use all GPUs" if uses else "use one GPU"
        self.history.add(UndoStep(title, partial(choose, not uses), partial(choose, uses)))

    @contextlib.contextmanager
    def step(self, title: str, *, joins: bool = False) -> Iterator[None]:
        """Add the block's changes to `history`, unless `title` is empty or an outer `step` adds them.

        joins: extend the latest step if it has the same title.
        """
        before, is_outer = self._snapshot(), not self._is_in_step
        self._is_in_step = True
        try:
            yield
        finally:
            self._is_in_step = not is_outer
        after, latest = self._snapshot(), self.history.latest
        if not is_outer or not title or before is None or after is None or before == after:
            return
        redo = partial(self._restore, after)
        if joins and latest is not None and latest.title == title:
            self.history.replace_latest(UndoStep(title, latest.undo, redo))
        else:
            self.history.add(UndoStep(title, partial(self._restore, before), redo))

    def _snapshot(self) -> _Snapshot | None:
        recipe, choice = self.recipe, self._choice
        if recipe is None or choice is None:
            return None
        return _Snapshot(recipe.name, choice.config, choice.suited, choice.preset, self.parents.source_for(recipe))

    def _restore(self, snapshot: _Snapshot) -> None:
        self._recipe_name = snapshot.recipe
        recipe = self.recipe
        assert recipe is not None
        if self.parents.source_for(recipe) != snapshot.parent:
            self.parents.choose(recipe, snapshot.parent)
        self._run_choices.pop(recipe.name, None)
        self._choices[recipe.name] = RecipeChoice(snapshot.config, snapshot.suited, snapshot.preset)
        self._update_presets()
