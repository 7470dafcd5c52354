"""Run generators on background threads and yield their results in batches; the caller never blocks for long."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Generic, TypeVar

from studio.core.events import Event, Progress

J = TypeVar("J")
T = TypeVar("T")

_BATCH_S = 0.02  # time to collect a batch: handing over each result alone would cost more than reading a file
_RECEIVE_TIMEOUT_S = 0.025
_SEND_TIMEOUT_S = 0.02
_JOIN_TIMEOUT_S = 0.1
_MAX_WAITING = 16  # batches in the queue: a slow consumer must not fill the memory


def run_in_thread(work: Generator[int, None, T], total: int, what: str) -> Generator[Event, None, T]:
    """Run `work`, a generator of counts, on a thread; return its result. Yields Progress at least every 25 ms.

    total, what: fields of Progress. Closing this generator closes `work` at its next count.
    """
    results: list[T] = []

    def run(job: Generator[int, None, T]) -> Iterator[int]:
        results.append((yield from job))

    done = 0
    with closing(run_in_threads(run, [work], threads=1)) as batches:
        for batch in batches:
            done = batch[-1] if batch else done
            yield Progress(done, total, what)
    return results[0]


def run_in_threads(work: Callable[[J], Iterator[T]], jobs: Sequence[J], threads: int) -> Generator[list[T], None, None]:
    """Run `work(job)` for every job on up to `threads` threads; yield the results of all jobs in batches.

    The results of a job keep their order. Yields an empty batch after 25 ms without results. Raises errors of `work`.
    """

    def run_jobs(jobs_left: Iterator[J]) -> Iterator[T]:
        for job in jobs_left:
            yield from work(job)

    return run_workers([run_jobs] * min(threads, len(jobs)), jobs)


def run_workers(
    workers: Sequence[Callable[[Iterator[J]], Iterator[T]]], jobs: Sequence[J]
) -> Generator[list[T], None, None]:
    """Run each worker on a thread and yield the results of all workers in batches, in no fixed order.

    Each worker receives an iterator over the shared queue of jobs. Yields an empty batch after 25 ms without results.
    Raises the error of a worker. Closing the generator stops the workers between two results and waits up to 100 ms.
    The threads are daemons: a file on a drive that hangs delays neither closing the generator nor the program's exit.
    """
    threads = _Threads(workers, jobs)
    try:
        while threads.running:
            yield threads.receive()
    finally:
        threads.stop()


class _Threads(Generic[J, T]):
    """Worker threads with shared queues of jobs and results. running: number of running threads."""

    def __init__(self, workers: Sequence[Callable[[Iterator[J]], Iterator[T]]], jobs: Sequence[J]) -> None:
        self._jobs: queue.SimpleQueue[J] = queue.SimpleQueue()
        for job in jobs:
            self._jobs.put(job)
        # A thread sends batches, and at its end an exception, or None without an error.
        self._results: queue.Queue[list[T] | BaseException | None] = queue.Queue(_MAX_WAITING)
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=[each], name="reader", daemon=True) for each in workers
        ]
        self.running = len(workers)
        for thread in self._threads:
            thread.start()

    def receive(self) -> list[T]:
        """Return the next batch, or an empty batch after 25 ms. Raises the error of a worker."""
        try:
            result = self._results.get(timeout=_RECEIVE_TIMEOUT_S)
        except queue.Empty:
            return []
        if isinstance(result, list):
            return result
        self.running -= 1
        if result is not None:
            raise result
        return []

    def stop(self) -> None:
        """Stop the threads between two results and wait up to 100 ms for them."""
        self._stopped.set()
        deadline = time.perf_counter() + _JOIN_TIMEOUT_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.perf_counter()))

    def _run(self, worker: Callable[[Iterator[J]], Iterator[T]]) -> None:
        try:
            batch: list[T] = []
            sent = time.perf_counter()
            for result in worker(self._jobs_left(batch)):
                batch.append(result)
                if self._stopped.is_set():
                    return
                if time.perf_counter() - sent > _BATCH_S:
                    self._send_batch(batch)
                    sent = time.perf_counter()
            self._send_batch(batch)
        except BaseException as error:  # noqa: BLE001 - `receive` raises it in the caller's thread
            self._send(error)
        else:
            self._send(None)

    def _jobs_left(self, batch: list[T]) -> Iterator[J]:
        """Yield jobs from the shared queue; send the results collected in `batch` before every job."""
        while not self._stopped.is_set():
            self._send_batch(batch)
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            yield job

    def _send_batch(self, batch: list[T]) -> None:
        """Send a copy of a non-empty batch and clear the batch."""
        if batch:
            self._send(batch.copy())
            batch.clear()

    def _send(self, result: list[T] | BaseException | None) -> None:
        """Put a result into the queue, waiting for room; drop the result after `stop`."""
        while not self._stopped.is_set():
            try:
                self._results.put(result, timeout=_SEND_TIMEOUT_S)
            except queue.Full:
                continue
            return
