"""Drawn sprites made into pixel art: as few colours, from the same palette and with the same alpha as the data's.

`pixel_truth` measures how near to that sprites are as they were drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studio.core import records
from studio.core.events import Rgba
from studio.data.colour.palette import MOST_COLOURS, gather, nearest, oklab, palette_of
from studio.data.colour.usage import colours_used
from studio.data.images.canvas import OPAQUE, as_numbers
from studio.data.sprites import Sprites

_LOOKED_AT = 20_000  # sprites, and
_LOOKED_AT_BYTES = 256 << 20
_FEWEST, _MOST = 2, 64  # colours a sprite
_SOFT_SHARE = 0.02  # of visible pixels: with fewer half-transparent ones, alpha is on or off
_SOFT_FROM, _SOFT_TO = 64, 192  # alpha in between stays, in data that has soft alpha
_ORPHAN_REACH = 0.08  # in OKLab: a lone pixel this near to a neighbour's colour takes it; eyes and sparkles are farther


@dataclass(frozen=True, eq=False)
class PixelStyle:
    """How a set of sprites uses pixels.

    colours: for each class, how many opaque colours a sprite has (the median).
    palette: the set's colours, uint8 [K, 3], most used first.
    soft_alpha: whether half-transparent pixels belong to it.
    """

    colours: tuple[int, ...]
    palette: NDArray[np.uint8]
    soft_alpha: bool

    def to_json(self) -> dict[str, Any]:
        """Plain values; the palette as hexadecimal digits."""
        return {"colours": self.colours, "palette": self.palette.tobytes().hex(), "soft_alpha": self.soft_alpha}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> PixelStyle:
        """What `to_json` gave. Raises ValueError, which says what is wrong with it."""
        kept = records.convert(values, _StyleRecord)
        palette = np.frombuffer(bytes.fromhex(kept.palette), np.uint8).reshape(-1, 3)
        return cls(kept.colours, palette, kept.soft_alpha)


@dataclass(frozen=True)
class _StyleRecord:
    """A style as it is kept."""

    colours: tuple[records.Count, ...]
    palette: str
    soft_alpha: bool


def style_of(sprites: Sprites) -> PixelStyle:
    """The style of these sprites; of very many, of some from all over. A class without sprites has the style of all."""
    step = max(1, -(-len(sprites) // _LOOKED_AT), -(-sprites.rgba.nbytes // _LOOKED_AT_BYTES))
    labels, rgba = sprites.labels[::step], np.ascontiguousarray(sprites.rgba[::step])
    pixels = as_numbers(rgba).reshape(len(rgba), -1)
    counts = np.array([len(np.unique(row[row >= OPAQUE])) for row in pixels])
    colours = []
    for label in range(len(sprites.class_names)):
        own = counts[labels == label]
        median = float(np.median(own if len(own) else counts))
        colours.append(int(np.clip(round(median), _FEWEST, _MOST)))
    palette, _ = palette_of(sprites.rgba, MOST_COLOURS)
    alpha = rgba[..., 3]
    soft = ((alpha > 0) & (alpha < 255)).sum() > _SOFT_SHARE * (alpha > 0).sum()
    return PixelStyle(tuple(colours), palette[:, :3], bool(soft))


def true_pixels(sprites: Rgba, labels: NDArray[np.int64], style: PixelStyle) -> Rgba:
    """Sprites uint8 [N, S, S, 4] in the style of their classes, int64 [N] (-1: any class); the same shape.

    Alpha is on or off, or in between where the data has that. The colours of each sprite are gathered into as many as
    its class has (median cut and k-means, in OKLab), and each group takes the nearest colour of the palette.
    """
    if not len(style.palette):
        return sprites
    palette = oklab(style.palette)
    typical = int(np.median(style.colours))
    found = np.zeros_like(sprites)
    for sprite, label, result in zip(sprites, labels.tolist(), found, strict=True):
        alpha = _snapped(sprite[..., 3], soft=style.soft_alpha)
        seen = alpha > 0
        if not seen.any():
            continue
        groups, centres = gather(oklab(sprite[seen][:, :3]), style.colours[label] if label >= 0 else typical)
        field = np.full(seen.shape, -1)
        field[seen] = nearest(centres, palette)[groups]
        field = _without_orphans(field, palette)
        result[seen, :3], result[..., 3] = style.palette[field[seen]], alpha
    return found


def _snapped(alpha: NDArray[np.uint8], *, soft: bool) -> NDArray[np.uint8]:
    low, high = (_SOFT_FROM, _SOFT_TO) if soft else (128, 127)
    return np.where(alpha > high, 255, np.where(alpha < low, 0, alpha)).astype(np.uint8)


def _without_orphans(field: NDArray[np.int64], palette: NDArray[np.float64]) -> NDArray[np.int64]:
    """A pixel of a colour that none of its eight neighbours has takes the nearest of theirs, if that is near enough.

    field: indices into the palette [S, S], -1 where there is nothing.
    """
    size = field.shape[0]
    padded = np.pad(field, 1, constant_values=-1)
    around = np.stack(
        [padded[y : y + size, x : x + size] for y in range(3) for x in range(3) if (y, x) != (1, 1)]
    )  # [8, S, S]
    orphan = (field >= 0) & (around != field).all(0) & (around >= 0).any(0)
    result = field.copy()
    for y, x in np.argwhere(orphan):
        neighbours = around[:, y, x]
        neighbours = neighbours[neighbours >= 0]
        distances = np.sqrt(((palette[neighbours] - palette[field[y, x]]) ** 2).sum(1))
        if distances.min() < _ORPHAN_REACH:
            result[y, x] = neighbours[distances.argmin()]
    return result


@dataclass(frozen=True)
class PixelTruth:
    """Shares from 0 to 1; 0 where there is nothing to be seen.

    half_transparent: of the pixels that can be seen, those that can be seen through.
    colours: the median number of colours of a sprite; every pixel that can be seen counts, without its alpha.
    off_palette: of the pixels that can be seen, those in a colour that the reference sprites don't have.
    """

    half_transparent: float
    colours: float
    off_palette: float


def pixel_truth(sprites: Rgba, reference: Rgba) -> PixelTruth:
    """Look at uint8 [N, S, S, 4] beside reference sprites uint8 [M, T, T, 4]."""
    alpha = sprites[..., 3]
    seen = alpha > 0
    colours = as_numbers(sprites) & ~OPAQUE
    palette = np.unique(as_numbers(reference)[reference[..., 3] > 0] & ~OPAQUE)
    visible = max(1, int(seen.sum()))
    half = int((seen & (alpha < 255)).sum()) / visible
    off = int((~np.isin(colours[seen], palette)).sum()) / visible
    each = colours_used(sprites)
    return PixelTruth(half, float(np.median(each)) if len(each) else 0.0, off)
