"""A list of devices with radio buttons and speed bars."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QRadioButton, QSizePolicy, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.input import NoSecondPress
from studio.core import formatting
from studio.engine.devices.types import Device, DeviceMeasured

_KINDS = {"cuda": "CUDA", "xpu": "XPU", "mps": "Metal", "cpu": "CPU"}
_INDENT = 26  # x of a radio button's text
_MEASURE = "Run training steps on all devices to find the fastest."
_CANCEL = "Stop measuring and keep the results so far."
_LOCKED = "Stop the current training first."
_BAR = 8  # pixels high
_GAP = 8
_WORDS = {"fp32": "full precision (fp32)", "bf16": "mixed precision (bf16)", "fp16": "mixed precision (fp16)"}


class DevicePicker(QWidget):
    """A list of devices with their measured speed, and a button that measures.

    selected_changed: another device id, chosen by the user or by `select`. measure_requested, cancel_requested: the
    button was pressed, before or during a measurement.
    """

    selected_changed = Signal(str)
    measure_requested = Signal()
    cancel_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, DeviceRow] = {}
        self._measured: Sequence[DeviceMeasured] = ()
        self._selected = ""
        self._measuring = False
        self._locked = False
        self._group = QButtonGroup(self)
        self._empty = factory.caption("Searching for devices…")
        self._progress = factory.caption("")
        self._button = factory.button("Measure", _MEASURE, "measure", slot=self._on_button_clicked)
        NoSecondPress(self._button, lambda: self._measuring)
        self._box = factory.column(spacing=12)
        foot = factory.row(self._button, self._progress, grows=1)
        self.setLayout(factory.column(self._empty, self._box, foot))
        self._group.idToggled.connect(self._on_device_toggled)
        self._enable()

    def set_devices(self, devices: Sequence[Device]) -> None:
        """Show these devices. Keep the selection if possible; otherwise select the first working device."""
        for row in self._rows.values():
            self._group.removeButton(row.radio)
        factory.clear(self._box)
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
        self._show_measurements()
        self._enable()

    def selected(self) -> str:
        """Return the selected device's id; '' without devices."""
        return self._selected

    def select(self, device_id: str) -> None:
        """Select a device by id; ignore an unknown or broken device."""
        row = self._rows.get(device_id)
        if row is not None and row.works:
            row.radio.setChecked(True)

    def set_measuring(self, measuring: bool, progress: str = "") -> None:
        """Show whether a measurement runs, with its progress ('Measuring CPU, bf16...')."""
        self._measuring = measuring
        text, icon, tip = ("Cancel", "close", _CANCEL) if measuring else ("Measure", "measure", _MEASURE)
        self._progress.setText(progress if measuring else "")
        self._button.setText(text)
        self._button.setIcon(theme.icon(icon))
        factory.set_name_and_tip(self._button, text, tip)
        self._enable()

    def set_measurements(self, measured: Sequence[DeviceMeasured]) -> None:
        self._measured = measured
        self._show_measurements()

    def set_locked(self, locked: bool) -> None:
        """Lock or unlock the selection and the button, while a run trains."""
        self._locked = locked
        self._enable()

    def _show_measurements(self) -> None:
        """Draw all bars at the same scale."""
        longest = max((measured.sprites_per_s for measured in self._measured), default=1.0)
        for device_id, row in self._rows.items():
            row.bars.set_measured([measured for measured in self._measured if measured.device_id == device_id], longest)

    def _enable(self) -> None:
        for row in self._rows.values():
            row.enable(_LOCKED if self._locked else "")
        locked = _LOCKED if self._locked else "" if self._selected else "Searching for devices…"
        factory.set_enabled(self._button, "" if self._measuring else locked)

    @Slot(int, bool)
    def _on_device_toggled(self, index: int, checked: bool) -> None:
        chosen = list(self._rows)[index]
        if checked and chosen != self._selected:
            self._selected = chosen
            self.selected_changed.emit(chosen)

    @Slot()
    def _on_button_clicked(self) -> None:
        (self.cancel_requested if self._measuring else self.measure_requested).emit()


class DeviceRow(QWidget):
    """A device's radio button, facts, problem and speed bars."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.works = not device.problem
        self.radio = ElidedRadio(device.name)
        self.bars = SpeedBars()
        factory.set_name_and_tip(self.radio, device.name, device.problem or f"Train on {device.name}.")
        reason = [factory.text(device.problem, "warning")] if device.problem else []
        facts = factory.caption(_facts(device))
        below = factory.column(facts, *reason, self.bars, spacing=4, margin=(_INDENT, 0, 0, 0))
        self.setLayout(factory.column(self.radio, below, spacing=0))

    def enable(self, reason_against: str) -> None:
        """Enable a working device, or disable it with the reason as its tooltip."""
        factory.set_enabled(self.radio, reason_against)
        self.radio.setEnabled(self.works and not reason_against)

    def check_quietly(self) -> None:
        """Select this device without emitting signals."""
        with QSignalBlocker(self.radio.group()):
            self.radio.setChecked(True)


class ElidedRadio(QRadioButton):
    """A radio button that elides long text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._whole = text
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = self.width() - _INDENT - 6
        self.setText(self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, room))


def _facts(device: Device) -> str:
    """Return a device's facts: 'CUDA · 10.9 of 12 GB free · bf16'."""
    facts = [_KINDS.get(device.kind, device.kind)]
    if device.memory_total_bytes:
        facts.append(f"{formatting.memory(device.memory_free_bytes, device.memory_total_bytes)} free")
    if device.threads:
        facts.append(formatting.count(device.threads, "thread"))
    if device.precision != "fp32":
        facts.append(device.precision)
    return " · ".join(facts)


class SpeedBars(QWidget):
    """Bars of sprites per second for each precision, and a bar that splits the step time into transfer and compute."""

    def __init__(self) -> None:
        super().__init__()
        self._measured: list[DeviceMeasured] = []
        self._longest = 1.0
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setVisible(False)

    def set_measured(self, measured: Sequence[DeviceMeasured], longest: float) -> None:
        """Show a device's speeds. longest: sprites per second of a bar of full width."""
        self._measured = sorted(measured, key=lambda one: list(_WORDS).index(one.precision))  # full precision first
        self._longest = max(longest, 1e-9)
        text = "\n".join(_sentence(one) for one in self._measured)
        factory.set_name_and_tip(self, "Measured speed", text)
        self.setAccessibleDescription(text)
        self.setVisible(bool(self._measured))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return a size with a row for each precision and two rows for the step time."""
        return QSize(240, (len(self._measured) + 2) * self._row())

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._measured:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = theme.colours()
        for index, one in enumerate(self._measured):
            parts = [(one.sprites_per_s / self._longest, colours.accent)]
            self._paint_row(painter, index, one.precision, _speed(one), parts)
        fastest = max(self._measured, key=lambda one: one.sprites_per_s)
        whole = fastest.transfer_ms + fastest.compute_ms or 1.0
        parts = [(fastest.transfer_ms / whole, colours.curves[1]), (fastest.compute_ms / whole, colours.curves[2])]
        self._paint_row(painter, len(self._measured), "step", _milliseconds(whole), parts)
        self._paint_split(painter, fastest)

    def _paint_row(self, painter: QPainter, row: int, label: str, value: str, parts: list[tuple[float, str]]) -> None:
        """Draw a row's label, bar and value. parts: share and colour of each part of the bar."""
        metrics, colours = self.fontMetrics(), theme.colours()
        left = metrics.horizontalAdvance("fp32 ") + _GAP
        right = metrics.horizontalAdvance(f"88,888 {self._measured[0].noun}s/s") + _GAP
        rect = QRectF(0, row * self._row(), self.width(), self._row())
        painter.setPen(QColor(colours.muted))
        painter.drawText(rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, label)
        painter.setPen(QColor(colours.text))
        painter.drawText(rect, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, value)
        bar = QRectF(left, rect.center().y() - _BAR / 2, max(24, self.width() - left - right), _BAR)
        painter.fillRect(bar, QColor(theme.mix(colours.window, colours.text, 0.1)))
        start = bar.left()
        for share, colour in parts:
            width = min(max(1.0, share * bar.width()), bar.right() - start)  # keep a small share visible
            painter.fillRect(QRectF(start, bar.top(), width, _BAR), QColor(colour))
            start += width

    def _paint_split(self, painter: QPainter, measured: DeviceMeasured) -> None:
        """Draw the legend of the step time's bar: transfer and compute, in milliseconds."""
        metrics, colours = self.fontMetrics(), theme.colours()
        rect = QRectF(0, (len(self._measured) + 1) * self._row(), self.width(), self._row())
        painter.setPen(QColor(colours.muted))
        parts = {"transfer": measured.transfer_ms, "compute": measured.compute_ms}
        for colour, (word, milliseconds) in zip(colours.curves[1:3], parts.items(), strict=True):
            painter.fillRect(QRectF(rect.left(), rect.center().y() - 4, 8, 8), QColor(colour))
            rect.setLeft(rect.left() + 12)
            text = f"{word} {_milliseconds(milliseconds)}"
            painter.drawText(rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
            rect.setLeft(rect.left() + metrics.horizontalAdvance(text) + _GAP)

    def _row(self) -> int:
        return self.fontMetrics().height() + 2


def _milliseconds(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 9.95 else f"{value:.2g} ms"


def _speed(measured: DeviceMeasured) -> str:
    return formatting.rate(measured.sprites_per_s, f"{measured.noun}s")


def _sentence(measured: DeviceMeasured) -> str:
    step = f"{_milliseconds(measured.transfer_ms)} transfer and {_milliseconds(measured.compute_ms)} compute per step."
    return f"{_speed(measured)} in {_WORDS[measured.precision]}: {step}"
