"""Who reads the files of an import: one thread, and for many files also processes on the other cores.

Threads alone would take Python's lock from each other. The processes are no `multiprocessing` ones: those run the
program's main script a second time and talk in pickles. Each is driven by a thread that waits for it nearly always.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

from studio.core import limits
from studio.data.options import ImportOptions
from studio.data.reading.found_files import FoundFiles
from studio.data.reading.messages import BUFFER_BYTES, packed_group, receive, send, send_encoded, unpacked_readings
from studio.data.reading.read import Reading, kinds_of, read_all
from studio.data.sheets.grids import Grid
from studio.data.sources.base import Source

Worker = Callable[[Iterator[range]], Iterator[tuple[int, Reading]]]

_FEWEST = 2000  # files: fewer are read by the time that a process has started
_SHARE = 500  # files for which one more process is worth its start
_MOST = 16  # processes
_PROCESS_BYTES = 128 << 20  # of memory, with a large picture in it
_AHEAD = 2  # chunks that a process has been given: while an answer is taken it goes on with the next
_MOST_KNOWN = 1 << 18  # names that a process keeps
_GROUPS_KEPT = 4  # encoded: all processes are at about the same place in the list
_START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = sys.argv[1:]; "
    "from studio.data.reading.child import main; main()"
)


class _LostError(Exception):
    """A process has died, was stopped, or never started."""


def processes_for(count: int) -> int:
    """How many processes read so many files, besides the thread."""
    runs_python = "python" in Path(sys.executable or "").name.lower() and not getattr(sys, "frozen", False)
    if count < _FEWEST or not runs_python:
        return 0
    return min(_MOST, limits.cpus() - 1, count // _SHARE, limits.memory().free_bytes // _PROCESS_BYTES)


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
        self._encoded: OrderedDict[int, list[bytes]] = OrderedDict()
        self._encoding = threading.Lock()

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
        command = [sys.executable, "-P", "-X", f"utf8={sys.flags.utf8_mode}", "-c", _START, *sys.path]
        with self._starting:
            if self._closed:
                raise BrokenPipeError
            process = subprocess.Popen(
                command,
                bufsize=BUFFER_BYTES,
                pipesize=BUFFER_BYTES,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what goes wrong there is tried again here, and said then
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
            self._processes.append(process)
        return process

    def encoded(self, number: int) -> list[bytes]:
        """What the files of a group share, for a process."""
        with self._encoding:
            if number not in self._encoded:
                self._encoded[number] = list(packed_group(number, self.files.groups[number]))
                if len(self._encoded) > _GROUPS_KEPT:
                    self._encoded.popitem(last=False)
            return self._encoded[number]

    def _read(self, chunks: Iterator[range]) -> Iterator[tuple[int, Reading]]:
        for chunk in chunks:
            some = self.files[chunk.start : chunk.stop]
            yield from zip(chunk, read_all(some, self.sources, self.options, self.grids(chunk)), strict=True)

    def _read_elsewhere(self, chunks: Iterator[range]) -> Iterator[tuple[int, Reading]]:
        """Read in a process. What it leaves undone is read here: should a file be at fault, that is said here too."""
        waiting: deque[range] = deque()
        with suppress(_LostError), closing(_Process(self)) as process:
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
    """A process, for the thread that drives it. All but `close` raise _LostError."""

    def __init__(self, pool: ReaderPool) -> None:
        self._pool = pool
        self._known: set[int] = set()
        self._names_known = 0
        try:
            self._process = pool.start_process()
        except OSError as error:
            raise _LostError from error
        self._requests = cast(BinaryIO, self._process.stdin)
        self._answers = cast(BinaryIO, self._process.stdout)
        try:
            send(self._requests, {"options": pool.options.to_json(), "sources": kinds_of(pool.sources)})
            receive(self._answers)  # it is up; what is given out sooner would only lie about
        except (OSError, EOFError) as error:
            self.close()
            raise _LostError from error

    def ask(self, chunk: range) -> None:
        """Have these files read."""
        rows = self._pool.files.rows(slice(chunk.start, chunk.stop))
        try:
            self._tell_shared({row.group for row in rows})
            grids = [grid and astuple(grid) for grid in self._pool.grids(chunk)]
            send(self._requests, {"rows": rows, "grids": grids})
        except OSError as error:
            raise _LostError from error

    def answer(self, waiting: deque[range]) -> list[tuple[int, Reading]]:
        """What came of the next of the files that it was asked for, which are taken from `waiting`."""
        try:
            head, body = receive(self._answers)
        except (OSError, EOFError) as error:
            raise _LostError from error
        chunk = waiting.popleft()
        done, left = chunk[: len(head)], chunk[len(head) :]
        if left:
            waiting.appendleft(left)
        files = self._pool.files[done.start : done.stop]
        return list(zip(done, unpacked_readings(head, body, files), strict=True))

    def close(self) -> None:
        """End it and wait until it is gone."""
        self._process.kill()
        with suppress(OSError):  # of what it was not told any more
            self._requests.close()
        self._answers.close()
        self._process.wait()

    def _tell_shared(self, needed: set[int]) -> None:
        """Send what files of these groups share, where it does not know that yet."""
        unknown = needed - self._known
        names = sum(len(self._pool.files.groups[number].beside) for number in unknown)
        if unknown and self._names_known + names > _MOST_KNOWN:
            send(self._requests, {"forget": True})
            self._known, self._names_known, unknown = set(), 0, needed
        for number in sorted(unknown):
            for head in self._pool.encoded(number):
                send_encoded(self._requests, head)
            self._names_known += len(self._pool.files.groups[number].beside)
        self._known |= unknown
