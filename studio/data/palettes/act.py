"""Adobe Photoshop colour tables: 256 colours, then optionally the number of used colours and the transparent index.

Adobe Photoshop File Formats Specification, 'Color Table'. The files have no magic bytes, only a fixed length.
"""

from __future__ import annotations

import struct

import numpy as np

from studio.core.errors import UsageError
from studio.data.colour.palette import Palette
from studio.data.palettes.base import PaletteFormat, Unreadable, check_count

_ROOM = 256  # colours
_SHORT, _LONG = _ROOM * 3, _ROOM * 3 + 4  # bytes
_NONE = 0xFFFF


class AdobeTable(PaletteFormat):
    """Adobe colour table. Files are tested for other formats first: a text or picture may have the same length."""

    name = "act"
    title = "Adobe colour table"
    suffixes = (".act",)
    order = 10

    def recognises(self, data: bytes) -> bool:
        return len(data) in (_SHORT, _LONG)

    def read(self, data: bytes) -> Palette:
        if not self.recognises(data):
            raise Unreadable(f"it has {len(data):,} bytes; a colour table has {_SHORT} or {_LONG}")
        count, transparent = struct.unpack(">HH", data[_SHORT:]) if len(data) == _LONG else (_ROOM, _NONE)
        check_count(count, _ROOM)
        colours = np.full((_ROOM, 4), 255, np.uint8)
        colours[:, :3] = np.frombuffer(data[:_SHORT], np.uint8).reshape(_ROOM, 3)
        if transparent < count:
            colours[transparent, 3] = 0
        return Palette(colours[:count])

    def write(self, palette: Palette) -> bytes:
        alpha = palette.colours[:, 3]
        transparent = np.flatnonzero(alpha == 0)
        if len(palette) > _ROOM or len(transparent) > 1 or ((alpha > 0) & (alpha < 255)).any():
            title = f"An {self.title} holds at most {_ROOM} colours; one of them may be transparent."
            raise UsageError(title, "Save the palette as .gpl or .hex.")
        table = np.zeros((_ROOM, 3), np.uint8)
        table[: len(palette)] = palette.colours[:, :3]
        return table.tobytes() + struct.pack(">HH", len(palette), transparent[0] if len(transparent) else _NONE)
