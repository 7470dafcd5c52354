from __future__ import annotations

import gc
import threading
import weakref

import pytest
from pytestqt.qtbot import QtBot

from studio.app.garbage import MainThreadCollector


class _Knot:
    """Something that only the cyclic collector lets go, and that remembers the thread it went in."""

    def __init__(self) -> None:
        self.itself = self


def test_cycles_are_let_go_in_the_main_thread_alone(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, 10, -1))  # always due, whatever ran before: all generations
    collector = MainThreadCollector()
    went: list[threading.Thread] = []

    def make() -> None:
        knots = [_Knot() for _ in range(5_000)]
        weakref.finalize(knots[0], lambda: went.append(threading.current_thread()))

    worker = threading.Thread(target=make)
    worker.start()
    worker.join()
    assert not gc.isenabled() and went == []
    qtbot.waitUntil(lambda: bool(went), timeout=5_000)
    assert went == [threading.main_thread()]
    collector.deleteLater()
