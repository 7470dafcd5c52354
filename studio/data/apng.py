"""The frames of an animated PNG, told apart without decoding any.

Pillow lays them over one another too, but blends half-transparent pixels and palettes with transparency wrongly.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from studio.data.animation import Disposal, Frame
from studio.data.png import MAGIC, chunks
from studio.data.sources.base import Refused

_DISPOSALS = {1: Disposal.CLEAR, 2: Disposal.RESTORE}
_SHARED = (b"PLTE", b"tRNS")
_LARGEST_SHARED = 768  # bytes of a whole palette: what is larger is a bomb, as every frame gets its copy


def frames_of(data: bytes) -> Iterator[Frame]:
    """The frames in order, without a default image that is none of them; nothing when the PNG is not animated.

    Raises Refused where the file is cut off or damaged.
    """
    header = control = b""
    shared: dict[bytes, bytes] = {}
    pixels: list[bytes] = []
    animated, number = False, 0
    for kind, chunk in chunks(data):
        body = chunk[8:-4]
        if kind == b"IHDR":
            header = body
        elif kind == b"acTL":
            animated = True
        elif kind in _SHARED and len(body) <= _LARGEST_SHARED:
            shared[kind] = chunk
        elif kind == b"IDAT" and control:
            if control[4:12] != header[:8]:
                raise Refused("unreadable", "damaged: its first frame is not as large as the picture")
            pixels.append(chunk)
        elif animated and kind in (b"fcTL", b"fdAT"):
            if kind == b"fcTL" and pixels:
                yield _frame(header, control, [*shared.values(), *pixels])
                pixels = []
            if int.from_bytes(body[:4], "big") != number:
                raise Refused("unreadable", "damaged: its frames are not in order")
            number += 1
            if kind == b"fcTL":
                control = body
            else:
                pixels.append(_chunk(b"IDAT", body[4:]))
    if pixels:
        yield _frame(header, control, [*shared.values(), *pixels])


def _frame(header: bytes, control: bytes, chunks_inside: list[bytes]) -> Frame:
    if len(header) != 13 or len(control) != 26:
        raise Refused("unreadable", "damaged: the header of a frame is not that of an animated PNG")
    canvas_width, canvas_height = struct.unpack_from(">II", header)
    width, height, left, top = struct.unpack_from(">IIII", control, 4)
    if left + width > canvas_width or top + height > canvas_height:
        raise Refused("unreadable", "damaged: a frame lies outside the picture")
    own_header = _chunk(b"IHDR", struct.pack(">II", width, height) + header[8:])
    alone = b"".join((MAGIC, own_header, *chunks_inside, _chunk(b"IEND", b"")))
    disposal = _DISPOSALS.get(control[24], Disposal.KEEP)
    canvas = (canvas_width, canvas_height)
    return Frame(alone, left, top, width, height, canvas, over=control[25] == 1, disposal=disposal)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
