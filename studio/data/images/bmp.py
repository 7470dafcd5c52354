"""Decode BMP files of 16 and 32 bits. Pillow drops the alpha of most of these files."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.files.source_files import CUT_OFF, UnreadableFile

_UNPACKED, _MASKS, _FOUR_MASKS = 0, 3, 6  # kinds of compression: BI_RGB, BI_BITFIELDS, BI_ALPHABITFIELDS
_HEADER_BYTES = frozenset({40, 52, 56, 108, 124})
_FIRST_MASK = 54  # bytes before the masks: the file header has 14, the oldest header has 40
_DECLARES_ALPHA = 56  # bytes of the shortest header with an alpha mask
_USUAL_MASKS = {16: (0x7C00, 0x3E0, 0x1F), 32: (0xFF0000, 0xFF00, 0xFF)}


def decode_bmp(data: bytes) -> Rgba | None:
    """Decode a BMP file of 16 or 32 bits to uint8 [H, W, 4]; return None for other BMP files.

    The caller must check the size in the header first. Raises UnreadableFile for a truncated file. Without an alpha
    mask, the fourth byte of 32-bit pixels is alpha; 0 in every pixel means an opaque picture.
    """
    if len(data) < _FIRST_MASK:
        return None
    start, header, width, height, _, bits, packing = struct.unpack_from("<10xIIiiHHI", data)
    if header not in _HEADER_BYTES or bits not in _USUAL_MASKS or width <= 0 or not height:
        return None
    if packing not in (_UNPACKED, _MASKS, _FOUR_MASKS):
        return None
    row = (width * bits + 31) // 32 * 4  # bytes
    if len(data) < start + row * abs(height):
        raise UnreadableFile("unreadable", CUT_OFF)
    rows = np.frombuffer(data, np.uint8, row * abs(height), start).reshape(abs(height), row)
    numbers = rows.view(f"<u{bits // 8}")[:, :width].astype(np.uint32)
    if height > 0:  # the lowest row comes first
        numbers = numbers[::-1]
    colours, alpha = _masks(data, header, packing, bits)
    if alpha is None:
        rest = 0xFFFFFFFF & ~(colours[0] | colours[1] | colours[2])
        is_byte = bits == 32 and rest in (0xFF << shift for shift in (0, 8, 16, 24))
        alpha = rest if is_byte and (numbers & np.uint32(rest)).any() else 0
    full = np.full(numbers.shape, 255, np.uint8)
    return np.stack([*(_channel(numbers, mask) for mask in colours), _channel(numbers, alpha) if alpha else full], -1)


def _masks(data: bytes, header: int, packing: int, bits: int) -> tuple[tuple[int, int, int], int | None]:
    """Return the masks of red, green and blue, and the alpha mask; None for a header without an alpha mask."""
    has_alpha = packing == _FOUR_MASKS or (packing == _MASKS and header >= _DECLARES_ALPHA)
    red, green, blue, alpha = struct.unpack_from("<4I", data.ljust(_FIRST_MASK + 16, b"\0"), _FIRST_MASK)
    if packing == _UNPACKED or not red | green | blue:
        return _USUAL_MASKS[bits], None
    return (red, green, blue), alpha if has_alpha else None


def _channel(numbers: NDArray[np.uint32], mask: int) -> NDArray[np.uint8]:
    """Extract a channel of uint32 [H, W] pixels by its bit mask, scaled to 0..255; zeros for an empty mask."""
    if not mask:
        return np.zeros(numbers.shape, np.uint8)
    low = (mask & -mask).bit_length() - 1
    shift = max(low, mask.bit_length() - 8)  # keep the upper 8 bits of wider channels
    values = (numbers & np.uint32(mask)) >> np.uint32(shift)
    return (values * np.uint32(255) // np.uint32(mask >> shift)).astype(np.uint8)
