"""Animations made by hand for the tests, frame by frame, with every disposal and blend that the formats know."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.data.files.source_files import SourceImage, SourceIssue
from studio.data.images.frames import read_pictures
from tests.data.making import MAGIC, Pixels, chunk

PALETTE = np.array([[200, 30, 40], [10, 220, 30], [9, 8, 240], [250, 250, 0]], np.uint8)


@dataclass(frozen=True, eq=False)
class Drawn:
    """pixels: colour numbers [H, W] of a GIF or of a palette PNG, or RGBA [H, W, 4]. disposal: as in the format."""

    pixels: NDArray[np.uint8]
    left: int = 0
    top: int = 0
    disposal: int = 0
    clear: int | None = None  # the transparent colour number
    palette: Pixels | None = None  # of its own
    over: bool = True


def gif(width: int, height: int, frames: Sequence[Drawn], palette: Pixels | None = PALETTE) -> bytes:
    head = struct.pack("<6sHHBBB", b"GIF89a", width, height, 0 if palette is None else 0x81, 0, 0)
    shared = b"" if palette is None else palette.tobytes()
    return b"".join([head, shared, *map(_gif_frame, frames), b";"])


def _gif_frame(frame: Drawn) -> bytes:
    drawing = frame.disposal << 2 | (frame.clear is not None)
    control = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, drawing, 10, frame.clear or 0, 0)
    height, width = frame.pixels.shape
    flags = 0 if frame.palette is None else 0x81
    place = struct.pack("<BHHHHB", 0x2C, frame.left, frame.top, width, height, flags)
    own = b"" if frame.palette is None else frame.palette.tobytes()
    codes = [code for value in frame.pixels.ravel().tolist() for code in (256, value)]  # a fresh table for each pixel
    bits = sum(code << 9 * number for number, code in enumerate([*codes, 257]))
    packed = bits.to_bytes((9 * len(codes) + 9 + 7) // 8, "little")
    blocks = [packed[start : start + 255] for start in range(0, len(packed), 255)]
    return control + place + own + b"\x08" + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


def apng(
    width: int,
    height: int,
    frames: Sequence[Drawn],
    *,
    default: Pixels | None = None,
    palette: bytes = b"",
    transparency: bytes = b"",
) -> bytes:
    """With `default`, the default image, for viewers without animation, is not one of the frames."""
    header = struct.pack(">IIBBBBB", width, height, 8, 3 if palette else 6, 0, 0, 0)
    parts = [MAGIC, chunk(b"IHDR", header), chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    parts += [chunk(b"PLTE", palette), chunk(b"tRNS", transparency)] if palette else []
    parts += [] if default is None else [chunk(b"IDAT", _packed(default))]
    numbered = count()
    for index, frame in enumerate(frames):
        size = (frame.pixels.shape[1], frame.pixels.shape[0], frame.left, frame.top)
        parts.append(chunk(b"fcTL", struct.pack(">5IHHBB", next(numbered), *size, 1, 10, frame.disposal, frame.over)))
        packed, first = _packed(frame.pixels), index == 0 and default is None
        parts.append(chunk(b"IDAT", packed) if first else chunk(b"fdAT", struct.pack(">I", next(numbered)) + packed))
    return b"".join([*parts, chunk(b"IEND", b"")])


def _packed(pixels: Pixels) -> bytes:
    return zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels))


def noise(seed: int, width: int, height: int, *, soft: bool = False) -> Pixels:
    """RGBA of few colours, half of it transparent; `soft`: with four levels of alpha instead."""
    rng = np.random.default_rng(seed)
    rgba = (rng.integers(0, 4, (height, width, 4)) * 85).astype(np.uint8)
    if not soft:
        rgba[..., 3] = np.where(rng.random((height, width)) < 0.5, 0, 255)
    rgba[rgba[..., 3] == 0] = 0
    return rgba


def numbers(seed: int, width: int, height: int) -> Pixels:
    """Colour numbers of the palette."""
    return np.random.default_rng(seed).integers(0, 4, (height, width)).astype(np.uint8)


def by_pillow(frames: Sequence[Pixels], kind: str, **options: Any) -> bytes:
    images = [Image.fromarray(frame) for frame in frames]
    stream = io.BytesIO()
    images[0].save(stream, kind, save_all=True, append_images=images[1:], duration=50, **options)
    return stream.getvalue()


def seen_by_pillow(data: bytes) -> list[Pixels]:
    """Pillow's composited frames, colour zeroed under alpha 0."""
    image = Image.open(io.BytesIO(data))
    frames = []
    for number in range(getattr(image, "n_frames", 1)):
        image.seek(number)
        rgba = np.array(image.convert("RGBA"))
        rgba[rgba[..., 3] == 0] = 0
        frames.append(rgba)
    return frames


def read(data: bytes, suffix: str = ".png") -> tuple[list[SourceImage], list[SourceIssue]]:
    items = list(read_pictures(data, suffix))
    pictures = [item for item in items if isinstance(item, SourceImage)]
    return pictures, [item for item in items if isinstance(item, SourceIssue)]


def same(pictures: Sequence[SourceImage], expected: Sequence[Pixels]) -> bool:
    return len(pictures) == len(expected) and all(
        np.array_equal(picture.rgba, pixels) for picture, pixels in zip(pictures, expected, strict=True)
    )


NOISE = [noise(seed, 10, 12) for seed in range(5)]
ANIMATIONS = {
    ".gif": by_pillow(NOISE, "GIF", disposal=2),
    ".png": by_pillow(NOISE, "PNG"),
    ".webp": by_pillow(NOISE, "WEBP", lossless=True, exact=True),
}
