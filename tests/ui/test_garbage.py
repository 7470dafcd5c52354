from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from studio.app.application import MainThreadCollector
from studio.app.background import jobs
from studio.app.background.jobs import find_devices


class _Knot:
    """Something that only the cyclic collector lets go, and that remembers the thread it went in."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def automatic() -> Iterator[None]:
    """The collector as it was afterwards."""
    yield
    gc.enable()


def test_cycles_are_let_go_in_the_main_thread_alone(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, automatic: None
) -> None:
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, 10, -1))  # always due, whatever ran before: all generations
    collector = MainThreadCollector()
    collector.begin()
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
    collector.end()


def test_what_is_there_at_the_beginning_is_left_out(automatic: None) -> None:
    collector = MainThreadCollector()
    gc.unfreeze()  # whatever ran before
    collector.begin()
    there = gc.get_freeze_count()
    assert there > 1000
    later = [[number] for number in range(10_000)]
    collector.begin()  # nothing new: a job that fails later begins it once more
    assert gc.get_freeze_count() <= there and len(later) == 10_000
    collector.end()
    assert gc.get_freeze_count() == 0


def test_what_an_import_brings_is_not_walked(monkeypatch: pytest.MonkeyPatch, automatic: None) -> None:
    walked: list[int] = []
    monkeypatch.setattr(gc, "get_threshold", lambda: (-1, -1, -1))  # always due
    monkeypatch.setattr("studio.app.application.gc.collect", lambda generation=2: walked.append(generation))
    collector = MainThreadCollector()
    gc.unfreeze()  # whatever ran before
    collector.begin()
    collector.spare_the_old()
    brought = [[number] for number in range(10_000)]
    collector.collect_due()
    assert walked == [1]
    before = gc.get_freeze_count()
    collector.settle(for_good=True)
    assert gc.get_freeze_count() - before >= len(brought)
    collector.collect_due()
    assert walked == [1, 2]
    collector.end()


def test_starting_the_engine_leaves_the_collector_off(automatic: None) -> None:
    collector = MainThreadCollector()
    for job in (jobs.warm_up(), jobs.find_plugins(), find_devices()):
        list(job)
    assert not gc.isenabled()
    collector.end()
