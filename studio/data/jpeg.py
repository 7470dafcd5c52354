"""JPEG files: without what has nothing to do with their pixels, and turned as their EXIF entry says."""

from __future__ import annotations

import struct

from PIL import ExifTags, Image, ImageOps

_START_OF_PIXELS = 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length
_KEPT = frozenset({0xE0, 0xEE})  # of the application segments: JFIF, and Adobe's, which says how colours are stored
_EXIF = b"Exif\0\0"
# What Pillow raises for damaged EXIF, whose numbers may be of any kind.
_DAMAGED = (OSError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error)


def strip(data: bytes) -> tuple[bytes, bytes]:
    """The file without comments, profiles and EXIF, and its EXIF block, empty where there is none.

    What can't be followed is left as it is, for the decoder to complain about. Pillow reads EXIF already when it opens
    a file, and some damage in it would lose the picture.
    """
    kept, exif, start = [data[:2]], b"", 2
    while start + 4 <= len(data) and data[start] == 0xFF and data[start + 1] != _START_OF_PIXELS:
        marker = data[start + 1]
        if marker == 0xFF:  # fills up
            start += 1
            continue
        end = start + 2 if marker in _ALONE else start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")
        segment = data[start:end]
        if marker == 0xE1 and segment[4:].startswith(_EXIF):
            exif = segment[4:]
        if marker in _KEPT or not (0xE0 <= marker <= 0xEF or marker == 0xFE):
            kept.append(segment)
        start = end
    return b"".join([*kept, data[start:]]), exif


def upright(image: Image.Image, exif: bytes) -> tuple[Image.Image, bool]:
    """A picture without EXIF of its own, as `exif` means it to be seen, and whether that turned or mirrored it.

    Damaged EXIF turns nothing, unless the entry itself is sound.
    """
    found = Image.Exif()
    try:
        found.load(exif)
        image.getexif()[ExifTags.Base.Orientation] = found.get(ExifTags.Base.Orientation, 1)
        seen = ImageOps.exif_transpose(image)
    except _DAMAGED:
        return image, False
    return seen, found.get(ExifTags.Base.Orientation, 1) in range(2, 9)
