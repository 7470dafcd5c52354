"""Threads that read, and for many files also processes on the other cores; the generator in charge never blocks long.

Threads alone would take Python's lock from each other. Each process is driven by a thread that waits for it nearly
always. No `ProcessPoolExecutor`: its tasks go to any process, so that what files share would be sent with every chunk
of them.
"""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from types import TracebackType
from typing import Generic, TypeVar

from studio.core import limits, worker_process
from studio.core.events import Event, Progress
from studio.core.worker_process import CONNECTION_ERRORS, receive, send
from studio.data.options import Grid, ImportOptions
from studio.data.reading.child import Hello, Task
from studio.data.reading.finding import Folder, FoundFiles
from studio.data.reading.read import Reading, kinds_of, read_all
from studio.data.sources.base import Source

J = TypeVar("J")
T = TypeVar("T")
Worker = Callable[[Iterator[range]], Iterator[tuple[int, Reading]]]

_BATCH_S = 0.02  # results are handed over in batches: a hand-over per file would cost more than reading it
_WAIT_S = 0.025
_FAREWELL_S = 0.1
_MOST_WAITING = 16  # batches: a slow consumer must not fill the memory
_PATIENCE_S = 0.02  # of a thread whose batch can't be handed over yet
_FEWEST = 2000  # files: fewer are read by the time that a process has started
_SHARE = 500  # files for which one more process is worth its start
_MOST = 16  # processes
_PROCESS_BYTES = 128 << 20  # of memory, with a large picture in it
_AHEAD = 2  # chunks that a process has been given: while an answer is taken it goes on with the next
_MOST_KNOWN = 1 << 18  # names that a process keeps


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
    threads = _Threads(workers, jobs)
    try:
        while threads.running:
            yield threads.receive()
    finally:
        threads.dismiss()


def run_in_thread(work: Generator[int, None, T], total: int, what: str) -> Generator[Event, None, T]:
    """Run a generator of counts on a thread of its own: yields Progress at least every 25 ms, and returns its result.

    total, what: as in Progress. Closing this closes it at its next count.
    """
    results: list[T] = []

    def run(job: Generator[int, None, T]) -> Iterator[int]:
        results.append((yield from job))

    done = 0
    with closing(in_threads(run, [work], threads=1)) as batches:
        for batch in batches:
            done = batch[-1] if batch else done
            yield Progress(done, total, what)
    return results[0]


class _Threads(Generic[J, T]):
    """Threads that share a queue of jobs and one of results. running: how many have not ended."""

    def __init__(self, workers: Sequence[Callable[[Iterator[J]], Iterator[T]]], jobs: Sequence[J]) -> None:
        self._jobs: queue.SimpleQueue[J] = queue.SimpleQueue()
        for job in jobs:
            self._jobs.put(job)
        self._results: queue.Queue[list[T] | _ThreadDone] = queue.Queue(_MOST_WAITING)
        self._stop = threading.Event()
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
        """Stop them between two results, and wait a little."""
        self._stop.set()
        deadline = time.perf_counter() + _FAREWELL_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.perf_counter()))

    def hand_over(self, result: list[T] | _ThreadDone) -> None:
        """Put a result into the queue as soon as there is room; drop it once the work was stopped."""
        while not self._stop.is_set():
            try:
                self._results.put(result, timeout=_PATIENCE_S)
            except queue.Full:
                continue
            return

    def _run(self, worker: Callable[[Iterator[J]], Iterator[T]]) -> None:
        with _ThreadDone(self.hand_over):
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


class _ThreadDone:
    """Says that a thread has ended, and hands over the error that ended it."""

    def __init__(self, hand_over: Callable[[_ThreadDone], None]) -> None:
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


def processes_for(count: int) -> int:
    """How many processes read so many files, besides the thread."""
    if count < _FEWEST or not worker_process.can_start():
        return 0
    return min(_MOST, limits.usable_cpus() - 1, count // _SHARE, limits.usable_memory().free_bytes // _PROCESS_BYTES)


class ReaderPool:
    """Workers for `run_workers` that read chunks of a list of files; leaving it ends the processes at once."""

    def __init__(
        self,
        files: FoundFiles,
        sources: Sequence[Source],
        options: ImportOptions,
        grids: Mapping[int, Grid] | None = None,
    ) -> None:
        """grids: recognised in files that are read once more, by their numbers; then only those are to be read."""
        self.files, self.sources, self.options = files, sources, options
        self._grids = grids
        self._processes: list[subprocess.Popen[bytes]] = []
        self._closed = False
        self._starting = threading.Lock()

    def __enter__(self) -> ReaderPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._starting:
            self._closed = True
            for process in self._processes:
                process.kill()  # the thread that waits for it notices

    def workers(self) -> list[Worker]:
        """The thread that reads at once, and those that drive processes."""
        count = len(self.files) if self._grids is None else len(self._grids)
        return [self._read, *[self._read_elsewhere] * processes_for(count)]

    def grids(self, chunk: range) -> list[Grid | None]:
        """Those of these files; empty where none were recognised yet."""
        return [] if self._grids is None else [self._grids.get(number) for number in chunk]

    def start_process(self) -> subprocess.Popen[bytes]:
        """Raises OSError."""
        with self._starting:
            if self._closed:
                raise BrokenPipeError
            # What goes wrong there is tried again here, and said then.
            process = worker_process.start(
                "studio.data.reading.child", {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            )
            self._processes.append(process)
        return process

    def _read(self, chunks: Iterator[range]) -> Iterator[tuple[int, Reading]]:
        for chunk in chunks:
            some = self.files[chunk.start : chunk.stop]
            yield from zip(chunk, read_all(some, self.sources, self.options, self.grids(chunk)), strict=True)

    def _read_elsewhere(self, chunks: Iterator[range]) -> Iterator[tuple[int, Reading]]:
        """Read in a process. What it leaves undone is read here: should a file be at fault, that is said here too."""
        waiting: deque[range] = deque()
        with suppress(*CONNECTION_ERRORS), closing(_Process(self)) as process:
            for chunk in chunks:
                waiting.append(chunk)
                process.ask(chunk)
                while len(waiting) == _AHEAD:
                    yield from process.answer(waiting)
            while waiting:
                yield from process.answer(waiting)
        if not self._closed:
            yield from self._read(iter(waiting))


class _Process:
    """A process, for the thread that drives it. All but `close` raise one of CONNECTION_ERRORS once it is lost."""

    def __init__(self, pool: ReaderPool) -> None:
        self._pool = pool
        self._known: set[int] = set()  # groups
        self._names_known = 0
        self._process = pool.start_process()
        self._requests, self._answers = worker_process.streams_of(self._process)
        try:
            send(self._requests, Hello(pool.options, kinds_of(pool.sources)))
            receive(self._answers)  # it is up; what is given out sooner would only lie about
        except CONNECTION_ERRORS:
            self.close()
            raise

    def ask(self, chunk: range) -> None:
        """Have these files read."""
        rows = self._pool.files.rows(slice(chunk.start, chunk.stop))
        folders = {row.folder: self._pool.files.folders[row.folder] for row in rows}
        new = {number: folder for number, folder in folders.items() if number not in self._known}
        self._names_known += _names_in(new)
        forget = bool(new) and self._names_known > _MOST_KNOWN
        if forget:
            new, self._names_known = folders, _names_in(folders)
            self._known.clear()
        self._known |= new.keys()
        send(self._requests, Task(rows, new, forget, self._pool.grids(chunk)))

    def answer(self, waiting: deque[range]) -> list[tuple[int, Reading]]:
        """What came of the next of the files that it was asked for, which are taken from `waiting`."""
        readings: list[Reading] = receive(self._answers)
        chunk = waiting.popleft()
        done, left = chunk[: len(readings)], chunk[len(readings) :]
        if left:
            waiting.appendleft(left)
        return list(zip(done, readings, strict=True))

    def close(self) -> None:
        """End it and wait until it is gone."""
        self._process.kill()
        with suppress(OSError):  # of what it was not told any more
            self._requests.close()
        self._answers.close()
        self._process.wait()


def _names_in(folders: Mapping[int, Folder]) -> int:
    return sum(len(folder.beside) for folder in folders.values())
