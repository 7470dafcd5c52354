"""The worker process that reads files for an import, started by reader_pool.py. Imports only modules for reading."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from studio.core.worker_process import own_streams, receive, send
from studio.data.options import ImportOptions, SheetGrid
from studio.data.reading.finding import FileRow, Folder
from studio.data.reading.read import ReadResult, all_sources, class_names_of, read_all

_ANSWER_BYTES = 256 << 10  # pixels per answer


class Setup(NamedTuple):
    """The first message to a worker process, which answers "ready" if it finds these sources, and exits otherwise."""

    options: ImportOptions
    source_classes: list[str]  # class names of all sources


class ReadRequest(NamedTuple):
    """A message that asks a worker process to read files; the process answers with lists of ReadResult."""

    rows: Sequence[FileRow]  # the files
    folders: Mapping[int, Folder]  # folders of the files by number, unless sent before
    drop_folders: bool  # whether to forget earlier folders first
    grids: Sequence[SheetGrid | None]  # grid for slicing each file; empty while sheets stay whole


def main() -> None:
    """Run the worker process: answer read requests until the pipe closes. An error ends the process."""
    requests, answers = own_streams()
    received: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive_requests, args=(requests, received), daemon=True).start()
    try:
        _serve(received, answers)
    finally:
        os._exit(1)  # a normal exit would wait for the other thread, which is blocked in a read


def _receive_requests(requests: BinaryIO, received: queue.SimpleQueue[Any]) -> None:
    """Move requests from the pipe to a queue, to keep the sender from blocking; exit when the pipe closes."""
    try:
        while True:
            received.put(receive(requests))
    finally:
        os._exit(0)


def _serve(received: queue.SimpleQueue[Any], answers: BinaryIO) -> None:
    setup: Setup = received.get()
    sources = all_sources()
    if class_names_of(sources) != setup.source_classes:
        return  # the main process has sources that this process can't find
    send(answers, "ready")
    folders: dict[int, Folder] = {}
    while True:
        request: ReadRequest = received.get()
        if request.drop_folders:
            folders.clear()
        folders.update(request.folders)
        files = [folders[row.folder].file_for(row) for row in request.rows]
        for results in _batched(read_all(files, sources, setup.options, request.grids)):
            send(answers, results)


def _batched(results: Iterator[ReadResult]) -> Iterator[list[ReadResult]]:
    """Group results into lists with about _ANSWER_BYTES of pixels each."""
    batch: list[ReadResult] = []
    size = 0
    for result in results:
        batch.append(result)
        size += sum(sprite.rgba.nbytes for sprite in result.sprites if sprite.rgba is not None)
        if size > _ANSWER_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
