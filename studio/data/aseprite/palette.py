"""The colours of an indexed Aseprite file: the palette chunks of today and of old, one palette for each frame."""

from __future__ import annotations

import numpy as np

from studio.core.arrays import Rgba
from studio.data.aseprite.fields import Fields, damaged
from studio.data.files.source_files import UnreadableFile

_COLOURS = 256  # that a pixel of one byte can name; longer palettes are lawful
_MOST_ENTRIES = 65_536
_HAS_NAME = 1
_SIX_TO_EIGHT_BITS = np.array([value << 2 | value >> 4 for value in range(64)], np.uint8)


class FramePalette:
    """The palette as it stands while the frames are read; each change makes a new array, so that frames can keep it.

    current: uint8 [256, 4], straight alpha. Colours that the file does not give are transparent.
    """

    def __init__(self) -> None:
        self.current: Rgba = np.zeros((_COLOURS, 4), np.uint8)
        self.given = False
        self._modern = False

    def read_modern(self, chunk: Fields) -> None:
        """Chunk 0x2019. Raises Refused for a damaged one."""
        size, first, last = chunk.take("<III8x")
        if size > _MOST_ENTRIES:
            raise UnreadableFile("refused", f"a palette of {size:,} colours: at most {_MOST_ENTRIES:,} are read")
        if not first <= last < size:
            raise damaged("its palette does not fit its own size")
        self.current = self.current.copy()
        self.current[size:] = 0
        for index in range(first, min(last + 1, _COLOURS)):
            flags, *colour = chunk.take("<H4B")
            self.current[index] = colour
            if flags & _HAS_NAME:
                chunk.text()
        self.given = self._modern = True

    def read_old(self, chunk: Fields, *, bits: int) -> None:
        """Chunks 0x0004, of 8 bits a channel, and 0x0011, of 6. They mean nothing in files with the modern one."""
        if self._modern:
            return
        self.current = self.current.copy()
        index = 0
        (packets,) = chunk.take("<H")
        for _ in range(packets):
            skipped, count = chunk.take("<BB")
            index += skipped
            count = count or _COLOURS
            colours = np.frombuffer(chunk.raw(3 * count), np.uint8).reshape(count, 3)
            if index + count > _COLOURS:
                raise damaged("its palette has more colours than there is place for")
            if bits == 6:
                colours = _SIX_TO_EIGHT_BITS[colours & 63]
            self.current[index : index + count, :3] = colours
            self.current[index : index + count, 3] = 255
            index += count
        self.given = True
