"""Read numbers, texts and compressed pixels from the chunks of an Aseprite file, never beyond the end of a chunk."""

from __future__ import annotations

import struct
import zlib

from studio.data.files.source_files import UnreadableFile


def damaged(reason: str) -> UnreadableFile:
    """Return the UnreadableFile error to raise for a damaged file. reason: a plain sentence for the user."""
    return UnreadableFile("unreadable", f"damaged: {reason}")


class ChunkReader:
    """Reads the little-endian fields of a chunk in order. Raises UnreadableFile beyond the end of the chunk."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def read(self, layout: str) -> tuple[int, ...]:
        """Read and return the next integers. layout: format string for struct.unpack."""
        return struct.unpack(layout, self.read_bytes(struct.calcsize(layout)))

    def read_bytes(self, length: int) -> memoryview:
        start, self._position = self._position, self._position + length
        if self._position > len(self._data):
            raise damaged("a chunk ends too early")
        return self._data[start : self._position]

    def read_text(self) -> str:
        (length,) = self.read("<H")
        return str(self.read_bytes(length), "utf-8", "replace")

    def read_rest(self) -> memoryview:
        return self.read_bytes(len(self._data) - self._position)


def inflate(packed: memoryview, length: int) -> bytes:
    """Decompress a zlib stream. Raises UnreadableFile for damage, or a length other than `length` bytes."""
    decompressor = zlib.decompressobj()
    try:
        pixels = decompressor.decompress(packed, length + 1)  # 1 more, to reach the checksum of a correct stream
    except zlib.error:
        raise damaged("pixels can't be unpacked") from None
    if len(pixels) != length or not decompressor.eof:
        raise damaged("the number of pixels does not match the size")
    return pixels
