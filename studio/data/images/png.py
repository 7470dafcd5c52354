"""Check the chunks of a PNG file, and split an animated PNG into encoded frames.

Pillow ignores the checksums of pixel data, and unpacks texts and colour profiles, which may be decompression bombs:
only header, palette and pixels are passed on. Pillow also composes frames, but blends semi-transparent pixels and
palettes with transparency wrongly.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from studio.data.files.source_files import CUT_OFF, UnreadableFile
from studio.data.images.animation import Disposal, EncodedFrame, display_ms

MAGIC = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_PIECE = 1 << 20
_MOST_CHUNKS = 100_000


@dataclass(frozen=True, slots=True)
class Png:
    """A checked PNG file."""

    data: bytes  # the file without irrelevant chunks
    depth: int  # bits per channel
    key: tuple[int, ...] | None  # transparent colour, `depth` bits: grey or RGB; None if absent or with other alpha
    animated: bool  # has several frames


def check_png(data: bytes) -> Png:
    """Check the chunks of a PNG file. Raises UnreadableFile if the file is truncated or damaged."""
    found = list(chunks(data))
    kind, header = found[0]
    if kind != b"IHDR" or len(header) != 25:
        raise UnreadableFile("unreadable", "damaged: invalid PNG header")
    depth, colour_type = header[16], header[17]
    kinds = {kind for kind, _ in found}
    if b"IDAT" not in kinds:
        raise UnreadableFile("unreadable", "damaged: pixel data are missing")
    if colour_type == 3 and b"PLTE" not in kinds:
        raise UnreadableFile("unreadable", "damaged: the palette is missing")
    wanted = {b"IHDR", b"IDAT", b"IEND"} | ({b"PLTE", b"tRNS"} if colour_type == 3 else set())
    key = None
    channels = {0: 1, 2: 3}.get(colour_type, 0)
    transparency = next((chunk[8:-4] for kind, chunk in found if kind == b"tRNS"), b"")
    if channels and len(transparency) >= 2 * channels:
        key = struct.unpack_from(f">{channels}H", transparency)
    _check_length(b"".join(chunk[8:-4] for kind, chunk in found if kind == b"IDAT"), header)
    kept = MAGIC + b"".join(chunk for kind, chunk in found if kind in wanted)
    frames = next((int.from_bytes(chunk[8:12], "big") for kind, chunk in found if kind == b"acTL"), 1)
    return Png(kept, depth, key, frames > 1)


def chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and bytes of every chunk up to IEND. Raises UnreadableFile at a truncated or damaged chunk."""
    start = len(MAGIC)
    for _ in range(_MOST_CHUNKS):
        if start + 12 > len(data):
            raise UnreadableFile("unreadable", CUT_OFF)
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 12 + length
        if not kind.isalpha():
            raise UnreadableFile("unreadable", "damaged: not a valid PNG chunk")
        if end > len(data):
            raise UnreadableFile("unreadable", CUT_OFF)
        if zlib.crc32(data[start + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            raise UnreadableFile("unreadable", "damaged: wrong checksum")
        yield kind, data[start:end]
        if kind == b"IEND":
            return
        start = end
    raise UnreadableFile("refused", f"more than {_MOST_CHUNKS:,} chunks")


def _check_length(packed: bytes, header: bytes) -> None:
    """Check that the pixel data are complete, by unpacking piece by piece: Pillow leaves missing pixels black."""
    width, height, depth, colour_type, _, _, interlaced = struct.unpack_from(">IIBBBBB", header, 8)
    bits = depth * _CHANNELS.get(colour_type, 0)
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    missing = 0
    for x, y, step_x, step_y in passes:
        columns, rows = -(-(width - x) // step_x), -(-(height - y) // step_y)
        missing += rows * (1 + (columns * bits + 7) // 8) if columns > 0 and rows > 0 else 0
    unpacker = zlib.decompressobj()
    try:
        while missing > 0:
            piece = unpacker.decompress(packed, min(missing, _PIECE))
            if not piece:
                raise UnreadableFile("unreadable", CUT_OFF)
            missing -= len(piece)
            packed = unpacker.unconsumed_tail
    except zlib.error:
        raise UnreadableFile("unreadable", "damaged: pixel data can't be unpacked") from None


_DISPOSALS = {1: Disposal.CLEAR, 2: Disposal.RESTORE}
_SHARED = (b"PLTE", b"tRNS")
_LARGEST_SHARED = 768  # bytes of a full palette; every frame gets a copy, so larger chunks may be a bomb


def split_frames(data: bytes) -> Iterator[EncodedFrame]:
    """Yield the frames of an animated PNG, without its default image; none for a still PNG. Raises UnreadableFile."""
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
                raise UnreadableFile("unreadable", "damaged: the first frame has a wrong size")
            pixels.append(chunk)
        elif animated and kind in (b"fcTL", b"fdAT"):
            if kind == b"fcTL" and pixels:
                yield _frame(header, control, [*shared.values(), *pixels])
                pixels = []
            if int.from_bytes(body[:4], "big") != number:
                raise UnreadableFile("unreadable", "damaged: frames are out of order")
            number += 1
            if kind == b"fcTL":
                control = body
            else:
                pixels.append(_chunk(b"IDAT", body[4:]))
    if pixels:
        yield _frame(header, control, [*shared.values(), *pixels])


def _frame(header: bytes, control: bytes, chunks_inside: list[bytes]) -> EncodedFrame:
    if len(header) != 13 or len(control) != 26:
        raise UnreadableFile("unreadable", "damaged: invalid frame header")
    screen_width, screen_height = struct.unpack_from(">II", header)
    width, height, left, top = struct.unpack_from(">IIII", control, 4)
    if left + width > screen_width or top + height > screen_height:
        raise UnreadableFile("unreadable", "damaged: a frame lies outside the picture")
    own_header = _chunk(b"IHDR", struct.pack(">II", width, height) + header[8:])
    alone = b"".join((MAGIC, own_header, *chunks_inside, _chunk(b"IEND", b"")))
    disposal = _DISPOSALS.get(control[24], Disposal.KEEP)
    screen = (screen_width, screen_height)
    ticks, per_second = struct.unpack_from(">HH", control, 20)
    duration_ms = display_ms(round(1000 * ticks / (per_second or 100)))
    return EncodedFrame(alone, left, top, width, height, screen, control[25] == 1, disposal, duration_ms)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
