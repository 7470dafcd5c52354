"""The settings for generating: class, seed, number, colours."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QComboBox, QSpinBox, QWidget

from studio.app.background.model_jobs import SavedModel
from studio.app.pages.generate.colour_panel import ColourPanel
from studio.app.pages.generate.set_settings import SetSettings
from studio.app.pages.generate.tile_choice import TileChoice
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.config_form import ConfigForm
from studio.app.widgets.input import WheelNeedsFocus
from studio.app.widgets.lasting_choice import LastingChoice
from studio.core import formatting
from studio.core.errors import UsageError
from studio.core.events import Distilled
from studio.data.colour.constraints import NONE
from studio.engine.sampling.class_choice import attributes_text, mixture_text
from studio.engine.sampling.settings import GenerateSettings

_LARGEST_SEED = 2**31 - 1
_CLASS_TIP = "Choose a class. Evenly: equal numbers of all classes. As in the data: in proportion to your sprites."
# Settings with their own controls.
_SEPARATE_CONTROLS = (
    "class_name", "in_proportion", "mix", "attributes", "tiles", "terrains", "variants", "seed", "strength", "quick",
    "true_pixels",
)  # fmt: skip
_MIX_TIP = "Mix two classes."
_MIX_HELP = "Choose a second class to mix the two."
_EDITING = "The editor always draws 16."
_GUARANTEES = ("mirror", "seamless", "outline")  # guarantees, stored for each model: they depend on its sprites
_NO_ATTRIBUTES = "A tile set has no attributes."
_FIXED = "Fast mode draws with fixed guidance and steps."
_UNSUPPORTED = {  # by setting: the reason for locking the setting if the model lacks this ability
    "mirror": "This model can't draw symmetric sprites.",
    "seamless": "This model can't draw seamless tiles.",
}
_IN_PROPORTION = "\0in proportion"  # can't be a class name
_FIRST_CLASS = 2  # index in the box, after the two choices for all classes
_FAST_TIP = "Draw nearly the same sprites about five times faster, with fixed guidance and steps."
_NOT_PREPARED = "Fast mode generates about five times faster. Prepare it once; this takes some minutes."
_LIVE = "Fast mode is available after the training."


class RequestPanel(QWidget):
    """The settings for generating sprites, complete once the engine is loaded. edited: the user changed the form."""

    edited = Signal()

    def __init__(self, session: Session, models: ModelChoice) -> None:
        super().__init__()
        self._session = session
        self.colours = ColourPanel(session, models)
        self.quick = FastMode(session, models)
        self.sets = SetSettings(session)
        self._form: ConfigForm | None = None
        self._capabilities: frozenset[str] = frozenset()  # the model's abilities with these classes
        self._abilities: frozenset[str] = frozenset()  # the model's abilities with any classes
        self.classes = factory.combo("Class", _CLASS_TIP)
        self.mixed_with = factory.combo("Mixed with", _MIX_TIP)
        self._class_choice, self._mix_choice = LastingChoice(self.classes), LastingChoice(self.mixed_with)
        self.share = factory.percent_slider("Share", "Set the share of each class.", 50)
        self._share_label = factory.caption("")
        self.tiles = TileChoice(session)
        self._share_box = factory.panel(factory.column(self.share, self._share_label, spacing=4))
        self._mix_help = factory.caption(_MIX_HELP)
        mixed_with = factory.labelled("Mixed with", self.mixed_with)
        self._mix_box = factory.panel(factory.column(mixed_with, self._mix_help, self._share_box, spacing=4))
        self.seed = QSpinBox()
        self.seed.setRange(0, _LARGEST_SEED)
        factory.pad_spin_box(self.seed)
        factory.set_name_and_tip(self.seed, "Seed", "The same seed gives the same sprites.")
        self.lock = factory.check_box(
            "Lock seed", "Keep this seed, as typing one does. Otherwise each batch gets a new seed."
        )
        self._form_box = factory.column()
        self._editing = factory.caption(_EDITING)
        self._model = ""  # the chosen run's path
        self._are_sets = False
        self._guarantees_by_run: dict[str, GenerateSettings] = {}
        seed = (factory.text("Seed", "muted"), factory.row(self.seed, self.lock, grows=0))
        self.attributes = AttributeChoice()
        of_class = factory.labelled("Class", self.classes)
        self._class_box = factory.panel(factory.column(of_class, self._mix_box, self.attributes))
        self._sprite_box = factory.panel(factory.column(self._form_box, self._editing, self.quick, self.colours))
        self.setLayout(factory.column(self.tiles, self._class_box, *seed, self._sprite_box, self.sets))
        for control in (self.classes, self.mixed_with, self.share, self.seed, self.colours.box):
            WheelNeedsFocus(control)
        self._editing.hide()
        self.sets.hide()
        self.sets.edited.connect(self.edited)
        self.quick.changed.connect(self._refresh_locks)
        self.classes.currentIndexChanged.connect(self._on_class_changed)
        self.mixed_with.currentIndexChanged.connect(self._refresh_mixture)
        self.share.valueChanged.connect(self._refresh_mixture)
        self.seed.valueChanged.connect(self._on_seed_edited)
        self.tiles.changed.connect(self._refresh_mixture)
        self.tiles.changed.connect(self.edited)
        session.catalog.ready.connect(self._on_engine_ready)

    def show_sets(self, are_sets: bool) -> None:
        """Show the settings of a model of sets instead of the settings of a generator."""
        self.sets.setVisible(are_sets)
        self._are_sets = are_sets
        self._sprite_box.setVisible(not are_sets)
        self._refresh_mixture()

    def show_classes(self, names: tuple[str, ...], capabilities: frozenset[str], size: int) -> None:
        """Offer these classes, and mixing if the model can; keep the user's choice if possible. size: of a sprite."""
        self._abilities, self._capabilities = capabilities, capabilities if len(names) > 1 else frozenset()
        factory.set_enabled(self.classes, "This model has a single class." if len(names) == 1 else "")
        all_classes = (("All classes, evenly", ""), ("All classes, as in the data", _IN_PROPORTION))
        self._class_choice.fill([*all_classes, *zip(names, names, strict=True)], "")
        self.tiles.show_classes(names, size)
        self._on_class_changed()

    def show_model(self, run: str) -> None:
        """Show a run's settings for mirror, seamless and outline, which are stored by run."""
        if run == self._model:
            return
        was, self._model = self._model, run
        if self._form is None or self.problem() or not was:
            return
        settings = self._guarantees_by_run[was] = self._settings()
        own, usual = self._guarantees_by_run.get(run), GenerateSettings()
        self._form.set_config(settings.replace(**{name: getattr(own or usual, name) for name in _GUARANTEES}))
        self._show_guarantees()

    def show_editing(self, *, is_editing: bool) -> None:
        """Show or hide the note that the editor always draws 16 sprites."""
        self._editing.setVisible(is_editing)

    def next_seed(self) -> int:
        """Return a new random seed, or the current seed if locked."""
        if not self.lock.isChecked():
            self._show_seed(random.randint(0, _LARGEST_SEED))
        return self.seed.value()

    def _show_seed(self, seed: int) -> None:
        with QSignalBlocker(self.seed):
            self.seed.setValue(seed)

    def next_settings(self) -> GenerateSettings:
        """Return the settings with the next seed. Raises UsageError for an invalid value."""
        chosen, settings = self.classes.currentData() or "", self._settings().replace(seed=self.next_seed())
        settings = settings.replace(attributes=attributes_text(self.attributes.chosen()))
        if self.quick.is_requested():
            usual = GenerateSettings()
            settings = settings.replace(quick=True, guidance=usual.guidance, steps=usual.steps)
        if self.tiles.kind() != NONE:
            return settings.replace(class_name="", in_proportion=False, attributes="")
        if chosen == _IN_PROPORTION:
            return settings.replace(class_name="", in_proportion=True)
        return settings.replace(class_name=chosen, in_proportion=False, mix=self._mixture())

    def problem(self) -> str:
        """Return the error in the shown settings; '' for valid settings."""
        if self._form is not None and not self.sets.isHidden():
            return self.sets.form.problem()
        return (self._form.problem() or self.tiles.problem()) if self._form is not None else "Loading PyTorch…"

    def save_state(self) -> None:
        self.sets.save_state()
        if self._form is not None and not self._form.problem():
            values = self._settings().replace(seed=self.seed.value()).to_json()
            self._session.settings.set_values("generate", {**values, "class_name": "", "attributes": ""})
            self.colours.save_state()
            self._session.settings.set_text("seed_locked", "yes" if self.lock.isChecked() else "")

    def _mixture(self) -> str:
        """Return the two mixed classes and their shares as text; '' for a single class."""
        first, second = self.classes.currentData(), self.mixed_with.currentData()
        if "mix" not in self._capabilities or first in ("", _IN_PROPORTION, None) or not second or second == first:
            return ""
        share = self.share.value()
        return mixture_text({first: 100 - share, second: share})

    def _settings(self) -> GenerateSettings:
        settings = self._form.config() if self._form is not None else None
        assert isinstance(settings, GenerateSettings)
        return self.tiles.apply_to(settings.replace(true_pixels=self.colours.choice().true_pixels))

    @Slot()
    def _refresh_locks(self) -> None:
        """Lock the settings without an effect for the model or other settings, and show the reason."""
        if self._form is not None:
            self._form.set_locked(_FIXED if self.quick.is_requested() else "", ("guidance", "steps"))
            self.attributes.set_locked(_NO_ATTRIBUTES if self.tiles.kind() != NONE else "")
            self._form.set_locked(self.tiles.count_text(), ("count", "best_of"))
            for name, reason in _UNSUPPORTED.items():
                self._form.set_locked(reason if self._abilities and name not in self._abilities else "", (name,))

    @Slot()
    def _show_guarantees(self) -> None:
        """Show active mirror, seamless and outline settings beside the collapsed advanced settings."""
        if self._form is not None and not self._form.problem():
            settings = self._settings()
            on = [f"{name} {getattr(settings, name)}" for name in _GUARANTEES if getattr(settings, name) != NONE]
            self._form.set_advanced_summary(f"On: {', '.join(on)}" if on else "")

    @Slot()
    def _on_seed_edited(self) -> None:
        """Lock a seed that the user has entered: the next batch would replace it."""
        self.lock.setChecked(True)

    @Slot()
    def _on_class_changed(self) -> None:
        """Offer all other classes for mixing; keep the choice if possible."""
        chosen = self.classes.currentData()
        names = [self.classes.itemText(index) for index in range(_FIRST_CLASS, self.classes.count())]
        others = [(name, name) for name in names if name != chosen]
        self._mix_choice.fill([("None", ""), *others], "")
        self._refresh_mixture()

    @Slot()
    def _refresh_mixture(self) -> None:
        chosen = self.classes.currentData()
        has_class = chosen not in ("", _IN_PROPORTION, None)
        factory.set_enabled(self.mixed_with, "" if has_class else "Choose a class first to mix it with another.")
        self._mix_help.setVisible(has_class and not self._mixture())
        self.tiles.setVisible("map" in self._abilities and not self._are_sets)
        self._class_box.setVisible(self.tiles.kind() == NONE and not self._are_sets)
        self._mix_box.setVisible("mix" in self._capabilities)
        self._share_box.setVisible(bool(self._mixture()))
        share, names = self.share.value(), (self.classes.currentText(), self.mixed_with.currentText())
        self._share_label.setText(f"{100 - share} % {names[0]}, {share} % {names[1]}")
        self._refresh_locks()

    @Slot()
    def _on_engine_ready(self) -> None:
        try:
            settings = GenerateSettings.from_json(self._session.settings.values("generate"))
        except UsageError:
            settings = GenerateSettings()
        self._form = ConfigForm(settings, exclude=_SEPARATE_CONTROLS)
        self._form_box.addWidget(self._form)
        self._form.changed.connect(self._show_guarantees)
        self._form.changed.connect(self.edited)
        self.tiles.restore(settings)
        self._show_guarantees()
        self._refresh_locks()
        self._show_seed(settings.seed)
        self.lock.setChecked(bool(self._session.settings.text("seed_locked")))
        self.colours.restore(true_pixels=settings.true_pixels)


class AttributeChoice(QWidget):
    """A box for each attribute of the model's sprites, with its values and 'Any'. Hidden without attributes."""

    def __init__(self) -> None:
        super().__init__()
        self._known: Mapping[str, Sequence[str]] = {}
        self.boxes: dict[str, QComboBox] = {}  # by attribute
        self._column = factory.column()
        self.setLayout(self._column)
        self.hide()

    def show_attributes(self, known: Mapping[str, Sequence[str]]) -> None:
        """Offer the values of these attributes; keep the user's choice if possible."""
        if known == self._known:
            return
        before, self._known, self.boxes = self.chosen(), known, {}
        factory.clear(self._column)
        for name, values in known.items():
            box = factory.combo(name, f"Choose the value of '{name}'. Any leaves it open.")
            factory.fill_combo(box, [("Any", ""), *zip(values, values, strict=True)], before.get(name, ""))
            WheelNeedsFocus(box)
            self.boxes[name] = box
            self._column.addWidget(factory.panel(factory.labelled(name, box)))
        self.setVisible(bool(known))

    def chosen(self) -> dict[str, str]:
        """Return the chosen values by attribute, without open attributes."""
        return {name: value for name, box in self.boxes.items() if (value := box.currentData())}

    def set_locked(self, reason: str) -> None:
        """Disable the boxes and say why; '' enables them."""
        for box in self.boxes.values():
            factory.set_enabled(box, reason)


class FastMode(QWidget):
    """A check box for fast mode, and a button that trains its distilled network. changed: the box or the model."""

    changed = Signal()

    def __init__(self, session: Session, models: ModelChoice) -> None:
        super().__init__()
        self._session, self._models = session, models
        self._distilled_model: SavedModel | None = None  # the model distilled last
        self._result = ""  # its measured speed-up as a text
        self.box = factory.check_box("Fast mode", _FAST_TIP)
        prepare = "Train a second network that draws the same with a fifth of the work. This takes some minutes."
        self.prepare = factory.button("Prepare fast mode", prepare, slot=self._on_prepare_clicked)
        self._about = factory.caption("")
        self.setLayout(factory.column(factory.row(self.box, self.prepare, grows=0), self._about))
        self.box.toggled.connect(self.changed)
        models.changed.connect(self._refresh)
        session.inference.busy_changed.connect(self._refresh)
        session.inference.distilled.connect(self._on_distilled)
        self._refresh()

    def is_requested(self) -> bool:
        """Return whether fast mode is on, so that the distilled network draws."""
        return self.box.isChecked() and self.box.isEnabled()

    @Slot()
    def _refresh(self) -> None:
        source, inference = self._models.source(), self._session.inference
        saved, taught = isinstance(source, SavedModel), self._models.is_quick()
        missing = "" if taught else _NOT_PREPARED if saved else _LIVE
        self.setVisible("distil" in self._models.capabilities())
        factory.set_enabled(self.box, missing)
        self.prepare.setVisible(saved and not taught)
        busy = "A model is busy. Try again in a moment." if inference.is_busy() else ""
        no_device = "" if self._models.device() is not None else "Searching for devices…"
        factory.set_enabled(self.prepare, no_device or busy)
        result = self._result if source == self._distilled_model else ""
        self._about.setText(missing or result or _FAST_TIP)
        self.changed.emit()

    @Slot()
    def _on_prepare_clicked(self) -> None:
        source, device = self._models.source(), self._models.device()
        if isinstance(source, SavedModel) and device is not None:
            self._distilled_model, self._result = source, ""
            self._session.inference.distil(source, device)

    @Slot(object)
    def _on_distilled(self, found: Distilled) -> None:
        """Show the measured speed, and enable fast mode if the model is still chosen."""
        self._result = formatting.describe_speedup(found.sprites_per_s, found.usual_sprites_per_s, found.alike)
        if self._models.source() == self._distilled_model:
            self.box.setChecked(True)
        self._refresh()
