"""Colour lists in hexadecimal digits, as on lospec.com."""

from __future__ import annotations

import re

from studio.data.colour.palette import Palette
from studio.data.palettes.base import NamedColour, PaletteFormat, palette_from
from studio.data.palettes.text import first_bytes, format_hex, parse_hex, split_lines

_FIRST_LINE = re.compile(rb"#?(?:[0-9a-fA-F]{2}){3,4}[ \t]*(?:[\r\n]|$)")


class HexList(PaletteFormat):
    """List of colours: a line 'be4a2f' or 'be4a2f80' for each colour, with or without '#'."""

    name = "hex"
    title = "list of colours"
    suffixes = (".hex",)

    def recognises(self, data: bytes) -> bool:
        return _FIRST_LINE.match(first_bytes(data)) is not None

    def read(self, data: bytes) -> Palette:
        return palette_from(NamedColour(where, parse_hex(line, where)) for where, line in split_lines(data))

    def write(self, palette: Palette) -> bytes:
        return ("\n".join(format_hex(palette)) + "\n").encode()
