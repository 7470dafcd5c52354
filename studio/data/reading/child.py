"""A process that reads files for the studio. It is started by reader_pool and imports no more than reading needs."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

from studio.data.options import ImportOptions
from studio.data.reading.found_files import Row
from studio.data.reading.messages import BUFFER_BYTES, Groups, packed_readings, receive, send
from studio.data.reading.read import Reading, all_sources, kinds_of, read_all
from studio.data.sheets.grids import Grid

_ENOUGH_BYTES = 256 << 10  # of pixels in one answer


def main() -> None:
    """Read what is asked for until nobody asks any more. Any error ends the process: its files are then read again."""
    # On handles of their own: what a source prints or reads must not come in between.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", BUFFER_BYTES)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    asked: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, asked), daemon=True).start()
    try:
        _serve(asked, answers)
    finally:
        os._exit(1)  # at once: the other thread is in the middle of a read


def _listen(requests: BinaryIO, asked: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Take requests while others are worked on: whoever asks never waits for the reading, nor a hanging file's end."""
    try:
        while True:
            head, _ = receive(requests)
            asked.put(head)
    finally:
        os._exit(0)


def _serve(asked: queue.SimpleQueue[dict[str, Any]], answers: BinaryIO) -> None:
    hello = asked.get()
    sources, options = all_sources(), ImportOptions.from_json(hello["options"])
    if kinds_of(sources) != hello["sources"]:
        return  # the studio reads with others, which this process can't know
    send(answers, "ready")
    groups = Groups()
    while True:
        head = asked.get()
        if "rows" in head:
            rows, grids = [Row(*row) for row in head["rows"]], [grid and Grid(*grid) for grid in head["grids"]]
            readings = read_all([groups[row.group].made(row) for row in rows], sources, options, grids)
            _answer(readings, answers)
        elif "forget" in head:
            groups.forget()
        else:
            groups.take(head)


def _answer(readings: Iterator[Reading], answers: BinaryIO) -> None:
    """Answer with readings, several at a time."""
    waiting: list[Reading] = []
    size = 0
    for reading in readings:
        waiting.append(reading)
        size += sum(shape.rgba.nbytes for shape in reading.shapes if shape.rgba is not None)
        if size > _ENOUGH_BYTES:
            send(answers, *packed_readings(waiting))
            waiting, size = [], 0
    if waiting:
        send(answers, *packed_readings(waiting))
