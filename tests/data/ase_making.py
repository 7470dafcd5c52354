"""Aseprite files made by hand from the specification of the format."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studio.data.files.source_files import SourceImage, SourceIssue
from studio.data.sources.aseprite import AsepriteSource
from tests.data.making import Pixels, found

VISIBLE, BACKGROUND, REFERENCE = 1, 8, 64
MASKS = (0x1FFFFFFF, 0x80000000, 0x40000000, 0x20000000)
FLIP_X, FLIP_Y, DIAGONAL = MASKS[1:]


def part(kind: int, data: bytes) -> bytes:
    return struct.pack("<IH", len(data) + 6, kind) + data


def text(words: str) -> bytes:
    encoded = words.encode()
    return struct.pack("<H", len(encoded)) + encoded


def layer(
    flags: int = VISIBLE, *, kind: int = 0, level: int = 0, mode: int = 0, opacity: int = 255, tileset: int = 0,
    name: str = "a layer",
) -> bytes:  # fmt: skip
    """kind: 0 pixels, 1 group, 2 tiles."""
    data = struct.pack("<HHHHHHB3x", flags, kind, level, 0, 0, mode, opacity) + text(name)
    return part(0x2004, data + (struct.pack("<I", tileset) if kind == 2 else b""))


def any_cel(number: int, x: int, y: int, opacity: int, kind: int, z: int, rest: bytes) -> bytes:
    """kind: 0 raw pixels, 1 a link, 2 packed pixels, 3 tiles."""
    return part(0x2005, struct.pack("<HhhBHh5x", number, x, y, opacity, kind, z) + rest)


def cel(
    number: int, pixels: NDArray[np.uint8], x: int = 0, y: int = 0, *, opacity: int = 255, z: int = 0, raw: bool = False
) -> bytes:
    """pixels: [H, W] of indices, or [H, W, C]."""
    data = pixels.tobytes() if raw else zlib.compress(pixels.tobytes())
    rest = struct.pack("<HH", pixels.shape[1], pixels.shape[0]) + data
    return any_cel(number, x, y, opacity, 0 if raw else 2, z, rest)


def link(number: int, frame: int, x: int = 0, y: int = 0, *, opacity: int = 255, z: int = 0) -> bytes:
    return any_cel(number, x, y, opacity, 1, z, struct.pack("<H", frame))


def tilemap(
    number: int, cells: Sequence[Sequence[int]], x: int = 0, y: int = 0, *, bits: int = 32, masks: Sequence[int] = MASKS
) -> bytes:
    dtype = {8: "<u1", 16: "<u2", 32: "<u4"}.get(bits, "<u4")
    grid = np.array(cells, dtype)
    rest = struct.pack("<HHHIIII10x", grid.shape[1], grid.shape[0], bits, *masks)
    return any_cel(number, x, y, 255, 3, 0, rest + zlib.compress(grid.tobytes()))


def tileset(number: int, tiles: NDArray[np.uint8], *, flags: int = 6) -> bytes:
    """tiles: [N, H, W, C]. flags: 1 in another file, 2 in this one, 4 tile 0 is the empty one."""
    count, height, width = tiles.shape[:3]
    data = struct.pack("<IIIHHh14x", number, flags, count, width, height, 1) + text("tiles")
    if flags & 1:
        data += struct.pack("<II", 1, 0)
    packed = zlib.compress(tiles.tobytes())
    return part(0x2023, data + (struct.pack("<I", len(packed)) + packed if flags & 2 else b""))


def palette(colours: Sequence[Sequence[int]], *, first: int = 0, size: int = 0, names: bool = False) -> bytes:
    """colours: of four channels."""
    entries = b"".join(struct.pack("<H4B", names, *colour) + (text("tint") if names else b"") for colour in colours)
    last = first + len(colours) - 1
    return part(0x2019, struct.pack("<III8x", size or last + 1, first, last) + entries)


def old_palette(packets: Sequence[tuple[int, Sequence[Sequence[int]]]], *, kind: int = 0x0004) -> bytes:
    """packets: how many entries to skip, and colours of three channels."""
    data = struct.pack("<H", len(packets))
    for skipped, colours in packets:
        data += struct.pack("<BB", skipped, len(colours) % 256) + bytes(np.array(colours, np.uint8).tobytes())
    return part(kind, data)


def tags(*named: tuple[int, int, str]) -> bytes:
    entries = b"".join(struct.pack("<HH13x", first, last) + text(name) for first, last, name in named)
    return part(0x2018, struct.pack("<H8x", len(named)) + entries)


def user_data(words: str) -> bytes:
    return part(0x2020, struct.pack("<I", 1) + text(words))


def frame(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<IHHH2xI", len(body) + 16, 0xF1FA, min(len(parts), 0xFFFF), 100, len(parts)) + body


def ase(
    *frames: bytes, size: tuple[int, int] = (4, 3), depth: int = 32, flags: int = 1, clear: int = 0, count: int = 0
) -> bytes:
    """size: width, height. flags: 1 the layers' opacities hold, 2 groups are drawn by themselves."""
    body = b"".join(frames)
    head = struct.pack(
        "<IHHHHHIHIIB3xH", len(body) + 128, 0xA5E0, count or len(frames), *size, depth, flags, 100, 0, 0, clear, 256
    )
    return head.ljust(128, b"\0") + body


def items(data: bytes, folder: Path, name: str = "art.aseprite") -> list[SourceImage | SourceIssue]:
    path = folder / name
    path.write_bytes(data)
    return list(AsepriteSource().read(found(path)))


def pictures(data: bytes, folder: Path) -> list[SourceImage]:
    return [item for item in items(data, folder) if isinstance(item, SourceImage)]


def remarks(data: bytes, folder: Path) -> list[tuple[str, str]]:
    return [(item.group, item.reason) for item in items(data, folder) if isinstance(item, SourceIssue)]


def drawn(folder: Path, *parts: bytes, **about: Any) -> Pixels:
    """Return the image of a file with one frame. about: arguments for `ase`."""
    (picture,) = pictures(ase(frame(*parts), **about), folder)
    return picture.rgba


def filled(colour: Sequence[int], width: int = 4, height: int = 3) -> Pixels:
    return np.full((height, width, len(colour)), colour, np.uint8)


def noise(seed: int, *shape: int, least: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(least, 256, shape, dtype=np.uint8)
