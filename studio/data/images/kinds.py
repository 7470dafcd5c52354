"""Recognise kinds of files by their first bytes and names: pictures, and known but unsupported kinds."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

KIND_SUFFIXES = {
    "PNG": (".png", ".apng"),
    "GIF": (".gif",),
    "BMP": (".bmp",),
    "WEBP": (".webp",),
    "JPEG": (".jpg", ".jpeg"),
    "TGA": (".tga",),
    "TIFF": (".tif", ".tiff"),
    "ICO": (".ico", ".cur"),
    "QOI": (".qoi",),
    "XPM": (".xpm",),
    "PPM": (".ppm", ".pgm", ".pbm", ".pnm"),
    "PCX": (".pcx",),
}
PICTURE_SUFFIXES = frozenset({suffix for suffixes in KIND_SUFFIXES.values() for suffix in suffixes})
DRAWING_SUFFIXES = PICTURE_SUFFIXES | {".ase", ".aseprite", ".ora", ".piskel"}  # kinds of files with sprites
HEAD_BYTES = 64  # bytes that `sniff` needs
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})  # bytes
_TIFF_MAGICS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

# Unsupported kinds of files, by their first bytes.
_UNREAD_MAGICS = (
    (b"8BPS", "a Photoshop file"),
    (b"gimp xcf", "a GIMP file"),
    (b"%PDF", "a PDF file"),
    (b"DDS ", "a DDS texture"),
    (b"\xabKTX ", "a KTX texture"),
    (b"\0\0\0\x0cjP", "a JPEG 2000 picture"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL picture"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"PDN3", "a paint.net picture"),
    (b"FORM", "an IFF picture"),
    (b"PK\3\4", "a zip archive, or a drawing in a zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
)
# Unsupported drawings by suffix: an artist may miss them among the sprites.
_UNREAD_SUFFIXES = {
    ".avif": "an AVIF picture",
    ".clip": "a Clip Studio file",
    ".dds": "a DDS texture",
    ".heic": "a HEIC picture",
    ".iff": "an IFF picture",
    ".ilbm": "an IFF picture",
    ".jxl": "a JPEG XL picture",
    ".kra": "a Krita file",
    ".ktx": "a KTX texture",
    ".ktx2": "a KTX texture",
    ".lbm": "an IFF picture",
    ".pdn": "a paint.net picture",
    ".procreate": "a Procreate drawing",
    ".psd": "a Photoshop file",
    ".pxo": "a Pixelorama project",
    ".pyxel": "a Pyxel Edit file",
    ".svg": "a vector drawing",
    ".xcf": "a GIMP file",
}
_UNREAD_ARCHIVES = (".rar", ".7z", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".txz", ".tbz2")


@dataclass(frozen=True, slots=True)
class Header:
    """A picture's format, by Pillow's name, and its size in pixels; 0 if only Pillow can read the size."""

    kind: str
    width: int = 0
    height: int = 0


_Reader = Callable[[bytes], Header | None]


def sniff(data: bytes, suffix: str) -> Header | None:
    """Recognise the picture at the start of `data`; None for other data. Formats without magic bytes need `suffix`."""
    for magic, read in _READERS:
        if data.startswith(magic):
            return read(data)
    by_suffix = next((read for kind, read in _BY_SUFFIX.items() if suffix in KIND_SUFFIXES[kind]), None)
    return by_suffix(data) if by_suffix is not None else None


def why_unsupported_content(data: bytes) -> str:
    """Return the reason why `data` of a known kind can't be read; '' for unknown kinds."""
    if data[4:8] == b"ftyp" and data[8:12] in (b"avif", b"avis", b"heic", b"heix", b"mif1"):
        return _not_read("an AVIF or HEIC picture")
    return _not_read(next((words for magic, words in _UNREAD_MAGICS if data.startswith(magic)), ""))


def why_unsupported_name(name: str) -> str:
    """Return the reason why a file with this name can't be read; '' for unknown kinds."""
    name = name.lower()
    if name.endswith(_UNREAD_ARCHIVES):
        return "an unsupported archive: unpack it or use zip"
    return _not_read(_UNREAD_SUFFIXES.get(f".{name.rpartition('.')[2]}", ""))


def _not_read(words: str) -> str:
    return f"{words}, an unsupported type: save it as PNG" if words else ""


def is_aseprite(data: bytes) -> bool:
    return data[4:6] == b"\xe0\xa5"


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


def _pcx(data: bytes) -> Header | None:
    version, left, top, right, bottom = _unpack("<xBxxHHHH", data)
    lawful = data[:1] == b"\x0a" and version in (0, 2, 3, 5) and right >= left and bottom >= top
    return Header("PCX", right - left + 1, bottom - top + 1) if lawful else None


def _tga(data: bytes) -> Header | None:
    if len(data) < 18:
        return None
    _, mapped, kind, _, _, _, _, _, width, height, depth, _ = struct.unpack_from("<BBBHHBHHHHBB", data)
    lawful = mapped in (0, 1) and kind in (1, 2, 3, 9, 10, 11) and depth in (8, 16, 24, 32) and width and height
    return Header("TGA", width, height) if lawful else None


def _unpack(layout: str, data: bytes) -> tuple[int, ...]:
    """Unpack header fields, with zeros for missing bytes: the decoder reports truncated files later."""
    need = struct.calcsize(layout)
    return struct.unpack_from(layout, data if len(data) >= need else data.ljust(need, b"\0"))


_READERS: tuple[tuple[bytes, _Reader], ...] = (
    (b"\x89PNG\r\n\x1a\n", lambda data: Header("PNG", *(_unpack(">16xII", data) if data[12:16] == b"IHDR" else ()))),
    *((magic, lambda data: Header("GIF", *_unpack("<6xHH", data))) for magic in (b"GIF87a", b"GIF89a")),
    (b"BM", _bmp),
    (b"RIFF", _webp),
    (b"\xff\xd8\xff", lambda _: Header("JPEG")),
    *((magic, lambda _: Header("TIFF")) for magic in _TIFF_MAGICS),
    (b"\0\0\1\0", lambda _: Header("ICO")),
    (b"qoif", lambda data: Header("QOI", *_unpack(">4xII", data))),
    (b"/* XPM */", lambda _: Header("XPM")),
)
_BY_SUFFIX: dict[str, _Reader] = {
    "TGA": _tga,
    "ICO": lambda data: Header("ICO") if data.startswith(b"\0\0\2\0") else None,  # some TGA files begin like cursors
    "PPM": lambda data: Header("PPM") if re.match(rb"P[1-6]\s", data) else None,
    "PCX": _pcx,
}
