"""The Train page's left side: recipe, start weights, preset, device, settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QCheckBox, QWidget

from studio.app.pages import run_texts
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.combo_box import ComboBox
from studio.app.widgets.config_form import ConfigForm
from studio.app.widgets.device_picker import DevicePicker
from studio.app.widgets.layout import Collapsible, FlowLayout
from studio.core import formatting
from studio.core.config import TrainingConfig
from studio.engine.devices.types import ParentSource

if TYPE_CHECKING:
    from studio.data.sprites import Sprites
    from studio.recipes.base import Preset, Recipe

_FIXED = "The start weights fix this setting. Start from scratch to change it."
_ALL_CARDS = (
    "Split each batch across all cards, in processes that continue after the window closes. Queued runs use one card."
)


class SetupPanel(QWidget):
    """Form for the next training: shows the session's choices and passes on the user's changes."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.recipes = ComboBox()
        factory.set_name_and_tip(self.recipes, "Recipe", "The kind of model to train.")
        self._summary = factory.caption("Loading PyTorch…")
        self.offer = RecipeOffer()
        self.parents = factory.combo("Start from", "The model weights to start from.")
        self._parent_summary = factory.caption("")
        self.presets = PresetButtons()
        self.picker = DevicePicker()
        self.cards = QCheckBox()
        self._estimate = factory.caption("")
        self.forms = RecipeForms()
        self.settings = Collapsible("Settings", self.forms)
        heading = factory.heading
        self.setLayout(
            factory.column(
                heading("Recipe"), self.recipes, self._summary, self.offer, heading("Start from"), self.parents,
                self._parent_summary, heading("Length"), self.presets,
                self._estimate, heading("Device"), self.cards, self.picker, self.settings, 1,
            )
        )  # fmt: skip
        self.cards.hide()
        self._connect()
        self.setEnabled(False)

    def _connect(self) -> None:
        setup, catalog = self._session.setup, self._session.catalog
        self.recipes.currentIndexChanged.connect(self._on_recipe_chosen)
        self.offer.chosen.connect(setup.choose_recipe)
        self.parents.currentIndexChanged.connect(self._on_parent_chosen)
        self.presets.chosen.connect(setup.choose_preset)
        self.forms.changed.connect(self._on_settings_changed)
        self.picker.selected_changed.connect(setup.choose_device)
        self.picker.measure_requested.connect(self._on_measure_requested)
        self.cards.toggled.connect(setup.use_all_gpus)
        self.picker.cancel_requested.connect(catalog.cancel_measuring)
        catalog.ready.connect(self._on_catalog_ready)
        catalog.devices_found.connect(self._on_devices_found)
        catalog.measuring_changed.connect(self._on_measuring_changed)
        setup.changed.connect(self._refresh)

    def set_locked(self, locked: bool) -> None:
        """Lock the device while a run trains. The other settings stay editable, for a queued run."""
        self.picker.set_locked(locked)
        self.cards.setEnabled(not locked)

    @Slot()
    def _on_catalog_ready(self) -> None:
        with QSignalBlocker(self.recipes):
            for recipe in self._session.catalog.recipes.values():
                self.recipes.addItem(recipe.title, recipe.name)
        self.setEnabled(True)
        self._refresh()

    @Slot()
    def _on_devices_found(self) -> None:
        self.picker.set_devices(self._session.catalog.devices)
        self._refresh()

    @Slot()
    def _on_measuring_changed(self) -> None:
        self.picker.set_measuring(self._session.catalog.is_measuring(), self._session.catalog.progress)

    @Slot()
    def _refresh(self) -> None:
        """Show the session's choices in all controls."""
        setup, devices = self._session.setup, self._session.device_choice
        if devices.device is not None:
            self.picker.select(devices.device.id)
        self.picker.set_measurements(devices.measurements.made)
        self._show_cards(devices.gpu_count(devices.device))
        if setup.recipe is not None and setup.config is not None:
            with QSignalBlocker(self.recipes):
                self.recipes.setCurrentIndex(self.recipes.findData(setup.recipe.name))
            self._summary.setText(setup.recipe.summary)
            self.offer.show_offer(setup.offered_recipe(), self._session.open_sprites.sprites)
            parent = setup.parents.source_for(setup.recipe)
            self._show_parents(parent, setup.parents.options(setup.recipe))
            suggested, examples = setup.parents.suggested(setup.recipe), setup.parents.examples(setup.recipe)
            parts = "Views and frames" if setup.recipe.makes == "sets" else "Classes"
            self._parent_summary.setText(run_texts.parent_summary(parent, suggested, examples, parts))
            others = "This run's settings." if setup.shows_run else "Custom settings."
            self.presets.show_presets(setup.presets, setup.preset, others)
            self.forms.show_config(setup.recipe.name, setup.config, is_typed=bool(setup.invalid()))
            self.forms.set_locked(_FIXED if parent is not None else "", setup.recipe.fixed_by_weights)
            self._show_estimate(setup.recipe, setup.config)

    def _show_cards(self, count: int) -> None:
        self.cards.setVisible(count > 1)
        self.cards.setText(f"Use all {count} cards")
        factory.set_name_and_tip(self.cards, self.cards.text(), _ALL_CARDS)
        with QSignalBlocker(self.cards):
            self.cards.setChecked(self._session.device_choice.uses_all_gpus)

    def _show_parents(self, chosen: ParentSource, offered: list[ParentSource]) -> None:
        """List the possible start weights in the box. Keep an unchanged list, which may be open."""
        sources = offered if chosen in offered else [*offered, chosen]  # the parent run was deleted meanwhile
        titles = {run.path: run.title for run in self._session.runs.runs}
        items = [(run_texts.parent(source, titles), source) for source in sources]
        box = self.parents
        if items != [(box.itemText(index), box.itemData(index)) for index in range(box.count())]:
            factory.fill_combo(box, items, chosen)
        with QSignalBlocker(box):
            box.setCurrentIndex(sources.index(chosen))

    def _show_estimate(self, recipe: Recipe, config: TrainingConfig) -> None:
        """Show how long the training takes and how many examples it sees, if the device was measured."""
        sprites, devices = self._session.open_sprites.sprites, self._session.device_choice
        speed = devices.measurements.speed(devices.device, config.precision)
        if not speed or sprites is None:
            self._estimate.setText("Measure the devices to estimate the training time.")
            return
        examples = recipe.count_examples(sprites)
        steps = config.budget_steps(round(examples * (1 - config.holdout)))
        seen = steps * config.batch_size or int(60 * config.minutes * speed)
        each = formatting.count(round(seen / max(1, examples)), "time")
        length = formatting.duration(seen / speed)
        self._estimate.setText(f"About {length}: {formatting.count(seen, recipe.noun)} seen, {each} each.")

    @Slot()
    def _on_recipe_chosen(self) -> None:
        self._session.setup.choose_recipe(self.recipes.currentData())

    @Slot()
    def _on_parent_chosen(self) -> None:
        self._session.setup.choose_parent(self.parents.currentData())

    @Slot()
    def _on_settings_changed(self) -> None:
        if problem := self.forms.problem():
            self._session.setup.set_invalid(problem)
        else:
            self._session.setup.edit_config(self.forms.config())

    @Slot()
    def _on_measure_requested(self) -> None:
        problem = self._session.setup.problem()
        if self._session.open_sprites.sprites is None:
            problem = "Open sprites first: speed depends on their size."
        if problem:
            self._estimate.setText(problem)
        else:
            self._session.setup.measure()


class RecipeOffer(QWidget):
    """A line that offers a recipe that suits the open sprites, with a button that chooses it."""

    chosen = Signal(str)  # name of the recipe

    def __init__(self) -> None:
        super().__init__()
        self._recipe = ""
        self.text = factory.caption("")
        self.button = factory.button("Choose", "Choose this recipe.", slot=self._on_clicked)
        self.setLayout(factory.column(self.text, factory.panel(factory.row(self.button, 1)), spacing=factory.GRID // 2))
        self.hide()

    def show_offer(self, recipe: Recipe | None, sprites: Sprites | None) -> None:
        """Offer a recipe of sets for these sprites; hide the line for None."""
        self.setVisible(recipe is not None)
        if recipe is not None and sprites is not None:
            self._recipe = recipe.name
            characters = formatting.count(recipe.count_examples(sprites), recipe.noun)
            self.text.setText(f"These sprites are {characters}: the recipe {recipe.title} draws missing views.")
            factory.set_button_text(self.button, f"Choose {recipe.title}")
            factory.set_name_and_tip(self.button, f"Choose {recipe.title}", recipe.summary)

    @Slot()
    def _on_clicked(self) -> None:
        self.chosen.emit(self._recipe)


class PresetButtons(QWidget):
    """Preset buttons."""

    chosen = Signal(str)  # the preset's title

    def __init__(self) -> None:
        super().__init__()
        self._presets: Sequence[tuple[Preset, TrainingConfig]] = ()
        self._group = QButtonGroup(self)
        self._row = FlowLayout(factory.GRID, factory.GRID, shares=True)
        self._help = factory.text("", "muted")
        self.setLayout(factory.column(self._row, self._help))
        self._group.idClicked.connect(self._on_preset_clicked)

    def show_presets(self, presets: Sequence[tuple[Preset, TrainingConfig]], marked: str, others: str) -> None:
        """Show a button for each preset. marked: the active preset's title. others: help text if none is active."""
        if presets != self._presets:
            self._presets = presets
            self._make_buttons()
        self._group.setExclusive(False)
        for button, (preset, _) in zip(self._group.buttons(), presets, strict=True):
            button.setChecked(preset.title == marked)
        self._group.setExclusive(True)
        summary = next((preset.help for preset, _ in presets if preset.title == marked), "")
        self._help.setText(summary or others)

    def _make_buttons(self) -> None:
        for button in self._group.buttons():
            self._group.removeButton(button)
            self._row.removeWidget(button)
            button.hide()  # else visible until Qt deletes the button
            button.deleteLater()
        for index, (preset, config) in enumerate(self._presets):
            button = factory.button(f"{preset.title}\n{_length(preset, config)}", preset.help)
            button.setAccessibleName(f"{preset.title}, {_length(preset, config)}")
            button.setCheckable(True)
            button.setMinimumHeight(48)
            self._group.addButton(button, index)
            self._row.addWidget(button)

    @Slot(int)
    def _on_preset_clicked(self, index: int) -> None:
        self.chosen.emit(self._presets[index][0].title)


def _length(preset: Preset, config: TrainingConfig) -> str:
    if preset.about_s:
        return "about " + formatting.duration(max(10, round(preset.about_s, -1)))
    given = [(config.steps, "step"), (config.epochs, "epoch")]
    counted = [formatting.count(value, noun) for value, noun in given if value]
    return " or ".join(counted) or formatting.duration(60 * config.minutes)


class RecipeForms(QWidget):
    """A settings form for each recipe; shows one form at a time."""

    changed = Signal()  # the user changed a setting

    def __init__(self) -> None:
        super().__init__()
        self._forms: dict[str, ConfigForm] = {}
        self._shown = ""
        self._box = factory.column()
        self.setLayout(self._box)

    def show_config(self, recipe: str, config: TrainingConfig, *, is_typed: bool) -> None:
        """Show a recipe's settings in the form. is_typed: keep the fields, because one holds an invalid text."""
        if recipe not in self._forms:
            form = ConfigForm(config)
            form.changed.connect(self.changed)
            self._forms[recipe] = form
            self._box.addWidget(form)
        self._shown = recipe
        for name, form in self._forms.items():
            form.setVisible(name == recipe)
        if not is_typed and (self.problem() or self.config() != config):
            self._forms[recipe].set_config(config)

    def set_locked(self, reason: str, names: Collection[str]) -> None:
        """Lock the settings that the start weights fix, and say why; '' unlocks the settings."""
        self._forms[self._shown].set_locked(reason, names)

    def config(self) -> TrainingConfig:
        """Return the shown settings. Raises UsageError for an invalid value."""
        config = self._forms[self._shown].config()
        assert isinstance(config, TrainingConfig)
        return config

    def problem(self) -> str:
        """Return the error in the shown settings; '' for valid settings."""
        return self._forms[self._shown].problem()
