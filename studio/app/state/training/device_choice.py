"""The chosen device, and the measured speed of all devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.state.catalog import EngineCatalog
from studio.app.state.settings import Settings
from studio.app.state.training.training import CurrentTraining
from studio.core.config import TrainingConfig, Value, settings_of
from studio.engine.devices.types import Device, DeviceMeasured
from studio.engine.distributed.launching import can_launch

if TYPE_CHECKING:
    from studio.recipes.base import Recipe

# The settings common to all recipes that change the time of a training step.
_STEP_TIME_SETTINGS = {"batch_size", "optimizer", "threads", "data_on_device"}


class DeviceChoice(QObject):
    """The chosen device, and whether all GPUs train together."""

    changed = Signal()  # the user has changed this choice
    measured = Signal()  # the measurements changed

    def __init__(self, settings: Settings, catalog: EngineCatalog, training: CurrentTraining, parent: QObject) -> None:
        super().__init__(parent)
        self._settings, self._catalog, self._training = settings, catalog, training
        self._device_id = settings.text("device")
        self.uses_all_gpus = settings.text("all_cards") == "yes"
        self.measurements = Measurements()
        catalog.measured.connect(self._on_measured)
        catalog.measuring_changed.connect(self._on_measuring_changed)

    @property
    def device(self) -> Device | None:
        """The chosen device, or the fastest if the chosen device is missing. None until the devices are found."""
        return self._catalog.device(self._device_id) or self._catalog.device(self._catalog.fastest)

    def choose(self, device_id: str) -> None:
        """Choose the device for training, drawing and export; ignore a device that does not work."""
        if self._catalog.device(device_id) not in (None, self.device):
            self._device_id = device_id
            self.changed.emit()

    def use_all_gpus(self, uses: bool) -> None:
        """Train with all GPUs together, or with the chosen GPU alone."""
        self.uses_all_gpus = uses
        self._settings.set_text("all_cards", "yes" if uses else "no")
        self.changed.emit()

    def gpu_count(self, device: Device | None) -> int:
        """Return how many GPUs can train a run together with `device`; 0 if `device` is not a GPU.

        Also 0 if any GPU is broken, because torchrun gives process N the GPU N.
        """
        gpus = [known for known in self._catalog.devices if known.kind == "cuda"]
        return len(gpus) if can_launch() and device in gpus and not any(gpu.problem for gpu in gpus) else 0

    def processes(self, device: Device | None) -> int:
        """Return the number of processes that train a run on `device`."""
        return max(1, self.gpu_count(device)) if self.uses_all_gpus else 1

    def reset_measurements(self, recipe: Recipe, config: TrainingConfig) -> None:
        """Discard all measurements before a measurement with these settings."""
        self.measurements = Measurements(_step_time_settings(recipe, config))
        self.measured.emit()

    def discard_outdated(self, recipe: Recipe, config: TrainingConfig) -> None:
        """Discard the measured step times if these settings change the time of a training step."""
        if _step_time_settings(recipe, config) != self.measurements.settings:
            self.measurements.made.clear()

    def store(self) -> None:
        """Store the chosen device for the next session, unless it is the fastest device, the default."""
        device = self.device
        if device is not None:
            self._settings.set_text("device", device.id if device.id != self._catalog.fastest else "")

    @Slot(object)
    def _on_measured(self, measured: DeviceMeasured) -> None:
        self.measurements.made.append(measured)
        self.measured.emit()

    @Slot()
    def _on_measuring_changed(self) -> None:
        """Choose the fastest device when the measurement has ended, unless a run trains."""
        fastest = self.measurements.fastest()
        if fastest and not self._catalog.is_measuring() and not self._training.owns_run():
            self.choose(fastest)


class Measurements:
    """The measured training speed of each device. settings: the settings used for measuring."""

    def __init__(self, settings: Mapping[str, Value] | None = None) -> None:
        self.made: list[DeviceMeasured] = []
        self.settings = settings or {}

    def speed(self, device: Device | None, precision: str) -> float:
        """Return a device's speed in sprites per second, for 'auto' with the fastest precision; 0 if not measured."""
        of_device = [measured for measured in self.made if device is not None and measured.device_id == device.id]
        fitting = (each.sprites_per_s for each in of_device if precision in ("auto", each.precision))
        return max(fitting, default=0.0)

    def fastest(self) -> str:
        """Return the id of the fastest device; empty without measurements."""
        return max(self.made, key=lambda measured: measured.sprites_per_s).device_id if self.made else ""


def _step_time_settings(recipe: Recipe, config: TrainingConfig) -> dict[str, Value]:
    """Return the settings that change how long a training step takes, including all recipe-specific settings."""
    others = {item.name for item in settings_of(TrainingConfig)} - _STEP_TIME_SETTINGS
    return {**{name: value for name, value in config.to_json().items() if name not in others}, "recipe": recipe.name}
