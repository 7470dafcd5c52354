"""Render the frames of an Aseprite file: unpack the cels and blend them, layer by layer and group by group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.aseprite.blend import BLEND_FUNCTIONS, bands, draw
from studio.data.aseprite.fields import damaged, inflate
from studio.data.aseprite.file import GROUP, ROOT, AseFile, Cel, CelImage, Frame, Layer, Tilemap, Tileset
from studio.data.files.source_files import UnreadableFile

_MAX_DRAWN = 1 << 28  # pixels in cels and groups, summed over the frames

RawPixels = NDArray[np.uint8]  # as in the file, [..., C]: C is 1 for indexed, 2 for grey and alpha, 4 for RGBA


class FramePainter:
    """Renders the frames of an Aseprite file. Caches decoded tiles and limits the total number of drawn pixels."""

    def __init__(self, ase: AseFile) -> None:
        self._ase = ase
        self._channels = ase.depth // 8
        self._pixels_left = _MAX_DRAWN
        self._layers_by_group = _layers_by_group(ase)
        self._tiles: dict[int, RawPixels] = {}

    def render(self, frame: Frame) -> Rgba:
        """Render a frame: uint8 [H, W, 4], straight alpha. Raises UnreadableFile for damaged or too many pixels."""
        drawn = set(frame.cels)
        for number in frame.cels:
            while (number := self._ase.layers[number].parent) != ROOT:
                drawn.add(number)
        canvas = np.zeros((self._ase.height, self._ase.width, 4), np.uint8)
        self._draw_group(canvas, frame, ROOT, drawn)
        return canvas

    def _draw_group(self, canvas: Rgba, frame: Frame, parent: int, drawn: set[int]) -> None:
        """Draw the layers of the group `parent` from bottom to top. drawn: layers and groups with content."""
        ordered = []
        for position, number in self._layers_by_group.get(parent, ()):
            if number in drawn:
                z_index = frame.cels[number].z_index if number in frame.cels else 0
                ordered.append((position + z_index, z_index, number))
        for _, _, number in sorted(ordered):
            layer = self._ase.layers[number]
            if layer.kind == GROUP:
                self._count_pixels(canvas.shape[0] * canvas.shape[1])
                group = np.zeros_like(canvas)
                self._draw_group(group, frame, number, drawn)
                draw(canvas, group, layer.opacity, _mode(layer))
            else:
                self._draw_cel(canvas, layer, frame.cels[number], self._palette_of(frame, layer))

    def _draw_cel(self, canvas: Rgba, layer: Layer, cel: Cel, palette: Rgba) -> None:
        width, height = self._size(layer, cel.content)
        left, right = max(cel.x, 0), min(cel.x + width, canvas.shape[1])
        top, bottom = max(cel.y, 0), min(cel.y + height, canvas.shape[0])
        opacity = round(cel.opacity * layer.opacity / 255)
        if left >= right or top >= bottom or not opacity:
            return
        self._count_pixels(width * height)
        content = self._decode(layer, cel.content)
        columns = np.arange(left - cel.x, right - cel.x)
        for band in bands(bottom - top, right - left):
            rows = np.arange(top - cel.y, bottom - cel.y)[band]
            if isinstance(content, TileGrid):
                raw, clear = content.pixels_at(rows, columns)
                rgba = _to_rgba(raw, palette)
                rgba[clear] = 0
            else:
                rgba = _to_rgba(content[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1], palette)
            draw(canvas[top:bottom, left:right][band], rgba, opacity, _mode(layer))

    def _size(self, layer: Layer, content: CelImage | Tilemap) -> tuple[int, int]:
        """Return (width, height) of a cel in pixels; (0, 0) for a tilemap with tiles in another file."""
        if isinstance(content, CelImage):
            return content.width, content.height
        tileset = self._tileset(layer)
        if tileset.data is None:
            return 0, 0
        return content.columns * tileset.width, content.rows * tileset.height

    def _decode(self, layer: Layer, content: CelImage | Tilemap) -> RawPixels | TileGrid:
        if isinstance(content, Tilemap):
            tileset = self._tileset(layer)
            if layer.tileset not in self._tiles:
                self._tiles[layer.tileset] = decode_tiles(tileset, self._channels)
            return TileGrid(content, self._tiles[layer.tileset], zero_is_empty=tileset.zero_is_empty)
        shape = (content.height, content.width, self._channels)
        length = content.height * content.width * self._channels
        if content.packed:
            return np.frombuffer(inflate(content.data, length), np.uint8).reshape(shape)
        if len(content.data) < length:
            raise damaged("the number of pixels does not match the size")
        return np.frombuffer(content.data, np.uint8, length).reshape(shape)

    def _tileset(self, layer: Layer) -> Tileset:
        tileset = self._ase.tilesets.get(layer.tileset)
        if tileset is None:
            raise damaged("a tileset is missing")
        return tileset

    def _palette_of(self, frame: Frame, layer: Layer) -> Rgba:
        if layer.background:
            return frame.palette
        palette = frame.palette.copy()
        palette[self._ase.transparent] = 0
        return palette

    def _count_pixels(self, pixels: int) -> None:
        self._pixels_left -= pixels
        if self._pixels_left < 0:
            raise UnreadableFile("refused", f"too large: layers with more than {_MAX_DRAWN:,} pixels")


def _layers_by_group(ase: AseFile) -> dict[int, list[tuple[int, int]]]:
    """Map each group to its visible layers as (position, layer number); lower positions are drawn first.

    A cel's z-index later shifts the position. If the file does not blend groups, the root group holds all layers, and
    position equals layer number.
    """
    levels: dict[int, list[tuple[int, int]]] = {}
    siblings: dict[int, int] = {}
    for number, layer in enumerate(ase.layers):
        position = siblings[layer.parent] = siblings.get(layer.parent, -1) + 1
        if not layer.visible:
            continue
        if ase.groups_blend:
            levels.setdefault(layer.parent, []).append((position, number))
        elif layer.kind != GROUP:
            levels.setdefault(ROOT, []).append((number, number))
    return levels


def _mode(layer: Layer) -> int:
    """Return the index of a layer's blend mode in BLEND_FUNCTIONS; 0 (normal) for an unknown mode."""
    return layer.blend_mode if layer.blend_mode < len(BLEND_FUNCTIONS) else 0


def _to_rgba(raw: RawPixels, palette: Rgba) -> Rgba:
    """Convert pixels [H, W, C] in the file's colour mode to RGBA, uint8 [H, W, 4]. palette: for indexed pixels."""
    match raw.shape[-1]:
        case 1:
            return palette[raw[..., 0]]
        case 2:
            return raw[..., [0, 0, 0, 1]]
    return raw


class TileGrid:
    """Decompressed tile numbers of a tilemap, to read pixels. tiles: [N, height, width, C]. Raises UnreadableFile."""

    def __init__(self, tilemap: Tilemap, tiles: RawPixels, *, zero_is_empty: bool) -> None:
        if tilemap.bits not in (8, 16, 32):
            raise UnreadableFile("unsupported", f"tile numbers of {tilemap.bits} bits can't be read")
        dtype = np.dtype(f"<u{tilemap.bits // 8}")
        packed = inflate(tilemap.data, tilemap.rows * tilemap.columns * dtype.itemsize)
        self._cells = np.frombuffer(packed, dtype).reshape(tilemap.rows, tilemap.columns)
        self._masks = tilemap.masks
        self._tiles = tiles
        self._zero_is_empty = zero_is_empty

    def pixels_at(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> tuple[RawPixels, NDArray[np.bool_]]:
        """Return the pixels where `rows` and `columns` cross, [H, W, C], and a mask of empty pixels, bool [H, W].

        A tile is flipped along its diagonal first (x and y swap), then horizontally and vertically. Pixels that a
        flipped non-square tile does not cover are empty.
        """
        count, height, width, _ = self._tiles.shape
        cells = self._cells[np.ix_(rows // height, columns // width)].astype(np.int64)
        index, empty = self._index(cells)
        if (~empty & (index >= count)).any():
            raise damaged("a tile number exceeds the tileset")
        if empty.all():  # the tileset may have no tiles
            return np.zeros((*empty.shape, self._tiles.shape[-1]), np.uint8), empty
        flip_x, flip_y, diagonal = ((mask != 0) & (cells & mask == mask) for mask in self._masks[1:])
        y, x = np.broadcast_arrays((rows % height)[:, None], columns % width)
        x, y = np.where(flip_x, width - 1 - x, x), np.where(flip_y, height - 1 - y, y)
        x, y = np.where(diagonal, y, x), np.where(diagonal, x, y)
        empty |= (x >= width) | (y >= height)
        index, y, x = (np.where(empty, 0, numbers) for numbers in (index, y, x))
        return self._tiles[index, y, x], empty

    def _index(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Extract tile numbers, int64 [H, W], and a mask of empty cells, bool [H, W], from `cells` with flip bits."""
        mask = self._masks[0]
        index = (cells & mask) >> max((mask & -mask).bit_length() - 1, 0)
        empty = cells & mask == mask  # written by beta versions of Aseprite
        if self._zero_is_empty:
            empty |= index == 0
        return index, empty


def decode_tiles(tileset: Tileset, channels: int) -> RawPixels:
    """Decompress the tiles of a tileset: uint8 [N, H, W, C]. Raises UnreadableFile for damaged pixels."""
    shape = (tileset.count, tileset.height, tileset.width, channels)
    packed = memoryview(b"") if tileset.data is None else tileset.data
    return np.frombuffer(inflate(packed, int(np.prod(shape))), np.uint8).reshape(shape)
