"""The left side of the Train page: recipe, preset, device, and the settings of the recipe that is chosen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QWidget

from studio.app.background.job_events import RunDescribed
from studio.app.pages.train.device_choice import DeviceChoice
from studio.app.pages.train.presets import Presets
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.app.widgets import factory
from studio.app.widgets.layout import Disclosure
from studio.core import wording
from studio.core.config import Config, TrainingConfig, Value
from studio.core.errors import UsageError
from studio.core.events import Event

if TYPE_CHECKING:
    from studio.data.sprites import Sprites
    from studio.engine.devices import Device
    from studio.recipes.base import Recipe, TrainingBudget


from collections.abc import Callable
from typing import TYPE_CHECKING

from studio.app.widgets.config_form import ConfigForm

if TYPE_CHECKING:
    from studio.recipes.base import Recipe


class SetupPanel(QWidget):
    """changed: something that decides what Start does is another."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.recipes = QComboBox()
        factory.describe(self.recipes, "Recipe", "What kind of model to train.")
        self._summary = factory.caption("Recipes arrive with the engine, in a moment.")
        self.presets = Presets()
        self.devices = DeviceChoice(session)
        self._estimate = factory.caption("")
        self._forms = RecipeForms()
        self.settings = Disclosure("Settings", self._forms)
        heading = factory.heading
        self.setLayout(
            factory.column(
                heading("What to train"), self.recipes, self._summary, heading("How long"), self.presets,
                self._estimate, heading("Device"), self.devices, self.settings, 1,
            )
        )  # fmt: skip
        self._connect()
        self.setEnabled(False)

    def _connect(self) -> None:
        self._session.catalog.ready.connect(self._show_recipes)
        self.recipes.currentIndexChanged.connect(self._show_recipe)
        self.presets.chosen.connect(self._take_preset)
        self._forms.changed.connect(self._settings_changed)
        self.devices.changed.connect(self._show_estimate)
        self.devices.changed.connect(self.changed)
        self.devices.measure_wanted.connect(self._measure)
        self.devices.changed.connect(self._offer_presets)
        self._session.importing.imported.connect(self._offer_presets)
        self._session.importing.imported.connect(self._show_estimate)
        self._session.training.state_changed.connect(self._offer_presets)
        self._session.training.event_received.connect(self._follow_training)

    def recipe(self) -> Recipe | None:
        """The chosen recipe."""
        return self._session.catalog.recipes.get(self.recipes.currentData() or "")

    def config(self) -> TrainingConfig:
        """The settings on show. Raises UsageError."""
        return self._forms.config()

    def problem(self) -> str:
        """Why nothing can be trained with this; empty when it can."""
        if self.recipe() is None:
            return "The engine is still starting."
        return self.devices.problem() or self._forms.problem()

    def set_locked(self, locked: bool) -> None:
        """No other choice while a run trains."""
        self.recipes.setEnabled(not locked)
        self.presets.set_locked(locked)
        self.devices.picker.set_locked(locked)
        self._forms.set_locked(locked)

    def keep(self) -> None:
        """Remember what is chosen."""
        recipe = self.recipe()
        if recipe is not None and not self.problem():
            self._session.settings.keep_text("recipe", recipe.name)
            self._session.settings.keep_values(recipe.name, self.config().to_json())
            self._session.settings.keep_text(f"{recipe.name} preset", self.presets.marked)
            self.devices.keep()

    @Slot()
    def _show_recipes(self) -> None:
        wanted = self._session.settings.text("recipe")
        self.recipes.blockSignals(True)
        for recipe in self._session.catalog.recipes.values():
            self.recipes.addItem(recipe.title, recipe.name)
        self.recipes.setCurrentIndex(max(0, self.recipes.findData(wanted)))
        self.recipes.blockSignals(False)
        self.setEnabled(True)
        self._show_recipe()

    @Slot()
    def _show_recipe(self) -> None:
        recipe = self.recipe()
        if recipe is None:
            return
        self._summary.setText(recipe.summary)
        self.presets.show_recipe(recipe, _means(recipe, self._session.importing.sprites, self.devices.device()))
        self._forms.show_recipe(recipe, partial(_first_config, recipe, self._session.settings, self.presets))
        self._settings_changed()

    @Slot()
    def _offer_presets(self) -> None:
        """Other sprites or another device make other presets; the one that is chosen stays chosen."""
        recipe, chosen = self.recipe(), self.presets.marked
        if recipe is None or self._session.training.is_busy() or self._forms.problem():
            return
        self.presets.show_recipe(recipe, _means(recipe, self._session.importing.sprites, self.devices.device()))
        config = self.presets.config(chosen)
        if chosen and config is not None and config != self.config():
            self._take_preset(config)
        else:
            self.presets.mark(self.config())

    @Slot(object)
    def _take_preset(self, config: Config) -> None:
        self._forms.set_config(config)
        self._settings_changed()

    @Slot()
    def _settings_changed(self) -> None:
        recipe = self.recipe()
        if recipe is not None and not self._forms.problem():
            self.presets.mark(self.config())
            self.devices.settings_changed(recipe, self.config())
        self._show_estimate()
        self.changed.emit()

    @Slot(object)
    def _follow_training(self, event: Event) -> None:
        """Show what a run is trained with; a resumed one brings settings of its own."""
        if isinstance(event, RunDescribed) and event.record.recipe in self._session.catalog.recipes:
            self.recipes.setCurrentIndex(self.recipes.findData(event.record.recipe))
            kind = self._session.catalog.recipes[event.record.recipe].Config
            self._take_preset(kind.from_json(event.record.config))

    @Slot()
    def _measure(self) -> None:
        recipe, sprites = self.recipe(), self._session.importing.sprites
        if recipe is None or sprites is None or self.problem():
            self._estimate.setText(self.problem() or "Open sprites first: their size decides how fast a device is.")
        else:
            self.devices.measure(recipe, self.config(), sprites)

    @Slot()
    def _show_estimate(self) -> None:
        """How long it takes and how much is seen, as far as that is known."""
        sprites = self._session.importing.sprites
        if self.recipe() is None or self._forms.problem():
            return
        config = self.config()
        speed = self.devices.speed(config.precision)
        if not speed or sprites is None:
            self._estimate.setText("Measure the devices to see how much is learnt in that time.")
            return
        seen = config.steps * config.batch_size or int(60 * config.minutes * speed)
        each = wording.count(round(seen / max(1, len(sprites))), "time")
        length = wording.duration(seen / speed)
        self._estimate.setText(f"About {length} here: {wording.number(seen)} sprites, each of yours {each}.")


def _means(recipe: Recipe, sprites: Sprites | None, device: Device | None) -> TrainingBudget:
    from studio.engine.measure import means_of  # torch is there: the recipe came with it

    return means_of(recipe, sprites, device)


def _first_config(recipe: Recipe, settings: Settings, presets: Presets) -> TrainingConfig:
    """Those of the last time: the preset, or the user's own."""
    config, preset = _remembered(recipe, settings.values(recipe.name)), settings.text(f"{recipe.name} preset")
    if config is None or preset:
        config = presets.config(preset)
    return config or recipe.Config()


def _remembered(recipe: Recipe, values: dict[str, Value]) -> TrainingConfig | None:
    """The settings of the last time; None when there are none, or none that this version knows."""
    try:
        return recipe.Config.from_json(values) if values else None
    except UsageError:
        return None


class RecipeForms(QWidget):
    """changed: a setting on show is another."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._forms: dict[str, ConfigForm] = {}
        self._shown = ""
        self._box = factory.column()
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
