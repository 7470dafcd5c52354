"""A Pillow picture of any mode -> RGBA uint8, alpha exact.

Colour profiles are not applied: pixel art means the numbers in the file.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.core.events import Rgba

_CONVERTED = ("CMYK", "LAB", "YCbCr", "HSV")


def to_rgba(image: Image.Image, key: tuple[int, ...] | None = None, depth: int = 8) -> tuple[Rgba, str]:
    """`image` as uint8 [H, W, 4] and what had to be converted, in words, or an empty text.

    `key` is the colour of the file that is transparent, in units of `depth` bits a channel.
    """
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
    """Where the picture has the transparent colour: bool [H, W]. At 16 bits only the upper 8 can be compared."""
    mask = (1 << depth) - 1
    scaled = [value >> 8 if depth == 16 else (value & mask) * 255 // mask for value in key]
    colour = np.array(scaled if len(scaled) == 3 else scaled * 3, dtype=np.int64)
    return np.asarray((rgba[..., :3] == colour).all(axis=-1))


def _from_numbers(values: NDArray[np.generic], key: tuple[int, ...] | None) -> tuple[Rgba, str]:
    """Grey values of 16 or 32 bits, whole or not: 8-bit, 16-bit and 0..1 ranges are known, others are stretched."""
    alpha = np.full(values.shape, 255, np.uint8)
    if key is not None:
        alpha[values == key[0]] = 0
    grey, words = _eight_bits(values)
    return np.stack([grey, grey, grey, alpha], axis=-1), words


def _eight_bits(values: NDArray[np.generic]) -> tuple[NDArray[np.uint8], str]:
    if values.dtype.kind == "u":
        return ((values.astype(np.uint32) * 255 + 32_767) // 65_535).astype(np.uint8), "from 16 bits a channel to 8"
    numbers = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(numbers.min()), float(numbers.max())
    kind = "fractions" if values.dtype.kind == "f" else "32-bit numbers"
    if low < 0 or high > 65_535:
        scaled, words = (
            (numbers - low) * 255 / ((high - low) or 1.0),
            f"from {kind}, stretched to the full range",
        )
    else:
        unit = 1.0 if values.dtype.kind == "f" and high <= 1 else 255.0 if high <= 255 else 65_535.0
        scaled, words = numbers * 255 / unit, f"from {kind}"
    return np.floor(scaled + 0.5).astype(np.uint8), words
