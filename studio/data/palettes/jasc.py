"""Paint Shop Pro palettes: text, the common kind of .pal. Aseprite writes alpha as a fourth number."""

from __future__ import annotations

from studio.data.colour.palette import MOST_COLOURS, Palette
from studio.data.files.source_files import CUT_OFF
from studio.data.palettes.base import NamedColour, PaletteFormat, Unreadable, palette_from
from studio.data.palettes.text import first_bytes, parse_colour, parse_number, split_lines

_MAGIC = "JASC-PAL"
_VERSION = "0100"


class JascPalette(PaletteFormat):
    """Paint Shop Pro palette: magic, version and count, then a line 'red green blue' for each colour."""

    name = "jasc"
    title = "Paint Shop Pro palette"
    suffixes = (".pal",)

    def recognises(self, data: bytes) -> bool:
        return first_bytes(data).startswith(_MAGIC.encode())

    def read(self, data: bytes) -> Palette:
        lines = split_lines(data)
        if not lines or lines[0][1] != _MAGIC:
            raise Unreadable(f"the file does not begin with '{_MAGIC}'")
        if len(lines) < 3:
            raise Unreadable(CUT_OFF)
        (where, version), (where_count, count) = lines[1:3]
        if version != _VERSION:
            raise Unreadable(f"the version is not {_VERSION}", where)
        declared = parse_number(count, MOST_COLOURS, where_count)
        rows = ((where, line.split()) for where, line in lines[3:])
        palette = palette_from(NamedColour(at, parse_colour(row, 4 if len(row) == 4 else 3, at)) for at, row in rows)
        if len(palette) != declared:
            raise Unreadable(f"{declared} colours announced, but {len(palette)} found", where_count)
        return palette

    def write(self, palette: Palette) -> bytes:
        colours = palette.colours if palette.has_alpha else palette.colours[:, :3]
        rows = [" ".join(map(str, colour)) for colour in colours.tolist()]
        return ("\r\n".join([_MAGIC, _VERSION, str(len(palette)), *rows]) + "\r\n").encode()
