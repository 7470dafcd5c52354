"""Extract, sort and cluster the colours of sprites; the Palette class; conversion to OKLab."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.names import escape_unprintable
from studio.data.images.canvas import OPAQUE, as_rgba, as_uint32

MOST_COLOURS = 4096  # in a palette; rarer colours resemble more common ones
_MOST_PIXELS = 4_000_000  # larger sets are sampled evenly
_GREY_CHROMA = 0.035  # in OKLab; colours below look grey
_HUE_GROUPS = 12
_WEIGHED = 100_000  # number of weighted samples for clustering
_AT_ONCE = 1 << 18  # distances
# Scale and offset of OKLab as bytes, with equal steps per channel.
_SPREAD = (np.array([255, 318, 318]), np.array([0.0, 0.4, 0.4]))

_SRGB_TO_LMS = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_LMS_TO_OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def extract_palette(rgba: Rgba, limit: int = 256) -> tuple[Rgba, NDArray[np.int64]]:
    """Return the most used opaque colours of sprites, and the number of pixels of each colour.

    rgba: uint8 [N, S, S, 4]. Returns colours uint8 [K, 4], most used first, K <= limit, and counts int64 [K].
    Sets with more than four million pixels are sampled evenly and deterministically; the counts are then estimates.
    """
    step = sampling_step(rgba)
    pixels = as_uint32(rgba[::step])
    values = pixels[pixels >= OPAQUE]
    colours, counts = np.unique(values, return_counts=True)
    order = np.lexsort((colours, -counts))[: max(limit, 0)]
    return as_rgba(colours[order]), counts[order].astype(np.int64) * step


def sampling_step(rgba: Rgba) -> int:
    """Return n: `extract_palette` samples every n-th sprite of uint8 [N, S, S, 4]."""
    return max(1, -(-rgba.size // 4 // _MOST_PIXELS))


def display_order(colours: Rgba) -> NDArray[np.int64]:
    """Return the order, int64 [K], of colours, uint8 [K, 4], for display: greys from dark to light, then hues."""
    lab = to_oklab(colours[..., :3])
    chroma = np.hypot(lab[:, 1], lab[:, 2])
    turn = np.arctan2(lab[:, 2], lab[:, 1]) / (2 * np.pi) % 1.0
    group = np.where(chroma < _GREY_CHROMA, -1, np.floor(turn * _HUE_GROUPS))
    return np.lexsort((turn, lab[:, 0], group)).astype(np.int64)


def to_oklab(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Convert sRGB, uint8 [..., 3], to OKLab (B. Ottosson 2020): lightness, a, b, float64 [..., 3].

    Distances in OKLab match perceived colour differences.
    """
    share = rgb.astype(np.float64) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(linear @ np.array(_SRGB_TO_LMS).T)
    return np.asarray(cones @ np.array(_LMS_TO_OKLAB).T)


def nearest_colours(colours: NDArray[np.float64], palette: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the nearest colour of `palette` [K, 3] for each of `colours` [n, 3], OKLab: int64 [n]. Ties: the first."""
    found = np.empty(len(colours), np.int64)
    channels = np.ascontiguousarray(palette.T)
    for part in distance_slices(len(colours), len(palette)):
        distance2 = np.zeros((len(colours[part]), len(palette)))
        for own, known in zip(colours[part].T, channels, strict=True):  # much faster than a sum over the last axis
            distance2 += (own[:, None] - known) ** 2
        found[part] = distance2.argmin(1)
    return found


def farthest_colours(colours: Rgba, count: int) -> Rgba:
    """Return at most `count` colours that represent uint8 [K, 4] well: uint8 [k, 4], in the same order.

    Farthest-point sampling in OKLab (Gonzalez 1985), starting with the first colour.
    """
    if len(colours) <= count:
        return colours
    lab = to_oklab(colours[:, :3])
    chosen = [0]
    distance2 = np.linalg.norm(lab - lab[0], axis=1)
    while len(chosen) < count:
        chosen.append(int(distance2.argmax()))
        distance2 = np.minimum(distance2, np.linalg.norm(lab - lab[chosen[-1]], axis=1))
    return colours[sorted(chosen)]


def distance_slices(count: int, each: int) -> Iterator[slice]:
    """Yield slices that split `count` colours into batches, to limit memory. each: number of distances per colour."""
    rows = max(1, _AT_ONCE // max(1, each))
    return (slice(start, start + rows) for start in range(0, count, rows))


def cluster_colours(colours: NDArray[np.float64], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cluster OKLab colours [n, 3] into at most `count` <= 256 groups, by median cut and k-means.

    Returns the group of each colour, int64 [n], and the mean of each group, float64 [groups, 3].
    """
    scale, offset = _SPREAD
    as_bytes = ((colours + offset) * scale).round().clip(0, 255).astype(np.uint8)
    picture = Image.fromarray(as_bytes[None]).quantize(count, Image.Quantize.MEDIANCUT, kmeans=1)
    _, groups = np.unique(np.asarray(picture)[0], return_inverse=True)
    totals = np.stack([np.bincount(groups, colours[:, channel]) for channel in range(3)], 1)
    return groups.astype(np.int64), totals / np.bincount(groups)[:, None]


def dominant_colours(rgba: Rgba, count: int) -> Rgba:
    """Return at most `count` <= 256 dominant colours of uint8 [N, S, S, 4], sorted for display: uint8 [K, 4].

    Clusters the opaque colours, weighted by pixels, and picks the most used colour per cluster. Sprites with fewer
    colours keep all colours.
    """
    return dominant_of(*extract_palette(rgba, MOST_COLOURS), count)


def dominant_of(colours: Rgba, pixels: NDArray[np.int64], count: int) -> Rgba:
    """Return at most `count` dominant colours as `dominant_colours` does.

    colours: uint8 [K, 4], most used first. pixels: int64 [K], number of pixels of each colour.
    """
    colours, pixels = colours[:MOST_COLOURS], pixels[:MOST_COLOURS]
    if len(colours) > count:
        weights = np.maximum(1, pixels * _WEIGHED // pixels.sum())
        groups, _ = cluster_colours(to_oklab(colours[:, :3]).repeat(weights, axis=0), count)
        _, most_used = np.unique(groups[weights.cumsum() - 1], return_index=True)
        colours = colours[most_used]
    return colours[display_order(colours)]


@dataclass(frozen=True, eq=False)
class Palette:
    """A palette of 1 to MOST_COLOURS colours, in file order. Names are reduced to a printable line."""

    colours: Rgba  # uint8 [K, 4], straight alpha
    name: str = ""
    colour_names: tuple[str, ...] = ()  # one for each colour, or ()

    def __post_init__(self) -> None:
        assert self.colours.dtype == np.uint8 and self.colours.shape[1:] == (4,), self.colours.shape
        assert 0 < len(self.colours) <= MOST_COLOURS
        assert len(self.colour_names) in (0, len(self.colours))
        object.__setattr__(self, "name", _one_line(self.name))
        object.__setattr__(self, "colour_names", tuple(map(_one_line, self.colour_names)))

    def __len__(self) -> int:
        return len(self.colours)

    @property
    def has_alpha(self) -> bool:
        """Whether any colour is transparent or semi-transparent."""
        return bool((self.colours[:, 3] < 255).any())

    def visible(self) -> NDArray[np.uint8]:
        """Return the distinct colours with alpha > 0, without alpha: uint8 [K, 3]. Raises BadInputError for none."""
        seen = self.colours[self.colours[:, 3] > 0, :3]
        if not len(seen):
            title = f"The palette {self.name!r} has no visible colour."
            raise BadInputError(title, "Every colour is fully transparent.")
        return np.unique(seen, axis=0)


def _one_line(text: str) -> str:
    return escape_unprintable(" ".join(text.split()))
