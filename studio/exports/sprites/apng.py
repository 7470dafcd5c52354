"""Save sprites as an animated PNG that loops forever, with exact pixels. Sets have a file for each animation.

The encoder is our own, because Pillow merges equal frames and crops frames to the changed area. Here, frames are full
RGBA images, and readers need no blending.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from studio.core.pictures import png_chunk
from studio.exports.png import add_checksum, encode_without_checksum
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.splitting import split_rows

_MAGIC_BYTES = 8
_AROUND_BYTES = 12  # of a chunk, without its data: length, type and CRC
_KEEP, _REPLACE = 0, 0  # leave the frame in place afterwards; overwrite the previous frame without blending


class Apng(SpriteExport):
    name = "apng"
    title = "Animated PNG"
    suffix = ".apng"
    help = "An animation for browsers and many programs, with exact colours and alpha."
    order = 11
    plays = True

    def split(self, sprites: SpriteSet) -> Mapping[str, SpriteSet]:
        return split_rows(sprites)

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        height, width = sprites.sprites.shape[1:3]
        first = encode_without_checksum(sprites.sprites[0], sprites.about)
        header = [(kind, body) for kind, body in _chunks(first) if kind not in (b"IDAT", b"IEND")]
        parts = [first[:_MAGIC_BYTES], *(png_chunk(kind, body) for kind, body in header)]
        parts.append(png_chunk(b"acTL", struct.pack(">II", len(sprites), 0)))
        numbered = count()
        for index, (rgba, duration_ms) in enumerate(zip(sprites.sprites, sprites.durations_ms(), strict=True)):
            control = struct.pack(">5IHHBB", next(numbered), width, height, 0, 0, duration_ms, 1000, _KEEP, _REPLACE)
            parts.append(png_chunk(b"fcTL", control))
            for kind, body in _chunks(encode_without_checksum(rgba)):
                if kind == b"IDAT":
                    # Programs without APNG support show the first frame, which is a plain IDAT chunk.
                    is_first = index == 0
                    frame = (kind, body) if is_first else (b"fdAT", struct.pack(">I", next(numbered)) + body)
                    parts.append(png_chunk(*frame))
        data = b"".join([*parts, png_chunk(b"IEND", b"")])
        return {target: add_checksum(data) if sprites.about else data}


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield (type, contents) for each chunk of a PNG file."""
    start = _MAGIC_BYTES
    while start < len(data):
        length, kind = struct.unpack_from(">I4s", data, start)
        yield kind, data[start + 8 : start + 8 + length]
        start += length + _AROUND_BYTES
