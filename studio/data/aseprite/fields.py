"""Numbers, texts and packed pixels in the parts of an Aseprite file, never read beyond their end."""

from __future__ import annotations

import struct
import zlib

from studio.data.files.source_files import UnreadableFile


def damaged(what: str) -> UnreadableFile:
    return UnreadableFile("unreadable", f"damaged: {what}")


class Fields:
    """Little-endian fields of one part of a file, taken in order. Raises Refused where the part ends before them."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def take(self, layout: str) -> tuple[int, ...]:
        """`layout` as for struct.unpack, of whole numbers alone."""
        return struct.unpack(layout, self.raw(struct.calcsize(layout)))

    def raw(self, length: int) -> memoryview:
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise damaged("a part of it is shorter than what it should hold")
        return self._data[start : self._at]

    def text(self) -> str:
        (length,) = self.take("<H")
        return str(self.raw(length), "utf-8", "replace")

    def rest(self) -> memoryview:
        return self.raw(len(self._data) - self._at)


def unpack(packed: memoryview, length: int) -> bytes:
    """Exactly `length` bytes out of a zlib stream. Raises Refused when it holds any other number of them."""
    unpacker = zlib.decompressobj()
    try:
        pixels = unpacker.decompress(packed, length + 1)  # one more, so that its checksum is reached as well
    except zlib.error:
        raise damaged("its pixels can't be unpacked") from None
    if len(pixels) != length or not unpacker.eof:
        raise damaged("its pixels are more or fewer than its size says")
    return pixels
