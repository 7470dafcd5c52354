"""Palettes of Windows: binary, the other kind of .pal. Microsoft, Multimedia Programming Interface 1.0, 'PAL'."""

from __future__ import annotations

import struct

import numpy as np

from studio.core.errors import UsageError
from studio.data.colour.palette import MOST_COLOURS, Palette
from studio.data.files.source_files import CUT_OFF
from studio.data.palettes.base import PaletteFormat, Unreadable

_VERSION = 0x0300


class RiffPalette(PaletteFormat):
    """Asked after the text: a new .pal is written as that, which more programs read."""

    name = "riff"
    title = "Windows palette"
    suffixes = (".pal",)
    order = 1

    def recognises(self, data: bytes) -> bool:
        return data.startswith(b"RIFF") and data[8:12] == b"PAL "

    def read(self, data: bytes) -> Palette:
        if not self.recognises(data):
            raise Unreadable("it is not a Windows palette")
        start = _find_data(data)
        _, count = struct.unpack_from("<HH", data, start)
        if not count:
            raise Unreadable("there are no colours in it")
        if count > MOST_COLOURS:
            raise Unreadable(f"{count:,} colours are announced, at most {MOST_COLOURS:,} are taken")
        table = data[start + 4 : start + 4 + 4 * count]
        if len(table) < 4 * count:
            raise Unreadable(CUT_OFF)
        colours = np.frombuffer(table, np.uint8).reshape(count, 4).copy()
        colours[:, 3] = 255  # flags for the system, no alpha
        return Palette(colours)

    def write(self, palette: Palette) -> bytes:
        if palette.has_alpha:
            raise UsageError(f"A {self.title} holds no transparent colours.", "Save the palette as .gpl or .hex.")
        colours = palette.colours.copy()
        colours[:, 3] = 0
        table = struct.pack("<HH", _VERSION, len(palette)) + colours.tobytes()
        return struct.pack("<4sI4s4sI", b"RIFF", len(table) + 12, b"PAL ", b"data", len(table)) + table


def _find_data(data: bytes) -> int:
    """Where the chunk with the colours begins, past its head. Raises Unreadable."""
    start = 12
    while start + 12 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, start)
        if kind == b"data":
            return start + 8
        start += 8 + length + length % 2
    raise Unreadable(CUT_OFF)
