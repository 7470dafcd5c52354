"""The segments of a JPEG file: how it is to be turned, and the file without what has nothing to do with its pixels."""

from __future__ import annotations

import struct

import numpy as np

from studio.core.events import Rgba

_START_OF_PIXELS = 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length
_KEPT = frozenset({0xE0, 0xEE})  # of the application segments: JFIF, and Adobe's, which says how colours are stored
_ORIENTATION = 0x0112


def strip(data: bytes) -> tuple[bytes, int]:
    """The file without comments, profiles and EXIF, and its EXIF orientation: 1..8, 1 being upright.

    What can't be followed is left as it is, for the decoder to complain about.
    """
    kept, orientation, start = [data[:2]], 1, 2
    while start + 4 <= len(data) and data[start] == 0xFF and data[start + 1] != _START_OF_PIXELS:
        marker = data[start + 1]
        if marker == 0xFF:  # fills up
            start += 1
            continue
        end = start + 2 if marker in _ALONE else start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")
        segment = data[start:end]
        if marker == 0xE1 and segment[4:10] == b"Exif\0\0":
            orientation = _orientation(segment[10:])
        if marker in _KEPT or not (0xE0 <= marker <= 0xEF or marker == 0xFE):
            kept.append(segment)
        start = end
    return b"".join([*kept, data[start:]]), orientation


def _orientation(exif: bytes) -> int:
    """The entry in the first directory; 1 where there is none or it is damaged."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None or len(exif) < 8:
        return 1
    (start,) = struct.unpack_from(f"{order}I", exif, 4)
    if start + 2 > len(exif):
        return 1
    (count,) = struct.unpack_from(f"{order}H", exif, start)
    for place in range(start + 2, min(start + 2 + 12 * count, len(exif) - 11), 12):
        tag, kind, _, value = struct.unpack_from(f"{order}HHIH", exif, place)
        if tag == _ORIENTATION and kind == 3:
            return int(value) if 1 <= value <= 8 else 1
    return 1


def upright(rgba: Rgba, orientation: int) -> Rgba:
    """Turn and mirror uint8 [H, W, 4] so that it is seen as an EXIF orientation of 1..8 means it."""
    if orientation >= 5:
        rgba = rgba.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        rgba = rgba[::-1]
    if orientation in (2, 3, 6, 7):
        rgba = rgba[:, ::-1]
    return np.ascontiguousarray(rgba)
