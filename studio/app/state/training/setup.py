"""What Start would train with: recipe, settings and device as they are chosen, and how fast devices were measured."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.state.catalog import EngineCatalog
from studio.app.state.runs.runs import RunList
from studio.app.state.settings import Settings
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.parent_choice import ParentChoice
from studio.app.state.training.training import CurrentTraining
from studio.core.config import TrainingConfig, Value, settings_of
from studio.core.errors import UsageError
from studio.data.sprites import Sprites
from studio.engine.devices.types import NOTHING, STARTER, Device, DeviceMeasured, ParentSource
from studio.engine.distributed.launching import can_launch

if TYPE_CHECKING:
    from studio.engine.runs.folder import RunRecord
    from studio.recipes.base import Preset, Recipe, TrainingBudget

# Of the settings that all recipes have, those that the time of a step depends on.
_COST_TIME = {"batch_size", "optimizer", "threads", "data_on_device"}


@dataclass(eq=False)
class RecipeChoice:
    """What is chosen for one recipe."""

    config: TrainingConfig  # the last sound settings
    suited: ParentSource  # what they were last made to start from
    preset: str = ""  # the title of the one that they are; empty for the user's own
    invalid: str = ""  # what is wrong with the settings as they are typed


class TrainingSetup(QObject):
    """The chosen recipe, the settings of each recipe, and the chosen device: what Start trains with.

    changed: one of them is another, or what is known of them: devices, presets, measurements.
    """

    changed = Signal()

    def __init__(
        self, settings: Settings, open_sprites: OpenSprites, catalog: EngineCatalog, training: CurrentTraining,
        runs: RunList, parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._settings, self._open_sprites, self._catalog, self._training = settings, open_sprites, catalog, training
        self._recipe_name, self._device_id = settings.text("recipe"), settings.text("device")
        self.uses_all_cards = settings.text("all_cards") == "yes"  # where there are several
        self._chosen: dict[str, RecipeChoice] = {}  # by its name
        self._shown_run: dict[
            str, RecipeChoice
        ] = {}  # what is shown instead: a run's that goes on, until sprites are opened
        self.parents = ParentChoice(settings, open_sprites, runs)
        self.measurements = Measurements()
        self.presets: list[tuple[Preset, TrainingConfig]] = []  # on offer for these sprites and this device
        self._preset_configs: dict[str, TrainingConfig] = {}  # by title, those that are not on offer as well
        catalog.ready.connect(self._take_recipes)
        catalog.devices_found.connect(self._offer_presets)
        catalog.measured.connect(self._add_measurement)
        catalog.measuring_changed.connect(self._take_fastest)
        open_sprites.imported.connect(self._take_sprites)
        runs.listed.connect(self._forget_lost_parents)
        training.state_changed.connect(self._offer_presets)

    @property
    def recipe(self) -> Recipe | None:
        """The chosen recipe, or the first; None until the engine is there."""
        recipes = self._catalog.recipes
        return recipes.get(self._recipe_name) or next(iter(recipes.values()), None)

    @property
    def config(self) -> TrainingConfig | None:
        """The settings of the chosen recipe; None until the engine is there."""
        return None if self._own is None else self._own.config

    @property
    def preset(self) -> str:
        """The title of the preset that `config` is; empty for the user's own settings."""
        return "" if self._own is None else self._own.preset

    @property
    def is_following(self) -> bool:
        """Whether `config` is that of a run which goes on, and not what the user has chosen."""
        return self.recipe is not None and self.recipe.name in self._shown_run

    @property
    def _own(self) -> RecipeChoice | None:
        recipe = self.recipe
        return None if recipe is None else self._shown_run.get(recipe.name) or self._chosen.get(recipe.name)

    @property
    def device(self) -> Device | None:
        """The chosen device, or the fastest where none was chosen or that one has gone; None until they are found."""
        return self._catalog.device(self._device_id) or self._catalog.device(self._catalog.fastest)

    def choose_recipe(self, name: str) -> None:
        """Train this kind of model, with the settings that it had the last time."""
        self._recipe_name = name
        recipe = self.recipe
        assert recipe is not None
        self._make_presets(recipe)
        if recipe.name not in self._chosen:
            self._chosen[recipe.name] = self._of_last_time(recipe)
        own = self._own
        assert own is not None
        self._suit_parent(recipe, own)
        own.config = self._preset_configs.get(own.preset, own.config)
        self._update_preset()

    def choose_preset(self, title: str) -> None:
        """Train with the settings of this preset."""
        self._take_over().preset = title
        self.set_config(self._preset_configs[title])

    def choose_parent(self, source: ParentSource, *, remember: bool = True) -> None:
        """Start from this model, with the chosen preset, or the user's own settings, as they suit that."""
        assert self.recipe is not None
        self._take_over().invalid = ""
        self.parents.choose(self.recipe, source, remember=remember)
        self._offer_presets()

    def take_settings(self, record: RunRecord) -> None:
        """Train with a run's recipe and settings, from the starter if it did, else from nothing. That is not what the
        user chose, and not remembered. Raises UsageError where recipe or settings are not known here.
        """
        recipe = self._recipe_of(record)
        config = recipe.Config.from_json(record.config)
        self.choose_recipe(recipe.name)
        self.choose_parent(STARTER if record.parent == STARTER else None, remember=False)
        given = self.parents.settings(recipe) or {}  # those of the starter, which may be another one by now
        self._chosen[recipe.name].preset = ""
        self.set_config(config.replace(**given))

    def follow(self, record: RunRecord) -> None:
        """Show the recipe and the settings of a run that the user resumes, where they are known here. With other
        sprites, the user's own choice is back; it is what is remembered.
        """
        with contextlib.suppress(UsageError):
            recipe = self._recipe_of(record)
            config = recipe.Config.from_json(record.config)
            self.choose_recipe(recipe.name)
            self.parents.follow(recipe, record)
            self._shown_run[recipe.name] = RecipeChoice(config, self.parents.of(recipe))
            self._update_preset()

    def start_from(self, run: Path, record: RunRecord) -> None:
        """Train a run's recipe, starting from its model. Raises UsageError where the recipe is not known here."""
        self.choose_recipe(self._recipe_of(record).name)
        self.choose_parent(run)

    def _recipe_of(self, record: RunRecord) -> Recipe:
        recipe = self._catalog.recipes.get(record.recipe)
        if recipe is None:
            raise UsageError(f"There is no recipe {record.recipe!r} here.", "Install the package that it came from.")
        return recipe

    def choose_device(self, device_id: str) -> None:
        """Train, draw and export on this device; nothing happens when it does not work."""
        if self._catalog.device(device_id) not in (None, self.device):
            self._device_id = device_id
            self._offer_presets()

    def use_all_cards(self, uses: bool) -> None:
        """Have every card take a part of every batch."""
        self.uses_all_cards = uses
        self._settings.keep_text("all_cards", "yes" if uses else "no")
        self._offer_presets()

    def cards(self, device: Device | None) -> int:
        """How many cards can train one run where this device is chosen; 0 where it is none.

        torchrun gives each process the card of its number, so that all must work.
        """
        cards = [one for one in self._catalog.devices if one.kind == "cuda"]
        return len(cards) if can_launch() and device in cards and not any(card.problem for card in cards) else 0

    def processes(self, device: Device | None) -> int:
        """How many processes train a run that is begun on this device."""
        return max(1, self.cards(device)) if self.uses_all_cards else 1

    def set_config(self, config: TrainingConfig) -> None:
        """Train with these settings of the chosen recipe."""
        assert self._own is not None
        self._own.config, self._own.invalid = config, ""
        self._update_preset()

    def type_config(self, config: TrainingConfig) -> None:
        """Train with the chosen recipe's settings as the user has changed them."""
        self.set_config(config.as_typed(self._take_over().config))

    def refuse_config(self, problem: str) -> None:
        """Settings were typed that can't be; nothing is trained until they are others."""
        assert self._own is not None
        self._own.invalid = problem
        self.changed.emit()

    def invalid(self) -> str:
        """What is wrong with the settings as they are typed; empty when `config` is what they say."""
        return "" if self._own is None else self._own.invalid

    def problem(self) -> str:
        """Why nothing can be trained with this; empty when it can."""
        return self._unready() if self._open_sprites.sprites is not None else "Open a folder of sprites first."

    def chosen(self) -> tuple[Sprites, Recipe, TrainingConfig, Device] | None:
        """All that a training takes; None while there is a `problem`."""
        sprites, recipe, config, device = self._open_sprites.sprites, self.recipe, self.config, self.device
        if self.problem() or sprites is None or recipe is None or config is None or device is None:
            return None
        return self._open_sprites.rights.on(sprites), recipe, config, device

    def start(self) -> None:
        """Train the open sprites, unless there is a `problem`."""
        chosen = self.chosen()
        if chosen is not None:
            self.keep()
            self._training.start(*chosen, self.parents.of(chosen[1]), self.processes(chosen[3]))

    def measure(self) -> None:
        """Measure how fast each device trains the open sprites, unless there is a `problem`."""
        chosen = self.chosen()
        if chosen is not None:
            sprites, recipe, config, _ = chosen
            self.measurements.begin(recipe, config)
            self._catalog.measure(recipe, config, sprites)
            self.changed.emit()

    def keep(self) -> None:
        """Remember what is chosen, of the device only one that would not be chosen anyway."""
        recipe, device = self.recipe, self.device
        own = None if recipe is None else self._chosen.get(recipe.name)
        if self._unready() or recipe is None or own is None or device is None:
            return
        self._settings.keep_text("recipe", recipe.name)
        if not isinstance(own.suited, Path):  # from a run, settings follow from it
            self._settings.keep_values(recipe.name, own.config.to_json())
            self._settings.keep_text(f"{recipe.name} preset", own.preset)
            self._settings.keep_text(f"{recipe.name} suited", own.suited or NOTHING)
        self._settings.keep_text("device", device.id if device.id != self._catalog.fastest else "")

    def _unready(self) -> str:
        """What is still missing beside sprites."""
        if self.recipe is None:
            return "The engine is still starting."
        if self.device is None:
            return "Choose a device." if self._catalog.devices else "Devices are still being looked for."
        return self.invalid()

    @Slot()
    def _take_recipes(self) -> None:
        if self.recipe is not None:
            self.choose_recipe(self.recipe.name)

    @Slot()
    def _take_sprites(self) -> None:
        self.parents.unfollow()
        self._shown_run.clear()
        self._offer_presets()

    @Slot()
    def _offer_presets(self) -> None:
        """Other sprites, another device or another model to start from make other presets; the one that is chosen stays
        chosen.
        """
        if self.recipe is None or self._own is None or self._own.invalid:
            self.changed.emit()
            return
        self._make_presets(self.recipe)
        self._suit_parent(self.recipe, self._own)
        if self.preset in self._preset_configs:
            self.set_config(self._preset_configs[self.preset])
        else:
            self._update_preset()

    @Slot()
    def _forget_lost_parents(self) -> None:
        """A run that has gone is none to start from."""
        if self.recipe is not None and self.parents.is_lost(self.recipe) and not self._training.is_busy():
            self.parents.forget(self.recipe)
            self._offer_presets()
        else:
            self.changed.emit()

    @Slot(object)
    def _add_measurement(self, measured: DeviceMeasured) -> None:
        self.measurements.made.append(measured)
        self.changed.emit()

    @Slot()
    def _take_fastest(self) -> None:
        """Once all is measured, choose the device that did best."""
        fastest = self.measurements.fastest()
        if fastest and not self._catalog.is_measuring() and not self._training.has_own_run():
            self.choose_device(fastest)

    def _take_over(self) -> RecipeChoice:
        """What is on show for the recipe, which the user is about to change: a run's settings become the user's own."""
        assert self.recipe is not None and self._own is not None
        self._chosen[self.recipe.name] = own = self._own
        self._shown_run.pop(self.recipe.name, None)
        return own

    def _suit_parent(self, recipe: Recipe, own: RecipeChoice) -> None:
        """Bring the user's own settings to what a training starts from, where that is something else than before."""
        source = self.parents.of(recipe)
        if source != own.suited:
            usual = recipe.defaults(self._means(recipe))
            named = {*recipe.fine_tuning, *recipe.fixed_by_weights}
            own.config = own.config.replace(**{name: getattr(usual, name) for name in named})
            own.suited = source

    def _update_preset(self) -> None:
        """Say which preset the settings are, and forget measurements that they make wrong."""
        recipe, own = self.recipe, self._own
        if recipe is not None and own is not None and not own.invalid:
            own.preset = next((preset.title for preset, made in self.presets if made == own.config), "")
            self.measurements.forget_others(recipe, own.config)
        self.changed.emit()

    def _make_presets(self, recipe: Recipe) -> None:
        """Of presets that few sprites make alike one is on offer, that in the middle if it is among them."""
        means = self._means(recipe)
        defaults = recipe.defaults(means)
        made = [(preset, defaults.replace(**preset.changes)) for preset in recipe.presets(means)]
        self._preset_configs = {preset.title: config for preset, config in made}
        self.presets = []
        for preset, config in [*made[len(made) // 2 :], *made[: len(made) // 2]]:
            if config not in (other for _, other in self.presets):
                self.presets.append((preset, config))
        self.presets.sort(key=made.index)

    def _means(self, recipe: Recipe) -> TrainingBudget:
        from studio.engine.steps.benchmark import training_budget  # torch is there: the recipe came with it

        given, device = self.parents.settings(recipe), self.device
        cards = self.processes(device)
        return training_budget(recipe, self._open_sprites.sprites, device, given, cards)

    def _of_last_time(self, recipe: Recipe) -> RecipeChoice:
        """The settings of the last time: the user's own, or the preset, of which there is one in the middle."""
        values, title = self._settings.values(recipe.name), self._settings.text(f"{recipe.name} preset")
        with contextlib.suppress(UsageError):  # settings that this version does not know
            if values and not title:
                suited_starter = self._settings.text(f"{recipe.name} suited") == STARTER
                return RecipeChoice(recipe.Config.from_json(values), STARTER if suited_starter else None)
        means = self._means(recipe)
        usual: TrainingConfig = recipe.defaults(means).replace(**recipe.usual_changes(means))
        return RecipeChoice(self._preset_configs.get(title, usual), self.parents.of(recipe))


class Measurements:
    """How fast the devices train with the settings as they are."""

    def __init__(self) -> None:
        self.made: list[DeviceMeasured] = []  # of all devices
        self._made_with: Mapping[str, Value] = {}

    def begin(self, recipe: Recipe, config: TrainingConfig) -> None:
        """What comes from now on is measured with these settings."""
        self.made, self._made_with = [], _what_costs_time(recipe, config)

    def forget_others(self, recipe: Recipe, config: TrainingConfig) -> None:
        """Forget what these settings make wrong."""
        if _what_costs_time(recipe, config) != self._made_with:
            self.made = []

    def speed(self, device: Device | None, precision: str) -> float:
        """Sprites per second on the device, by the fastest precision for 'auto'; 0 when that was not measured."""
        of_device = [one for one in self.made if device is not None and one.device_id == device.id]
        return max((one.sprites_per_s for one in of_device if precision in ("auto", one.precision)), default=0.0)

    def fastest(self) -> str:
        """The id of the device that did best; empty before anything was measured."""
        return max(self.made, key=lambda one: one.sprites_per_s).device_id if self.made else ""


def _what_costs_time(recipe: Recipe, config: TrainingConfig) -> dict[str, Value]:
    """What a measurement depends on; of the settings that a recipe adds, each may."""
    free = {item.name for item in settings_of(TrainingConfig)} - _COST_TIME
    return {**{name: value for name, value in config.to_json().items() if name not in free}, "recipe": recipe.name}
