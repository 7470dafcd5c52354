"""The frames of an Aseprite file as pictures: cels unpacked and drawn over one another, group by group."""

from __future__ import annotations

import numpy as np

from studio.core.arrays import Rgba
from studio.data.aseprite.blend import MIXTURES, bands, draw
from studio.data.aseprite.fields import damaged, unpack
from studio.data.aseprite.file import GROUP, ROOT, AseFile, Cel, Frame, Image, Layer, Tilemap, Tileset
from studio.data.aseprite.tilemaps import Raw, TileGrid, unpacked_tiles
from studio.data.files.source_files import UnreadableFile

_MOST_DRAWN = 1 << 28  # pixels of cels and groups, over all frames of a file


class Painter:
    """Draws the frames of one file. It keeps the tiles that it unpacked, and knows how much it may still draw."""

    def __init__(self, ase: AseFile) -> None:
        self._ase = ase
        self._channels = ase.depth // 8
        self._left = _MOST_DRAWN
        self._levels = _levels(ase)
        self._tiles: dict[int, Raw] = {}

    def picture(self, frame: Frame) -> Rgba:
        """Straight alpha, uint8 [H, W, 4]. Raises Refused for damaged pixels, and when there is too much to draw."""
        drawn = set(frame.cels)
        for number in frame.cels:
            while (number := self._ase.layers[number].parent) != ROOT:
                drawn.add(number)
        canvas = np.zeros((self._ase.height, self._ase.width, 4), np.uint8)
        self._draw_level(canvas, frame, ROOT, drawn)
        return canvas

    def _draw_level(self, canvas: Rgba, frame: Frame, parent: int, drawn: set[int]) -> None:
        """Draw the layers of one group, those of `drawn` alone, from the lowest up."""
        ordered = []
        for place, number in self._levels.get(parent, ()):
            if number in drawn:
                z_index = frame.cels[number].z_index if number in frame.cels else 0
                ordered.append((place + z_index, z_index, number))
        for _, _, number in sorted(ordered):
            layer = self._ase.layers[number]
            if layer.kind == GROUP:
                self._spend(canvas.shape[0] * canvas.shape[1])
                group = np.zeros_like(canvas)
                self._draw_level(group, frame, number, drawn)
                draw(canvas, group, layer.opacity, _mode(layer))
            else:
                self._draw_cel(canvas, layer, frame.cels[number], self._palette(frame, layer))

    def _draw_cel(self, canvas: Rgba, layer: Layer, cel: Cel, palette: Rgba) -> None:
        width, height = self._size(layer, cel.content)
        left, right = max(cel.x, 0), min(cel.x + width, canvas.shape[1])
        top, bottom = max(cel.y, 0), min(cel.y + height, canvas.shape[0])
        opacity = round(cel.opacity * layer.opacity / 255)
        if left >= right or top >= bottom or not opacity:
            return
        self._spend(width * height)
        content = self._unpacked(layer, cel.content)
        columns = np.arange(left - cel.x, right - cel.x)
        for band in bands(bottom - top, right - left):
            rows = np.arange(top - cel.y, bottom - cel.y)[band]
            if isinstance(content, TileGrid):
                raw, clear = content.cut(rows, columns)
                rgba = _to_rgba(raw, palette)
                rgba[clear] = 0
            else:
                rgba = _to_rgba(content[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1], palette)
            draw(canvas[top:bottom, left:right][band], rgba, opacity, _mode(layer))

    def _size(self, layer: Layer, content: Image | Tilemap) -> tuple[int, int]:
        """(width, height) in pixels; none of them where the tiles are in another file."""
        if isinstance(content, Image):
            return content.width, content.height
        tileset = self._tileset(layer)
        if tileset.data is None:
            return 0, 0
        return content.columns * tileset.width, content.rows * tileset.height

    def _unpacked(self, layer: Layer, content: Image | Tilemap) -> Raw | TileGrid:
        if isinstance(content, Tilemap):
            tileset = self._tileset(layer)
            if layer.tileset not in self._tiles:
                self._tiles[layer.tileset] = unpacked_tiles(tileset, self._channels)
            return TileGrid(content, self._tiles[layer.tileset], zero_is_empty=tileset.zero_is_empty)
        shape = (content.height, content.width, self._channels)
        length = content.height * content.width * self._channels
        if content.packed:
            return np.frombuffer(unpack(content.data, length), np.uint8).reshape(shape)
        if len(content.data) < length:
            raise damaged("its pixels are more or fewer than its size says")
        return np.frombuffer(content.data, np.uint8, length).reshape(shape)

    def _tileset(self, layer: Layer) -> Tileset:
        tileset = self._ase.tilesets.get(layer.tileset)
        if tileset is None:
            raise damaged("a tileset is missing")
        return tileset

    def _palette(self, frame: Frame, layer: Layer) -> Rgba:
        if layer.background:
            return frame.palette
        palette = frame.palette.copy()
        palette[self._ase.transparent] = 0
        return palette

    def _spend(self, pixels: int) -> None:
        self._left -= pixels
        if self._left < 0:
            raise UnreadableFile("refused", f"too large: its layers have more than {_MOST_DRAWN:,} pixels to draw")


def _levels(ase: AseFile) -> dict[int, list[tuple[int, int]]]:
    """(place, number) of the layers to draw, by their group. The place is what the z-index of a cel is added to.

    All are at the root, with their number for the place, where the file does not ask for groups to be drawn apart.
    """
    levels: dict[int, list[tuple[int, int]]] = {}
    siblings: dict[int, int] = {}
    for number, layer in enumerate(ase.layers):
        place = siblings[layer.parent] = siblings.get(layer.parent, -1) + 1
        if not layer.shown:
            continue
        if ase.groups_blend:
            levels.setdefault(layer.parent, []).append((place, number))
        elif layer.kind != GROUP:
            levels.setdefault(ROOT, []).append((number, number))
    return levels


def _mode(layer: Layer) -> int:
    """Its blend mode, or normal where that is not known."""
    return layer.blend_mode if layer.blend_mode < len(MIXTURES) else 0


def _to_rgba(raw: Raw, palette: Rgba) -> Rgba:
    """[H, W, C] as in the file -> [H, W, 4]."""
    match raw.shape[-1]:
        case 1:
            return palette[raw[..., 0]]
        case 2:
            return raw[..., [0, 0, 0, 1]]
    return raw
