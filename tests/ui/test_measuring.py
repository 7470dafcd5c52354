"""Measuring gives way to a training, and does not choose another device for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from studio.app.state.session import Session
from studio.core.events import Events
from studio.engine.types import DeviceMeasured
from tests.ui.conftest import LONG_MS, endless, start_tiny


def _measure(*settings: object) -> Events:
    """Finds the other device the faster one, and goes on for ever."""
    yield DeviceMeasured("cpu", "fp32", 1.0, 0.1, 1.0)
    yield DeviceMeasured("other", "fp32", 9.0, 0.1, 1.0)
    yield from endless()


def test_a_training_ends_the_measuring_and_its_device_stays_chosen(
    qtbot: QtBot, ready: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.app.background.jobs.measure", _measure)
    cpu = ready.catalog.device("cpu")
    assert cpu is not None
    with qtbot.waitSignal(ready.open_sprites.imported, timeout=LONG_MS):
        ready.open_sprites.open_paths([sprite_folder])
    ready.catalog.devices = (cpu, replace(cpu, id="other", name="Another"))
    ready.catalog.devices_found.emit()
    ready.setup.choose_device("cpu")
    with qtbot.waitSignals([ready.catalog.measured] * 2, timeout=LONG_MS):
        ready.setup.measure()
    start_tiny(ready, steps=1_000_000)
    qtbot.waitUntil(lambda: not ready.catalog.is_measuring(), timeout=LONG_MS)
    assert ready.training.is_busy()
    assert ready.setup.device == cpu
    ready.training.stop()
    qtbot.waitUntil(lambda: not ready.training.is_busy(), timeout=LONG_MS)
    assert ready.training.failure is None
