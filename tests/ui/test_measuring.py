"""Measuring gives way to a training, and does not choose another device for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from studio.app.background.job_events import Measured
from studio.app.pages.train.device_choice import DeviceChoice
from studio.app.state.session import Session
from studio.core.events import Events
from studio.engine.measure import DeviceMeasured
from tests.conftest import make_sprites
from tests.ui.conftest import LONG_MS, endless, start_tiny, tiny


def _measure(*settings: object) -> Events:
    """Finds the other device the faster one, and goes on for ever."""
    yield Measured(DeviceMeasured("cpu", "fp32", 1.0, 0.1, 1.0))
    yield Measured(DeviceMeasured("other", "fp32", 9.0, 0.1, 1.0))
    yield from endless()


def test_a_training_ends_the_measuring_and_its_device_stays_chosen(
    qtbot: QtBot, ready: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.app.background.jobs.measure", _measure)
    cpu = ready.catalog.device("cpu")
    assert cpu is not None
    choice = DeviceChoice(ready)
    qtbot.addWidget(choice)
    ready.catalog.devices = (cpu, replace(cpu, id="other", name="Another"))
    ready.catalog.devices_found.emit()
    choice.picker.select("cpu")
    with qtbot.waitSignals([ready.catalog.measured] * 2, timeout=LONG_MS):
        choice.measure(ready.catalog.recipes["generator"], tiny(ready), make_sprites())
    start_tiny(ready, steps=1_000_000)
    qtbot.waitUntil(lambda: not ready.catalog.is_measuring(), timeout=LONG_MS)
    assert ready.training.is_busy()
    assert choice.picker.selected() == "cpu"
    ready.training.stop()
    qtbot.waitUntil(lambda: not ready.training.is_busy(), timeout=LONG_MS)
    assert ready.training.failure is None
