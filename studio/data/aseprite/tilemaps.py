"""Decode tilemaps in Aseprite files: grids with tile numbers, and the pixels of tiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studio.data.aseprite.fields import damaged, inflate
from studio.data.aseprite.file import Tilemap, Tileset
from studio.data.files.source_files import UnreadableFile

RawPixels = NDArray[np.uint8]  # as in the file, [..., C]: C is 1 for indexed, 2 for grey and alpha, 4 for RGBA


class TileGrid:
    """A tilemap with decompressed tile numbers.

    tiles: [N, tile height, tile width, C]. Raises UnreadableFile for damaged numbers.
    """

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
        """Return the pixels at these rows and columns, [H, W, C], and a mask of empty pixels, bool [H, W].

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
        """Return tile numbers int64 [H, W] and a mask of empty cells bool [H, W]."""
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
