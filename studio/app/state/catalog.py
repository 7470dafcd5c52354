"""The installed recipes, export formats and experiments, and the devices of this machine."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from studio.app.background import jobs
from studio.app.background.job_queue import JobQueue, ignore
from studio.app.background.worker import Job, JobEnded
from studio.core.config import TrainingConfig
from studio.core.events import Event, Progress
from studio.data.sprites import Sprites
from studio.engine.devices.types import Device, DeviceMeasured, DevicesFound

if TYPE_CHECKING:
    from studio.exports.base import ModelExport
    from studio.lab.experiments.base import Experiment
    from studio.lab.lessons.base import Lesson
    from studio.recipes.base import Recipe


class EngineCatalog(QObject):
    """Loads torch and the plug-ins in the background, finds the devices and measures their speed."""

    plots_ready = Signal()  # pyqtgraph has been imported
    ready = Signal()  # recipes, exports, experiments and lessons are known
    devices_found = Signal()  # `devices` has been filled
    measured = Signal(object)  # DeviceMeasured
    measuring_changed = Signal()  # a measurement started, progressed or ended

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._measuring: Job | None = None
        self.plots_are_ready = False
        self.recipes: Mapping[str, Recipe] = {}
        self.exports: Mapping[str, ModelExport] = {}
        self.experiments: Mapping[str, Experiment] = {}
        self.lessons: Mapping[str, Lesson] = {}  # lessons by name, in the order of the path
        self.devices: tuple[Device, ...] = ()
        self.fastest = ""
        self.progress = ""  # text about the running measurement

    def open(self) -> None:
        """Load torch, the devices and the plug-ins in jobs. Call this after the first paint."""
        start = partial(self._job_queue.run, "engine", "Starting", cancellable=False)
        start(jobs.load_torch_libraries, self._on_libraries_loaded)
        start(partial(importlib.import_module, "torch"), ignore)
        self._job_queue.start("engine", "Starting", jobs.find_devices(), self._on_device_event, cancellable=False)
        start(jobs.find_plugins, self._on_plugins_found)

    def device(self, device_id: str) -> Device | None:
        """Return the working device with this id; None if no working device has the id."""
        return next((device for device in self.devices if device.id == device_id and not device.problem), None)

    def drawing_recipe(self) -> Recipe | None:
        """Return the first recipe that generates sprites; None until the recipes are loaded."""
        return next((recipe for recipe in self.recipes.values() if recipe.makes == "sprites"), None)

    def is_measuring(self) -> bool:
        """Return whether a measurement is running."""
        return self._measuring is not None

    def measure(self, recipe: Recipe, config: TrainingConfig, sprites: Sprites) -> None:
        """Time training steps with these settings on each working device."""
        if self._measuring is None:
            working = [device for device in self.devices if not device.problem]
            events = jobs.measure(recipe, config, sprites, working)
            self._measuring = self._job_queue.start("engine", "Measuring", events, self._on_measurement_event)
            self.measuring_changed.emit()

    def cancel_measuring(self) -> None:
        """Cancel the measurement and keep its results so far."""
        if self._measuring is not None:
            self._job_queue.cancel(self._measuring)

    def _on_libraries_loaded(self, _: None) -> None:
        """Start the import of pyqtgraph, which would have waited while torch's libraries were loading."""
        import_plots = partial(importlib.import_module, "pyqtgraph")
        self._job_queue.run("files", "Starting", import_plots, self._on_plots_ready, cancellable=False, urgent=True)

    def _on_plots_ready(self, _: object) -> None:
        self.plots_are_ready = True
        self.plots_ready.emit()

    def _on_plugins_found(self, plugins: jobs.Plugins) -> None:
        self.recipes, self.exports, self.experiments, self.lessons = plugins
        self.ready.emit()

    def _on_device_event(self, event: Event) -> None:
        if isinstance(event, DevicesFound):
            self.devices, self.fastest = event.devices, event.fastest
            self.devices_found.emit()

    def _on_measurement_event(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progress = event.what
            self.measuring_changed.emit()
        elif isinstance(event, JobEnded):
            self._measuring, self.progress = None, ""
            self.measuring_changed.emit()
        elif isinstance(event, DeviceMeasured):
            self.measured.emit(event)
