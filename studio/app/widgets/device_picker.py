"""Which device to train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QRadioButton, QSizePolicy, QWidget

from studio.app import parts, theme
from studio.app.widgets import labels
from studio.app.widgets.speed_bars import Speed, SpeedBars
from studio.core import wording

_KINDS = {"cuda": "CUDA", "xpu": "XPU", "mps": "Metal", "cpu": "CPU"}
_INDENT = 26  # where a radio button's text begins
_MEASURE = "Take real training steps on every device and show which is the fastest."
_CANCEL = "End the measurement; what is known stays."


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
    def precision(self) -> str: ...
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
        self._rows: dict[str, DeviceRow] = {}
        self._speeds: dict[str, dict[str, Speed]] = {}
        self._selected = ""
        self._measuring = False
        self._locked = False
        self._group = QButtonGroup(self)
        self._empty = labels.caption("Looking for devices…")
        self._progress = labels.caption("")
        self._button = parts.button("Measure", _MEASURE, "measure")
        self._box = parts.column(self._empty, spacing=12)
        foot = parts.row(self._button, self._progress)
        foot.setStretch(1, 1)
        self.setLayout(parts.column(self._box, foot))
        self._group.idToggled.connect(self._toggled)
        self._button.clicked.connect(self._press)
        self._enable()

    def set_devices(self, devices: Sequence[DeviceLike]) -> None:
        """Show these devices. The choice stays if it is among them, else the first that works is chosen."""
        for row in self._rows.values():
            self._group.removeButton(row.radio)
            self._box.removeWidget(row)
            row.deleteLater()
        self._rows = {}
        for index, device in enumerate(devices):
            row = self._rows[device.id] = DeviceRow(device)
            self._group.addButton(row.radio, index)
            self._box.addWidget(row)
        self._empty.setVisible(not devices)
        usable = [device.id for device in devices if not device.problem]
        self._selected = self._selected if self._selected in usable else next(iter(usable), "")
        if self._selected:
            self._rows[self._selected].check_quietly()
        self._show_speeds()
        self._enable()

    def selected(self) -> str:
        """The id of the chosen device; empty while there is none."""
        return self._selected

    def select(self, device_id: str) -> None:
        """Choose a device; nothing happens when it is unknown or does not work."""
        row = self._rows.get(device_id)
        if row is not None and row.works:
            row.radio.setChecked(True)

    def set_measuring(self, measuring: bool, progress: str = "") -> None:
        """Show that a measurement runs ('Measuring CPU, bf16...')."""
        self._measuring = measuring
        self._progress.setText(progress if measuring else "")
        self._button.setText("Cancel" if measuring else "Measure")
        self._button.setIcon(theme.icon("close" if measuring else "measure"))
        parts.describe(self._button, self._button.text(), _CANCEL if measuring else _MEASURE)
        self._enable()

    def set_measurement(
        self, device_id: str, precision: str, sprites_per_s: float, transfer_ms: float, compute_ms: float
    ) -> None:
        """Show what a device did in a precision ('fp32', 'bf16'...); per step: milliseconds in transfer, in compute."""
        self._speeds.setdefault(device_id, {})[precision] = Speed(sprites_per_s, transfer_ms, compute_ms)
        self._show_speeds()

    def clear_measurements(self) -> None:
        """Remove all bars: the settings that they were measured with have changed."""
        self._speeds.clear()
        self._show_speeds()

    def set_locked(self, locked: bool) -> None:
        """No other choice and no measuring while a run trains."""
        self._locked = locked
        self._enable()

    def _show_speeds(self) -> None:
        """All bars have one scale."""
        longest = max((one.sprites_per_s for speeds in self._speeds.values() for one in speeds.values()), default=1.0)
        for device_id, row in self._rows.items():
            row.bars.set_speeds(self._speeds.get(device_id, {}), longest)

    def _enable(self) -> None:
        for row in self._rows.values():
            row.radio.setEnabled(row.works and not self._locked)
        self._button.setEnabled(self._measuring or (bool(self._selected) and not self._locked))

    @Slot(int, bool)
    def _toggled(self, index: int, checked: bool) -> None:
        chosen = list(self._rows)[index]
        if checked and chosen != self._selected:
            self._selected = chosen
            self.selected_changed.emit(chosen)

    @Slot()
    def _press(self) -> None:
        (self.cancel_requested if self._measuring else self.measure_requested).emit()


class DeviceRow(QWidget):
    """A device to choose, what it has, why it can't be used, how fast it is."""

    def __init__(self, device: DeviceLike) -> None:
        super().__init__()
        self.works = not device.problem
        self.radio = ElidedRadio(device.name)
        self.bars = SpeedBars()
        parts.describe(self.radio, device.name, device.problem or f"Train on {device.name}.")
        facts = labels.caption(_facts(device))
        below = parts.column(facts, self.bars, spacing=4)
        below.setContentsMargins(_INDENT, 0, 0, 0)
        if device.problem:
            reason = labels.caption(device.problem)
            theme.set_role(reason, "warning")
            below.insertWidget(1, reason)
        self.setLayout(parts.column(self.radio, below, spacing=0))

    def check_quietly(self) -> None:
        """Choose this device without telling anyone."""
        group = self.radio.group()
        group.blockSignals(True)
        self.radio.setChecked(True)
        group.blockSignals(False)


class ElidedRadio(QRadioButton):
    """A radio button whose text is shortened where it is too long."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._whole = text
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten the text to the new width."""
        super().resizeEvent(event)
        room = self.width() - _INDENT - 6
        self.setText(self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, room))


def _facts(device: DeviceLike) -> str:
    """'CUDA · 10.9 of 12 GB free · bf16'."""
    facts = [_KINDS.get(device.kind, device.kind)]
    if device.memory_total_bytes:
        facts.append(f"{wording.memory(device.memory_free_bytes, device.memory_total_bytes)} free")
    if device.threads:
        facts.append(wording.count(device.threads, "thread"))
    if device.precision != "fp32":
        facts.append(device.precision)
    return " · ".join(facts)
