"""Convert drawn sprites to pixel art: few colours from the palette of the training sprites, and their alpha levels.

`measure_pixel_art` measures how much sprites look like pixel art already.
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

_SAMPLE_SIZE = 20_000  # sprites of the sample
_SAMPLE_BYTES = 256 << 20  # size of the sample
_LEAST_COLOURS, _MOST_COLOURS = 2, 64  # limits of colours per sprite
_SOFT_SHARE = 0.002  # of visible pixels; with fewer semi-transparent pixels, alpha becomes 0 or 255
_MOST_LEVELS = 8  # semi-transparent alpha levels per class
_LEVEL_DISTANCE = 24  # closer levels are merged
_LEVEL_SHARE = 0.02  # least share of semi-transparent pixels for a level
_KEPT_DISTANCE = 0.15  # in OKLab; closer new colours take a kept colour, to avoid a visible seam
_ORPHAN_DISTANCE = 0.05  # in OKLab; isolated pixels of closer colours are noise, eyes and sparkles differ more


@dataclass(frozen=True, eq=False)
class PixelStyle:
    """The pixel style of a set of sprites."""

    colours: tuple[int, ...]  # median number of opaque colours per sprite, by class
    palette: NDArray[np.uint8]  # [K, 3], colours of the set, most used first
    alpha_levels: tuple[tuple[int, ...], ...]  # by class: alpha of semi-transparent pixels, 1 to 254; () for hardly any
    class_counts: tuple[int, ...]  # number of sprites, by class

    def merged(self, labels: NDArray[np.int64]) -> PixelStyle:
        """Return a style with a single class (0), for a picture joined from sprites of the classes `labels`."""
        classes = np.unique(labels).tolist()
        levels = sorted({level for label in classes for level in self.alpha_levels[label]})
        colours, counts = (sum(of_each[label] for label in classes) for of_each in (self.colours, self.class_counts))
        return PixelStyle((colours,), self.palette, (tuple(levels),), (counts,))

    def to_json(self) -> dict[str, Any]:
        """Return the style as values for JSON, with the palette as hexadecimal digits."""
        return {**vars(self), "palette": self.palette.tobytes().hex()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> PixelStyle:
        """Create a style from the output of `to_json`. Raises ValueError with a message for users."""
        kept = records.convert(values, _StyleRecord)
        palette = np.frombuffer(bytes.fromhex(kept.palette), np.uint8).reshape(-1, 3)
        return cls(kept.colours, palette, kept.alpha_levels, kept.class_counts)


@dataclass(frozen=True)
class _StyleRecord:
    """JSON record of a PixelStyle."""

    colours: tuple[records.Count, ...]
    palette: str
    alpha_levels: tuple[tuple[Annotated[int, msgspec.Meta(ge=1, le=254)], ...], ...]
    class_counts: tuple[records.Count, ...]


def measure_style(sprites: Sprites) -> PixelStyle:
    """Measure the style of `sprites`; large sets are sampled. A class without sprites gets the whole set's style."""
    step = max(1, -(-len(sprites) // _SAMPLE_SIZE), -(-sprites.rgba.nbytes // _SAMPLE_BYTES))
    labels, rgba = sprites.labels[::step], np.ascontiguousarray(sprites.rgba[::step])
    pixels = as_uint32(rgba).reshape(len(rgba), -1)
    counts = np.array([len(np.unique(row[row >= OPAQUE])) for row in pixels])
    colours, levels = [], []
    for label in range(len(sprites.class_names)):
        own = labels == label if (labels == label).any() else slice(None)
        colours.append(int(np.clip(round(float(np.median(counts[own]))), _LEAST_COLOURS, _MOST_COLOURS)))
        levels.append(_alpha_levels(rgba[own]))
    palette, _ = extract_palette(sprites.rgba, MOST_COLOURS)
    return PixelStyle(tuple(colours), palette[:, :3], tuple(levels), tuple(sprites.class_counts().tolist()))


def _alpha_levels(rgba: Rgba) -> tuple[int, ...]:
    """Return the most used alpha levels from 1 to 254, merging nearby levels; () if hardly any pixel has one."""
    counts = np.bincount(rgba[..., 3].ravel(), minlength=256)
    visible, soft = counts[1:].sum(), np.where(np.isin(np.arange(256), (0, 255)), 0, counts)
    total, found = soft.sum(), list[int]()
    while total > _SOFT_SHARE * visible and len(found) < _MOST_LEVELS:
        level = int(soft.argmax())
        near = slice(max(0, level - _LEVEL_DISTANCE), level + _LEVEL_DISTANCE + 1)
        if soft[near].sum() < _LEVEL_SHARE * total:
            break
        soft[near] = 0
        found.append(level)
    return tuple(sorted(found))


def to_pixel_art(
    sprites: Rgba, labels: NDArray[np.int64], style: PixelStyle, keep: NDArray[np.bool_] | None = None
) -> Rgba:
    """Convert sprites, uint8 [N, S, S, 4], to the style of their classes, int64 [N] (-1: any class).

    Alpha becomes 0, 255 or a level from the class. The colours in a sprite are clustered (median cut and k-means, in
    OKLab) to the number typical for the class, then mapped to the nearest palette colours. keep: bool [N, S, S], pixels
    that stay unchanged; nearby new colours take their colours.
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
        colours = np.concatenate([own_colours, style.palette])
        lab = np.concatenate([to_oklab(own_colours), palette])
        indices = np.full(new.shape, -1)
        indices[given] = which
        if new.any():
            most = style.colours[label] if label >= 0 else typical
            count = max(_LEAST_COLOURS, most // 2, most - len(own))
            groups, centres = cluster_colours(to_oklab(sprite[new][:, :3]), count)
            indices[new] = _nearest(centres, lab, len(own))[groups]
            indices = np.where(new, _without_orphans(indices, lab), indices)
        result[new, :3], result[..., 3] = colours[indices[new]], alpha
        result[kept] = sprite[kept]
    return found


def _nearest(centres: NDArray[np.float64], palette: NDArray[np.float64], own: int) -> NDArray[np.int64]:
    """Return the nearest colour [K, 3] for each centre [n, 3], OKLab; the first `own` win if near: int64 [n]."""
    found = nearest_colours(centres, palette)
    if own:
        first = nearest_colours(centres, palette[:own])
        is_near = ((centres - palette[first]) ** 2).sum(1) < _KEPT_DISTANCE**2
        found = np.where(is_near, first, found)
    return found


def allowed_alphas(labels: NDArray[np.int64], style: PixelStyle) -> NDArray[np.bool_]:
    """Return the alpha values that each sprite's class allows: bool [N, 256]. labels: int64 [N], -1 for any class."""
    rows = np.zeros((len(style.alpha_levels) + 1, 256), bool)
    rows[:, [0, 255]] = True
    for row, levels in zip(rows, style.alpha_levels, strict=False):  # the last row is for any class
        row[list(levels)] = True
    return rows[labels]


def _nearest_levels(levels: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return the lookup table from alpha to the nearest of these levels, 0 and 255: uint8 [256]."""
    known = np.array([0, *levels, 255])
    return np.asarray(known[np.abs(np.arange(256)[:, None] - known).argmin(1)], np.uint8)


def _without_orphans(indices: NDArray[np.int64], palette: NDArray[np.float64]) -> NDArray[np.int64]:
    """Give isolated pixels the nearest colour among their eight neighbours, if that colour is similar enough.

    indices: palette indices [H, W]; -1 is transparent. palette: OKLab [K, 3].
    """
    height, width = indices.shape
    padded = np.pad(indices, 1, constant_values=-1)
    steps = [(y, x) for y in range(3) for x in range(3) if (y, x) != (1, 1)]
    around = np.stack([padded[y : y + height, x : x + width] for y, x in steps])  # [8, H, W]
    orphan = (indices >= 0) & (around != indices).all(0) & (around >= 0).any(0)
    neighbours, isolated = around[:, orphan], indices[orphan]
    distances = np.sqrt(((palette[neighbours] - palette[isolated]) ** 2).sum(2))
    distances[neighbours < 0] = np.inf
    closest = distances.argmin(0)[None]
    is_near = np.take_along_axis(distances, closest, 0)[0] < _ORPHAN_DISTANCE
    result = indices.copy()
    result[orphan] = np.where(is_near, np.take_along_axis(neighbours, closest, 0)[0], isolated)
    return result


@dataclass(frozen=True)
class PixelArtFigures:
    """Measures of pixel art; 0 without visible pixels."""

    half_transparent: float  # share of semi-transparent among visible pixels, 0 to 1
    colours: float  # median number of visible colours per sprite, ignoring alpha
    off_palette: float  # share of visible pixels in colours that the reference sprites lack, 0 to 1


def measure_pixel_art(sprites: Rgba, reference: Rgba) -> PixelArtFigures:
    """Measure sprites, uint8 [N, S, S, 4], against reference sprites, uint8 [M, T, T, 4]."""
    alpha = sprites[..., 3]
    seen = alpha > 0
    colours = as_uint32(sprites) & ~OPAQUE
    palette = np.unique(as_uint32(reference)[reference[..., 3] > 0] & ~OPAQUE)
    visible = max(1, int(seen.sum()))
    half = int((seen & (alpha < 255)).sum()) / visible
    off = int((~np.isin(colours[seen], palette)).sum()) / visible
    each = colours_per_sprite(sprites)
    return PixelArtFigures(half, float(np.median(each)) if len(each) else 0.0, off)
