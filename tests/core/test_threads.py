"""Tests of generators on background threads: every job runs once, errors reach the caller, closing stops the work."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator

import pytest

from studio.core import threads
from studio.core.events import Event, Progress
from studio.core.threads import run_in_thread, run_in_threads


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "reader"]


def test_every_job_runs_once_and_errors_reach_the_caller() -> None:
    def work(job: int) -> Iterator[int]:
        yield from (job, job + 1000)
        if job == 500:
            raise ZeroDivisionError(f"job {job}")

    for count in (1, 3, 20):
        results = [item for batch in run_in_threads(work, range(10), count) for item in batch]
        assert sorted(results) == sorted([*range(10), *range(1000, 1010)])
        assert all(results.index(job) < results.index(job + 1000) for job in range(10))
    assert list(run_in_threads(work, [], threads=2)) == []
    with pytest.raises(ZeroDivisionError, match="job"):
        list(run_in_threads(work, [1, 500, 3], threads=2))
    assert not readers()


def test_the_queue_limits_results_ahead_of_the_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_MAX_WAITING", 3)
    made = 0

    def work(job: int) -> Iterator[int]:
        nonlocal made
        made += 1
        yield job

    taken = 0
    for batch in run_in_threads(work, range(500), threads=1):
        taken += len(batch)
        assert made <= taken + 3 + 2  # waiting, in work, and just fetched
    assert taken == made == 500


def test_run_in_thread_yields_progress_and_returns_the_result() -> None:
    def work(most: int) -> Generator[int, None, str]:
        for number in range(most):
            if number == 7:
                raise ZeroDivisionError
            yield number
        return "done"

    def watched() -> Generator[Event, None, None]:
        assert (yield from run_in_thread(work(5), 0, "")) == "done"

    seen = [event.done for event in watched() if isinstance(event, Progress)]
    assert seen == sorted(seen) and seen[-1] == 4
    with pytest.raises(ZeroDivisionError):
        list(run_in_thread(work(9), 0, ""))
    assert not readers()


def test_closing_run_in_thread_closes_the_work() -> None:
    began, ended = threading.Event(), threading.Event()

    def work() -> Generator[int, None, None]:
        try:
            while True:
                began.set()
                yield 1
        finally:
            ended.set()

    job = run_in_thread(work(), 0, "")
    next(job)
    assert began.wait(5)
    job.close()
    assert ended.wait(5)
