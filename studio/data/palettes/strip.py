"""Small pictures of a palette: a pixel or a block of pixels per colour, read row by row."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from studio.data.colour.palette import MOST_COLOURS, Palette
from studio.data.files.source_files import UnreadableFile
from studio.data.images.canvas import as_uint32
from studio.data.images.decoding import decode, read_header
from studio.data.palettes.base import PaletteFormat, Unreadable

_MAGIC = b"\x89PNG\r\n\x1a\n"
_MOST_PIXELS = 1 << 20  # enough for the most colours in blocks of 16 x 16


class PngStrip(PaletteFormat):
    """Palette as a small picture. Reading skips duplicate colours and transparent pixels; writing makes one row."""

    name = "strip"
    title = "picture of a palette"
    suffixes = (".png",)

    def recognises(self, data: bytes) -> bool:
        return data.startswith(_MAGIC)

    def read(self, data: bytes) -> Palette:
        if not self.recognises(data):
            raise Unreadable("not a PNG picture")
        try:
            header = read_header(data, ".png")
            if header.width * header.height > _MOST_PIXELS:
                size = f"{header.width:,} x {header.height:,}"
                raise Unreadable(f"a picture of {size} pixels is too large for a palette")
            pixels = decode(data, ".png").rgba.reshape(-1, 4)
        except UnreadableFile as refused:
            raise Unreadable(refused.reason) from None
        pixels = pixels[pixels[:, 3] > 0]
        _, first = np.unique(as_uint32(pixels), return_index=True)
        if not len(first):
            raise Unreadable("it has no colours")
        if len(first) > MOST_COLOURS:
            raise Unreadable(f"a picture of {len(first):,} colours; the limit is {MOST_COLOURS:,}")
        return Palette(pixels[np.sort(first)])

    def write(self, palette: Palette) -> bytes:
        packed = io.BytesIO()
        Image.fromarray(palette.colours[None]).save(packed, format="PNG")
        return packed.getvalue()
