"""Decode a picture file to RGBA, uint8, with exact alpha. Only this module handles Pillow's errors.

Colour profiles are ignored: pixel art means the numbers in the file. JPEG metadata is removed, and JPEG pictures are
rotated by their EXIF orientation.
"""

from __future__ import annotations

import importlib
import io
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps

from studio.core import pictures
from studio.core.arrays import Rgba
from studio.data.archives.unpacking import unpack_member
from studio.data.files.source_files import CUT_OFF, SourceFile, SourceIssue, UnreadableFile, open_regular_file
from studio.data.images import bmp, ico, png
from studio.data.images.kinds import (
    HEAD_BYTES,
    KIND_SUFFIXES,
    PICTURE_SUFFIXES,
    Header,
    is_aseprite,
    sniff,
    why_unsupported_content,
    why_unsupported_name,
)

LARGEST_SIDE = 4096  # pixels, also of sheets
LARGEST_FILE = 80 << 20  # bytes
# Pillow's plugin modules, by format, for formats that Pillow does not load by default.
_PLUGINS = {
    "WEBP": "WebP", "TGA": "Tga", "TIFF": "Tiff", "ICO": "Ico", "QOI": "Qoi", "XPM": "Xpm", "PPM": "Ppm", "PCX": "Pcx",
}  # fmt: skip
_SLOW, _MOST_SLOW = frozenset({"QOI", "XPM", "PPM"}), 1 << 20  # formats that Pillow decodes pixel by pixel in Python
_CONVERTED = ("CMYK", "LAB", "YCbCr", "HSV")  # Pillow's modes
# JPEG segments.
_START_OF_PIXELS = 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length
_KEPT = frozenset({0xE0, 0xEE})  # JFIF, and Adobe's segment about the colour encoding
_EXIF = b"Exif\0\0"


@dataclass(frozen=True, eq=False, slots=True)
class Decoded:
    """A decoded picture: uint8 [H, W, 4], owned by the caller, and its issues."""

    rgba: Rgba
    remarks: tuple[SourceIssue, ...]


def read_bytes(file: SourceFile, most: int = 0) -> bytes:
    """Return the bytes of a file, on disk or in an archive, or its first `most` bytes.

    Raises OSError, and UnreadableFile if the file is too large, not a regular file, or damaged in its archive.
    """
    with open_regular_file(file.path_str) as stream:
        size = file.member.entry.size if file.member else os.fstat(stream.fileno()).st_size
        if not most and size > LARGEST_FILE:
            raise UnreadableFile("refused", f"too large: {size >> 20:,} MB; the limit is {LARGEST_FILE >> 20} MB")
        wanted = most or LARGEST_FILE
        return unpack_member(stream, file.member.entry, wanted) if file.member else stream.read(wanted)


def read_picture_bytes(file: SourceFile) -> bytes | None:
    """Return the bytes of a picture; None for other files. Raises OSError, UnreadableFile for an unsupported kind."""
    if reason := why_unsupported_name(file.file_name):
        raise UnreadableFile("unsupported", reason)
    if file.suffix not in PICTURE_SUFFIXES and sniff(read_bytes(file, HEAD_BYTES), file.suffix) is None:
        return None
    return read_bytes(file)


def decode(data: bytes, suffix: str) -> Decoded:
    """Decode the first picture in `data`. Raises UnreadableFile for invalid data.

    suffix: the file's suffix, in lower case with its dot. Only JPEG pictures are rotated by their EXIF orientation.
    Colour profiles are ignored.
    """
    header = read_header(data, suffix)
    sizes = 1
    if header.kind == "ICO":
        data, sizes = ico.extract_largest(data)
        header = read_header(data, suffix)
        suffix = KIND_SUFFIXES[header.kind][0]
    key, depth, exif, animated, wanted = None, 8, b"", False, data
    if header.kind == "PNG":
        checked = png.check_png(data)
        wanted, key, depth, animated = checked.data, checked.key, checked.depth, checked.animated
    elif header.kind == "JPEG":
        wanted, exif = strip_metadata(data)
    elif header.kind == "TGA" and header.width * header.height * 4 <= 26:
        wanted = data.ljust(44, b"\0")  # Pillow looks for a footer in the last 26 bytes, even in shorter files
    elif header.kind == "PCX":
        _check_pcx(data)
    try:
        image = _open(wanted, header.kind)
        remarks = _remarks(image, header.kind, suffix, animated=animated)
        image, turned = apply_exif_orientation(image, exif) if exif else (image, False)
        rgba, words = to_rgba(image, key, depth)
    except Image.DecompressionBombError:
        raise UnreadableFile("refused", "too many pixels") from None
    except MemoryError:
        raise UnreadableFile("refused", "too large for the free memory") from None
    except pictures.PILLOW_ERRORS as error:
        raise UnreadableFile("unreadable", _describe_error(error, header.kind, data)) from None
    if words:
        remarks.append(SourceIssue("converted", f"converted {words}"))
    if sizes > 1:
        words = f"has {sizes:,} sizes; only the largest was read, {rgba.shape[1]} x {rgba.shape[0]}"
        remarks.append(SourceIssue("sizes", words))
    if turned:
        remarks.append(SourceIssue("turned", "rotated as the EXIF entry says"))
    return Decoded(_opaque_if_undefined(rgba, data, header.kind), tuple(remarks))


def _open(data: bytes, kind: str) -> Image.Image:
    """Decode the first frame of a picture file. kind: Pillow's name for the format; other formats are not tried."""
    if kind in _PLUGINS:
        importlib.import_module(f"PIL.{_PLUGINS[kind]}ImagePlugin")
    if kind == "BMP" and (rgba := bmp.decode_bmp(data)) is not None:
        return Image.fromarray(rgba)
    image = Image.open(io.BytesIO(data), formats=(kind,))
    check_size(*image.size)
    if kind in _SLOW and image.width * image.height > _MOST_SLOW:
        raise UnreadableFile("refused", f"too large: {kind} pictures may have at most {_MOST_SLOW:,} pixels")
    image.load()
    return image


def check_size(width: int, height: int) -> None:
    """Raise UnreadableFile if a side is too long to decode."""
    if max(width, height) > LARGEST_SIDE:
        words = f"too large: {width:,} x {height:,} pixels; the limit is {LARGEST_SIDE:,} per side"
        raise UnreadableFile("refused", words)


def _name(kind: str) -> str:
    """Return a format's name for users. kind: Pillow's name."""
    return "WebP" if kind == "WEBP" else kind


def _remarks(image: Image.Image, kind: str, suffix: str, *, animated: bool) -> list[SourceIssue]:
    remarks = []
    if kind == "JPEG":
        remarks.append(SourceIssue("jpeg", "a JPEG picture: compression smears colours; PNG keeps them"))
    if suffix not in KIND_SUFFIXES[kind] and suffix in PICTURE_SUFFIXES:
        remarks.append(SourceIssue("misnamed", f"named {suffix} but a {_name(kind)} picture inside"))
    if animated or getattr(image, "is_animated", False):
        remarks.append(SourceIssue("animation", "has several frames; only the first was read"))
    return remarks


def _check_pcx(data: bytes) -> None:
    """Raise UnreadableFile if the final palette is missing: Pillow would read palette indices as grey values."""
    if (data[1:2], data[3:4], data[65:66]) == (b"\5", b"\x08", b"\1") and data[-769:-768] != b"\x0c":
        raise UnreadableFile("unreadable", CUT_OFF)


def _opaque_if_undefined(rgba: Rgba, data: bytes, kind: str) -> Rgba:
    """Make a 32-bit TGA or icon picture opaque if its alpha is undeclared and 0; return other pictures unchanged."""
    is_undefined = kind == "TGA" and data[16] == 32 and not data[17] & 0x0F
    is_undefined |= kind == "ICO" and data[ico.BITS_AT : ico.BITS_AT + 2] == b"\x20\0"
    if is_undefined and not rgba[..., 3].any():
        rgba[..., 3] = 255
    return np.ascontiguousarray(rgba)


def _describe_error(error: Exception, kind: str, data: bytes) -> str:
    cut_off = "truncated" in str(error).lower() or isinstance(error, EOFError)
    if kind == "WEBP":
        cut_off |= int.from_bytes(data[4:8], "little") + 8 > len(data)
    if kind == "GIF":
        cut_off |= not data.rstrip(b"\0").endswith(b";")
    return CUT_OFF if cut_off else f"damaged: not readable as a {_name(kind)} picture"


def read_header(data: bytes, suffix: str) -> Header:
    """Return kind and size of a picture, not decoded. Raises UnreadableFile for empty, other and too large files."""
    if not data:
        raise UnreadableFile("unreadable", "empty: the file has no bytes")
    header = sniff(data, suffix)
    if header is None:
        if is_aseprite(data):
            raise UnreadableFile("unsupported", "an Aseprite file with a wrong extension: rename it to .aseprite")
        if reason := why_unsupported_content(data):
            raise UnreadableFile("unsupported", reason)
        raise UnreadableFile("unreadable", "not a picture")
    check_size(header.width, header.height)
    return header


def to_rgba(image: Image.Image, key: tuple[int, ...] | None = None, depth: int = 8) -> tuple[Rgba, str]:
    """Convert to uint8 [H, W, 4]; also return a conversion note, or ''. key: transparent colour, in `depth` bits."""
    if image.mode.startswith("I") or image.mode == "F":
        return _from_numbers(np.asarray(image), key)
    words = f"from {image.mode} colours" if image.mode in _CONVERTED else ""
    if words:
        image = image.convert("RGB")
    rgba = np.array(image if image.mode == "RGBA" else image.convert("RGBA"), dtype=np.uint8)
    if key is not None:
        rgba[_matches(rgba, key, depth), 3] = 0
    return rgba, words or ("from 16 bits a channel to 8" if depth == 16 else "")


def _matches(rgba: Rgba, key: tuple[int, ...], depth: int) -> NDArray[np.bool_]:
    """Return the pixels of the colour `key`, bool [H, W]. depth: bits per channel of `key`; of 16, only 8 count."""
    mask = (1 << depth) - 1
    scaled = [value >> 8 if depth == 16 else (value & mask) * 255 // mask for value in key]
    colour = np.array(scaled if len(scaled) == 3 else scaled * 3, dtype=np.int64)
    return np.asarray((rgba[..., :3] == colour).all(axis=-1))


def _from_numbers(values: NDArray[np.generic], key: tuple[int, ...] | None) -> tuple[Rgba, str]:
    """Convert grey values with 16 or 32 bits. Detects ranges up to 1, 8 bits and 16 bits; stretches other ranges."""
    alpha = np.full(values.shape, 255, np.uint8)
    if key is not None:
        alpha[values == key[0]] = 0
    grey, words = _eight_bits(values)
    return np.stack([grey, grey, grey, alpha], axis=-1), words


def _eight_bits(values: NDArray[np.generic]) -> tuple[NDArray[np.uint8], str]:
    if values.dtype.kind == "u":
        return ((values.astype(np.uint32) * 255 + 32_767) // 65_535).astype(np.uint8), "from 16 bits a channel to 8"
    with np.errstate(invalid="ignore"):  # a damaged file may hold signalling NaNs
        numbers = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(numbers.min()), float(numbers.max())
    kind = "fractions" if values.dtype.kind == "f" else "32-bit numbers"
    if low < 0 or high > 65_535:
        scaled, words = (numbers - low) * 255 / ((high - low) or 1.0), f"from {kind}, stretched to the full range"
    else:
        unit = 1.0 if values.dtype.kind == "f" and high <= 1 else 255.0 if high <= 255 else 65_535.0
        scaled, words = numbers * 255 / unit, f"from {kind}"
    return np.floor(scaled + 0.5).astype(np.uint8), words


def strip_metadata(data: bytes) -> tuple[bytes, bytes]:
    """Return a JPEG file without comments, profiles and EXIF, and its EXIF block, or b''.

    Pillow parses EXIF while opening a file, and damaged EXIF would lose the picture. A damaged rest is kept: the
    decoder reports it.
    """
    kept, exif, start = [data[:2]], b"", 2
    while start + 4 <= len(data) and data[start] == 0xFF and data[start + 1] != _START_OF_PIXELS:
        marker = data[start + 1]
        if marker == 0xFF:  # padding
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


def apply_exif_orientation(image: Image.Image, exif: bytes) -> tuple[Image.Image, bool]:
    """Rotate or mirror a picture by the orientation in `exif`, if intact; also return whether the picture changed."""
    found = Image.Exif()
    try:
        found.load(exif)
        image.getexif()[ExifTags.Base.Orientation] = found.get(ExifTags.Base.Orientation, 1)
        seen = ImageOps.exif_transpose(image)
    except pictures.PILLOW_ERRORS:
        return image, False
    return seen, found.get(ExifTags.Base.Orientation, 1) in range(2, 9)
