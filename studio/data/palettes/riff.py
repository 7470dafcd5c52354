"""Windows palettes: binary, the other kind of .pal. Microsoft, Multimedia Programming Interface 1.0, 'PAL'."""

from __future__ import annotations

import struct

import numpy as np

from studio.core.errors import UsageError
from studio.data.colour.palette import Palette
from studio.data.files.source_files import CUT_OFF
from studio.data.palettes.base import PaletteFormat, Unreadable, check_count

_VERSION = 0x0300


class RiffPalette(PaletteFormat):
    """Windows palette (.pal). New .pal files are written as text instead, which more programs read."""

    name = "riff"
    title = "Windows palette"
    suffixes = (".pal",)
    order = 1

    def recognises(self, data: bytes) -> bool:
        return data.startswith(b"RIFF") and data[8:12] == b"PAL "

    def read(self, data: bytes) -> Palette:
        if not self.recognises(data):
            raise Unreadable("not a Windows palette")
        start = _find_data(data)
        _, count = struct.unpack_from("<HH", data, start)
        check_count(count)
        table = data[start + 4 : start + 4 + 4 * count]
        if len(table) < 4 * count:
            raise Unreadable(CUT_OFF)
        colours = np.frombuffer(table, np.uint8).reshape(count, 4).copy()
        colours[:, 3] = 255  # the fourth byte holds flags, not alpha
        return Palette(colours)

    def write(self, palette: Palette) -> bytes:
        if palette.has_alpha:
            raise UsageError(f"A {self.title} can't hold transparent colours.", "Save the palette as .gpl or .hex.")
        colours = palette.colours.copy()
        colours[:, 3] = 0
        table = struct.pack("<HH", _VERSION, len(palette)) + colours.tobytes()
        return struct.pack("<4sI4s4sI", b"RIFF", len(table) + 12, b"PAL ", b"data", len(table)) + table


def _find_data(data: bytes) -> int:
    """Return the offset of the colour data, after the chunk header. Raises Unreadable."""
    start = 12
    while start + 12 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, start)
        if kind == b"data":
            return start + 8
        start += 8 + length + length % 2
    raise Unreadable(CUT_OFF)
