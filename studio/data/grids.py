"""The grid of a sheet that nothing describes, told from its pixels.

A border between tiles is crossed by few neighbours of one colour: sprites end before it, and those on its two sides are
different ones. A grid is likely where that holds at each of its borders and seldom elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from studio.core.events import Rgba
from studio.data.canvas import COMMON_SIZES, as_numbers

_SMALLEST_TILE, _LARGEST_TILE = 4, 256
_MOST_MARGIN = 32
_USUAL = 0.75  # quantile of the links between neighbouring lines that stands for those inside of sprites
_FEW, _SOME = 0.06, 0.35  # shares of the usual links
_AT_BORDERS = (0.75, 0.22, 0.03)  # how often a true border is crossed by at most a few, at most some, and more links
_ENOUGH = 2.0  # evidence for a grid: 7 to 1
# Natural logarithms of how much rarer something is than its plain counterpart, as far as that can be said.
_SPACING = (0.0, 1.0, 1.0, 3.0, 2.0, 4.0, 4.0, 4.0, 3.0)  # by pixels
_OBLONG = 2.5
_ODD_SIZES = ((8, 2.0), (4, 4.0), (2, 5.0), (1, 7.0))  # by the first number that divides a size that is not common
_ONE_SIDED, _PARTLY_EMPTY, _CUT_OFF = 1.0, 3.0, 8.0  # what is left behind the last tile
_MARGIN_AS_SPACING, _EVEN_MARGIN, _ANY_MARGIN = 0.5, 2.0, 3.0
_EVEN_MARGINS = (1, 2, 4, 8, 16)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grid:
    """Tiles of one size in rows and columns, all in pixels.

    left, top: of the first tile. spacing: between neighbours in both directions. confidence: from 0 to 1.
    """

    tile_width: int
    tile_height: int
    left: int = 0
    top: int = 0
    spacing: int = 0
    confidence: float = 1.0

    def columns(self, width: int) -> int:
        """How many whole tiles fit into a picture that is this wide."""
        return max(0, (width - self.left + self.spacing) // (self.tile_width + self.spacing))

    def rows(self, height: int) -> int:
        """How many whole tiles fit into a picture that is this high."""
        return max(0, (height - self.top + self.spacing) // (self.tile_height + self.spacing))


@dataclass(frozen=True, eq=False, slots=True)
class _Lines:
    """The rows of a picture, or its columns. evidence: float [n], that a tile begins there. busy: bool [n]."""

    evidence: Floats
    busy: NDArray[np.bool_]  # holds more than one colour: no line between tiles does

    def __len__(self) -> int:
        return len(self.busy)


@dataclass(frozen=True, eq=False, slots=True)
class _Sizes:
    """The best for each tile size in one direction, the size as index. score: float, evidence: float, start: int."""

    score: Floats
    evidence: Floats
    start: Ints


def background_of(pixels: NDArray[np.uint32]) -> int:
    """The pixel that means nothing: 0, if any is fully transparent, else the commonest at the edges."""
    if not pixels.all():
        return 0
    values, counts = np.unique(np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]), return_counts=True)
    return int(values[counts.argmax()])


def propose_grid(rgba: Rgba) -> Grid | None:
    """The likeliest grid of at least two tiles in uint8 [H, W, 4] with colour zeroed under alpha 0.

    None where there is no evidence for any: a single sprite, too few tiles, ground that goes on from tile to tile.
    """
    pixels = as_numbers(rgba)
    filled = pixels != background_of(pixels)
    down, across = _lines(pixels, filled), _lines(pixels.T, filled.T)
    best, proposed = -math.inf, None
    for spacing, rarity in enumerate(_SPACING):
        high, wide = _sizes(down, spacing), _sizes(across, spacing)
        joint = high.score[:, None] + wide.score - rarity - _OBLONG
        np.einsum("ii->i", joint)[:] += _OBLONG
        y, x = (int(index) for index in np.unravel_index(joint.argmax(), joint.shape))
        if joint[y, x] > best:
            best = float(joint[y, x])
            proposed = Grid(x, y, int(wide.start[x]), int(high.start[y]), spacing, _confidence(high, wide, y, x))
    if proposed is None or proposed.confidence < 0.5:
        return None
    several = proposed.rows(len(down)) * proposed.columns(len(across)) > 1
    return replace(proposed, confidence=round(proposed.confidence, 3)) if several else None


def _confidence(high: _Sizes, wide: _Sizes, y: int, x: int) -> float:
    return 1 / (1 + math.exp(_ENOUGH - float(high.evidence[y] + wide.evidence[x])))


def _lines(pixels: NDArray[np.uint32], filled: NDArray[np.bool_]) -> _Lines:
    """What the rows of [n, m] show."""
    drawn = (pixels == pixels[:1]).all(axis=0)  # lines that lead along between tiles link everything
    links = ((pixels[1:] == pixels[:-1]) & filled[1:] & filled[:-1] & ~drawn).sum(axis=1)
    evidence = np.zeros(len(pixels))
    if links.any():
        usual = np.quantile(links, _USUAL)
        crossed = np.digitize(links, (_FEW * usual, _SOME * usual), right=True)
        anywhere = (np.bincount(crossed, minlength=3) + 1) / (len(links) + 3)
        evidence[1:] = np.log(np.array(_AT_BORDERS) / anywhere)[crossed]
    return _Lines(evidence, (pixels != pixels[:, :1]).any(axis=1))


def _sizes(lines: _Lines, spacing: int) -> _Sizes:
    count = _LARGEST_TILE + 1
    found = _Sizes(np.full(count, -np.inf), np.zeros(count), np.zeros(count, np.int64))
    at = np.arange(len(lines))
    busy_before = np.concatenate([[0], np.cumsum(lines.busy)])
    for size in range(_SMALLEST_TILE, min(_LARGEST_TILE, len(lines)) + 1):
        if len(lines) // 2 < size < len(lines) - 2 * _MOST_MARGIN:
            continue  # neither two tiles nor one with its margins
        period = size + spacing
        phase = at % period
        busy = np.bincount(phase, lines.busy, period) > 0
        if spacing and busy.all():
            continue
        start = np.arange(min(_MOST_MARGIN, period - 1, len(lines) - size) + 1)
        between = (start[:, None] - np.arange(1, spacing + 1)) % period
        start = start[(busy_before[start] == 0) & ~busy[between].any(axis=1)]
        if not len(start):
            continue
        evidence = np.bincount(phase, lines.evidence, period)[start]
        rest = (len(lines) - start + spacing) % period
        score = evidence - _start_rarity(start, spacing) - _rest_rarity(rest, start, spacing, busy_before)
        best = int(score.argmax())
        found.score[size] = score[best] - _size_rarity(size)
        found.evidence[size], found.start[size] = evidence[best], start[best]
    return found


def _start_rarity(start: Ints, spacing: int) -> Floats:
    margin = np.where(np.isin(start, _EVEN_MARGINS), _EVEN_MARGIN, _ANY_MARGIN)
    return np.where(start == 0, 0.0, np.where(start == spacing, _MARGIN_AS_SPACING, margin))


def _rest_rarity(rest: Ints, start: Ints, spacing: int, busy_before: Ints) -> Floats:
    """rest: lines behind the last tile, of which a grid with equal margins leaves as many as before the first."""
    empty = busy_before[-1] == busy_before[len(busy_before) - 1 - rest]
    other = np.where(rest == spacing, _ONE_SIDED, np.where(empty, _PARTLY_EMPTY, _CUT_OFF))
    return np.where(rest == start, 0.0, other)


def _size_rarity(size: int) -> float:
    return 0.0 if size in COMMON_SIZES else next(rarity for step, rarity in _ODD_SIZES if size % step == 0)
