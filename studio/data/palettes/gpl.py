"""GIMP palettes, which most programs read. Colours with alpha follow Aseprite's extension, 'Channels: RGBA'.

https://developer.gimp.org/core/standards/gpl and docs/gpl-palette-extension.md of Aseprite.
"""

from __future__ import annotations

import re

from studio.data.colour.palette import Palette
from studio.data.palettes.base import NamedColour, PaletteFormat, Unreadable, palette_from
from studio.data.palettes.text import first_bytes, parse_colour, split_lines

_MAGIC = "GIMP Palette"
_UNNAMED = "Untitled"  # as GIMP and Aseprite write
_HEADER = re.compile(r"([A-Za-z]\w*)\s*:\s*(.*)")


class GimpPalette(PaletteFormat):
    """GIMP palette: a line 'red green blue name' for each colour."""

    name = "gpl"
    title = "GIMP palette"
    suffixes = (".gpl",)

    def recognises(self, data: bytes) -> bool:
        return first_bytes(data).startswith(_MAGIC.encode())

    def read(self, data: bytes) -> Palette:
        lines = [(where, line) for where, line in split_lines(data) if not line.startswith("#")]
        if not lines or not lines[0][1].startswith(_MAGIC):
            raise Unreadable(f"the file does not begin with '{_MAGIC}'")
        headers: dict[str, str] = {}
        rows: list[tuple[str, str]] = []
        for where, line in lines[1:]:
            if header := _HEADER.match(line):
                headers[header[1].lower()] = header[2]
            else:
                rows.append((where, line))
        count = 4 if headers.get("channels", "").upper() == "RGBA" else 3
        return palette_from((_entry(where, line, count) for where, line in rows), headers.get("name", ""))

    def write(self, palette: Palette) -> bytes:
        lines = [_MAGIC, *([f"Name: {palette.name}"] if palette.name else [])]
        lines += ["Channels: RGBA", "#"] if palette.has_alpha else ["#"]
        names = palette.colour_names or ("",) * len(palette)
        for colour, name in zip(palette.colours.tolist(), names, strict=True):
            values = colour if palette.has_alpha else colour[:3]
            lines.append(" ".join(f"{value:3d}" for value in values) + f"\t{name or _UNNAMED}")
        return ("\n".join(lines) + "\n").encode()


def _entry(where: str, line: str, count: int) -> NamedColour:
    words = line.split(maxsplit=count)
    name = words[count] if len(words) > count else ""
    return NamedColour(where, parse_colour(words[:count], count, where), "" if name == _UNNAMED else name)
