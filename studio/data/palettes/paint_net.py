"""Palettes of paint.net: text with a colour in the order AARRGGBB on each line."""

from __future__ import annotations

import re

from studio.data.colour.palette import Palette
from studio.data.palettes.base import NamedColour, PaletteFormat, Unreadable, palette_from
from studio.data.palettes.text import first_bytes, parse_hex, split_lines

_COMMENT = ";"
_NAME = re.compile(r";\s*Palette Name:\s*(.*)", re.IGNORECASE)  # Lospec writes the name into a comment
_EIGHT_DIGITS = re.compile(r"[0-9a-fA-F]{8}")
_OPAQUE = "ff"


class PaintNetPalette(PaletteFormat):
    """paint.net palette: comment lines after ';', and a line 'FFbe4a2f' (alpha, red, green, blue) for each colour."""

    name = "paint.net"
    title = "paint.net palette"
    suffixes = (".txt",)

    def recognises(self, data: bytes) -> bool:
        if first_bytes(data).startswith(_COMMENT.encode()):
            return True
        try:
            lines = [line.lower() for _, line in split_lines(data)]
        except Unreadable:
            return False
        if not lines or not all(map(_EIGHT_DIGITS.fullmatch, lines)):
            return False
        alpha_is_last = all(line.endswith(_OPAQUE) for line in lines)
        return all(line.startswith(_OPAQUE) for line in lines) or not alpha_is_last

    def read(self, data: bytes) -> Palette:
        lines = split_lines(data)
        named = next(filter(None, (_NAME.fullmatch(line) for _, line in lines)), None)
        colours = ((where, line) for where, line in lines if not line.startswith(_COMMENT))
        return palette_from((_entry(where, line) for where, line in colours), named[1] if named else "")

    def write(self, palette: Palette) -> bytes:
        lines = ["; paint.net Palette File", *([f"; Palette Name: {palette.name}"] if palette.name else [])]
        lines += [f"{alpha:02X}{red:02X}{green:02X}{blue:02X}" for red, green, blue, alpha in palette.colours.tolist()]
        return ("\r\n".join(lines) + "\r\n").encode()


def _entry(where: str, line: str) -> NamedColour:
    colour = parse_hex(line, where)
    if not _EIGHT_DIGITS.fullmatch(line):
        return NamedColour(where, colour)
    alpha, *rgb = colour
    return NamedColour(where, (rgb[0], rgb[1], rgb[2], alpha))
