"""Find the largest picture in an icon or cursor file and check its size before Pillow decodes the picture."""

from __future__ import annotations

import struct

from studio.data.files.source_files import CUT_OFF, UnreadableFile
from studio.data.images.png import MAGIC

_HEADER, _ENTRY, _BITMAP = struct.Struct("<HHH"), struct.Struct("<BBBBHHII"), struct.Struct("<IiiHH")
_LARGEST = 256  # pixels, width and height of a bitmap; larger pictures are PNG files
BITS_AT = _HEADER.size + _ENTRY.size + 14  # bytes before the bits a pixel in a file that `extract_largest` made


def extract_largest(data: bytes) -> tuple[bytes, int]:
    """Return an icon file's largest picture, a PNG or icon file, and the number of pictures. Raises UnreadableFile."""
    _, _, count = _HEADER.unpack(data[: _HEADER.size].ljust(_HEADER.size, b"\0"))
    if not count or len(data) < _HEADER.size + count * _ENTRY.size:
        raise UnreadableFile("unreadable", CUT_OFF)
    entries = [_ENTRY.unpack_from(data, _HEADER.size + number * _ENTRY.size) for number in range(count)]
    *_, length, start = max(entries, key=lambda each: ((each[0] or _LARGEST) * (each[1] or _LARGEST), each[6]))
    body = data[start : start + length]
    if len(body) < length or length < _BITMAP.size:
        raise UnreadableFile("unreadable", CUT_OFF)
    if body.startswith(MAGIC):
        return body, count
    _, width, height, _, bits = _BITMAP.unpack_from(body)
    height //= 2  # the mask of transparent pixels lies above the colours
    if not (0 < width <= _LARGEST and 0 < height <= _LARGEST):
        raise UnreadableFile("unreadable", "damaged: invalid icon header")
    start = _HEADER.size + _ENTRY.size
    entry = _ENTRY.pack(width % _LARGEST, height % _LARGEST, 0, 0, 1, bits, length, start)
    return _HEADER.pack(0, 1, 1) + entry + body, count
