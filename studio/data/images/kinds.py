"""What kind of file some bytes begin: a picture that is read, or a kind that is known and not read."""

from __future__ import annotations

import struct
from dataclasses import dataclass

KIND_SUFFIXES = {
    "PNG": (".png", ".apng"),
    "GIF": (".gif",),
    "BMP": (".bmp",),
    "WEBP": (".webp",),
    "JPEG": (".jpg", ".jpeg"),
    "TGA": (".tga",),
    "TIFF": (".tif", ".tiff"),
}
PICTURE_SUFFIXES = frozenset({suffix for suffixes in KIND_SUFFIXES.values() for suffix in suffixes})
HEAD_BYTES = 64  # what `sniff` looks at
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})  # bytes
_TIFF_MAGICS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

# Kinds that people keep beside their sprites and that are told, so that the reason can name them.
_UNREAD_KINDS = (
    (b"8BPS", "a Photoshop file"),
    (b"gimp xcf", "a GIMP file"),
    (b"%PDF", "a PDF file"),
    (b"\0\0\1\0", "an icon file"),
    (b"DDS ", "a DDS texture"),
    (b"\0\0\0\x0cjP", "a JPEG 2000 picture"),
    (b"qoif", "a QOI picture"),
)
# Drawings that the studio does not read and that an artist may miss among the sprites.
UNREAD_SUFFIXES = {
    ".avif": "an AVIF picture",
    ".clip": "a Clip Studio file",
    ".dds": "a DDS texture",
    ".heic": "a HEIC picture",
    ".ico": "an icon file",
    ".kra": "a Krita file",
    ".pcx": "a PCX picture",
    ".psd": "a Photoshop file",
    ".pyxel": "a Pyxel Edit file",
    ".svg": "a vector drawing",
    ".xcf": "a GIMP file",
}


@dataclass(frozen=True, slots=True)
class Header:
    """kind: Pillow's word for the format. width, height: pixels; 0 when only Pillow can tell."""

    kind: str
    width: int = 0
    height: int = 0


def sniff(data: bytes, suffix: str) -> Header | None:
    """The kind and size of the picture that `data` begin, or None. TGA has no magic: it is taken at its `suffix`."""
    for magic, read in _READERS:
        if data.startswith(magic):
            return read(data)
    return _tga(data) if suffix == ".tga" else None


def unread_kind(data: bytes) -> str:
    """What `data` are, in words, when they are a known kind that the studio does not read; else an empty text."""
    if data[4:8] == b"ftyp" and data[8:12] in (b"avif", b"avis", b"heic", b"heix", b"mif1"):
        return "an AVIF or HEIC picture"
    return next((words for magic, words in _UNREAD_KINDS if data.startswith(magic)), "")


def is_aseprite(data: bytes) -> bool:
    return data[4:6] == b"\xe0\xa5"


def _png(data: bytes) -> Header:
    return Header("PNG", *_unpack(">16xII", data)) if data[12:16] == b"IHDR" else Header("PNG")


def _gif(data: bytes) -> Header | None:
    return Header("GIF", *_unpack("<6xHH", data)) if data[:6] in (b"GIF87a", b"GIF89a") else None


def _bmp(data: bytes) -> Header | None:
    (length,) = _unpack("<14xI", data)
    if length not in _BMP_HEADERS:
        return None
    width, height = _unpack("<18xHH" if length == 12 else "<18xii", data)
    return Header("BMP", abs(width), abs(height))


def _webp(data: bytes) -> Header | None:
    if data[8:12] != b"WEBP":
        return None
    if data[12:16] == b"VP8X":
        low, high, low2, high2 = _unpack("<24xHBHB", data)
        return Header("WEBP", (low | high << 16) + 1, (low2 | high2 << 16) + 1)
    if data[12:16] == b"VP8L":
        (bits,) = _unpack("<21xI", data)
        return Header("WEBP", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    width, height = _unpack("<26xHH", data)
    return Header("WEBP", width & 0x3FFF, height & 0x3FFF)


def _jpeg(_: bytes) -> Header:
    return Header("JPEG")


def _tiff(data: bytes) -> Header | None:
    return Header("TIFF") if data[:4] in _TIFF_MAGICS else None


def _tga(data: bytes) -> Header | None:
    if len(data) < 18:
        return None
    _, mapped, kind, _, _, _, _, _, width, height, depth, _ = struct.unpack_from("<BBBHHBHHHHBB", data)
    lawful = mapped in (0, 1) and kind in (1, 2, 3, 9, 10, 11) and depth in (8, 16, 24, 32) and width and height
    return Header("TGA", width, height) if lawful else None


def _unpack(layout: str, data: bytes) -> tuple[int, ...]:
    """Fields of a header; zeros where the file ends before them, which the decoder will then complain about."""
    need = struct.calcsize(layout)
    return struct.unpack_from(layout, data if len(data) >= need else data.ljust(need, b"\0"))


_READERS = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"GIF8", _gif),
    (b"BM", _bmp),
    (b"RIFF", _webp),
    (b"\xff\xd8\xff", _jpeg),
    (b"II", _tiff),
    (b"MM", _tiff),
)
