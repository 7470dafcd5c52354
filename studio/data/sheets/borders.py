"""Where the tiles of a sheet may begin along one of its sides, from its pixels.

A border between tiles is crossed by few pixels that touch, and by fewer of one colour: sprites end before it, and those
on its two sides are different ones. Tiles of a size are likely where that holds at each of their borders and seldom
elsewhere, and where each resembles the next, as the frames of an animation do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

SMALLEST_TILE, LARGEST_TILE = 4, 256
MOST_SPACING = 8
_MOST_MARGIN = 32
_USUAL = 0.75  # quantile of the links between neighbouring lines that stands for those inside of sprites
_LEVELS = np.array([0.06, 0.35, 0.7])  # shares of the usual links: lines are linked by at most so many, or by more
# How often that is so at the borders of tiles, and between any two lines of a whole sprite: measured on drawn ones.
_AT_BORDERS = np.array([0.84, 0.10, 0.04, 0.02])
_IN_SPRITES = np.array([0.03, 0.13, 0.24, 0.60])
_FEWEST = 0.05  # quantile of the pixels that touch across lines that stands for those at borders
_PARTING = 0.25  # share of the usual touching pixels: where no lines have fewer, tiles are full and parted by colour
_HOPELESS = -6.0  # evidence: no resemblance makes up for less
_RESEMBLANCE = 10.0  # evidence if all that can be seen comes back at a distance, and nothing at others
_MOST_RESEMBLANCE = 4.0
_LINES_COMPARED = 64
_DISTANCES = 24  # other ones that a resemblance is measured by
# Natural logarithms of how much rarer something is than its plain counterpart, as far as that can be said.
_ONE_SIDED, _PAGE, _PARTLY_EMPTY, _CUT_OFF = 1.0, 0.5, 3.0, 8.0  # what is left behind the last tile
_MARGIN_AS_SPACING, _EVEN_MARGIN, _ANY_MARGIN = 0.5, 2.0, 3.0
_EVEN_MARGINS = (1, 2, 4, 8, 16)

# By the spacing and the margin before the first tile.
_START_RARITY = np.array(
    [
        [
            0.0 if not start
            else _MARGIN_AS_SPACING if start == spacing
            else _EVEN_MARGIN if start in _EVEN_MARGINS
            else _ANY_MARGIN
            for start in range(_MOST_MARGIN + 1)
        ]
        for spacing in range(MOST_SPACING + 1)
    ]
)  # fmt: skip

Pixels = NDArray[np.uint32]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SideLines:
    """The rows of a picture, or its columns: uint32 [n, m], of which bool [n, m] is not background."""

    def __init__(self, pixels: Pixels, filled: Mask) -> None:
        content = np.flatnonzero(filled.any(axis=1))
        self.first, self.last = (int(content[0]), int(content[-1])) if len(content) else (0, -1)
        self.busy = (pixels != pixels[:, :1]).any(axis=1)  # hold more than one colour: no line between tiles does
        self.evidence = np.zeros(len(pixels))  # that a tile begins there, against anywhere in this picture
        self.parted = np.zeros(len(pixels))  # the same, against anywhere in a whole sprite
        step = max(1, pixels.shape[1] // _LINES_COMPARED)
        self._pixels = pixels[self.first : self.last + 1, ::step]
        self._filled = filled[self.first : self.last + 1, ::step]
        self._again: dict[int, float] = {}
        self._usually = -1.0
        self._weigh(pixels, filled)

    def __len__(self) -> int:
        return len(self.busy)

    def resemblance(self, distance: int) -> float:
        """Evidence that what lies so many lines further on is another tile: it looks the same, as nothing nearer does.

        At twice the size of the tiles they resemble each other as well, so what a half or a third shows is taken off.
        """
        if not SMALLEST_TILE <= distance < self.last - self.first:
            return 0.0
        if self._usually < 0:
            most = (self.last - self.first) * 3 // 4
            others = np.unique(np.linspace(SMALLEST_TILE, max(SMALLEST_TILE, most), _DISTANCES).astype(int))
            self._usually = float(np.quantile([self._seen_again(other) for other in others.tolist()], _USUAL))
        nearer = [self._seen_again(distance // part) for part in (2, 3) if not distance % part]
        gain = self._seen_again(distance) - max([self._usually, *nearer])
        return min(max(_RESEMBLANCE * gain, -_MOST_RESEMBLANCE), _MOST_RESEMBLANCE)

    def _seen_again(self, distance: int) -> float:
        """The share of what can be seen that has the same colour so many lines further on."""
        if distance not in self._again:
            here, there = self._filled[:-distance], self._filled[distance:]
            same = (self._pixels[:-distance] == self._pixels[distance:]) & here
            self._again[distance] = float(same.sum() / max(1, int((here | there).sum())))
        return self._again[distance]

    def _weigh(self, pixels: Pixels, filled: Mask) -> None:
        drawn = (pixels == pixels[:1]).all(axis=0)  # lines that lead along between tiles link everything
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
        # Where all is full, whole pictures can be of many colours, so that little goes on anywhere.
        self.parted[inside] = np.log(_AT_BORDERS / (_IN_SPRITES if parting else anywhere))[crossed]


@dataclass(frozen=True, eq=False, slots=True)
class TileSizes:
    """The best for each spacing and tile size, both as index. score: float, -inf for none. start: int, in pixels."""

    score: Floats
    start: Ints

    @classmethod
    def along(cls, lines: SideLines) -> Self:
        """Try all sizes."""
        shape = (MOST_SPACING + 1, LARGEST_TILE + 1)
        found = cls(np.full(shape, -np.inf), np.zeros(shape, np.int64))
        found._try_several(lines)
        found._try_one(lines)
        return found

    def _try_several(self, lines: SideLines) -> None:
        """Tiles one after another."""
        count = len(lines)
        largest = min(LARGEST_TILE, count // 2)
        spacings = np.arange(MOST_SPACING + 1)
        at = np.arange(count)
        busy_before = np.concatenate([[0], np.cumsum(lines.busy)])
        for period in range(SMALLEST_TILE, min(largest + MOST_SPACING, count, lines.last) + 1):
            phase = at % period
            start = np.arange(min(_MOST_MARGIN, period - 1) + 1)
            evidence = np.bincount(phase, lines.evidence, period)[start]
            start = start[(busy_before[start] == 0) & (evidence > _HOPELESS)]
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
        """A single tile: the whole side, all but equal margins, or what holds the sprites at the begin of a page."""
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
    """rest: lines behind the last tile, of which a grid with equal margins leaves as many as before the first.

    used: lines up to where one more tile would end. A page that goes on behind that needn't come out even.
    """
    count = len(busy_before) - 1
    empty = busy_before[-1] == busy_before[count - rest]
    other = np.where(rest == spacing, _ONE_SIDED, np.where(empty, _PARTLY_EMPTY, _CUT_OFF))
    other = np.where(count - rest > used, np.minimum(other, _PAGE), other)
    return np.where(rest == start, 0.0, other)
