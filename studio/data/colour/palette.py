"""The colours of a set of sprites."""

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

MOST_COLOURS = 4096  # of a palette: what lies beyond is rare, and near one of these
_MOST_PIXELS = 4_000_000  # looked at; larger sets are sampled evenly
_GREY_CHROMA = 0.035  # in OKLab: below it the eye sees no hue
_HUE_GROUPS = 12
_WEIGHED = 100_000  # pixels that stand for all when colours are gathered
_AT_ONCE = 1 << 18  # distances
_SPREAD = np.array([255, 318, 318]), np.array([0.0, 0.4, 0.4])  # OKLab in three bytes, a step as long in each

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
    """The most used opaque colours of uint8 [N, S, S, 4]: uint8 [K, 4] and their pixels int64 [K], most used first.

    K is at most `limit`. Sets of more than four million pixels are sampled evenly, always in the same way, and the
    counts are then estimates.
    """
    step = sampling_step(rgba)
    pixels = as_uint32(rgba[::step])
    values = pixels[pixels >= OPAQUE]
    colours, counts = np.unique(values, return_counts=True)
    order = np.lexsort((colours, -counts))[: max(limit, 0)]
    return as_rgba(colours[order]), counts[order].astype(np.int64) * step


def sampling_step(rgba: Rgba) -> int:
    """Every how many sprites of uint8 [N, S, S, 4] `extract_palette` looks at one: 1 when it looks at all."""
    return max(1, -(-rgba.size // 4 // _MOST_PIXELS))


def display_order(colours: Rgba) -> NDArray[np.int64]:
    """Indices that lay uint8 [K, 4] out for the eye: greys from dark to light, then hue by hue: int64 [K]."""
    lab = to_oklab(colours[..., :3])
    chroma = np.hypot(lab[:, 1], lab[:, 2])
    turn = np.arctan2(lab[:, 2], lab[:, 1]) / (2 * np.pi) % 1.0
    group = np.where(chroma < _GREY_CHROMA, -1, np.floor(turn * _HUE_GROUPS))
    return np.lexsort((turn, lab[:, 0], group)).astype(np.int64)


def to_oklab(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """sRGB uint8 [..., 3] in OKLab, where distances are as the eye sees them: lightness, a, b as float64 [..., 3]."""
    share = rgb.astype(np.float64) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(linear @ np.array(_SRGB_TO_LMS).T)
    return np.asarray(cones @ np.array(_LMS_TO_OKLAB).T)


def nearest_colours(colours: NDArray[np.float64], palette: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each OKLab colour [n, 3] the index of the nearest in OKLab [K, 3], the first of equals: int64 [n]."""
    found = np.empty(len(colours), np.int64)
    channels = np.ascontiguousarray(palette.T)
    for part in distance_slices(len(colours), len(palette)):
        apart = np.zeros((len(colours[part]), len(palette)))
        for own, known in zip(colours[part].T, channels, strict=True):  # a sum over an axis of three takes far longer
            apart += (own[:, None] - known) ** 2
        found[part] = apart.argmin(1)
    return found


def farthest_colours(colours: Rgba, count: int) -> Rgba:
    """At most `count` colours, none of uint8 [K, 4] far from all of them: uint8 [k, 4] in the order they had.

    By farthest-point sampling in OKLab (Gonzalez 1985), from the first colour on.
    """
    if len(colours) <= count:
        return colours
    lab = to_oklab(colours[:, :3])
    chosen = [0]
    apart = np.linalg.norm(lab - lab[0], axis=1)
    while len(chosen) < count:
        chosen.append(int(apart.argmax()))
        apart = np.minimum(apart, np.linalg.norm(lab - lab[chosen[-1]], axis=1))
    return colours[sorted(chosen)]


def distance_slices(count: int, each: int) -> Iterator[slice]:
    """The range 0 to `count` in slices for which `each` distances apiece fit into little memory."""
    rows = max(1, _AT_ONCE // max(1, each))
    return (slice(start, start + rows) for start in range(0, count, rows))


def cluster_colours(colours: NDArray[np.float64], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """OKLab colours [n, 3] in at most `count` groups, to 256: the group of each, int64 [n], and the means [groups, 3].

    By median cut and k-means.
    """
    scale, offset = _SPREAD
    as_bytes = ((colours + offset) * scale).round().clip(0, 255).astype(np.uint8)
    picture = Image.fromarray(as_bytes[None]).quantize(count, Image.Quantize.MEDIANCUT, kmeans=1)
    _, groups = np.unique(np.asarray(picture)[0], return_inverse=True)
    totals = np.stack([np.bincount(groups, colours[:, channel]) for channel in range(3)], 1)
    return groups.astype(np.int64), totals / np.bincount(groups)[:, None]


def dominant_colours(rgba: Rgba, count: int) -> Rgba:
    """At most `count` colours, to 256, that stand for all opaque ones of uint8 [N, S, S, 4]: uint8 [K, 4], for the eye.

    All of them where there are no more. Otherwise they are gathered, each with the weight of its pixels, and the most
    used of each group is taken: a colour that is in the sprites.
    """
    colours, pixels = extract_palette(rgba, MOST_COLOURS)
    if len(colours) > count:
        weights = np.maximum(1, pixels * _WEIGHED // pixels.sum())
        groups, _ = cluster_colours(to_oklab(colours[:, :3]).repeat(weights, axis=0), count)
        _, most_used = np.unique(groups[weights.cumsum() - 1], return_index=True)
        colours = colours[most_used]
    return colours[display_order(colours)]


@dataclass(frozen=True, eq=False)
class Palette:
    """Colours in the order of their file: at least one, at most MOST_COLOURS.

    colours: uint8 [K, 4], straight alpha. name: may be empty. colour_names: one for each, or none at all.
    Names are kept as one printable line each.
    """

    colours: Rgba
    name: str = ""
    colour_names: tuple[str, ...] = ()

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
        """Whether any colour can be seen through."""
        return bool((self.colours[:, 3] < 255).any())

    def visible(self) -> NDArray[np.uint8]:
        """The colours that can be seen, each once, without alpha: uint8 [K, 3]. Raises BadInputError for none."""
        seen = self.colours[self.colours[:, 3] > 0, :3]
        if not len(seen):
            raise BadInputError(
                f"The palette {self.name!r} has no colour that can be seen.",
                "All of its colours are fully transparent.",
            )
        return np.unique(seen, axis=0)


def _one_line(text: str) -> str:
    return escape_unprintable(" ".join(text.split()))
