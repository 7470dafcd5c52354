"""Read files on a thread; for large imports, also in worker processes on other cores.

Threads alone would compete for Python's global lock. A thread drives every worker process and mostly waits.
`concurrent.futures.ProcessPoolExecutor` does not fit: a process with a hanging file can't be killed, one dead process
breaks the pool, tasks can't be sent to a chosen process (every chunk of files would carry the data of the folder), and
on Windows every process would run the main script again.
"""

from __future__ import annotations

import subprocess
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial

from studio.core import limits, worker_process
from studio.core.events import Event, Progress
from studio.core.threads import run_workers
from studio.core.worker_process import CONNECTION_ERRORS, receive, send
from studio.data.options import ImportOptions, SheetGrid
from studio.data.reading.finding import Folder, FoundFiles
from studio.data.reading.read import ReadResult, class_names_of, read_all
from studio.data.reading.reader_process import ReadRequest, Setup
from studio.data.sources.base import Source

Worker = Callable[[Iterator[range]], Iterator[tuple[int, ReadResult]]]

_CHUNK = 32  # files that a reader takes at a time
_MIN_FILES = 2000  # the thread reads fewer files before a process has started
_FILES_PER_PROCESS = 500  # fewer files don't justify starting a further process
_MAX_PROCESSES = 16
_PROCESS_BYTES = 128 << 20  # memory for a process that decodes a large image
_CHUNKS_AHEAD = 2  # chunks sent to a process: it reads the next chunk while its results are received
_MAX_KNOWN_NAMES = 1 << 18  # file names that a process holds


def read_files(
    files: FoundFiles, sources: Sequence[Source], options: ImportOptions, store: Callable[[int, ReadResult], None],
    grids: Mapping[int, SheetGrid] | None = None,
) -> Generator[Event, None, None]:  # fmt: skip
    """Read `files` and call `store(number, result)` on reader threads; yields Progress at least every 25 ms.

    grids: grids of sheets by file number. Given grids, reads only these files again and slices the sheets.
    """

    def read_and_store(worker: Worker, chunks: Iterator[range]) -> Iterator[int]:
        for number, result in worker(chunks):
            store(number, result)
            yield number

    if grids is None:
        chunks = [range(start, min(start + _CHUNK, len(files))) for start in range(0, len(files), _CHUNK)]
    else:
        chunks = [range(number, number + 1) for number in sorted(grids)]
    pool = ReaderPool(files, sources, options, grids)
    workers = [partial(read_and_store, worker) for worker in pool.workers()]
    done, total, what = 0, sum(map(len, chunks)), "files read" if grids is None else "sheets sliced"
    with closing(run_workers(workers, chunks)) as batches, closing(pool):
        while done < total:  # don't wait for the end of all workers: a process may still be starting
            done += len(next(batches))
            yield Progress(done, total, what)


def process_count(files: int) -> int:
    """Return the number of worker processes for reading `files` files; 0 if a thread suffices."""
    if files < _MIN_FILES or not worker_process.can_start():
        return 0
    free = limits.usable_memory().free_bytes
    return min(_MAX_PROCESSES, limits.usable_cpus() - 1, files // _FILES_PER_PROCESS, free // _PROCESS_BYTES)


class ReaderPool:
    """Reads chunks of files on a thread and in worker processes. grids: by file number."""

    def __init__(
        self, files: FoundFiles, sources: Sequence[Source], options: ImportOptions,
        grids: Mapping[int, SheetGrid] | None = None,
    ) -> None:  # fmt: skip
        self.files, self.sources, self.options = files, sources, options
        self._grids = grids
        self._processes: list[subprocess.Popen[bytes]] = []
        self._closed = False
        self._lock = threading.Lock()  # of the two attributes above

    def close(self) -> None:
        """Kill the worker processes."""
        with self._lock:
            self._closed = True
            for process in self._processes:
                process.kill()  # the driving thread then gets a connection error

    def workers(self) -> list[Worker]:
        """Return functions for `run_workers`: the first reads on a thread, the others drive worker processes."""
        count = len(self.files) if self._grids is None else len(self._grids)
        return [self._read_here, *[self._read_in_process] * process_count(count)]

    def grids_of(self, chunk: range) -> list[SheetGrid | None]:
        """Return the grid for each file of a chunk; [] while sheets stay whole."""
        return [] if self._grids is None else [self._grids.get(number) for number in chunk]

    def start_process(self) -> subprocess.Popen[bytes]:
        """Start and return a worker process. Raises OSError, also after the pool was closed."""
        environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with self._lock:
            if self._closed:
                raise BrokenPipeError
            self._processes.append(worker_process.start("studio.data.reading.reader_process", environment))
            return self._processes[-1]

    def _read_here(self, chunks: Iterator[range]) -> Iterator[tuple[int, ReadResult]]:
        for chunk in chunks:
            files = self.files[chunk.start : chunk.stop]
            yield from zip(chunk, read_all(files, self.sources, self.options, self.grids_of(chunk)), strict=True)

    def _read_in_process(self, chunks: Iterator[range]) -> Iterator[tuple[int, ReadResult]]:
        """Read chunks of files in a worker process; if the process dies, read the rest in this process."""
        waiting: deque[range] = deque()
        with suppress(*CONNECTION_ERRORS), closing(_ReaderProcess(self)) as process:
            for chunk in chunks:
                waiting.append(chunk)
                process.send_chunk(chunk)
                while len(waiting) == _CHUNKS_AHEAD:
                    yield from process.receive_results(waiting)
            while waiting:
                yield from process.receive_results(waiting)
        if not self._closed:
            yield from self._read_here(iter(waiting))


class _ReaderProcess:
    """Connection to a new worker process. If the process dies, methods raise an error from CONNECTION_ERRORS."""

    def __init__(self, pool: ReaderPool) -> None:
        self._pool = pool
        self._known: set[int] = set()  # folder numbers already sent to the process
        self._known_names = 0
        self._process = pool.start_process()
        self._requests, self._answers = worker_process.streams_of(self._process)
        try:
            send(self._requests, Setup(pool.options, class_names_of(pool.sources)))
            receive(self._answers)  # the process is ready; chunks sent earlier would only wait
        except CONNECTION_ERRORS:
            self.close()
            raise

    def send_chunk(self, chunk: range) -> None:
        """Request the files of a chunk from the process, and send the data of new folders."""
        rows = self._pool.files.rows(slice(chunk.start, chunk.stop))
        folders = {row.folder: self._pool.files.folders[row.folder] for row in rows}
        new = {number: folder for number, folder in folders.items() if number not in self._known}
        self._known_names += _count_names(new)
        drop_folders = bool(new) and self._known_names > _MAX_KNOWN_NAMES
        if drop_folders:
            new, self._known_names = folders, _count_names(folders)
            self._known.clear()
        self._known |= new.keys()
        send(self._requests, ReadRequest(rows, new, drop_folders, self._pool.grids_of(chunk)))

    def receive_results(self, waiting: deque[range]) -> list[tuple[int, ReadResult]]:
        """Receive results and return them with their file numbers; remove these files from the chunks in `waiting`."""
        results: list[ReadResult] = receive(self._answers)
        chunk = waiting.popleft()
        done, rest = chunk[: len(results)], chunk[len(results) :]
        if rest:
            waiting.appendleft(rest)
        return list(zip(done, results, strict=True))

    def close(self) -> None:
        """Kill the process and wait until it has ended."""
        self._process.kill()
        with suppress(OSError):  # unsent requests
            self._requests.close()
        self._answers.close()
        self._process.wait()


def _count_names(folders: Mapping[int, Folder]) -> int:
    return sum(len(folder.siblings) for folder in folders.values())
