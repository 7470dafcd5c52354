"""The bytes of one picture file -> RGBA pixels. The only place that Pillow's many errors reach."""

from __future__ import annotations

import importlib
import io
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from PIL import Image

from studio.core.events import Rgba
from studio.data import jpeg, png
from studio.data.colours import to_rgba
from studio.data.headers import Header, is_aseprite, other_kind, sniff
from studio.data.png import CUT_OFF
from studio.data.sources.base import Found, Refused, Remark
from studio.data.unpacking import unpacked

LARGEST_SIDE = 4096  # pixels of a picture, sheets included
LARGEST_FILE = 80 << 20  # bytes
_KIND_SUFFIXES = {
    "PNG": (".png",),
    "GIF": (".gif",),
    "BMP": (".bmp",),
    "WEBP": (".webp",),
    "JPEG": (".jpg", ".jpeg"),
    "TGA": (".tga",),
    "TIFF": (".tif", ".tiff"),
}
_PILLOW_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    EOFError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RuntimeError,
    struct.error,
    zlib.error,
)


@dataclass(frozen=True, eq=False, slots=True)
class Decoded:
    """rgba: uint8 [H, W, 4] that nobody else holds. remarks: what the user should know about it."""

    rgba: Rgba
    remarks: tuple[Remark, ...]


def read_bytes(file: Found, most: int = 0) -> bytes:
    """The whole file, on the disk or in an archive, or its first `most` bytes.

    Raises OSError, and Refused when it is too large, no plain file, or damaged in its archive.
    """
    with opened(file.where) as stream:
        size = file.member.entry.size if file.member else os.fstat(stream.fileno()).st_size
        if not most and size > LARGEST_FILE:
            raise Refused("refused", f"too large: {size >> 20:,} MB, at most {LARGEST_FILE >> 20} are read")
        wanted = most or LARGEST_FILE
        return unpacked(stream, file.member.entry, wanted) if file.member else stream.read(wanted)


@contextmanager
def opened(where: str) -> Iterator[BinaryIO]:
    """A plain file, to be read. Raises OSError, and Refused for anything else.

    Opened without waiting: a pipe that has taken the file's place since it was found can't hold the reader up.
    """
    handle = os.open(where, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Refused("refused", "not a plain file")
        yield stream


def recognise(data: bytes, suffix: str) -> Header:
    """What `data` are. Raises Refused when they are empty, no picture, or too many pixels; nothing is decoded."""
    if not data:
        raise Refused("unreadable", "empty: the file has no bytes")
    header = sniff(data, suffix)
    if header is None:
        if is_aseprite(data):
            raise Refused("unsupported", "an Aseprite file under another name: let its name end in .aseprite")
        known = other_kind(data)
        if known:
            raise Refused("unsupported", f"{known}, which is not read: save it as PNG")
        raise Refused("unreadable", "not a picture: its contents are something else")
    check_size(header.width, header.height)
    return header


def decode(data: bytes, suffix: str) -> Decoded:
    """The first picture in `data`. Raises Refused, whatever the bytes are.

    `suffix` is the file's, in lower case with its dot. JPEG pictures are turned as their EXIF entry says, which is how
    viewers show them; other kinds are taken as they are stored. Colour profiles are ignored.
    """
    header = recognise(data, suffix)
    key, depth, exif, animated, wanted = None, 8, b"", False, data
    if header.kind == "PNG":
        checked = png.check(data)
        wanted, key, depth, animated = checked.data, checked.key, checked.depth, checked.animated
    elif header.kind == "JPEG":
        wanted, exif = jpeg.strip(data)
    elif header.kind == "TGA":
        wanted = _padded(data, header)
    try:
        image = _open(wanted, header.kind)
        remarks = _remarks(image, header.kind, suffix, animated=animated)
        image, turned = jpeg.upright(image, exif) if exif else (image, False)
        rgba, words = to_rgba(image, key, depth)
    except Image.DecompressionBombError:
        raise Refused("refused", "too many pixels") from None
    except MemoryError:
        raise Refused("refused", "too large for the free memory") from None
    except _PILLOW_ERRORS as error:
        raise Refused("unreadable", _in_words(error, header.kind, data)) from None
    if words:
        remarks.append(Remark("converted", f"converted {words}"))
    if turned:
        remarks.append(Remark("turned", "turned upright, as its EXIF entry says"))
    return Decoded(_opaque_if_undefined(rgba, data, header.kind), tuple(remarks))


def _open(data: bytes, kind: str) -> Image.Image:
    """The first frame, decoded. Only the one reader that `kind` needs is tried."""
    if kind in ("WEBP", "TGA", "TIFF"):
        names = {"WEBP": "WebP", "TGA": "Tga", "TIFF": "Tiff"}
        importlib.import_module(f"PIL.{names[kind]}ImagePlugin")
    image = Image.open(io.BytesIO(data), formats=(kind,))
    check_size(*image.size)
    image.load()
    return image


def check_size(width: int, height: int) -> None:
    """Raises Refused when a side is too long to be decoded."""
    if max(width, height) > LARGEST_SIDE:
        raise Refused("refused", f"too large: {width:,} x {height:,} pixels, at most {LARGEST_SIDE:,} a side are read")


def _remarks(image: Image.Image, kind: str, suffix: str, *, animated: bool) -> list[Remark]:
    remarks = []
    name = "WebP" if kind == "WEBP" else kind
    if kind == "JPEG":
        remarks.append(Remark("jpeg", "a JPEG picture: its compression smears the colours, PNG keeps them"))
    if suffix not in _KIND_SUFFIXES[kind] and any(suffix in suffixes for suffixes in _KIND_SUFFIXES.values()):
        remarks.append(Remark("misnamed", f"named {suffix} but a {name} picture inside"))
    if animated or getattr(image, "is_animated", False):
        remarks.append(Remark("animation", "holds several frames: only the first was taken"))
    return remarks


def _padded(data: bytes, header: Header) -> bytes:
    """Pillow looks for a footer of 26 bytes at the end of a TGA file; the smallest files are shorter than that."""
    return data.ljust(44, b"\0") if header.width * header.height * 4 <= 26 else data


def _opaque_if_undefined(rgba: Rgba, data: bytes, kind: str) -> Rgba:
    """TGA files of 32 bits may declare that their fourth channel means nothing, and then leave it at zero."""
    if kind == "TGA" and data[16] == 32 and not data[17] & 0x0F and not rgba[..., 3].any():
        rgba[..., 3] = 255
    return np.ascontiguousarray(rgba)


def _in_words(error: Exception, kind: str, data: bytes) -> str:
    text = str(error).lower()
    cut_off = "truncated" in text or isinstance(error, EOFError)
    if kind == "WEBP":
        cut_off |= int.from_bytes(data[4:8], "little") + 8 > len(data)
    if kind == "GIF":
        cut_off |= not data.rstrip(b"\0").endswith(b";")
    name = "WebP" if kind == "WEBP" else kind
    return CUT_OFF if cut_off else f"damaged: it can't be read as a {name} picture"
