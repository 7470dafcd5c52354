"""Fixtures of the window's tests: nothing that they make outlives them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from studio.app.dispatcher import Dispatcher


@pytest.fixture
def dispatcher(qtbot: QtBot) -> Iterator[Dispatcher]:
    """Two workers that are ended with the test."""
    made = Dispatcher()
    yield made
    assert made.shut_down(5000)
