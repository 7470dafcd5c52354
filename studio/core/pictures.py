"""Join sprites into a picture, split a picture into sprites, find empty sprites, and compare pixels by a digest."""

from __future__ import annotations

import hashlib
import math
import struct
import zlib

import numpy as np
from PIL import Image

from studio.core.arrays import Mask, Rgba

# Exceptions that Pillow raises for damaged pictures and for decompression bombs.
PILLOW_ERRORS = (
    OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, AttributeError, ArithmeticError, AssertionError,
    RuntimeError, struct.error, zlib.error, Image.DecompressionBombError,
)  # fmt: skip


def tile(sprites: Rgba, columns: int) -> Rgba:
    """Join uint8 [N, H, W, C] row by row into one picture, uint8 [rows * H, columns * W, C]. Empty cells are 0."""
    count, height, width, channels = sprites.shape
    rows = math.ceil(count / columns)
    cells = np.zeros((rows * columns, height, width, channels), np.uint8)
    cells[:count] = sprites
    picture = cells.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return picture.reshape(rows * height, columns * width, channels)


def are_filled(sprites: Rgba) -> Mask:
    """Return a mask of the sprites with a visible pixel: bool [N]. sprites: uint8 [N, H, W, 4]."""
    return np.asarray(sprites[..., 3].any((1, 2)))


def pixel_digest(pixels: Rgba) -> bytes:
    """Return a digest of a picture's pixels, for comparisons of pictures of equal size."""
    return hashlib.blake2b(np.ascontiguousarray(pixels).data, digest_size=16).digest()


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """Return a chunk of a PNG file, with its length and checksum. kind: four letters."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def untile(picture: Rgba, size: int) -> Rgba:
    """Split a picture made by `tile` into its cells, row by row: uint8 [rows * columns, size, size, 4]."""
    rows, columns = picture.shape[0] // size, picture.shape[1] // size
    cells = picture[: rows * size, : columns * size].reshape(rows, size, columns, size, 4)
    return np.ascontiguousarray(cells.swapaxes(1, 2).reshape(-1, size, size, 4))
