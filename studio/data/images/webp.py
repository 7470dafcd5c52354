"""Split an animated WebP into encoded frames, so that frames before a damaged one stay readable."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from studio.data.files.source_files import CUT_OFF, UnreadableFile
from studio.data.images.animation import Disposal, EncodedFrame, display_ms

_HAS_ALPHA, _IS_ANIMATED = 0x10, 0x02
_PIXELS = (b"ALPH", b"VP8 ", b"VP8L")


def split_frames(data: bytes) -> Iterator[EncodedFrame]:
    """Yield the frames of an animated WebP; ends at once for a still WebP. Raises UnreadableFile for damaged files."""
    if len(data) < 30 or data[12:16] != b"VP8X" or not data[20] & _IS_ANIMATED:
        return
    screen = (_three_bytes(data, 24) + 1, _three_bytes(data, 27) + 1)
    end = int.from_bytes(data[4:8], "little") + 8
    for kind, body in _chunks(data[12:end]):
        if kind == b"ANMF":
            yield _frame(body, screen)
    if end > len(data):
        raise UnreadableFile("unreadable", CUT_OFF)


def _frame(body: bytes, screen: tuple[int, int]) -> EncodedFrame:
    if len(body) < 16:
        raise UnreadableFile("unreadable", "damaged: invalid frame header")
    left, top = 2 * _three_bytes(body, 0), 2 * _three_bytes(body, 3)
    width, height = _three_bytes(body, 6) + 1, _three_bytes(body, 9) + 1
    if left + width > screen[0] or top + height > screen[1]:
        raise UnreadableFile("unreadable", "damaged: a frame lies outside the picture")
    pixels = {kind: part for kind, part in _chunks(body[16:]) if kind in _PIXELS}
    flags = 0 if pixels.keys() == {b"VP8 "} else _HAS_ALPHA
    size = body[6:12]
    parts = [(b"VP8X", struct.pack("<I", flags) + size), *pixels.items()]
    inside = b"".join(struct.pack("<4sI", kind, len(part)) + part + b"\0" * (len(part) & 1) for kind, part in parts)
    alone = struct.pack("<4sI4s", b"RIFF", len(inside) + 4, b"WEBP") + inside
    disposal = Disposal.CLEAR if body[15] & 1 else Disposal.KEEP
    duration_ms = display_ms(_three_bytes(body, 12))
    return EncodedFrame(alone, left, top, width, height, screen, not body[15] & 2, disposal, duration_ms)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and contents of each chunk."""
    offset = 0
    while offset + 8 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, offset)
        if offset + 8 + length > len(data):
            raise UnreadableFile("unreadable", CUT_OFF)
        yield kind, data[offset + 8 : offset + 8 + length]
        offset += 8 + length + (length & 1)


def _three_bytes(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 3], "little")
