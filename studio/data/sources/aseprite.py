"""Read Aseprite files: each frame becomes a sprite, with its visible layers merged."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from studio.core.arrays import Rgba
from studio.core.formatting import count
from studio.core.names import escape_unprintable
from studio.data.aseprite.attributes import frame_attributes, layer_attributes
from studio.data.aseprite.blend import BLEND_FUNCTIONS
from studio.data.aseprite.file import TILEMAP, AseFile, Tag, parse
from studio.data.aseprite.frames import FramePainter
from studio.data.images.decoding import read_bytes
from studio.data.sources.base import Source, SourceFile, SourceImage, SourceIssue, UnreadableFile


class AsepriteSource(Source):
    """Reads .ase and .aseprite files. Adobe swatch files also end in .ase and raise UnreadableFile."""

    name = "aseprite"

    def claims(self, file: SourceFile) -> bool:
        return file.suffix in (".ase", ".aseprite")

    def read(self, file: SourceFile) -> Iterator[SourceImage | SourceIssue]:
        try:
            ase = parse(read_bytes(file))
            painter = FramePainter(ase)
            for number, (frame, (part, tag)) in enumerate(zip(ase.frames, _parts(ase), strict=True)):
                attributes, layers = frame_attributes(ase, number), layer_attributes(ase, frame)
                yield SourceImage(painter.render(frame), part, tag=tag, attributes=attributes, layers=layers)
            yield from _remarks(ase)
        except MemoryError:
            raise UnreadableFile("refused", "too large for the free memory") from None

    def example(self, folder: Path) -> Path:
        ruby, sapphire = np.zeros((2, 8, 8, 4), np.uint8)
        ruby[2:6, 1:7] = (200, 60, 40, 255)
        sapphire[1:7, 2:6] = (40, 60, 200, 255)
        path = folder / "gem.aseprite"
        path.write_bytes(_one_layer([ruby, sapphire]))
        return path


def _parts(ase: AseFile) -> list[tuple[str, str]]:
    """Return a unique part name and the shortest tag of each frame: 'walk 2' for the second frame of tag 'walk'."""
    if ase.frame_count == 1:
        return [("", "")]
    parts: dict[str, str] = {}
    for number in range(len(ase.frames)):
        tags = [tag for tag in ase.tags if tag.first <= number <= tag.last and tag.name.strip()]
        tag = min(tags, key=lambda tag: tag.last - tag.first, default=Tag(0, 0, ""))
        name = escape_unprintable(tag.name)[:80].strip()
        part = wanted = f"{name or 'frame'} {number - tag.first + 1}"
        copies = 1
        while part in parts:
            copies += 1
            part = f"{wanted} ({copies})"
        parts[part] = name
    return list(parts.items())


def _remarks(ase: AseFile) -> Iterator[SourceIssue]:
    visible = [layer for layer in ase.layers if layer.visible]
    unknown = sum(layer.blend_mode >= len(BLEND_FUNCTIONS) for layer in visible)
    if unknown:
        yield SourceIssue("blend mode", f"{count(unknown, 'layer')} of an unknown blend mode: drawn as normal")
    tilesets = [ase.tilesets.get(layer.tileset) for layer in visible if layer.kind == TILEMAP]
    elsewhere = sum(tileset is not None and tileset.data is None for tileset in tilesets)
    if elsewhere:
        yield SourceIssue("incomplete", f"{count(elsewhere, 'layer')} left out: the tiles are in another file")
    if ase.frame_count > len(ase.frames):
        read = "first was" if len(ase.frames) == 1 else f"first {len(ase.frames):,} were"
        yield SourceIssue("animation", f"holds {ase.frame_count:,} frames: only the {read} read")


def _one_layer(frames: Sequence[Rgba]) -> bytes:
    """Encode frames as an Aseprite file with one RGBA layer. frames: uint8 [H, W, 4] with equal sizes."""
    height, width = frames[0].shape[:2]
    layer = _chunk(0x2004, struct.pack("<HHHHHHB3xH", 1, 0, 0, 0, 0, 0, 255, 0))
    body = b""
    for number, rgba in enumerate(frames):
        cel = struct.pack("<HhhBHh5xHH", 0, 0, 0, 255, 2, 0, width, height) + zlib.compress(rgba.tobytes())
        chunks = _chunk(0x2005, cel) if number else layer + _chunk(0x2005, cel)
        body += struct.pack("<IHHH2xI", 16 + len(chunks), 0xF1FA, 1 if number else 2, 100, 0) + chunks
    header = struct.pack("<IHHHHHI", 128 + len(body), 0xA5E0, len(frames), width, height, 32, 1)
    return header.ljust(128, b"\0") + body


def _chunk(kind: int, data: bytes) -> bytes:
    return struct.pack("<IH", 6 + len(data), kind) + data
