"""The tilemaps of Aseprite files: a grid of numbers, and the tiles that they stand for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studio.data.aseprite.fields import damaged, unpack
from studio.data.aseprite.file import Tilemap, Tileset
from studio.data.files.source_files import UnreadableFile

Raw = NDArray[np.uint8]  # pixels as in the file, [..., C]: C is 1 for indexed, 2 for grey and alpha, 4 for RGBA


class TileGrid:
    """A tilemap that pixels can be cut out of."""

    def __init__(self, tilemap: Tilemap, tiles: Raw, *, zero_is_empty: bool) -> None:
        """tiles: [N, tile height, tile width, C]. Raises Refused for damaged numbers."""
        if tilemap.bits not in (8, 16, 32):
            raise UnreadableFile("unsupported", f"it has tiles of {tilemap.bits} bits, which are not read")
        dtype = np.dtype(f"<u{tilemap.bits // 8}")
        packed = unpack(tilemap.data, tilemap.rows * tilemap.columns * dtype.itemsize)
        self._cells = np.frombuffer(packed, dtype).reshape(tilemap.rows, tilemap.columns)
        self._masks = tilemap.masks
        self._tiles = tiles
        self._zero_is_empty = zero_is_empty

    def cut(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> tuple[Raw, NDArray[np.bool_]]:
        """The pixels of those rows and columns, [H, W, C], and where they are of no tile, [H, W].

        A tile is mirrored along its diagonal first (x and y change places) and then left to right and top to bottom.
        What a mirrored tile that is no square leaves open is of no tile.
        """
        count, height, width, _ = self._tiles.shape
        cells = self._cells[np.ix_(rows // height, columns // width)].astype(np.int64)
        index, empty = self._index(cells)
        if (~empty & (index >= count)).any():
            raise damaged("a tile is not in its tileset")
        if empty.all():  # a tileset may be without tiles
            return np.zeros((*empty.shape, self._tiles.shape[-1]), np.uint8), empty
        flip_x, flip_y, diagonal = ((mask != 0) & (cells & mask == mask) for mask in self._masks[1:])
        y, x = np.broadcast_arrays((rows % height)[:, None], columns % width)
        x, y = np.where(flip_x, width - 1 - x, x), np.where(flip_y, height - 1 - y, y)
        x, y = np.where(diagonal, y, x), np.where(diagonal, x, y)
        empty |= (x >= width) | (y >= height)
        index, y, x = (np.where(empty, 0, numbers) for numbers in (index, y, x))
        return self._tiles[index, y, x], empty

    def _index(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Which tile each cell shows, and which cells show none."""
        mask = self._masks[0]
        index = (cells & mask) >> max((mask & -mask).bit_length() - 1, 0)
        empty = cells & mask == mask  # as betas of Aseprite wrote
        if self._zero_is_empty:
            empty |= index == 0
        return index, empty


def unpacked_tiles(tileset: Tileset, channels: int) -> Raw:
    """All tiles, [N, H, W, C]. Raises Refused for damaged ones."""
    shape = (tileset.count, tileset.height, tileset.width, channels)
    packed = memoryview(b"") if tileset.data is None else tileset.data
    return np.frombuffer(unpack(packed, int(np.prod(shape))), np.uint8).reshape(shape)
