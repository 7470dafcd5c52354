"""Work on threads that a generator waits for without ever being stuck."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from types import TracebackType
from typing import Generic, TypeVar

J = TypeVar("J")
T = TypeVar("T")

_BATCH_S = 0.02  # results are handed over in batches: a hand-over per file would cost more than reading it
_WAIT_S = 0.025
_FAREWELL_S = 0.1
_MOST_WAITING = 16  # batches: whoever is slow to take them must not find the memory full
_PATIENCE_S = 0.02  # of a thread whose batch can't be handed over yet


def in_threads(work: Callable[[J], Iterator[T]], jobs: Sequence[J], threads: int) -> Generator[list[T], None, None]:
    """Run `work(job)` for every job on `threads` threads and yield what comes, as `run_workers` does.

    Each job's own results keep their order.
    """

    def one_by_one(left: Iterator[J]) -> Iterator[T]:
        for job in left:
            yield from work(job)

    return run_workers([one_by_one] * min(threads, len(jobs)), jobs)


def run_workers(
    workers: Sequence[Callable[[Iterator[J]], Iterator[T]]], jobs: Sequence[J]
) -> Generator[list[T], None, None]:
    """Run each worker on a thread of its own and yield what comes of all, in batches, in no fixed order.

    A worker is given an iterator of the jobs that nobody has taken yet. An empty batch comes when there was nothing for
    25 ms. An error in a worker is raised here. Closing the generator stops the work between two results and waits
    100 ms for it; the threads are daemons, so that neither closing nor leaving the program waits for a file on a drive
    that hangs.
    """
    crew = _Workers[J, T](jobs)
    crew.start(workers)
    try:
        while crew.running:
            yield crew.receive()
    finally:
        crew.dismiss()


def run_in_thread(work: Generator[int, None, T]) -> Generator[int, None, T]:
    """Run a generator of counts on a thread of its own: yields how far it is, at least every 25 ms, and its result.

    Closing this closes it at its next count.
    """
    results: list[T] = []

    def run(job: Generator[int, None, T]) -> Iterator[int]:
        results.append((yield from job))

    done = 0
    with closing(in_threads(run, [work], threads=1)) as batches:
        for batch in batches:
            done = batch[-1] if batch else done
            yield done
    return results[0]


class _Workers(Generic[J, T]):
    def __init__(self, jobs: Sequence[J]) -> None:
        self._jobs: queue.SimpleQueue[J] = queue.SimpleQueue()
        for job in jobs:
            self._jobs.put(job)
        self._results: queue.Queue[list[T] | _WorkerDone] = queue.Queue(_MOST_WAITING)
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.running = 0

    def start(self, workers: Sequence[Callable[[Iterator[J]], Iterator[T]]]) -> None:
        self._threads = [
            threading.Thread(target=self._run, args=[worker], name="reader", daemon=True) for worker in workers
        ]
        self.running = len(workers)
        for thread in self._threads:
            thread.start()

    def receive(self) -> list[T]:
        """The next batch, or an empty one after a while. Raises what a thread died of."""
        try:
            result = self._results.get(timeout=_WAIT_S)
        except queue.Empty:
            return []
        if isinstance(result, list):
            return result
        self.running -= 1
        if result.error is not None:
            raise result.error
        return []

    def dismiss(self) -> None:
        self._stop.set()
        deadline = time.perf_counter() + _FAREWELL_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.perf_counter()))

    def hand_over(self, result: list[T] | _WorkerDone) -> None:
        """Give a result to whoever waits for it, as soon as there is room; nobody does once the work was stopped."""
        while not self._stop.is_set():
            try:
                self._results.put(result, timeout=_PATIENCE_S)
            except queue.Full:
                continue
            return

    def _run(self, worker: Callable[[Iterator[J]], Iterator[T]]) -> None:
        with _WorkerDone(self.hand_over):
            batch: list[T] = []
            handed = time.perf_counter()
            for result in worker(self._left(batch)):
                batch.append(result)
                if self._stop.is_set():
                    return
                if time.perf_counter() - handed > _BATCH_S:
                    self._hand_over_all(batch)
                    handed = time.perf_counter()
            self._hand_over_all(batch)

    def _left(self, batch: list[T]) -> Iterator[J]:
        """The jobs that are left; what came of those before is not held back while the next one is done."""
        while not self._stop.is_set():
            self._hand_over_all(batch)
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            yield job

    def _hand_over_all(self, batch: list[T]) -> None:
        if batch:
            self.hand_over(batch.copy())
            batch.clear()


class _WorkerDone:
    """Says that a thread has ended, and hands over the error that ended it."""

    def __init__(self, hand_over: Callable[[_WorkerDone], None]) -> None:
        self._hand_over = hand_over
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        self._hand_over(self)
        return True
