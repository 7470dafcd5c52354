"""Save sprites as an Aseprite file: a frame per sprite in one layer, and a tag per class or animation.

With cells, each set is a separate file with a tag per row.

Follows the specification docs/ase-file-specs.md of github.com/aseprite/aseprite. The colour mode is indexed if the
sprites have at most 255 opaque colours and no semi-transparency, otherwise RGBA. The palette is included in both modes;
index 0 is transparent.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import ExportError
from studio.core.formatting import count
from studio.exports.provenance_note import HEADING, add_checksum, format_note
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.cells import GAP
from studio.exports.sprites.indexing import (
    MOST_COLOURS,
    add_opaque_alpha,
    index_colours,
    unpack_colours,
    visible_colours,
)  # fmt: skip
from studio.exports.sprites.splitting import split_sets

_MAGIC, _FRAME_MAGIC = 0xA5E0, 0xF1FA
_HEADER_BYTES, _FRAME_BYTES, _CHUNK_BYTES = 128, 16, 6
_LAYER_KIND, _CEL, _COLOUR_PROFILE, _TAGS, _PALETTE, _USER_DATA = 0x2004, 0x2005, 0x2007, 0x2018, 0x2019, 0x2020
_OPACITY_VALID, _VISIBLE, _EDITABLE, _HAS_TEXT = 1, 1, 2, 1
_SRGB, _PACKED, _FORWARD = 1, 2, 0
_MOST = 65_535  # frames in a file, and bytes in a text


class Aseprite(SpriteExport):
    name = "aseprite"
    title = "Aseprite file"
    suffix = ".aseprite"
    help = "A file to edit in Aseprite, with a frame per sprite, a tag per class or view, and the palette."
    order = 3
    plays = True
    has_note = True

    def split(self, sprites: SpriteSet) -> Mapping[str, SpriteSet]:
        return split_sets(sprites)

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        order = _order(sprites)
        if len(order) > _MOST:
            title = f"An Aseprite file has room for {_MOST:,} frames, not {len(order):,}."
            raise ExportError(title, "Save fewer sprites.")
        found = None if sprites.soft_pixels() else index_colours(sprites.sprites, sprites.palette)
        pixels = sprites.sprites if found is None else found.indices
        table = _swatches(sprites) if found is None else found.table
        first_chunks = [_PROFILE, _palette(table), *_note_chunk(sprites.about), _LAYER, _tags(sprites)]
        durations, frames = sprites.durations_ms(), []
        for number, index in enumerate(order):
            cels = [_cel(pixels[index])] if index != GAP else []
            chunks = [*first_chunks, *cels] if number == 0 else cels
            frames.append(_frame(chunks, durations[index] if cels else sprites.duration_ms))
        body = b"".join(frames)
        header = _header(sprites, len(order), len(body), 32 if found is None else 8, len(table))
        return {target: add_checksum(header + body)}

    def note_in(self, data: bytes) -> str:
        start = data.find(HEADING.encode())
        if start < 2:
            return ""
        (length,) = struct.unpack_from("<H", data, start - 2)
        return data[start : start + length].decode("utf-8", "replace")

    def notes(self, sprites: SpriteSet) -> tuple[str, ...]:
        if soft := sprites.soft_pixels():
            return (f"Saved as RGBA, not indexed: {count(soft, 'semi-transparent pixel')}.",)
        colours = max(len(visible_colours(part.sprites)) for part in self.split(sprites).values())
        if colours > MOST_COLOURS:
            return (f"Saved as RGBA, not indexed: {colours:,} colours.",)
        return ()


def _swatches(sprites: SpriteSet) -> Rgba:
    """Return the palette of an RGBA file: transparent, then the sprites' palette or their most frequent colours."""
    clear = np.zeros((1, 4), np.uint8)
    if sprites.palette is not None:
        return np.concatenate([clear, add_opaque_alpha(sprites.palette)])
    return np.concatenate([clear, unpack_colours(visible_colours(sprites.sprites)[:MOST_COLOURS])])


def _header(sprites: SpriteSet, frames: int, body_bytes: int, depth: int, colours: int) -> bytes:
    height, width = sprites.sprites.shape[1:3]
    size = (frames, width, height, depth, _OPACITY_VALID, sprites.duration_ms)
    head = struct.pack("<IHHHHHIH", _HEADER_BYTES + body_bytes, _MAGIC, *size)
    return (head + struct.pack("<8xB3xHBB", 0, colours, 1, 1)).ljust(_HEADER_BYTES, b"\0")


def _frame(chunks: list[bytes], duration_ms: int) -> bytes:
    body = b"".join(chunks)
    head = struct.pack("<IHHH2xI", _FRAME_BYTES + len(body), _FRAME_MAGIC, len(chunks), duration_ms, len(chunks))
    return head + body


def _cel(pixels: NDArray[np.uint8]) -> bytes:
    """Encode an image as a cel chunk. pixels: palette indices, uint8 [H, W], or RGBA, uint8 [H, W, 4]."""
    head = struct.pack("<HhhBHh5xHH", 0, 0, 0, 255, _PACKED, 0, pixels.shape[1], pixels.shape[0])
    return _chunk(_CEL, head + zlib.compress(pixels.tobytes()))


def _palette(table: Rgba) -> bytes:
    entries = b"".join(struct.pack("<H4B", 0, *colour) for colour in table.tolist())
    return _chunk(_PALETTE, struct.pack("<III8x", len(table), 0, len(table) - 1) + entries)


def _note_chunk(about: Mapping[str, object]) -> list[bytes]:
    """Return the user-data chunk with the note, which must follow the palette; empty without `about`."""
    return [_chunk(_USER_DATA, struct.pack("<I", _HAS_TEXT) + _text(format_note(about)))] if about else []


def _tags(sprites: SpriteSet) -> bytes:
    tags = list(_runs(sprites))
    entries = b"".join(struct.pack("<HHB12x", first, last, way) + _text(label) for label, first, last, way in tags)
    return _chunk(_TAGS, struct.pack("<H8x", len(tags)) + entries)


def _order(sprites: SpriteSet) -> list[int]:
    """Return the sprite of each frame: row by row, GAP for a missing cell of a row; without cells, class by class."""
    groups = sprites.by_class().values() if sprites.cells is None else [row.sprites for row in sprites.cells.rows()]
    return [index for indices in groups for index in indices]


def _runs(sprites: SpriteSet) -> Iterator[tuple[str, int, int, int]]:
    """Yield a tag per row of cells; without cells, the sprites' tags; without tags, a tag per class.

    A tag is (name, first frame, last frame, direction).
    """
    first = 0
    if sprites.cells is not None:
        for row in sprites.cells.rows():
            yield row.label, first, first + len(row.sprites) - 1, _FORWARD
            first += len(row.sprites)
        return
    if sprites.tags:
        yield from sprites.tags
        return
    for label, indices in sprites.by_class().items():
        if label:
            yield label, first, first + len(indices) - 1, _FORWARD
        first += len(indices)


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", "replace")[:_MOST].decode("utf-8", "ignore").encode()
    return struct.pack("<H", len(encoded)) + encoded


def _chunk(kind: int, data: bytes) -> bytes:
    return struct.pack("<IH", _CHUNK_BYTES + len(data), kind) + data


_PROFILE = _chunk(_COLOUR_PROFILE, struct.pack("<HHI8x", _SRGB, 0, 0))
_LAYER = _chunk(_LAYER_KIND, struct.pack("<HHHHHHB3x", _VISIBLE | _EDITABLE, 0, 0, 0, 0, 0, 255) + _text("sprites"))
