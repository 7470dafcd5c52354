"""Closing an import: at once, whatever it is doing, and nothing keeps running."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
import pytest

from studio.core.events import Event, Progress
from studio.data import importing
from studio.data.importing import ImportOptions, SpritesImported, import_sprites
from studio.data.reading import workers
from studio.data.reading.workers import in_threads, run_in_thread
from studio.data.source_files import Picture, Remark, SourceFile
from studio.data.sources.base import Source
from tests.data.making import sprite, write

PATIENCE_S = 0.2


class HangingSource(Source):
    """A drive that has gone to sleep: reading waits until the test ends."""

    name = "hanging"

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.woken = threading.Event()

    def claims(self, file: SourceFile) -> bool:
        return True

    def read(self, file: SourceFile) -> Iterator[Picture | Remark]:
        self.asked.set()
        self.woken.wait(30)
        yield Picture(np.zeros((8, 8, 4), np.uint8))

    def example(self, folder: Path) -> Path:
        return folder


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "reader"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(300):
        write(tmp_path / "set" / f"{number}.png", sprite(number, 16))
    return tmp_path / "set"


@pytest.mark.parametrize("stage", ["files found", "files read", "sprites kept for the next time"])
def test_closing_leaves_nothing_running(folder: Path, tmp_path: Path, stage: str) -> None:
    job = import_sprites([folder], ImportOptions(), tmp_path / "cache")
    for event in job:
        if isinstance(event, Progress) and event.what == stage:
            break
    started = time.perf_counter()
    job.close()
    assert time.perf_counter() - started < PATIENCE_S
    assert not readers()


def test_closing_before_the_first_event_and_after_the_last(folder: Path) -> None:
    import_sprites([folder], ImportOptions()).close()
    job = import_sprites([folder], ImportOptions())
    assert isinstance(list(job)[-1], SpritesImported)
    job.close()
    assert not readers()


def test_a_file_that_hangs_holds_up_neither_progress_nor_closing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = HangingSource()
    monkeypatch.setattr(importing, "all_sources", lambda: [source])
    job = import_sprites([folder], ImportOptions())
    seen = 0
    for event in job:
        seen += source.asked.is_set() and isinstance(event, Progress)
        if seen == 4:
            break
    started = time.perf_counter()
    job.close()
    assert time.perf_counter() - started < PATIENCE_S
    waiting = readers()
    assert waiting and all(thread.daemon for thread in waiting)  # they can't keep the program from ending
    source.woken.set()
    for thread in waiting:
        thread.join(5)
    assert not readers()


def test_every_job_is_done_once_and_errors_come_out_where_it_is_waited_for() -> None:
    def work(job: int) -> Iterator[int]:
        yield from (job, job + 1000)

    def failing(job: int) -> Iterator[int]:
        yield job
        raise ZeroDivisionError(f"job {job}")

    for threads in (1, 3, 20):
        results = [item for batch in in_threads(work, range(10), threads) for item in batch]
        assert sorted(results) == sorted([*range(10), *range(1000, 1010)])
        assert all(results.index(job) < results.index(job + 1000) for job in range(10))
    assert list(in_threads(work, [], threads=2)) == []
    with pytest.raises(ZeroDivisionError, match="job"):
        list(in_threads(failing, [1, 2, 3], threads=2))
    assert not readers()


def test_nobody_works_far_ahead_of_whoever_takes_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_MOST_WAITING", 3)
    made = 0

    def work(job: int) -> Iterator[int]:
        nonlocal made
        made += 1
        yield job

    taken = 0
    for batch in in_threads(work, range(500), threads=1):
        taken += len(batch)
        assert made <= taken + 3 + 2  # that wait, in hand, and one that was taken just now
    assert taken == made == 500


def test_work_aside_counts_and_returns() -> None:
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


def test_closing_work_aside_closes_it() -> None:
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
