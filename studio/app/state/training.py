"""What Start would train, and the training of the moment."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import job_events, jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.engine import EngineCatalog
from studio.app.state.settings import Settings
from studio.app.state.sprites import OpenSprites
from studio.core.config import TrainingConfig, Value, settings_of
from studio.core.errors import UsageError
from studio.core.events import Advised, Event, Events, Halted, JobFailed, LossChunk, RunStarted, SamplesReady, Validated
from studio.data.sprites import Sprites
from studio.engine.control import Control
from studio.engine.runs.advice import advice_on
from studio.engine.runs.history import HistoryRead
from studio.engine.types import Device, DeviceMeasured

if TYPE_CHECKING:
    from studio.engine.runs.folder import RunRecord
    from studio.recipes.base import Preset, Recipe, TrainingBudget

State = Literal["idle", "starting", "training", "paused", "stopping"]

_QUIET_CPU_S, _QUIET_GPU_S = 1.0, 0.1


class CurrentTraining(QObject):
    """Starts, pauses and stops the one training, and knows how it stands.

    state_changed: `state` is another one, or paused for another reason. event_received: (Event), all that the training
    says, in its order. halt_withdrawn: (Halted), which holds no longer.
    """

    state_changed = Signal()
    event_received = Signal(object)
    halt_withdrawn = Signal(object)

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._job: Job | None = None
        self.state: State = "idle"
        self.control: Control | None = None
        self.device: Device | None = None
        self.title = ""
        self.path: Path | None = None  # of the run that trains, or trained last
        self.record: RunRecord | None = None
        self.chunk: LossChunk | None = None  # the newest
        self.samples: SamplesReady | None = None
        self.heldout: Mapping[str, float] = {}  # the newest figures on held-out sprites
        self.advice: Advised | None = None
        self.halted: Halted | None = None  # why it is paused, if nobody wanted that
        self.failure: JobFailed | None = None  # what ended the run

    def is_busy(self) -> bool:
        """Whether a run is open."""
        return self.state != "idle"

    def is_live(self) -> bool:
        """Whether there is a live model to use."""
        return self.state in ("training", "paused") and self.record is not None

    def quiet_s(self) -> float:
        """Shortest time between two wakings of the window: each holds up a training on the same cores."""
        return _QUIET_CPU_S if self.device is not None and self.device.kind == "cpu" else _QUIET_GPU_S

    def start(self, sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device) -> None:
        """Begin a new run; nothing happens while one is open."""
        if not self.is_busy():
            control = self._fresh(device, f"{sprites.title} {recipe.name}")
            self._run(jobs.train(sprites, recipe, config, device, control))

    def resume_run(self, path: Path, device: Device) -> None:
        """Go on with a run that was stopped or interrupted; nothing happens while one is open."""
        if not self.is_busy():
            self._run(jobs.resume(path, device, self._fresh(device, path.name)))

    def pause(self) -> None:
        """Hold the training after its current tick; the model stays and can be used."""
        if self._job is not None and self.state in ("starting", "training"):
            self._job_queue.pause(self._job)
            self._set_state("paused")

    def resume(self) -> None:
        """Go on after a pause."""
        if self._job is not None and self.state == "paused":
            self._job_queue.resume(self._job)
            self._set_state("training" if self.record else "starting")

    def stop(self) -> None:
        """End the run after its current tick, its work saved; `state` is idle when that is done.

        It is 'paused' again, and `halted` says why, when that can't be done for now.
        """
        if self._job is None or self.control is None or self.state == "stopping":
            return
        self.control.stop = True
        self._job_queue.prioritize(self._job)
        self._set_state("stopping")

    def give_up(self) -> None:
        """End the run also when its work can't be saved: what its last checkpoint holds is kept."""
        if self.control is not None:
            self.control.give_up = True
            self.stop()

    def sample_now(self) -> None:
        """Ask for live samples at the next tick."""
        if self.control is not None:
            self.control.sample_now = True

    def _fresh(self, device: Device, title: str) -> Control:
        self.control, self.device, self.title = Control(), device, title
        self.path = self.record = self.chunk = self.samples = self.advice = None
        self.heldout = {}
        self.halted = self.failure = None
        return self.control

    def _run(self, events: Events) -> None:
        self._job_queue.set_quiet_interval(self.quiet_s())
        self._job = self._job_queue.start("engine", f"Training {self.title}", events, self._receive, background=True)
        self._set_state("starting")

    def _receive(self, event: Event) -> None:
        if isinstance(event, LossChunk):
            self.chunk = event
        elif isinstance(event, SamplesReady):
            self.samples = event
        elif isinstance(event, Validated):
            self.heldout = event.metrics
        elif isinstance(event, Advised):
            self.advice = event
        elif isinstance(event, HistoryRead):
            self.advice = advice_on(event.history)
            self.samples = event.samples[-1] if event.samples else None
            self.heldout = {name: float(curve.values[-1]) for name, curve in event.history.validation.items()}
        elif isinstance(event, RunStarted):
            self.path, self.title = event.path, event.path.name
        elif isinstance(event, job_events.RunDescribed):
            self.record = event.record
        elif isinstance(event, Halted):
            self.halted = event
        elif isinstance(event, JobFailed):
            self.failure = event
        self.event_received.emit(event)
        if isinstance(event, job_events.RunDescribed) and self.state == "starting":
            self._set_state("training")
        elif isinstance(event, Halted):
            self.state = "paused"
            self.state_changed.emit()
        elif isinstance(event, JobEnded):
            self._job = self.control = None
            self._set_state("idle")

    def _set_state(self, state: State) -> None:
        if self.halted is not None and state != "paused":
            self.halt_withdrawn.emit(self.halted)
            self.halted = None
        if state != self.state:
            self.state = state
            self.state_changed.emit()


# Of the settings that all recipes have, those that the time of a step depends on.
_COST_TIME = {"batch_size", "optimizer", "threads", "data_on_device"}


class TrainingSetup(QObject):
    """The chosen recipe, the settings of each recipe, and the chosen device: what Start trains with.

    changed: one of them is another, or what is known of them: devices, presets, measurements.
    """

    changed = Signal()

    def __init__(
        self, settings: Settings, open_sprites: OpenSprites, catalog: EngineCatalog, training: CurrentTraining,
        parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._settings, self._open_sprites, self._catalog, self._training = settings, open_sprites, catalog, training
        self._recipe_name, self._device_id = settings.text("recipe"), settings.text("device")
        self._configs: dict[str, TrainingConfig] = {}  # by recipe: the last sound ones
        self._invalid: dict[str, str] = {}  # by recipe: what is wrong with the settings as they are typed
        self._measured_with: Mapping[str, Value] = {}
        self.measured: list[DeviceMeasured] = []  # all devices, with these settings
        self.presets: Sequence[tuple[Preset, TrainingConfig]] = ()  # of the recipe, for these sprites and this device
        self.preset = ""  # the title of the one that `config` is; empty for the user's own settings
        catalog.ready.connect(self._take_recipes)
        catalog.devices_found.connect(self._offer_presets)
        catalog.measured.connect(self._add_measurement)
        catalog.measuring_changed.connect(self._take_fastest)
        open_sprites.imported.connect(self._offer_presets)
        training.state_changed.connect(self._offer_presets)
        training.event_received.connect(self._follow_training)

    @property
    def recipe(self) -> Recipe | None:
        """The chosen recipe, or the first; None until the engine is there."""
        recipes = self._catalog.recipes
        return recipes.get(self._recipe_name) or next(iter(recipes.values()), None)

    @property
    def config(self) -> TrainingConfig | None:
        """The settings of the chosen recipe; None until the engine is there."""
        return self._configs.get(self.recipe.name) if self.recipe is not None else None

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
        if recipe.name not in self._configs:
            self._configs[recipe.name] = self._first_config(recipe)
        self._settle()

    def choose_preset(self, title: str) -> None:
        """Train with the settings of this preset."""
        self.preset = title
        self.set_config(next(config for preset, config in self.presets if preset.title == title))

    def choose_device(self, device_id: str) -> None:
        """Train, draw and export on this device; nothing happens when it does not work."""
        if self._catalog.device(device_id) not in (None, self.device):
            self._device_id = device_id
            self._offer_presets()

    def set_config(self, config: TrainingConfig) -> None:
        """Train with these settings of the chosen recipe."""
        assert self.recipe is not None
        self._configs[self.recipe.name] = config
        self._invalid.pop(self.recipe.name, None)
        self._settle()

    def refuse_config(self, problem: str) -> None:
        """Settings were typed that can't be; nothing is trained until they are others."""
        assert self.recipe is not None
        self._invalid[self.recipe.name] = problem
        self.changed.emit()

    def invalid(self) -> str:
        """What is wrong with the settings as they are typed; empty when `config` is what they say."""
        return self._invalid.get(self.recipe.name, "") if self.recipe is not None else ""

    def problem(self) -> str:
        """Why nothing can be trained with this; empty when it can."""
        return self._unready() if self._open_sprites.sprites is not None else "Open a folder of sprites first."

    def start(self) -> None:
        """Train the open sprites, unless there is a `problem`."""
        chosen = self._chosen()
        if chosen is not None:
            self.keep()
            self._training.start(*chosen)

    def measure(self) -> None:
        """Measure how fast each device trains the open sprites, unless there is a `problem`."""
        chosen = self._chosen()
        if chosen is not None:
            sprites, recipe, config, _ = chosen
            self.measured, self._measured_with = [], _what_costs_time(recipe, config)
            self._catalog.measure(recipe, config, sprites)
            self.changed.emit()

    def speed(self, precision: str) -> float:
        """Sprites per second that were measured on the chosen device; 0 when they were not."""
        names = ("fp32", "bf16", "fp16") if precision == "auto" else (precision,)
        speeds = [
            one.sprites_per_s
            for one in self.measured
            if self.device is not None and one.device_id == self.device.id and one.precision in names
        ]
        return max(speeds, default=0.0)

    def keep(self) -> None:
        """Remember what is chosen, of the device only one that would not be chosen anyway."""
        recipe, config, device = self.recipe, self.config, self.device
        if self._unready() or recipe is None or config is None or device is None:
            return
        self._settings.keep_text("recipe", recipe.name)
        self._settings.keep_values(recipe.name, config.to_json())
        self._settings.keep_text(f"{recipe.name} preset", self.preset)
        self._settings.keep_text("device", device.id if device.id != self._catalog.fastest else "")

    def _chosen(self) -> tuple[Sprites, Recipe, TrainingConfig, Device] | None:
        """All that a training takes; None while there is a `problem`."""
        sprites, recipe, config, device = self._open_sprites.sprites, self.recipe, self.config, self.device
        if self.problem() or sprites is None or recipe is None or config is None or device is None:
            return None
        return sprites, recipe, config, device

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
    def _offer_presets(self) -> None:
        """Other sprites or another device make other presets; the one that is chosen stays chosen."""
        if self.recipe is None or self._training.is_busy() or self.invalid():
            self.changed.emit()
            return
        self._make_presets(self.recipe)
        chosen = next((config for preset, config in self.presets if preset.title == self.preset), None)
        if chosen is not None:
            self.set_config(chosen)
        else:
            self._settle()

    @Slot(object)
    def _follow_training(self, event: Event) -> None:
        """A run that is resumed brings settings of its own."""
        if isinstance(event, job_events.RunDescribed) and event.record.recipe in self._catalog.recipes:
            self.choose_recipe(event.record.recipe)
            self.set_config(self._catalog.recipes[event.record.recipe].Config.from_json(event.record.config))

    @Slot(object)
    def _add_measurement(self, measured: DeviceMeasured) -> None:
        self.measured.append(measured)
        self.changed.emit()

    @Slot()
    def _take_fastest(self) -> None:
        """Once all is measured, choose the device that did best."""
        if self.measured and not self._catalog.is_measuring() and not self._training.is_busy():
            self.choose_device(max(self.measured, key=_speed).device_id)

    def _settle(self) -> None:
        """Say what preset the settings are, and forget measurements that they make wrong."""
        recipe, config = self.recipe, self.config
        if recipe is not None and config is not None and not self.invalid():
            titles = [preset.title for preset, made in self.presets if made == config]  # few sprites may make two alike
            self.preset = self.preset if self.preset in titles else next(iter(titles), "")
            if _what_costs_time(recipe, config) != self._measured_with:
                self.measured = []
        self.changed.emit()

    def _make_presets(self, recipe: Recipe) -> None:
        presets = recipe.presets(_budget(recipe, self._open_sprites.sprites, self.device))
        self.presets = [(preset, recipe.Config().replace(**preset.changes)) for preset in presets]

    def _first_config(self, recipe: Recipe) -> TrainingConfig:
        """The settings of the last time: the user's own, or the preset, of which there is one in the middle."""
        values, title = self._settings.values(recipe.name), self._settings.text(f"{recipe.name} preset")
        with contextlib.suppress(UsageError):  # settings that this version does not know
            if values and not title:
                remembered: TrainingConfig = recipe.Config.from_json(values)
                return remembered
        configs = {preset.title: config for preset, config in self.presets}
        usual: TrainingConfig = [*configs.values(), recipe.Config()][len(configs) // 2]
        return configs.get(title, usual)


def _budget(recipe: Recipe, sprites: Sprites | None, device: Device | None) -> TrainingBudget:
    from studio.engine.measure import training_budget  # torch is there: the recipe came with it

    return training_budget(recipe, sprites, device)


def _what_costs_time(recipe: Recipe, config: TrainingConfig) -> dict[str, Value]:
    """What a measurement depends on; of the settings that a recipe adds, each may."""
    free = {item.name for item in settings_of(TrainingConfig)} - _COST_TIME
    return {**{name: value for name, value in config.to_json().items() if name not in free}, "recipe": recipe.name}


def _speed(measured: DeviceMeasured) -> float:
    return measured.sprites_per_s
