"""Measure, from the pixels, where tiles may begin along one side of a sheet.

Across a border between tiles, few pixels touch and fewer have equal colours, because different sprites meet. A tile
size is likely if few pixels touch at the borders, more pixels touch elsewhere, and tiles resemble neighbouring tiles,
like frames in an animation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

SMALLEST_TILE, LARGEST_TILE = 4, 256
MOST_SPACING = 8
_MOST_MARGIN = 32
_USUAL = 0.75  # quantile of links between neighbouring lines, typical inside sprites
_LEVELS = np.array([0.06, 0.35, 0.7])  # classes of links, as shares of the usual number
# Frequency of each class at tile borders and inside sprites, measured on hand-drawn sprites.
_AT_BORDERS = np.array([0.84, 0.10, 0.04, 0.02])
_IN_SPRITES = np.array([0.03, 0.13, 0.24, 0.60])
_FEWEST = 0.05  # quantile of touching pixels, typical at borders
_PARTING = 0.25  # share of usual touching pixels; without fewer, only colours separate tiles
_LEAST_EVIDENCE = -6.0  # below this evidence, no resemblance can compensate
_RESEMBLANCE = 10.0  # evidence if pixels match at a single distance
_MOST_RESEMBLANCE = 4.0
_LINES_COMPARED = 64
_DISTANCES = 24  # number of distances to compare with
# Estimated log-odds against unusual layouts (natural logarithm).
_ONE_SIDED, _PAGE, _PARTLY_EMPTY, _CUT_OFF = 1.0, 0.5, 3.0, 8.0  # lines behind the last tile
_MARGIN_AS_SPACING, _EVEN_MARGIN, _ANY_MARGIN = 0.5, 2.0, 3.0
_EVEN_MARGINS = (1, 2, 4, 8, 16)

# Log-odds by spacing and margin before the first tile.
_START_RARITY = np.full((MOST_SPACING + 1, _MOST_MARGIN + 1), _ANY_MARGIN)
_START_RARITY[:, _EVEN_MARGINS] = _EVEN_MARGIN
np.fill_diagonal(_START_RARITY, _MARGIN_AS_SPACING)
_START_RARITY[:, 0] = 0.0

Pixels = NDArray[np.uint32]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SideLines:
    """Evidence for tile borders between neighbouring lines (rows or columns) of a picture.

    pixels: uint32 [n, m], n lines of m pixels. filled: bool [n, m], True for foreground pixels.
    """

    def __init__(self, pixels: Pixels, filled: Mask) -> None:
        content = np.flatnonzero(filled.any(axis=1))
        self.first, self.last = (int(content[0]), int(content[-1])) if len(content) else (0, -1)
        self.busy = (pixels != pixels[:, :1]).any(axis=1)  # lines with several colours, never between tiles
        self.evidence = np.zeros(len(pixels))  # for a tile border, relative to the picture's other lines
        self.parted = np.zeros(len(pixels))  # for a tile border, relative to lines in a whole sprite
        step = max(1, pixels.shape[1] // _LINES_COMPARED)
        self._pixels = pixels[self.first : self.last + 1, ::step]
        self._filled = filled[self.first : self.last + 1, ::step]
        self._shares: dict[int, float] = {}
        self._usual_share = -1.0
        self._weigh(pixels, filled)

    def __len__(self) -> int:
        return len(self.busy)

    def resemblance(self, distance: int) -> float:
        """Return the evidence for tiles repeating every `distance` lines, but not at a half or third of `distance`."""
        if not SMALLEST_TILE <= distance < self.last - self.first:
            return 0.0
        if self._usual_share < 0:
            most = (self.last - self.first) * 3 // 4
            others = np.unique(np.linspace(SMALLEST_TILE, max(SMALLEST_TILE, most), _DISTANCES).astype(int))
            self._usual_share = float(np.quantile([self._matching_share(other) for other in others.tolist()], _USUAL))
        nearer = [self._matching_share(distance // part) for part in (2, 3) if not distance % part]
        gain = self._matching_share(distance) - max([self._usual_share, *nearer])
        return min(max(_RESEMBLANCE * gain, -_MOST_RESEMBLANCE), _MOST_RESEMBLANCE)

    def _matching_share(self, distance: int) -> float:
        """Return the share of filled pixels with an equal colour `distance` lines further on."""
        if distance not in self._shares:
            here, there = self._filled[:-distance], self._filled[distance:]
            same = (self._pixels[:-distance] == self._pixels[distance:]) & here
            self._shares[distance] = float(same.sum() / max(1, int((here | there).sum())))
        return self._shares[distance]

    def _weigh(self, pixels: Pixels, filled: Mask) -> None:
        drawn = (pixels == pixels[:1]).all(axis=0)  # single-coloured columns: lines drawn between tiles
        touching = filled[1:] & filled[:-1] & ~drawn
        links = np.count_nonzero((pixels[1:] == pixels[:-1]) & touching, axis=1)[self.first : self.last]
        touches = np.count_nonzero(touching, axis=1)[self.first : self.last]
        if not links.any():
            return
        few, usual = np.quantile(touches, (_FEWEST, _USUAL))
        parting = few < _PARTING * usual
        if parting:
            links = links + touches
        crossed = np.digitize(links, _LEVELS * np.quantile(links[links > 0], _USUAL), right=True)
        anywhere = (np.bincount(crossed, minlength=4) + 1) / (len(links) + 4)
        inside = slice(self.first + 1, self.last + 1)
        self.evidence[inside] = np.log(_AT_BORDERS / anywhere)[crossed]
        # Full tiles may have many colours, with few links anywhere.
        self.parted[inside] = np.log(_AT_BORDERS / (_IN_SPRITES if parting else anywhere))[crossed]


@dataclass(frozen=True, eq=False, slots=True)
class TileSizes:
    """Score, and best start of the first tile, by spacing and tile size along one side of a sheet."""

    score: Floats  # [spacing, size], -inf for impossible sizes
    start: Ints  # [spacing, size], in pixels

    @classmethod
    def along(cls, lines: SideLines) -> Self:
        """Score every spacing and tile size along one side of a sheet."""
        shape = (MOST_SPACING + 1, LARGEST_TILE + 1)
        found = cls(np.full(shape, -np.inf), np.zeros(shape, np.int64))
        found._try_several(lines)
        found._try_one(lines)
        return found

    def _try_several(self, lines: SideLines) -> None:
        """Score the tile sizes with room for at least two tiles."""
        count = len(lines)
        largest = min(LARGEST_TILE, count // 2)
        spacings = np.arange(MOST_SPACING + 1)
        at = np.arange(count)
        busy_before = np.concatenate([[0], np.cumsum(lines.busy)])
        for period in range(SMALLEST_TILE, min(largest + MOST_SPACING, count, lines.last) + 1):
            phase = at % period
            start = np.arange(min(_MOST_MARGIN, period - 1) + 1)
            evidence = np.bincount(phase, lines.evidence, period)[start]
            start = start[(busy_before[start] == 0) & (evidence > _LEAST_EVIDENCE)]
            if not len(start):
                continue
            busy = np.bincount(phase, lines.busy, period) > 0
            clean = np.ones((len(spacings), len(start)), bool)
            clean[1:] = ~busy[(start - spacings[1:, None]) % period]
            clean = np.logical_and.accumulate(clean, axis=0)
            rest = (count - start + spacings[:, None]) % period
            score = evidence[start] - _START_RARITY[:, start]
            score -= _rest_rarity(rest, start, spacings[:, None], busy_before, lines.last + period)
            score = np.where(clean, score, -np.inf)
            best, size = score.argmax(axis=1), period - spacings
            fits = (size >= SMALLEST_TILE) & (size <= largest) & (score[spacings, best] > -np.inf)
            row, size, best = spacings[fits], size[fits], best[fits]
            self.score[row, size], self.start[row, size] = score[row, best], start[best]

    def _try_one(self, lines: SideLines) -> None:
        """Score a single tile: the whole side, the side without equal margins, or a page beginning with sprites."""
        count = len(lines)
        for margin in (0, *range(1, MOST_SPACING + 1), 16):
            if 2 * margin < count and not lines.busy[:margin].any() and not lines.busy[count - margin :].any():
                for spacing in range(MOST_SPACING + 1):
                    self._put(spacing, count - 2 * margin, margin, -_START_RARITY[spacing, margin])
        for size in range(max(count // 2 + 1, lines.last + 1), count):
            for spacing in range(MOST_SPACING + 1):
                self._put(spacing, size, 0, -_PARTLY_EMPTY)

    def _put(self, spacing: int, size: int, start: int, score: float) -> None:
        if SMALLEST_TILE <= size <= LARGEST_TILE and score > self.score[spacing, size]:
            self.score[spacing, size], self.start[spacing, size] = score, start


def _rest_rarity(rest: Ints, start: Ints, spacing: Ints, busy_before: Ints, used: int) -> Floats:
    """Return the log-odds against a grid that leaves `rest` lines after the last tile; 0 for equal margins.

    rest, start: number of lines behind the last and before the first tile. busy_before: number of busy lines before a
    line. used: lines up to the end of a further tile; a larger page need not end with a whole tile.
    """
    count = len(busy_before) - 1
    empty = busy_before[-1] == busy_before[count - rest]
    other = np.where(rest == spacing, _ONE_SIDED, np.where(empty, _PARTLY_EMPTY, _CUT_OFF))
    other = np.where(count - rest > used, np.minimum(other, _PAGE), other)
    return np.where(rest == start, 0.0, other)
