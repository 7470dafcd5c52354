"""Read the palettes of an indexed Aseprite file: new and old palette chunks, a palette for each frame."""

from __future__ import annotations

import numpy as np

from studio.core.arrays import Rgba
from studio.data.aseprite.fields import ChunkReader, damaged
from studio.data.files.source_files import UnreadableFile

_COLOURS = 256  # the range of a one-byte pixel; longer palettes are valid
_MAX_ENTRIES = 65_536
_HAS_NAME = 1
_SIX_TO_EIGHT_BITS = np.array([value << 2 | value >> 4 for value in range(64)], np.uint8)


class FramePalette:
    """The palette of the frame that is being parsed; changes make a new array, since earlier frames hold the old one.

    current: uint8 [256, 4], straight alpha; missing colours are transparent. is_set: whether the file has a palette.
    """

    def __init__(self) -> None:
        self.current: Rgba = np.zeros((_COLOURS, 4), np.uint8)
        self.is_set = False
        self._modern = False

    def read_modern(self, chunk: ChunkReader) -> None:
        """Update `current` from a palette chunk (0x2019). Raises UnreadableFile."""
        size, first, last = chunk.read("<III8x")
        if size > _MAX_ENTRIES:
            raise UnreadableFile("refused", f"a palette of {size:,} colours: at most {_MAX_ENTRIES:,} can be read")
        if not first <= last < size:
            raise damaged("the palette entries exceed the palette size")
        self.current = self.current.copy()
        self.current[size:] = 0
        for index in range(first, min(last + 1, _COLOURS)):
            flags, *colour = chunk.read("<H4B")
            self.current[index] = colour
            if flags & _HAS_NAME:
                chunk.read_text()
        self.is_set = self._modern = True

    def read_old(self, chunk: ChunkReader, *, bits: int) -> None:
        """Update `current` from an old palette chunk (0x0004: 8 bits, 0x0011: 6 bits) unless 0x2019 was read."""
        if self._modern:
            return
        self.current = self.current.copy()
        index = 0
        (packets,) = chunk.read("<H")
        for _ in range(packets):
            skipped, count = chunk.read("<BB")
            index += skipped
            count = count or _COLOURS
            colours = np.frombuffer(chunk.read_bytes(3 * count), np.uint8).reshape(count, 3)
            if index + count > _COLOURS:
                raise damaged("the palette has more than 256 colours")
            if bits == 6:
                colours = _SIX_TO_EIGHT_BITS[colours & 63]
            self.current[index : index + count, :3] = colours
            self.current[index : index + count, 3] = 255
            index += count
        self.is_set = True
