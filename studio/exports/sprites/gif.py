"""Save sprites as an animated GIF that loops forever. Sets have a file for each animation.

The encoder is our own, because Pillow merges equal frames. Frames are full images, cleared before the next frame
(disposal 2). Frames share a palette of up to 255 colours if possible; otherwise each frame has a separate palette.
Index 0 is transparent. GIF has no semi-transparency.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.core.arrays import Rgba
from studio.core.formatting import count
from studio.exports.provenance_note import HEADING, add_checksum, format_note
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.indexing import (
    MOST_COLOURS,
    IndexedSprites,
    add_opaque_alpha,
    index_colours,
    unpack_colours,
    visible_colours,
)  # fmt: skip
from studio.exports.sprites.splitting import split_rows

_OPAQUE_FROM = 128  # alpha; pixels of lower alpha become transparent
_CODE_BITS = 8  # per palette index
_LEAST_TICKS = 2  # hundredths of a second; many programs slow shorter frames down to 10
_LOOP_FOREVER = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
_COMMENT, _CONTROL, _PICTURE, _END = b"\x21\xfe", 0xF921, b"\x2c", b"\x3b"
_CLEARED, _HAS_CLEAR, _HAS_TABLE = 2 << 2, 1, 0x80
_LONGEST_BLOCK = 255


class Gif(SpriteExport):
    name = "gif"
    title = "Animated GIF"
    suffix = ".gif"
    help = "An animation for every program; at most 255 colours per frame, without semi-transparency."
    order = 10
    plays = True
    has_note = True

    def split(self, sprites: SpriteSet) -> Mapping[str, SpriteSet]:
        return split_rows(sprites)

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        shared, frames = _index_frames(sprites)
        height, width = sprites.sprites.shape[1:3]
        flags = _table_flags(shared) if shared is not None else 0
        parts = [struct.pack("<6sHHBBB", b"GIF89a", width, height, flags, 0, 0)]
        parts += [_packed_table(shared)] if shared is not None else []
        parts += [_LOOP_FOREVER]
        parts += [_COMMENT, _blocks(format_note(sprites.about).encode("ascii", "replace"))] if sprites.about else []
        for frame, duration_ms in zip(frames, sprites.durations_ms(), strict=True):
            parts.append(_frame(frame.indices[0], None if shared is not None else frame.table, duration_ms))
        return {target: add_checksum(b"".join([*parts, _END]))}

    def note_in(self, data: bytes) -> str:
        start = -1
        while (start := data.find(_COMMENT, start + 1)) >= 0:  # palettes and pixels may contain the same bytes
            text = _from_blocks(data, start + len(_COMMENT))
            if text.startswith(HEADING.encode()):
                return text.decode("ascii", "replace")
        return ""

    def notes(self, sprites: SpriteSet) -> tuple[str, ...]:
        notes = []
        if soft := sprites.soft_pixels():
            pixels = count(soft, "semi-transparent pixel")
            notes.append(f"GIF has no semi-transparency: {pixels} became opaque or transparent.")
        colours = [len(visible_colours(frame)) for frame in _hardened(sprites.sprites)]
        if reduced := sum(number > MOST_COLOURS for number in colours):
            frames = count(reduced, "frame")
            notes.append(f"{frames} reduced to {MOST_COLOURS} colours, from up to {max(colours):,}.")
        return tuple(notes)


def _index_frames(sprites: SpriteSet) -> tuple[Rgba | None, Iterator[IndexedSprites]]:
    """Convert sprites to frames of palette indices, [1, H, W]; return the shared palette and the frames.

    The shared palette is None if each frame needs a separate palette.
    """
    hard = _hardened(sprites.sprites)
    together = index_colours(hard, sprites.palette)
    if together is None:
        return None, (_indexed_frame(frame[None]) for frame in hard)
    return together.table, (IndexedSprites(indices[None], together.table, 0) for indices in together.indices)


def _hardened(sprites: Rgba) -> Rgba:
    """Make each pixel of uint8 [N, H, W, 4] opaque or transparent, with a threshold at half alpha."""
    seen = sprites[..., 3:] >= _OPAQUE_FROM
    return np.where(seen, add_opaque_alpha(sprites[..., :3]), 0).astype(np.uint8)


def _indexed_frame(frame: Rgba) -> IndexedSprites:
    """Convert a frame, uint8 [1, H, W, 4], to palette indices with its own palette; merge similar colours above 255."""
    if (found := index_colours(frame, None)) is not None:
        return found
    seen = frame[..., 3] > 0
    picture = Image.fromarray(np.ascontiguousarray(frame[seen][None, :, :3]))
    fewer = picture.quantize(MOST_COLOURS, Image.Quantize.MEDIANCUT, kmeans=1)
    indices = np.zeros(frame.shape[:3], np.uint8)
    indices[seen] = np.asarray(fewer)[0] + 1
    colours = np.array(fewer.getpalette(), np.uint8).reshape(-1, 3)[:MOST_COLOURS]
    table = np.concatenate([unpack_colours(np.zeros(1, np.uint32)), add_opaque_alpha(colours)])
    return IndexedSprites(indices, table, 0)


def _frame(indices: NDArray[np.uint8], table: Rgba | None, duration_ms: int) -> bytes:
    """Encode a frame, uint8 [H, W], of palette indices. table: its own palette; None for the shared palette."""
    height, width = indices.shape
    ticks = max(round(duration_ms / 10), _LEAST_TICKS)
    control = struct.pack("<HBBHBB", _CONTROL, 4, _CLEARED | _HAS_CLEAR, ticks, 0, 0)
    flags = _table_flags(table) if table is not None else 0
    descriptor = _PICTURE + struct.pack("<HHHHB", 0, 0, width, height, flags)
    own = _packed_table(table) if table is not None else b""
    image = Image.fromarray(np.ascontiguousarray(indices))
    return control + descriptor + own + bytes([_CODE_BITS]) + image.tobytes("gif", "L", _CODE_BITS, 0) + b"\0"


def _table_bits(table: Rgba) -> int:
    """Return the bits of a palette index: 1 for 2 colours, 8 for 256."""
    return max((len(table) - 1).bit_length(), 1)


def _table_flags(table: Rgba) -> int:
    return _HAS_TABLE | _table_bits(table) - 1


def _packed_table(table: Rgba) -> bytes:
    return table[:, :3].tobytes().ljust(3 << _table_bits(table), b"\0")


def _blocks(data: bytes) -> bytes:
    """Split data into blocks with a length byte, and append an empty block."""
    parts = (data[start : start + _LONGEST_BLOCK] for start in range(0, len(data), _LONGEST_BLOCK))
    return b"".join(bytes([len(part)]) + part for part in parts) + b"\0"


def _from_blocks(data: bytes, start: int) -> bytes:
    """Join the data of the blocks from offset `start` to the empty block or the end of the file."""
    parts = []
    while start < len(data) and data[start]:
        parts.append(data[start + 1 : start + 1 + data[start]])
        start += 1 + data[start]
    return b"".join(parts)
