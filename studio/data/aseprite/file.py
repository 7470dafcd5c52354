"""An Aseprite file taken apart: its layers, frames, tilesets and tags. No pixel is unpacked here.

Written from its specification, docs/ase-file-specs.md of github.com/aseprite/aseprite. Everything is checked against
the bytes that are there before memory is taken for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from studio.core.arrays import Rgba
from studio.data.aseprite.fields import Fields, damaged
from studio.data.aseprite.palette import FramePalette
from studio.data.files.source_files import CUT_OFF, UnreadableFile
from studio.data.images.decoding import LARGEST_SIDE, check_size

MOST_FRAMES = 1_000  # of one file; those after them are left out
MOST_PIXELS = 1 << 26  # of all frames together, and of the nested groups while one frame is drawn
ROOT = -1  # the parent of the layers that are in no group
IMAGE, GROUP, TILEMAP = range(3)  # kinds of layers

_MOST_CHUNKS = 200_000
_MOST_LAYERS = 2_000
_MOST_TAGS = 1_000
_DEEPEST = 64  # groups within groups
_HEADER_BYTES, _FRAME_BYTES, _CHUNK_BYTES = 128, 16, 6
_MAGIC, _FRAME_MAGIC = 0xA5E0, 0xF1FA
_OPACITY_VALID, _GROUPS_BLEND = 1, 2  # flags of the file
_VISIBLE, _BACKGROUND, _REFERENCE = 1, 8, 64  # flags of a layer
_EXTERNAL, _EMBEDDED, _ZERO_IS_EMPTY = 1, 2, 4  # flags of a tileset
_RAW, _LINKED, _PACKED, _TILES = range(4)  # kinds of cels


@dataclass(frozen=True, slots=True)
class Layer:
    """shown: visible, with all groups around it, and no reference layer. tileset: its id; 0 for other kinds."""

    kind: int
    parent: int
    shown: bool
    background: bool
    blend_mode: int
    opacity: int
    tileset: int


@dataclass(frozen=True, slots=True)
class Image:
    """Pixels as they lie in the file: `height` rows of `width` pixels, zlib-packed or not."""

    width: int
    height: int
    data: memoryview
    packed: bool


@dataclass(frozen=True, slots=True)
class Tilemap:
    """Packed numbers of tiles, `rows` x `columns`; `masks` say which bits are the tile and the x, y, diagonal flips."""

    columns: int
    rows: int
    bits: int
    masks: tuple[int, int, int, int]
    data: memoryview


@dataclass(frozen=True, slots=True)
class Tileset:
    """data: the packed pixels, all tiles below one another; None when they are in another file."""

    count: int
    width: int
    height: int
    zero_is_empty: bool
    data: memoryview | None


@dataclass(frozen=True, slots=True)
class Cel:
    """What one layer shows in one frame. x, y: where its left upper corner is on the canvas."""

    x: int
    y: int
    opacity: int
    z_index: int
    content: Image | Tilemap


@dataclass(frozen=True, slots=True)
class Tag:
    """A named run of frames.

    first, last: frame numbers from 0, unchecked: both may lie beyond the last frame. direction: Aseprite's number for
    the playback direction; 0 plays forward.
    """

    first: int
    last: int
    name: str
    direction: int = 0


@dataclass(eq=False, slots=True)
class Frame:
    """cels: by layer number. palette: uint8 [256, 4]. duration_ms: how long the frame is shown."""

    palette: Rgba
    duration_ms: int
    cels: dict[int, Cel] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class AseFile:
    """depth: bits a pixel, 32 (RGBA), 16 (grey, alpha) or 8 (indexed). frame_count: of which `frames` may be a part.

    transparent: the index that is clear, except on background layers. groups_blend: groups are drawn by themselves.
    """

    width: int
    height: int
    depth: int
    frame_count: int
    transparent: int
    opacity_valid: bool
    groups_blend: bool
    layers: list[Layer] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    tilesets: dict[int, Tileset] = field(default_factory=dict)
    tags: list[Tag] = field(default_factory=list)


def parse(data: bytes) -> AseFile:
    """Raises Refused for what is no Aseprite file, is damaged, or is larger than what is read."""
    if not data:
        raise UnreadableFile("unreadable", "empty: the file has no bytes")
    if data.startswith(b"ASEF"):
        raise UnreadableFile("unsupported", "an Adobe swatch file: it holds colours and no picture")
    if data[4:6] != _MAGIC.to_bytes(2, "little"):
        raise UnreadableFile("unreadable", "not an Aseprite file: its contents are something else")
    if len(data) < _HEADER_BYTES:
        raise UnreadableFile("unreadable", CUT_OFF)
    head = Fields(memoryview(data))
    size, frames, width, height, depth, flags, transparent = head.take("<I2xHHHHI10xB")
    if size > len(data):
        raise UnreadableFile("unreadable", CUT_OFF)
    check_size(width, height)
    if not (frames and width and height):
        raise damaged("there are no pixels in it")
    if depth not in (8, 16, 32):
        raise damaged(f"{depth} bits a pixel is nothing that Aseprite draws with")
    read = min(frames, MOST_FRAMES, max(MOST_PIXELS // (width * height), 1))
    ase = AseFile(width, height, depth, frames, transparent, bool(flags & _OPACITY_VALID), bool(flags & _GROUPS_BLEND))
    _Parser(ase).read_frames(memoryview(data)[_HEADER_BYTES:], read)
    return ase


class _Parser:
    """Fills an AseFile, chunk by chunk."""

    def __init__(self, ase: AseFile) -> None:
        self._ase = ase
        self._palettes = FramePalette()
        self._open_groups: list[int] = []
        self._chunks_left = _MOST_CHUNKS
        self._tile_pixels_left = LARGEST_SIDE**2

    def read_frames(self, data: memoryview, count: int) -> None:
        start = 0
        for _ in range(count):
            if start + _FRAME_BYTES > len(data):
                raise UnreadableFile("unreadable", CUT_OFF)
            size, magic, old_count, duration_ms, new_count = Fields(data[start:]).take("<IHHH2xI")
            if magic != _FRAME_MAGIC or size < _FRAME_BYTES:
                raise damaged("a frame does not begin as a frame of Aseprite does")
            if start + size > len(data):
                raise UnreadableFile("unreadable", CUT_OFF)
            self._ase.frames.append(Frame(self._palettes.current, duration_ms))
            self._read_chunks(data[start + _FRAME_BYTES : start + size], new_count or old_count)
            self._ase.frames[-1].palette = self._palettes.current
            start += size
        if self._ase.depth == 8 and not self._palettes.given:
            raise damaged("its palette is missing")

    def _read_chunks(self, data: memoryview, count: int) -> None:
        """The parts of one frame, which must fill it exactly."""
        self._chunks_left -= count
        if self._chunks_left < 0:
            raise UnreadableFile("refused", f"it is made of more than {_MOST_CHUNKS:,} parts")
        start = 0
        for _ in range(count):
            size, kind = Fields(data[start:]).take("<IH")
            if not _CHUNK_BYTES <= size <= len(data) - start:
                raise damaged("the parts of a frame do not fit into it")
            self._read_chunk(kind, Fields(data[start + _CHUNK_BYTES : start + size]))
            start += size
        if start != len(data):
            raise damaged("a frame has more in it than it says")

    def _read_chunk(self, kind: int, chunk: Fields) -> None:
        match kind:
            case 0x2004:
                self._read_layer(chunk)
            case 0x2005:
                self._read_cel(chunk)
            case 0x2018:
                self._read_tags(chunk)
            case 0x2019:
                self._palettes.read_modern(chunk)
            case 0x0004 | 0x0011:
                self._palettes.read_old(chunk, bits=8 if kind == 0x0004 else 6)
            case 0x2023:
                self._read_tileset(chunk)

    def _read_layer(self, chunk: Fields) -> None:
        flags, kind, level, blend_mode, opacity = chunk.take("<HHH4xHB3x")
        chunk.text()
        if kind not in (IMAGE, GROUP, TILEMAP):
            raise UnreadableFile("unsupported", "it has a kind of layer that only a newer Aseprite knows")
        ase, number = self._ase, len(self._ase.layers)
        if number >= _MOST_LAYERS:
            raise UnreadableFile("refused", f"it has more than {_MOST_LAYERS:,} layers")
        if level > len(self._open_groups):
            raise damaged("a layer lies in a group that is not there")
        del self._open_groups[level:]
        parent = self._open_groups[-1] if level else ROOT
        background = bool(flags & _BACKGROUND)
        blends = not background and (kind != GROUP or ase.groups_blend)
        shown = bool(flags & _VISIBLE) and not flags & _REFERENCE and (parent == ROOT or ase.layers[parent].shown)
        tileset = chunk.take("<I")[0] if kind == TILEMAP else 0
        opacity = opacity if blends and ase.opacity_valid else 255
        ase.layers.append(Layer(kind, parent, shown, background, blend_mode if blends else 0, opacity, tileset))
        if kind == GROUP:
            self._open_groups.append(number)
            deepest = min(_DEEPEST, MOST_PIXELS // (ase.width * ase.height))
            if ase.groups_blend and len(self._open_groups) > deepest:
                raise UnreadableFile("refused", "its groups of layers lie too deep in one another")

    def _read_cel(self, chunk: Fields) -> None:
        number, x, y, opacity, kind, z_index = chunk.take("<HhhBHh5x")
        layers, frame = self._ase.layers, self._ase.frames[-1]
        if number >= len(layers) or layers[number].kind == GROUP:
            raise damaged("something is drawn on a layer that is not there")
        if number in frame.cels:
            raise damaged("a layer has two drawings in one frame")
        content: Image | Tilemap
        if kind in (_RAW, _PACKED):
            width, height = chunk.take("<HH")
            check_size(width, height)
            content = Image(width, height, chunk.rest(), kind == _PACKED)
        elif kind == _LINKED:
            content = self._linked(number, *chunk.take("<H"))
        elif kind == _TILES and layers[number].kind == TILEMAP:
            columns, rows, bits, *masks = chunk.take("<HHHIIII10x")
            check_size(columns, rows)
            tile, flip_x, flip_y, diagonal = masks
            content = Tilemap(columns, rows, bits, (tile, flip_x, flip_y, diagonal), chunk.rest())
        else:
            raise UnreadableFile("unsupported", "it has a kind of drawing that only a newer Aseprite knows")
        frame.cels[number] = Cel(x, y, opacity, z_index, content)

    def _linked(self, layer: int, position: int) -> Image | Tilemap:
        """What an earlier frame shows there. Links to links need no steps: the earlier one was followed already."""
        frames = self._ase.frames
        if position >= len(frames) - 1:
            raise damaged("a drawing is linked to a frame that does not come before it")
        cel = frames[position].cels.get(layer)
        if cel is None:
            raise damaged("a drawing is linked to a frame that has none on this layer")
        return cel.content

    def _read_tileset(self, chunk: Fields) -> None:
        number, flags, count, width, height = chunk.take("<IIIHH16x")
        chunk.text()
        check_size(width, height)
        if not (width and height):
            raise damaged("its tiles have no pixels")
        if flags & _EXTERNAL:
            chunk.take("<II")
        data = None
        if flags & _EMBEDDED:
            self._tile_pixels_left -= count * width * height
            if self._tile_pixels_left < 0:
                raise UnreadableFile("refused", "too large: its tilesets have more pixels than are read")
            data = chunk.raw(*chunk.take("<I"))
        self._ase.tilesets[number] = Tileset(count, width, height, bool(flags & _ZERO_IS_EMPTY), data)

    def _read_tags(self, chunk: Fields) -> None:
        (count,) = chunk.take("<H8x")
        if len(self._ase.tags) + count > _MOST_TAGS:
            raise UnreadableFile("refused", f"it has more than {_MOST_TAGS:,} tags")
        for _ in range(count):
            first, last, direction = chunk.take("<HHB12x")
            self._ase.tags.append(Tag(first, last, chunk.text(), direction))
