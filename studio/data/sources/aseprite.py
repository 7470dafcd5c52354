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
from studio.data.aseprite.blend import BLEND_FUNCTIONS
from studio.data.aseprite.file import GROUP, ROOT, TILEMAP, AseFile, Frame, Tag, parse
from studio.data.aseprite.frames import FramePainter
from studio.data.attributes.columns import pair
from studio.data.attributes.reading import pairs_in
from studio.data.images.decoding import read_bytes
from studio.data.sources.base import Source, SourceFile, SourceImage, SourceIssue, UnreadableFile

_Pairs = tuple[tuple[str, str], ...]


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
                attributes, layers = _frame_attributes(ase, number), _layer_attributes(ase, frame)
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


def _frame_attributes(ase: AseFile, number: int) -> _Pairs:
    """Return the attributes that user data like 'element=fire' give to a frame. number: of the frame, from 0.

    The text of a cel wins over the text of its layer, the layer over a tag, and the tag over the sprite.
    """
    found = dict[str, str]()
    for text in _texts(ase, number):
        found.update(pairs_in(text))
    return tuple(found.items())


def _texts(ase: AseFile, number: int) -> Iterator[str]:
    """Yield the user data of a frame, from the sprite to the cels. Hidden layers are left out."""
    frame = ase.frames[number]
    yield ase.text.get(ROOT, "")
    spans = [index for index, tag in enumerate(ase.tags) if tag.first <= number <= tag.last]
    for index in sorted(spans, key=lambda index: ase.tags[index].first - ase.tags[index].last):  # the shortest last
        yield ase.tag_texts.get(index, "")
    drawn = [layer for layer in sorted(frame.cels) if ase.layers[layer].visible]
    groups = {parent for layer in drawn for parent in _parents(ase, layer)}
    for layer in sorted({*drawn, *groups}):
        yield ase.layer_texts.get(layer, "")
    for layer in drawn:
        yield frame.texts.get(layer, "")


def _layer_attributes(ase: AseFile, frame: Frame) -> _Pairs:
    """Return an attribute for each group of layers of which a frame shows a single layer: group 'weapon', 'axe'."""
    shown: dict[int, list[str]] = {}
    for layer in sorted(frame.cels):
        if ase.layers[layer].visible and ase.layers[layer].parent != ROOT:
            shown.setdefault(ase.layers[layer].parent, []).append(ase.layers[layer].name)
    single = ((ase.layers[group].name, names[0]) for group, names in shown.items() if len(names) == 1)
    return tuple(found for name, value in single if (found := pair(name, value)))


def _parents(ase: AseFile, layer: int) -> Iterator[int]:
    """Yield the groups around a layer."""
    while (layer := ase.layers[layer].parent) != ROOT and ase.layers[layer].kind == GROUP:
        yield layer


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
