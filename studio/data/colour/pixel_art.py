"""Drawn sprites made into pixel art: as few colours, from the same palette and with the same alpha as the data's.

`measure_pixel_art` measures how near to that sprites are as they were drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from studio.core import records
from studio.core.arrays import Rgba
from studio.data.colour.colour_counts import colours_per_sprite
from studio.data.colour.palette import MOST_COLOURS, cluster_colours, extract_palette, nearest_colours, to_oklab
from studio.data.images.canvas import OPAQUE, as_rgba, as_uint32
from studio.data.sprites import Sprites

_LOOKED_AT = 20_000  # sprites, and
_LOOKED_AT_BYTES = 256 << 20
_FEWEST, _MOST = 2, 64  # colours a sprite
_SOFT_SHARE = 0.002  # of visible pixels: with fewer half-transparent ones, alpha is on or off
_MOST_LEVELS = 8  # of half-transparent alpha in a class
_LEVEL_REACH = 24  # levels nearer than that are one
_LEVEL_SHARE = 0.02  # of the half-transparent pixels, at least, for a level
_OWN_REACH = 0.15  # in OKLab: a new colour this near to one that is kept becomes that one, or else the seam shows
_ORPHAN_REACH = 0.05  # in OKLab: a lone pixel this near to a neighbour's colour takes it; eyes and sparkles are farther


@dataclass(frozen=True, eq=False)
class PixelStyle:
    """How a set of sprites uses pixels, and its classes.

    colours: for each class, how many opaque colours a sprite has (the median).
    palette: the set's colours, uint8 [K, 3], most used first.
    alpha_levels: for each class, the alpha, 1 to 254, that half-transparent pixels have; empty if it has hardly any.
    class_counts: for each class, how many sprites it has.
    """

    colours: tuple[int, ...]
    palette: NDArray[np.uint8]
    alpha_levels: tuple[tuple[int, ...], ...]
    class_counts: tuple[int, ...]

    def joined(self, labels: NDArray[np.int64]) -> PixelStyle:
        """That of one picture, of class 0, in which sprites of all these classes are."""
        classes = np.unique(labels).tolist()
        levels = sorted({level for label in classes for level in self.alpha_levels[label]})
        colours, counts = (sum(of_each[label] for label in classes) for of_each in (self.colours, self.class_counts))
        return PixelStyle((colours,), self.palette, (tuple(levels),), (counts,))

    def to_json(self) -> dict[str, Any]:
        """Plain values; the palette as hexadecimal digits."""
        return {**vars(self), "palette": self.palette.tobytes().hex()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> PixelStyle:
        """What `to_json` gave. Raises ValueError, which says what is wrong with it."""
        kept = records.convert(values, _StyleRecord)
        palette = np.frombuffer(bytes.fromhex(kept.palette), np.uint8).reshape(-1, 3)
        return cls(kept.colours, palette, kept.alpha_levels, kept.class_counts)


@dataclass(frozen=True)
class _StyleRecord:
    """A style as it is kept."""

    colours: tuple[records.Count, ...]
    palette: str
    alpha_levels: tuple[tuple[Annotated[int, msgspec.Meta(ge=1, le=254)], ...], ...]
    class_counts: tuple[records.Count, ...]


def measure_style(sprites: Sprites) -> PixelStyle:
    """The style of these sprites; of very many, of some from all over. A class without sprites has the style of all."""
    step = max(1, -(-len(sprites) // _LOOKED_AT), -(-sprites.rgba.nbytes // _LOOKED_AT_BYTES))
    labels, rgba = sprites.labels[::step], np.ascontiguousarray(sprites.rgba[::step])
    pixels = as_uint32(rgba).reshape(len(rgba), -1)
    counts = np.array([len(np.unique(row[row >= OPAQUE])) for row in pixels])
    colours, levels = [], []
    for label in range(len(sprites.class_names)):
        own = labels == label if (labels == label).any() else slice(None)
        colours.append(int(np.clip(round(float(np.median(counts[own]))), _FEWEST, _MOST)))
        levels.append(_alpha_levels(rgba[own]))
    palette, _ = extract_palette(sprites.rgba, MOST_COLOURS)
    return PixelStyle(tuple(colours), palette[:, :3], tuple(levels), tuple(sprites.class_counts().tolist()))


def _alpha_levels(rgba: Rgba) -> tuple[int, ...]:
    """The most used half-transparent levels, each standing for those near it; none where hardly a pixel has any."""
    counts = np.bincount(rgba[..., 3].ravel(), minlength=256)
    visible, soft = counts[1:].sum(), np.where(np.isin(np.arange(256), (0, 255)), 0, counts)
    total, found = soft.sum(), list[int]()
    while total > _SOFT_SHARE * visible and len(found) < _MOST_LEVELS:
        level = int(soft.argmax())
        near = slice(max(0, level - _LEVEL_REACH), level + _LEVEL_REACH + 1)
        if soft[near].sum() < _LEVEL_SHARE * total:
            break
        soft[near] = 0
        found.append(level)
    return tuple(sorted(found))


def to_pixel_art(
    sprites: Rgba, labels: NDArray[np.int64], style: PixelStyle, keep: NDArray[np.bool_] | None = None
) -> Rgba:
    """Sprites uint8 [N, S, S, 4] in the style of their classes, int64 [N] (-1: any class); the same shape.

    Alpha is on or off, or one of the class's levels between. The colours of each sprite are gathered into as many as
    its class has (median cut and k-means, in OKLab), and each group takes the nearest colour of the palette.
    keep: bool [N, S, S], pixels that stay as they are. Their colours are among those that the sprite may have, and the
    first to be taken.
    """
    if not len(style.palette):
        return sprites
    palette = to_oklab(style.palette)
    typical = int(np.median(style.colours))
    alphas = [_nearest_levels(levels) for levels in style.alpha_levels]
    any_alpha = _nearest_levels(())
    keep = np.zeros(sprites.shape[:3], bool) if keep is None else keep
    found = np.zeros_like(sprites)
    for sprite, label, kept, result in zip(sprites, labels.tolist(), keep, found, strict=True):
        alpha = np.where(kept, 0, (alphas[label] if label >= 0 else any_alpha)[sprite[..., 3]])
        new, given = alpha > 0, kept & (sprite[..., 3] > 0)
        own, which = np.unique(as_uint32(sprite)[given] | OPAQUE, return_inverse=True)
        own_colours = as_rgba(own)[:, :3]
        colours, places = np.concatenate([own_colours, style.palette]), np.concatenate([to_oklab(own_colours), palette])
        field = np.full(new.shape, -1)
        field[given] = which
        if new.any():
            most = style.colours[label] if label >= 0 else typical
            groups, centres = cluster_colours(to_oklab(sprite[new][:, :3]), max(_FEWEST, most // 2, most - len(own)))
            field[new] = _nearest(centres, places, len(own))[groups]
            field = np.where(new, _without_orphans(field, places), field)
        result[new, :3], result[..., 3] = colours[field[new]], alpha
        result[kept] = sprite[kept]
    return found


def _nearest(centres: NDArray[np.float64], places: NDArray[np.float64], own: int) -> NDArray[np.int64]:
    """For each OKLab colour [n, 3] the nearest of these [K, 3]: int64 [n]; one of the first `own` if it is near."""
    found = nearest_colours(centres, places)
    if own:
        first = nearest_colours(centres, places[:own])
        is_near = ((centres - places[first]) ** 2).sum(1) < _OWN_REACH**2
        found = np.where(is_near, first, found)
    return found


def allowed_alphas(labels: NDArray[np.int64], style: PixelStyle) -> NDArray[np.bool_]:
    """Which alpha sprites of these classes, int64 [N] (-1: any class), have in true pixels: bool [N, 256]."""
    rows = np.zeros((len(style.alpha_levels) + 1, 256), bool)
    rows[:, [0, 255]] = True
    for row, levels in zip(rows, style.alpha_levels, strict=False):  # the last one is that of any class
        row[list(levels)] = True
    return rows[labels]


def _nearest_levels(levels: tuple[int, ...]) -> NDArray[np.uint8]:
    """For each alpha the nearest of these levels, of 0 and of 255: uint8 [256]."""
    known = np.array([0, *levels, 255])
    return np.asarray(known[np.abs(np.arange(256)[:, None] - known).argmin(1)], np.uint8)


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
    neighbours, lone = around[:, orphan], field[orphan]
    distances = np.sqrt(((palette[neighbours] - palette[lone]) ** 2).sum(2))
    distances[neighbours < 0] = np.inf
    closest = distances.argmin(0)[None]
    is_near = np.take_along_axis(distances, closest, 0)[0] < _ORPHAN_REACH
    result = field.copy()
    result[orphan] = np.where(is_near, np.take_along_axis(neighbours, closest, 0)[0], lone)
    return result


@dataclass(frozen=True)
class PixelArtFigures:
    """Shares from 0 to 1; 0 where there is nothing to be seen.

    half_transparent: of the pixels that can be seen, those that can be seen through.
    colours: the median number of colours of a sprite; every pixel that can be seen counts, without its alpha.
    off_palette: of the pixels that can be seen, those in a colour that the reference sprites don't have.
    """

    half_transparent: float
    colours: float
    off_palette: float


def measure_pixel_art(sprites: Rgba, reference: Rgba) -> PixelArtFigures:
    """Look at uint8 [N, S, S, 4] beside reference sprites uint8 [M, T, T, 4]."""
    alpha = sprites[..., 3]
    seen = alpha > 0
    colours = as_uint32(sprites) & ~OPAQUE
    palette = np.unique(as_uint32(reference)[reference[..., 3] > 0] & ~OPAQUE)
    visible = max(1, int(seen.sum()))
    half = int((seen & (alpha < 255)).sum()) / visible
    off = int((~np.isin(colours[seen], palette)).sum()) / visible
    each = colours_per_sprite(sprites)
    return PixelArtFigures(half, float(np.median(each)) if len(each) else 0.0, off)
