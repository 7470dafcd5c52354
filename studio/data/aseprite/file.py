"""Parse an Aseprite file into layers, frames, tilesets and tags. Pixels stay compressed.

Follows the specification docs/ase-file-specs.md of github.com/aseprite/aseprite. Sizes are checked against the bytes in
the file before memory is allocated.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from studio.core.arrays import Rgba
from studio.data.aseprite.fields import ChunkReader, damaged
from studio.data.files.source_files import CUT_OFF, UnreadableFile
from studio.data.images.decoding import LARGEST_SIDE, check_size

MAX_FRAMES = 1_000  # per file; the import leaves out further frames
MAX_PIXELS = 1 << 26  # in all frames together; also in the nested groups while a frame is drawn
ROOT = -1  # `Layer.parent` for layers outside groups
IMAGE, GROUP, TILEMAP = range(3)  # layer kinds

_MAX_CHUNKS = 200_000
_MAX_LAYERS = 2_000
_MAX_TAGS = 1_000
_MAX_DEPTH = 64  # groups within groups
_HEADER_BYTES, _FRAME_BYTES, _CHUNK_BYTES = 128, 16, 6
_MAGIC, _FRAME_MAGIC = 0xA5E0, 0xF1FA
_OPACITY_VALID, _GROUPS_BLEND = 1, 2  # file flags
_VISIBLE, _BACKGROUND, _REFERENCE = 1, 8, 64  # layer flags
_EXTERNAL, _EMBEDDED, _ZERO_IS_EMPTY = 1, 2, 4  # tileset flags
_RAW, _LINKED, _PACKED, _TILES = range(4)  # cel kinds
_COLOURS = 256  # the range of a one-byte pixel; longer palettes are valid
_MAX_PALETTE = 65_536
_HAS_NAME = _HAS_TEXT = 1
_SIX_TO_EIGHT_BITS = np.array([value << 2 | value >> 4 for value in range(64)], np.uint8)


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of an Aseprite file."""

    kind: int  # IMAGE, GROUP or TILEMAP
    parent: int  # number of the enclosing group, or ROOT
    visible: bool  # False also in hidden groups and for reference layers
    background: bool
    blend_mode: int
    opacity: int
    tileset: int  # tileset id for tilemaps, else 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class CelImage:
    """The pixels of a cel, encoded as in the file: `height` rows of `width` pixels."""

    width: int
    height: int
    data: memoryview
    packed: bool  # zlib-compressed


@dataclass(frozen=True, slots=True)
class Tilemap:
    """The tiles of a cel on a tilemap layer."""

    columns: int  # tiles
    rows: int
    bits: int  # per tile number
    masks: tuple[int, int, int, int]  # bit masks for tile number, x, y and diagonal flip
    data: memoryview  # compressed tile numbers


@dataclass(frozen=True, slots=True)
class Tileset:
    """Tiles of equal size for tilemaps."""

    count: int
    width: int
    height: int
    zero_is_empty: bool
    data: memoryview | None  # compressed pixels, tiles stacked vertically; None for external tiles


@dataclass(frozen=True, slots=True)
class Cel:
    """The content of one layer in one frame. x, y: top left corner on the canvas."""

    x: int
    y: int
    opacity: int
    z_index: int
    content: CelImage | Tilemap


@dataclass(frozen=True, slots=True)
class Tag:
    """A named range of frames: an animation."""

    first: int  # frame number from 0, unchecked: may lie beyond the last frame
    last: int  # likewise
    name: str
    direction: int = 0  # Aseprite's number for the playback direction; 0 plays forward


@dataclass(eq=False, slots=True)
class Frame:
    """A frame of an Aseprite file. palette: uint8 [256, 4]. cels: by layer number."""

    palette: Rgba
    duration_ms: int
    cels: dict[int, Cel] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)  # user data of cels, by layer number


@dataclass(eq=False, slots=True)
class AseFile:
    """A parsed Aseprite file."""

    width: int
    height: int
    depth: int  # bits per pixel: 32 (RGBA), 16 (grey, alpha) or 8 (indexed)
    frame_count: int  # frames in the file; `frames` may hold only the first frames
    transparent: int  # palette index of transparent pixels, except on background layers
    opacity_valid: bool  # whether layers have an opacity
    groups_blend: bool  # whether groups have opacity and blend mode
    layers: list[Layer] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    tilesets: dict[int, Tileset] = field(default_factory=dict)
    tags: list[Tag] = field(default_factory=list)
    text: dict[int, str] = field(default_factory=dict)  # user data of the sprite, at ROOT
    layer_texts: dict[int, str] = field(default_factory=dict)  # user data by layer number
    tag_texts: dict[int, str] = field(default_factory=dict)  # user data by index in `tags`


def parse(data: bytes) -> AseFile:
    """Parse the bytes of an Aseprite file. Raises UnreadableFile for damaged, too large and foreign files."""
    if not data:
        raise UnreadableFile("unreadable", "empty: the file has no bytes")
    if data.startswith(b"ASEF"):
        raise UnreadableFile("unsupported", "an Adobe swatch file: it holds colours and no picture")
    if data[4:6] != _MAGIC.to_bytes(2, "little"):
        raise UnreadableFile("unreadable", "not an Aseprite file")
    if len(data) < _HEADER_BYTES:
        raise UnreadableFile("unreadable", CUT_OFF)
    head = ChunkReader(memoryview(data))
    size, frames, width, height, depth, flags, transparent = head.read("<I2xHHHHI10xB")
    if size > len(data):
        raise UnreadableFile("unreadable", CUT_OFF)
    check_size(width, height)
    if not (frames and width and height):
        raise damaged("the image has no pixels")
    if depth not in (8, 16, 32):
        raise damaged(f"{depth} bits per pixel instead of 8, 16 or 32")
    read = min(frames, MAX_FRAMES, max(MAX_PIXELS // (width * height), 1))
    ase = AseFile(width, height, depth, frames, transparent, bool(flags & _OPACITY_VALID), bool(flags & _GROUPS_BLEND))
    _Parser(ase).read_frames(memoryview(data)[_HEADER_BYTES:], read)
    return ase


class _Parser:
    """Reads frames and their chunks from the bytes of an Aseprite file into an AseFile."""

    def __init__(self, ase: AseFile) -> None:
        self._ase = ase
        self._palettes = FramePalette()
        self._open_groups: list[int] = []
        self._chunks_left = _MAX_CHUNKS
        self._tile_pixels_left = LARGEST_SIDE**2
        self._owners: list[tuple[dict[int, str], int]] = []  # dict and key for the texts of the next user data chunks

    def read_frames(self, data: memoryview, count: int) -> None:
        start = 0
        for _ in range(count):
            if start + _FRAME_BYTES > len(data):
                raise UnreadableFile("unreadable", CUT_OFF)
            size, magic, old_count, duration_ms, new_count = ChunkReader(data[start:]).read("<IHHH2xI")
            if magic != _FRAME_MAGIC or size < _FRAME_BYTES:
                raise damaged("a frame has no valid header")
            if start + size > len(data):
                raise UnreadableFile("unreadable", CUT_OFF)
            self._ase.frames.append(Frame(self._palettes.current, duration_ms))
            self._read_chunks(data[start + _FRAME_BYTES : start + size], new_count or old_count)
            self._ase.frames[-1].palette = self._palettes.current
            start += size
        if self._ase.depth == 8 and not self._palettes.is_set:
            raise damaged("the palette is missing")

    def _read_chunks(self, data: memoryview, count: int) -> None:
        """Read the `count` chunks of a frame. Raises UnreadableFile unless the chunks fill `data` exactly."""
        self._chunks_left -= count
        if self._chunks_left < 0:
            raise UnreadableFile("refused", f"more than {_MAX_CHUNKS:,} chunks")
        start = 0
        for _ in range(count):
            size, kind = ChunkReader(data[start:]).read("<IH")
            if not _CHUNK_BYTES <= size <= len(data) - start:
                raise damaged("the chunks of a frame do not fit into the frame")
            self._read_chunk(kind, ChunkReader(data[start + _CHUNK_BYTES : start + size]))
            start += size
        if start != len(data):
            raise damaged("a frame has data after the last chunk")

    def _read_chunk(self, kind: int, chunk: ChunkReader) -> None:
        match kind:
            case 0x2004:
                self._read_layer(chunk)
                self._owners = [(self._ase.layer_texts, len(self._ase.layers) - 1)]
            case 0x2005:
                number = self._read_cel(chunk)
                self._owners = [(self._ase.frames[-1].texts, number)]
            case 0x2018:
                before = len(self._ase.tags)
                self._read_tags(chunk)
                self._owners = [(self._ase.tag_texts, number) for number in range(before, len(self._ase.tags))]
            case 0x2019:
                self._palettes.read_modern(chunk)
                self._owners = [(self._ase.text, ROOT)]
            case 0x2020:
                self._read_user_data(chunk)
            case 0x2022:
                self._owners = []  # the texts of slices are not read
            case 0x0004 | 0x0011:
                self._palettes.read_old(chunk, bits=8 if kind == 0x0004 else 6)
            case 0x2023:
                self._read_tileset(chunk)
                self._owners = []

    def _read_user_data(self, chunk: ChunkReader) -> None:
        """Store the text of a user data chunk, which belongs to the sprite, or to a layer, cel or tag before it."""
        (flags,) = chunk.read("<I")
        if self._owners:
            texts, key = self._owners.pop(0)
            if flags & _HAS_TEXT:
                texts[key] = chunk.read_text()

    def _read_layer(self, chunk: ChunkReader) -> None:
        flags, kind, level, blend_mode, opacity = chunk.read("<HHH4xHB3x")
        name = chunk.read_text()
        if kind not in (IMAGE, GROUP, TILEMAP):
            raise UnreadableFile("unsupported", "a layer type of a newer Aseprite: export the file as PNG")
        ase, number = self._ase, len(self._ase.layers)
        if number >= _MAX_LAYERS:
            raise UnreadableFile("refused", f"more than {_MAX_LAYERS:,} layers")
        if level > len(self._open_groups):
            raise damaged("a layer is in a missing group")
        del self._open_groups[level:]
        parent = self._open_groups[-1] if level else ROOT
        background = bool(flags & _BACKGROUND)
        blends = not background and (kind != GROUP or ase.groups_blend)
        visible = bool(flags & _VISIBLE) and not flags & _REFERENCE and (parent == ROOT or ase.layers[parent].visible)
        tileset = chunk.read("<I")[0] if kind == TILEMAP else 0
        opacity = opacity if blends and ase.opacity_valid else 255
        blend_mode = blend_mode if blends else 0
        ase.layers.append(Layer(kind, parent, visible, background, blend_mode, opacity, tileset, name))
        if kind == GROUP:
            self._open_groups.append(number)
            deepest = min(_MAX_DEPTH, MAX_PIXELS // (ase.width * ase.height))
            if ase.groups_blend and len(self._open_groups) > deepest:
                raise UnreadableFile("refused", "layer groups are nested too deep")

    def _read_cel(self, chunk: ChunkReader) -> int:
        """Read a cel of the newest frame, and return the number of its layer."""
        number, x, y, opacity, kind, z_index = chunk.read("<HhhBHh5x")
        layers, frame = self._ase.layers, self._ase.frames[-1]
        if number >= len(layers) or layers[number].kind == GROUP:
            raise damaged("a cel is on a missing layer")
        if number in frame.cels:
            raise damaged("a layer has two cels in one frame")
        content: CelImage | Tilemap
        if kind in (_RAW, _PACKED):
            width, height = chunk.read("<HH")
            check_size(width, height)
            content = CelImage(width, height, chunk.read_rest(), kind == _PACKED)
        elif kind == _LINKED:
            content = self._linked(number, *chunk.read("<H"))
        elif kind == _TILES and layers[number].kind == TILEMAP:
            columns, rows, bits, tile, flip_x, flip_y, diagonal = chunk.read("<HHHIIII10x")
            check_size(columns, rows)
            content = Tilemap(columns, rows, bits, (tile, flip_x, flip_y, diagonal), chunk.read_rest())
        else:
            raise UnreadableFile("unsupported", "a cel type of a newer Aseprite: export the file as PNG")
        frame.cels[number] = Cel(x, y, opacity, z_index, content)
        return number

    def _linked(self, layer: int, frame: int) -> CelImage | Tilemap:
        """Return the content of a linked cel: the content of this layer in the earlier frame `frame`."""
        frames = self._ase.frames
        if frame >= len(frames) - 1:
            raise damaged("a cel links to a frame that does not precede the cel")
        cel = frames[frame].cels.get(layer)
        if cel is None:
            raise damaged("a cel links to a frame without a cel on this layer")
        return cel.content

    def _read_tileset(self, chunk: ChunkReader) -> None:
        number, flags, count, width, height = chunk.read("<IIIHH16x")
        chunk.read_text()
        check_size(width, height)
        if not (width and height):
            raise damaged("the tiles have no pixels")
        if flags & _EXTERNAL:
            chunk.read("<II")
        data = None
        if flags & _EMBEDDED:
            self._tile_pixels_left -= count * width * height
            if self._tile_pixels_left < 0:
                raise UnreadableFile("refused", "too large: too many pixels in the tilesets")
            data = chunk.read_bytes(*chunk.read("<I"))
        self._ase.tilesets[number] = Tileset(count, width, height, bool(flags & _ZERO_IS_EMPTY), data)

    def _read_tags(self, chunk: ChunkReader) -> None:
        (count,) = chunk.read("<H8x")
        if len(self._ase.tags) + count > _MAX_TAGS:
            raise UnreadableFile("refused", f"more than {_MAX_TAGS:,} tags")
        for _ in range(count):
            first, last, direction = chunk.read("<HHB12x")
            self._ase.tags.append(Tag(first, last, chunk.read_text(), direction))


class FramePalette:
    """The palette of the frame being parsed. A change creates a new array; earlier frames keep the old array.

    current: uint8 [256, 4], straight alpha; missing colours are transparent. is_set: whether the file has a palette.
    """

    def __init__(self) -> None:
        self.current: Rgba = np.zeros((_COLOURS, 4), np.uint8)
        self.is_set = False
        self._modern = False

    def read_modern(self, chunk: ChunkReader) -> None:
        """Update the current palette from a palette chunk (0x2019). Raises UnreadableFile."""
        size, first, last = chunk.read("<III8x")
        if size > _MAX_PALETTE:
            raise UnreadableFile("refused", f"a palette of {size:,} colours: at most {_MAX_PALETTE:,} can be read")
        if not first <= last < size:
            raise damaged("the palette entries exceed the palette size")
        self.current = self.current.copy()
        self.current[size:] = 0
        for index in range(first, min(last + 1, _COLOURS)):
            flags, *colour = chunk.read("<H4B")
            self.current[index] = colour
            if flags & _HAS_NAME:
                chunk.read_text()
        self.is_set = self._modern = True

    def read_old(self, chunk: ChunkReader, *, bits: int) -> None:
        """Update `current` from an old palette chunk with 8 or 6 bits per channel, unless a 0x2019 chunk was read."""
        if self._modern:
            return
        self.current = self.current.copy()
        index = 0
        (packets,) = chunk.read("<H")
        for _ in range(packets):
            skipped, count = chunk.read("<BB")
            index += skipped
            count = count or _COLOURS
            colours = np.frombuffer(chunk.read_bytes(3 * count), np.uint8).reshape(count, 3)
            if index + count > _COLOURS:
                raise damaged("the palette has more than 256 colours")
            if bits == 6:
                colours = _SIX_TO_EIGHT_BITS[colours & 63]
            self.current[index : index + count, :3] = colours
            self.current[index : index + count, 3] = 255
            index += count
        self.is_set = True
