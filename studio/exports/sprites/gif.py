"""An animated GIF that shows one sprite after another, for ever.

Written here: Pillow makes one frame of two that are the same, and the second is lost. Every frame is a whole picture
that is cleared away before the next (disposal 2). One palette serves all frames where it can, else each has its own.
Colour 0 is transparent, and nothing is half-transparent.
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
)

_OPAQUE_FROM = 128  # alpha
_CODE_BITS = 8  # of a colour number
_LEAST_TICKS = 2  # hundredths of a second: programs show a frame of less for ten
_FOR_EVER = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
_COMMENT, _CONTROL, _PICTURE, _END = b"\x21\xfe", 0xF921, b"\x2c", b"\x3b"
_CLEARED, _HAS_CLEAR, _HAS_TABLE = 2 << 2, 1, 0x80
_LONGEST_BLOCK = 255


class Gif(SpriteExport):
    name = "gif"
    title = "Animated GIF"
    suffix = ".gif"
    help = "Moves wherever a picture can be shown; pixels are opaque or clear, with at most 255 colours a frame."
    order = 10
    plays = True
    has_note = True

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        shared, frames = _in_tables(sprites)
        height, width = sprites.sprites.shape[1:3]
        flags = _table_flags(shared) if shared is not None else 0
        parts = [struct.pack("<6sHHBBB", b"GIF89a", width, height, flags, 0, 0)]
        parts += [_packed_table(shared)] if shared is not None else []
        parts += [_FOR_EVER]
        parts += [_COMMENT, _blocks(format_note(sprites.about).encode("ascii", "replace"))] if sprites.about else []
        for frame, duration_ms in zip(frames, sprites.durations_ms(), strict=True):
            parts.append(_frame(frame.indices[0], None if shared is not None else frame.table, duration_ms))
        return {target: add_checksum(b"".join([*parts, _END]))}

    def note_in(self, data: bytes) -> str:
        place = -1
        while (place := data.find(_COMMENT, place + 1)) >= 0:  # colours and pixels may contain these bytes
            text = _from_blocks(data, place + len(_COMMENT))
            if text.startswith(HEADING.encode()):
                return text.decode("ascii", "replace")
        return ""

    def notes(self, sprites: SpriteSet) -> tuple[str, ...]:
        told = []
        if soft := sprites.soft_pixels():
            told.append(f"GIF has no soft alpha: {count(soft, 'half-transparent pixel')} became opaque or clear.")
        colours = [len(visible_colours(frame)) for frame in _hardened(sprites.sprites)]
        if reduced := sum(number > MOST_COLOURS for number in colours):
            room = f"GIF has room for {MOST_COLOURS} colours a frame"
            told.append(f"{room}: {count(reduced, 'frame')} lost some, of up to {max(colours):,}.")
        return tuple(told)


def _in_tables(sprites: SpriteSet) -> tuple[Rgba | None, Iterator[IndexedSprites]]:
    """The table that all frames share, None when each has its own, and the frames, [1, H, W] each."""
    hard = _hardened(sprites.sprites)
    together = index_colours(hard, sprites.palette)
    if together is None:
        return None, (_indexed_frame(frame[None]) for frame in hard)
    alone = (IndexedSprites(indices[None], together.table, 0) for indices in together.indices)
    return together.table, alone


def _hardened(sprites: Rgba) -> Rgba:
    """uint8 [N, H, W, 4] -> opaque from half alpha on, else clear."""
    seen = sprites[..., 3:] >= _OPAQUE_FROM
    return np.where(seen, add_opaque_alpha(sprites[..., :3]), 0).astype(np.uint8)


def _indexed_frame(frame: Rgba) -> IndexedSprites:
    """uint8 [1, H, W, 4] in a table of its own; the colours of too many that are near each other become one."""
    found = index_colours(frame, None)
    return found if found is not None else _reduced(frame)


def _reduced(frame: Rgba) -> IndexedSprites:
    seen = frame[..., 3] > 0
    picture = Image.fromarray(np.ascontiguousarray(frame[seen][None, :, :3]))
    fewer = picture.quantize(MOST_COLOURS, Image.Quantize.MEDIANCUT, kmeans=1)
    indices = np.zeros(frame.shape[:3], np.uint8)
    indices[seen] = np.asarray(fewer)[0] + 1
    colours = np.array(fewer.getpalette(), np.uint8).reshape(-1, 3)[:MOST_COLOURS]
    return IndexedSprites(
        indices, np.concatenate([unpack_colours(np.zeros(1, np.uint32)), add_opaque_alpha(colours)]), 0
    )


def _frame(indices: NDArray[np.uint8], table: Rgba | None, duration_ms: int) -> bytes:
    """A frame of colour numbers, uint8 [H, W]. table: its own; None for the one that all share."""
    height, width = indices.shape
    ticks = max(round(duration_ms / 10), _LEAST_TICKS)
    control = struct.pack("<HBBHBB", _CONTROL, 4, _CLEARED | _HAS_CLEAR, ticks, 0, 0)
    flags = _table_flags(table) if table is not None else 0
    place = _PICTURE + struct.pack("<HHHHB", 0, 0, width, height, flags)
    own = _packed_table(table) if table is not None else b""
    image = Image.fromarray(np.ascontiguousarray(indices))
    return control + place + own + bytes([_CODE_BITS]) + image.tobytes("gif", "L", _CODE_BITS, 0) + b"\0"


def _table_bits(table: Rgba) -> int:
    """Tables have 2, 4, 8, ... or 256 places."""
    return max((len(table) - 1).bit_length(), 1)


def _table_flags(table: Rgba) -> int:
    return _HAS_TABLE | _table_bits(table) - 1


def _packed_table(table: Rgba) -> bytes:
    return table[:, :3].tobytes().ljust(3 << _table_bits(table), b"\0")


def _blocks(data: bytes) -> bytes:
    """`data` as the format packs it: in blocks that tell their length, of which the last is empty."""
    parts = (data[start : start + _LONGEST_BLOCK] for start in range(0, len(data), _LONGEST_BLOCK))
    return b"".join(bytes([len(part)]) + part for part in parts) + b"\0"


def _from_blocks(data: bytes, place: int) -> bytes:
    """Return the data of the blocks from offset `place` to the empty block or the end of the file."""
    parts = []
    while place < len(data) and data[place]:
        parts.append(data[place + 1 : place + 1 + data[place]])
        place += 1 + data[place]
    return b"".join(parts)
