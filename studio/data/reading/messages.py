"""What the studio and the processes that read for it say to each other: a head in JSON, then pixels as they are.

What many files share goes over once, in pieces: thousands of names at a time would stop every other thread.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from studio.core.events import Rgba
from studio.data.reading.found_files import Group
from studio.data.reading.read import DecodedSprite, Reading
from studio.data.sheets.grids import Grid
from studio.data.sheets.recognising import Seen
from studio.data.sources.base import Entries, Entry, Remark, SourceFile

BUFFER_BYTES = 256 << 10  # of a pipe as well: systems give only so many pages to one user
_SIZES = struct.Struct("<QQ")  # bytes of the head and of the body
_PIECE = 2048  # names


def send(stream: BinaryIO, head: object, pixels: Sequence[Rgba] = ()) -> None:
    """Write one message, with the bytes of uint8 arrays as its body. Raises OSError."""
    send_encoded(stream, json.dumps(head).encode(), pixels)


def send_encoded(stream: BinaryIO, head: bytes, pixels: Sequence[Rgba] = ()) -> None:
    """The same with a head that is JSON already."""
    stream.write(_SIZES.pack(len(head), sum(rgba.nbytes for rgba in pixels)))
    stream.write(head)
    for rgba in pixels:
        stream.write(np.ascontiguousarray(rgba).data)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[Any, bytearray]:
    """The next message: head and body. Raises EOFError when there is none any more, and OSError."""
    head, body = _SIZES.unpack(_exactly(stream, _SIZES.size))
    return json.loads(_exactly(stream, head)), _exactly(stream, body)


def _exactly(stream: BinaryIO, size: int) -> bytearray:
    data = bytearray(size)
    if size and stream.readinto(data) < size:  # type: ignore[attr-defined]
        raise EOFError
    return data


def packed_readings(readings: Sequence[Reading]) -> tuple[list[Any], list[Rgba]]:
    """Readings without their files -> head and pixels."""
    pixels = [shape.rgba for reading in readings for shape in reading.shapes if shape.rgba is not None]
    if any(rgba.dtype != np.uint8 for rgba in pixels):
        raise TypeError("pixels are uint8")
    return [_packed(reading) for reading in readings], pixels


def _packed(reading: Reading) -> list[Any]:
    shapes = [
        [
            shape.part, shape.folders, shape.label, shape.size, shape.visible,
            None if shape.rgba is None else shape.rgba.shape, _told(shape.remarks), shape.cut,
        ]
        for shape in reading.shapes
    ]  # fmt: skip
    seen = [(astuple(one.grid), one.sprites, one.score, one.sheet, one.strip) for one in reading.seen]
    return [shapes, _told(reading.left_out), _told(reading.remarks), seen]


def _told(remarks: Sequence[Remark]) -> list[tuple[str, str, str]]:
    return [(remark.group, remark.reason, remark.part) for remark in remarks]


def unpacked_readings(head: list[Any], body: bytearray, files: Sequence[SourceFile]) -> Iterator[Reading]:
    """What `packed_readings` made, once more of these files."""
    place = 0
    for file, (packed, left_out, remarks, seen) in zip(files, head, strict=True):
        shapes = []
        for part, folders, label, size, visible, form, about, cut in packed:
            rgba = None
            if form is not None:
                length = form[0] * form[1] * form[2]
                rgba = np.frombuffer(body, np.uint8, length, place).reshape(form)
                place += length
            texts, sizes = (part, tuple(folders), label), (tuple(size), tuple(visible))
            shapes.append(DecodedSprite(*texts, *sizes, rgba, tuple(_remarks(about)), cut))
        candidates = tuple(Seen(Grid(*grid), *rest) for grid, *rest in seen)
        yield Reading(file, shapes, _remarks(left_out), _remarks(remarks), candidates)


def _remarks(told: list[list[str]]) -> list[Remark]:
    return [Remark(*one) for one in told]


def packed_group(number: int, group: Group) -> Iterator[bytes]:
    """What files share -> the heads of messages, encoded."""
    names = iter(group.beside if group.members is None else group.members)
    while piece := list(islice(names, _PIECE)):
        entries = None if group.members is None else [group.members[name] for name in piece]
        yield json.dumps({"names": piece, "entries": entries}).encode()
    about = {"where": group.where, "name": group.name, "folders": group.folders, "home": group.home}
    yield json.dumps({"group": number, **about, "archive": group.members is not None}).encode()


class Groups:
    """What the files to come share, as it arrives."""

    def __init__(self) -> None:
        self._known: dict[int, Group] = {}
        self._names: list[str] = []
        self._entries = Entries()

    def __getitem__(self, number: int) -> Group:
        return self._known[number]

    def forget(self) -> None:
        """Let go of all: of a million files, each process would know all names."""
        self._known.clear()

    def take(self, head: dict[str, Any]) -> None:
        """One of the messages of `packed_group`, in their order."""
        if "names" in head:
            self._names += head["names"]
            for name, entry in zip(head["names"], head["entries"] or (), strict=False):
                self._entries.add(name, Entry(*entry))
            return
        self._known[head["group"]] = Group(
            head["where"], head["name"], tuple(head["folders"]), head["home"], frozenset(self._names),
            self._entries if head["archive"] else None,
        )  # fmt: skip
        self._names, self._entries = [], Entries()
