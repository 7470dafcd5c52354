"""The device to train on, and how fast each one was measured to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.device_picker import DevicePicker
from studio.core.config import TrainingConfig, Value

if TYPE_CHECKING:
    from studio.data.sprites import Sprites
    from studio.engine.devices import Device
    from studio.engine.measure import DeviceMeasured
    from studio.recipes.base import Recipe

_FREE = {"minutes", "steps", "learning_rate", "precision", "flip", "shift_px", "seed", "holdout", "lr_warmup_steps"}
_FREE |= {"lr_decay_share", "weight_decay", "clip_grad_norm", "ema_halflife_sprites"}
_FREE |= {"sample_every_s", "checkpoint_every_s"}


class DeviceChoice(QWidget):
    """changed: another device, or other speeds. measure_wanted: the user asks for a measurement."""

    changed = Signal()
    measure_wanted = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._speeds: dict[tuple[str, str], float] = {}  # sprites per second by device and precision
        self._measured_with: Mapping[str, Value] = {}
        self.picker = DevicePicker()
        self.setLayout(factory.column(self.picker))
        self.picker.selected_changed.connect(self._chosen)
        self.picker.measure_requested.connect(self.measure_wanted)
        self.picker.cancel_requested.connect(session.catalog.cancel_measuring)
        session.catalog.devices_found.connect(self._show_devices)
        session.catalog.measured.connect(self._show_measurement)
        session.catalog.measuring_changed.connect(self._show_measuring)

    def device(self) -> Device | None:
        """The chosen device."""
        return self._session.catalog.device(self.picker.selected())

    def problem(self) -> str:
        """Why there is no device; empty when there is one."""
        if self.device() is not None:
            return ""
        return "Choose a device." if self._session.catalog.devices else "Devices are still being looked for."

    def speed(self, precision: str) -> float:
        """Sprites per second that were measured on the chosen device; 0 when they were not."""
        device = self.picker.selected()
        asked = ("fp32", "bf16", "fp16") if precision == "auto" else (precision,)
        return max(self._speeds.get((device, name), 0.0) for name in asked)

    def measure(self, recipe: Recipe, config: TrainingConfig, sprites: Sprites) -> None:
        """Measure all devices with these settings."""
        self._forget()
        self._measured_with = _what_costs_time(recipe, config)
        self._session.catalog.measure(recipe, config, sprites)

    def settings_changed(self, recipe: Recipe, config: TrainingConfig) -> None:
        """Forget measurements that these settings make wrong."""
        if self._speeds and _what_costs_time(recipe, config) != self._measured_with:
            self._forget()

    def keep(self) -> None:
        """Remember the device, if it is not the one that would be chosen anyway."""
        chosen = self.picker.selected()
        if chosen:
            self._session.settings.keep_text("device", chosen if chosen != self._session.catalog.fastest else "")

    def _forget(self) -> None:
        self._speeds.clear()
        self.picker.clear_measurements()

    @Slot()
    def _show_devices(self) -> None:
        catalog = self._session.catalog
        self.picker.set_devices(catalog.devices)
        kept = self._session.settings.text("device")
        self.picker.select(kept if catalog.device(kept) else catalog.fastest)
        self.changed.emit()

    @Slot(str)
    def _chosen(self, device_id: str) -> None:
        self.changed.emit()

    @Slot()
    def _show_measuring(self) -> None:
        catalog = self._session.catalog
        self.picker.set_measuring(catalog.is_measuring(), catalog.progress)
        if not catalog.is_measuring() and self._speeds and not self._session.training.is_busy():
            fastest = max(self._speeds, key=lambda entry: self._speeds[entry])
            self.picker.select(fastest[0])

    @Slot(object)
    def _show_measurement(self, found: DeviceMeasured) -> None:
        self.picker.set_measurement(
            found.device_id, found.precision, found.sprites_per_s, found.transfer_ms, found.compute_ms
        )
        self._speeds[found.device_id, found.precision] = found.sprites_per_s
        self.changed.emit()


def _what_costs_time(recipe: Recipe, config: TrainingConfig) -> dict[str, Value]:
    """The settings that a measurement depends on: all that a recipe adds may, of those that all have only some."""
    costly = {name: value for name, value in config.to_json().items() if name not in _FREE}
    return {**costly, "recipe": recipe.name}
