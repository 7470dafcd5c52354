"""A process that reads files for the studio: started by `workers`, it imports no more than reading needs."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from studio.core.worker_process import own_streams, receive, send
from studio.data.options import Grid, ImportOptions
from studio.data.reading.finding import Folder, Row
from studio.data.reading.read import Reading, all_sources, kinds_of, read_all

_ENOUGH_BYTES = 256 << 10  # of pixels in one answer


class Hello(NamedTuple):
    """The first request. It is answered, once the process is up, if its sources are of the same kinds."""

    options: ImportOptions
    kinds: list[str]


class Task(NamedTuple):
    """Files to read, answered with lists of their readings.

    groups: those of the files that were not sent before. forget: whether those that were are sent again when needed.
    grids: as in `read_all`.
    """

    rows: Sequence[Row]
    folders: Mapping[int, Folder]
    forget: bool
    grids: Sequence[Grid | None]


def main() -> None:
    """Serve tasks until the pipe is closed. Any error ends the process: the studio then reads its files itself."""
    requests, answers = own_streams()
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, asked), daemon=True).start()
    try:
        _serve(asked, answers)
    finally:
        os._exit(1)  # at once: the other thread is in the middle of a read


def _listen(requests: BinaryIO, asked: queue.SimpleQueue[Any]) -> None:
    """Queue requests while others are served, so that the sender never blocks; exit when the pipe is closed."""
    try:
        while True:
            asked.put(receive(requests))
    finally:
        os._exit(0)


def _serve(asked: queue.SimpleQueue[Any], answers: BinaryIO) -> None:
    hello: Hello = asked.get()
    sources = all_sources()
    if kinds_of(sources) != hello.kinds:
        return  # the studio reads with others, which this process can't know
    send(answers, "ready")
    folders: dict[int, Folder] = {}
    while True:
        task: Task = asked.get()
        if task.forget:
            folders.clear()
        folders.update(task.folders)
        files = [folders[row.folder].file_for(row) for row in task.rows]
        for readings in _in_answers(read_all(files, sources, hello.options, task.grids)):
            send(answers, readings)


def _in_answers(readings: Iterator[Reading]) -> Iterator[list[Reading]]:
    """Lists of readings with about _ENOUGH_BYTES of pixels."""
    waiting: list[Reading] = []
    size = 0
    for reading in readings:
        waiting.append(reading)
        size += sum(sprite.rgba.nbytes for sprite in reading.sprites if sprite.rgba is not None)
        if size > _ENOUGH_BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting
