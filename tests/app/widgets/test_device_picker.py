"""Choosing a device and showing measured speeds."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QRadioButton
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets.device_picker import DevicePicker, SpeedBars
from studio.engine.devices.types import Device, DeviceMeasured
from tests.app.widgets.tools import child, shown

GB = 2**30


CARD = Device("cuda:0", "cuda", "NVIDIA GeForce RTX 4070", 9 * GB, 12 * GB, precision="bf16")
BROKEN = Device("cuda:1", "cuda", "NVIDIA GeForce GTX 960", 0, 2 * GB, problem="A training step failed: too old")
CPU = Device("cpu", "cpu", "A CPU with a name that is far too long for the narrow column", 20 * GB, 32 * GB, 8, 4)


@pytest.fixture
def picker(qtbot: QtBot) -> DevicePicker:
    made = DevicePicker()
    made.set_devices([BROKEN, CARD, CPU])
    return shown(qtbot, made, 300, 420)


def radios(picker: DevicePicker) -> list[QRadioButton]:
    return picker.findChildren(QRadioButton)


def button(picker: DevicePicker) -> QPushButton:
    return child(picker, QPushButton)


def test_first_working_device_is_selected(picker: DevicePicker) -> None:
    assert picker.selected() == "cuda:0"
    broken, card, cpu = radios(picker)
    assert not broken.isEnabled() and broken.toolTip() == BROKEN.problem
    assert card.isChecked() and card.isEnabled() and cpu.isEnabled()
    assert cpu.text().endswith("…") and CPU.name in cpu.toolTip() and cpu.accessibleName() == CPU.name
    texts = [label.text() for label in picker.findChildren(QLabel)]
    assert BROKEN.problem in texts
    assert "CUDA · 9 of 12 GB free · bf16" in texts and "CPU · 20 of 32 GB free · 4 threads" in texts


def test_select_by_mouse_keyboard_and_code(picker: DevicePicker, qtbot: QtBot) -> None:
    _, card, cpu = radios(picker)
    with qtbot.waitSignal(picker.selected_changed) as caught:
        QTest.mouseClick(cpu, Qt.MouseButton.LeftButton)
    assert caught.args == ["cpu"] and picker.selected() == "cpu"
    cpu.setFocus()
    with qtbot.waitSignal(picker.selected_changed) as caught:
        QTest.keyClick(cpu, Qt.Key.Key_Up)
    assert caught.args == ["cuda:0"] and card.isChecked()
    with qtbot.waitSignal(picker.selected_changed) as caught:
        picker.select("cpu")
    assert caught.args == ["cpu"]
    with qtbot.assertNotEmitted(picker.selected_changed):
        for unusable in ("cpu", "cuda:1", "mps", ""):
            picker.select(unusable)
    assert picker.selected() == "cpu"


def test_selection_survives_a_new_search(picker: DevicePicker, qtbot: QtBot) -> None:
    picker.select("cpu")
    with qtbot.assertNotEmitted(picker.selected_changed):
        picker.set_devices([CARD, CPU])
    assert picker.selected() == "cpu" and radios(picker)[-1].isChecked()
    picker.set_devices([CARD])
    assert picker.selected() == "cuda:0"
    picker.set_devices([BROKEN])
    assert picker.selected() == "" and not button(picker).isEnabled()


def test_button_measures_and_cancels(picker: DevicePicker, qtbot: QtBot) -> None:
    with qtbot.waitSignal(picker.measure_requested):
        button(picker).click()
    picker.set_measuring(True, "Measuring CPU, bf16…")
    assert button(picker).text() == "Cancel"
    assert "Measuring CPU, bf16…" in [label.text() for label in picker.findChildren(QLabel)]
    with qtbot.waitSignal(picker.cancel_requested):
        button(picker).click()
    picker.set_measuring(False)
    assert button(picker).text() == "Measure"


def test_locked_picker_shows_the_selection(picker: DevicePicker) -> None:
    picker.set_locked(True)
    assert not any(radio.isEnabled() for radio in radios(picker)) and not button(picker).isEnabled()
    assert picker.selected() == "cuda:0"
    picker.set_locked(False)
    assert [radio.isEnabled() for radio in radios(picker)] == [False, True, True] and child(
        picker, QPushButton
    ).isEnabled()


def test_bars_share_a_scale(picker: DevicePicker, qapp: QApplication) -> None:
    on_cpu = DeviceMeasured("cpu", "fp32", 500.0, 0.02, 128.0)
    full = DeviceMeasured("cuda:0", "fp32", 1000.0, 0.4, 64.0)
    mixed = DeviceMeasured("cuda:0", "bf16", 2000.0, 0.4, 32.0)
    picker.set_measurements([mixed, full, on_cpu])
    card, cpu = (bars for bars in picker.findChildren(SpeedBars) if bars.isVisible())
    assert card.toolTip().splitlines() == [
        "1,000 sprites/s in full precision (fp32): 0.4 ms transfer and 64 ms compute per step.",
        "2,000 sprites/s in mixed precision (bf16): 0.4 ms transfer and 32 ms compute per step.",
    ]
    qapp.processEvents()
    long, longer, short = bar_length(card, 0), bar_length(card, 1), bar_length(cpu, 0)
    assert long == pytest.approx(longer / 2, abs=2) and short == pytest.approx(longer / 4, abs=2)
    picker.set_measurements([])
    assert not any(bars.isVisible() for bars in picker.findChildren(SpeedBars))


def test_measurements_survive_a_new_search(picker: DevicePicker, qtbot: QtBot) -> None:
    picker.set_measurements([DeviceMeasured("cpu", "fp32", 500.0, 0.02, 128.0)])
    picker.set_devices([CARD, CPU])
    bars = picker.findChildren(SpeedBars)[-1]
    qtbot.waitUntil(bars.isVisible)
    assert "500 sprites/s" in bars.toolTip()


def bar_length(bars: SpeedBars, row: int) -> int:
    """Return the number of accent-coloured pixels in the middle of a row."""
    image = bars.grab().toImage()
    y = round((row + 0.5) * bars.height() / (bars.sizeHint().height() / (bars.fontMetrics().height() + 2)))
    return sum(image.pixelColor(x, y).name() == theme.colours().accent for x in range(image.width()))
