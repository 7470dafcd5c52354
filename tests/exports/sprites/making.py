"""Sprites to save, and what other programs see in the files."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
from PIL import Image

from studio.core.arrays import Rgba
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.formats import sprite_exports

RED, GREEN, BLUE = (200, 30, 40), (10, 220, 30), (9, 8, 240)


def of_colours(*colours: tuple[int, ...], size: int = 6) -> Rgba:
    """A sprite for each colour, RGB or RGBA, filled but for a transparent border of one pixel."""
    rgba = np.zeros((len(colours), size, size, 4), np.uint8)
    for sprite, colour in zip(rgba, colours, strict=True):
        sprite[1:-1, 1:-1] = (*colour, 255)[:4]
    return rgba


def many_coloured(count: int, size: int, seed: int = 0) -> Rgba:
    """Opaque noise of a colour for each pixel."""
    rgba = np.random.default_rng(seed).integers(0, 256, (count, size, size, 4), dtype=np.uint8)
    rgba[..., 3] = 255
    return rgba


def written(form: str, sprites: SpriteSet, folder: Path) -> Path:
    """The main file, written by the format of that name."""
    return sprite_exports()[form].write(sprites, folder / "art")[0]


def notes(form: str, sprites: SpriteSet) -> str:
    return " ".join(sprite_exports()[form].notes(sprites))


def played(data: bytes) -> list[tuple[Rgba, int]]:
    """Every frame of an animation as Pillow shows it, colour zeroed under alpha 0, and its milliseconds."""
    with Image.open(io.BytesIO(data)) as image:
        frames: list[tuple[Rgba, int]] = []
        for number in itertools.count():
            try:
                image.seek(number)
            except EOFError:
                return frames
            rgba = np.array(image.convert("RGBA"))
            rgba[rgba[..., 3] == 0] = 0
            frames.append((rgba, int(image.info["duration"])))
    raise AssertionError
