from __future__ import annotations

import contextlib

import pytest

from studio.core.events import Event, Events, Notice
from studio.core.observers import Observer, observed


class Recorder(Observer):
    """Records its calls, and adds a Notice after each event."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name, self.calls = name, calls

    def before(self, event: Event) -> None:
        self.calls.append(f"{self.name} before")

    def after(self, event: Event) -> Events:
        self.calls.append(f"{self.name} after")
        yield Notice("info", self.name)

    def close(self) -> None:
        self.calls.append(f"{self.name} closed")


def job(calls: list[str]) -> Events:
    try:
        yield Notice("info", "job")
    finally:
        calls.append("job ended")


def test_observers_see_each_event_before_and_after() -> None:
    calls: list[str] = []
    events = observed(job(calls), [Recorder("a", calls), Recorder("b", calls)])
    assert next(events) == Notice("info", "job") and calls == ["a before", "b before"]
    assert list(events) == [Notice("info", "b"), Notice("info", "a")]
    assert calls[2:] == ["b after", "a after", "job ended", "b closed", "a closed"]


def test_observers_are_closed_with_the_job() -> None:
    calls: list[str] = []
    with contextlib.closing(observed(job(calls), [Recorder("a", calls)])) as events:
        next(events)
    assert calls == ["a before", "a closed", "job ended"]


def test_observers_are_closed_after_an_error() -> None:
    def failing() -> Events:
        yield Notice("info", "job")
        raise ValueError

    calls: list[str] = []
    with pytest.raises(ValueError):  # noqa: PT011 - the job's own error
        list(observed(failing(), [Recorder("a", calls)]))
    assert calls[-1] == "a closed"
