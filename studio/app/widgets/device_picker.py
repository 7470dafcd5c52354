"""Which device to train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget


class DeviceLike(Protocol):
    """What the picker shows of a device; `problem` is empty when it works."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def memory_free_bytes(self) -> int: ...
    @property
    def memory_total_bytes(self) -> int: ...
    @property
    def cores(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def bf16(self) -> bool: ...
    @property
    def problem(self) -> str: ...


class DevicePicker(QWidget):
    """Devices as radio rows with their measurements as bars.

    selected_changed: another device was chosen, by the user or by `select`. measure_requested: the Measure button;
    the same button sends cancel_requested while measuring.
    """

    selected_changed = Signal(str)
    measure_requested = Signal()
    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_devices(self, devices: Sequence[DeviceLike]) -> None:
        """Show these devices. The choice stays if it is among them, else the first that works is chosen."""

    def selected(self) -> str:
        """The id of the chosen device; empty while there is none."""
        return ""

    def select(self, device_id: str) -> None:
        """Choose a device; nothing happens when it is unknown or does not work."""

    def set_measuring(self, measuring: bool, progress: str = "") -> None:
        """Show that a measurement runs ('Measuring CPU, bf16...')."""

    def set_measurement(
        self, device_id: str, precision: str, sprites_per_s: float, transfer_ms: float, compute_ms: float
    ) -> None:
        """Show what a device did in a precision ('fp32', 'bf16'); per step: milliseconds in transfer and in compute."""

    def clear_measurements(self) -> None:
        """Remove all bars: the settings that they were measured with have changed."""

    def set_locked(self, locked: bool) -> None:
        """No other choice and no measuring while a run trains."""
