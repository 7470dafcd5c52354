"""Sprites that hardly differ: a few other pixels, a place one pixel further, a mirror image.

A hash of 112 bits says how light and cover change from one of 8 x 8 cells to the next (a difference hash, after
N. Krawetz 2013), once the sprite is moved to the middle of its canvas. Hashes that have most bits in common stand near
each other in some of seven sorted lists; the pixels of such pairs are then compared.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core import wording
from studio.core.events import Event, Progress, Rgba

_CELLS = 8
_STEP = 3  # levels, 0 to 255, from which on two cells count as different
_BYTES = 14  # of a hash
_NEIGHBOURS = 8  # in a sorted list that are looked at
_FARTHEST_BITS = 16
_MOST_CHANGED = 0.04  # of the pixels that can be seen: more, and it is another drawing
_NOTICED = (
    12  # levels of any premultiplied channel by which a pixel is another one: more, and dark floors are all alike
)
_PAIRS_AT_ONCE = 512
_HASHED_AT_ONCE = 1024
_MOVES = (0, -1, 1)  # pixels: a stray pixel at the border moves the middle


@dataclass(frozen=True, eq=False)
class Similar:
    """Pairs of similar sprites, sorted by the second, then by the first.

    first, second: indices int64 [P], first < second. mirrored: bool [P]. changed: int64 [P], how many pixels differ.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    mirrored: NDArray[np.bool_]
    changed: NDArray[np.int64]

    def earliest(self) -> Similar:
        """Each second only once, with the earliest one that it is like."""
        _, pairs = np.unique(self.second, return_index=True)
        return Similar(self.first[pairs], self.second[pairs], self.mirrored[pairs], self.changed[pairs])

    def words(self, pair: int, first_name: str) -> str:
        """What the second of a pair is to the first: 'like item/ruby.png, mirrored, but for 3 pixels'."""
        turned = ", mirrored" if self.mirrored[pair] else ""
        changed = int(self.changed[pair])
        but = f" but for {wording.count(changed, 'pixel')}" if changed else ", moved" * (not turned)
        return f"like {first_name}{turned}{but}"


def find_similar(rgba: Rgba) -> Generator[Event, None, Similar]:
    """Which of uint8 [N, S, S, 4] are like which; yields Progress."""
    hashes = yield from _hashes(rgba)
    candidates = yield from _candidates(hashes)
    first, second, mirrored = candidates.T
    changed = np.empty(len(first), np.int64)
    for start in range(0, len(first), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        changed[part] = _changed(rgba[first[part]], rgba[second[part]], mirrored[part] == 1)
        yield Progress(min(start + _PAIRS_AT_ONCE, len(first)), len(first), "pairs of sprites compared")
    alike = changed >= 0
    found = candidates[alike], changed[alike]
    order = np.lexsort((found[0][:, 2], found[0][:, 0], found[0][:, 1]))
    pairs, changed = found[0][order], found[1][order]
    return Similar(pairs[:, 0], pairs[:, 1], pairs[:, 2] == 1, changed)


def _hashes(rgba: Rgba) -> Generator[Event, None, NDArray[np.uint8]]:
    """Of each sprite and of its mirror image: uint8 [2, N, 14]."""
    found = np.zeros((2, len(rgba), _BYTES), np.uint8)
    for start in range(0, len(rgba), _HASHED_AT_ONCE):
        part = slice(start, start + _HASHED_AT_ONCE)
        level = _level(centred(rgba[part]))
        for side, each in enumerate((level, level[:, :, ::-1])):
            cells = _cells(each)
            down, across = np.diff(cells, axis=1) > _STEP, np.diff(cells, axis=2) > _STEP
            bits = np.concatenate([down.reshape(len(each), -1), across.reshape(len(each), -1)], 1)
            found[side, part] = np.packbits(bits, axis=1)
        yield Progress(min(start + _HASHED_AT_ONCE, len(rgba)), len(rgba), "sprites looked at")
    return found


def centred(rgba: Rgba) -> Rgba:
    """uint8 [N, S, S, 4], what can be seen of each moved to the middle by whole pixels."""
    size = rgba.shape[1]
    seen = np.asarray(rgba[..., 3] > 0)
    place = np.arange(size)
    moves = []
    for axis in (2, 1):  # rows are seen where any column is, and the other way round
        line = np.asarray(seen.any(axis=axis))
        low, high = line.argmax(1), size - 1 - line[:, ::-1].argmax(1)
        moves.append(np.where(line.any(1), (size - 1 - low - high) // 2, 0))
    rows, columns = ((place - move[:, None]) % size for move in moves)  # nothing that is seen goes round
    moved: Rgba = rgba[np.arange(len(rgba))[:, None, None], rows[:, :, None], columns[:, None, :]]
    return moved


def _level(rgba: Rgba) -> NDArray[np.int16]:
    """Half light, half cover: int16 [N, S, S] from 0 to 255."""
    alpha = rgba[..., 3].astype(np.int32)
    light = (rgba[..., :3].astype(np.int32) @ np.array([2, 5, 1])) * alpha // (8 * 255)
    return np.asarray((light + alpha) // 2, np.int16)


def _cells(level: NDArray[np.int16]) -> NDArray[np.float64]:
    """The means of 8 x 8 cells of [N, S, S]: float64 [N, 8, 8]."""
    if level.shape[1] < _CELLS:
        enlarged = -(-_CELLS // level.shape[1])
        level = level.repeat(enlarged, 1).repeat(enlarged, 2)
    edges = np.linspace(0, level.shape[1], _CELLS + 1).astype(np.int64)
    sums = np.add.reduceat(np.add.reduceat(level.astype(np.float64), edges[:-1], 1), edges[:-1], 2)
    sides = np.diff(edges)
    return np.asarray(sums / (sides[:, None] * sides))


def _candidates(hashes: NDArray[np.uint8]) -> Generator[Event, None, NDArray[np.int64]]:
    """Pairs whose hashes are near: int64 [P, 3], first < second, and whether one of them is mirrored."""
    count = hashes.shape[1]
    both = hashes.reshape(2 * count, _BYTES)
    found = np.zeros(0, np.int64)  # pairs as numbers: rows of three are sorted slowly, and hold the interpreter
    bands = range(0, _BYTES, 2)
    for number, start in enumerate(bands, 1):
        turned = np.ascontiguousarray(np.roll(both, -start, axis=1))
        order, pairs = _in_order(turned), [found]
        for apart in range(1, _NEIGHBOURS + 1):
            one, other = order[:-apart], order[apart:]
            far = np.bitwise_count(both[one] ^ both[other]).sum(1)
            near = (far <= _FARTHEST_BITS) & (one % count != other % count) & ((one < count) | (other < count))
            one, other = one[near], other[near]
            low, high = np.minimum(one % count, other % count), np.maximum(one % count, other % count)
            pairs.append(2 * (low * count + high) + ((one < count) != (other < count)))
            yield Progress(number, len(bands), "lists of likenesses searched")
        found = np.unique(np.concatenate(pairs))
    first, second = np.divmod(found // 2, count)
    return np.stack([first, second, found % 2], 1)


def _in_order(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The places int64 [N] of rows [N, _BYTES] in the order of their bytes."""
    padded = np.zeros((len(rows), 16), np.uint8)
    padded[:, :_BYTES] = rows
    high, low = padded.view(">u8").astype(np.uint64).T
    return np.lexsort((low, high))


def _changed(first: Rgba, second: Rgba, mirrored: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many pixels differ between sprites uint8 [P, S, S, 4] and others, best of some moves: int64 [P].

    -1 where there are too many of them.
    """
    second = np.where(mirrored[:, None, None, None], second[:, :, ::-1], second)
    one, other = (_channels(centred(sprites)) for sprites in (first, second))
    best = np.full(len(first), np.iinfo(np.int64).max)
    for move in ((down, right) for down in _MOVES for right in _MOVES):
        differs = np.zeros(one[0].shape, np.bool_)
        for channel, moved in zip(one, (np.roll(channel, move, (1, 2)) for channel in other), strict=True):
            differs |= np.abs(channel - moved) > _NOTICED
        best = np.minimum(best, np.count_nonzero(differs, axis=(1, 2)))
    visible = np.minimum(*(np.count_nonzero(channels[3], axis=(1, 2)) for channels in (one, other)))
    return np.where(best <= np.maximum(1, _MOST_CHANGED * visible), best, -1)


def _channels(rgba: Rgba) -> list[NDArray[np.int16]]:
    """Premultiplied red, green and blue, and alpha, each int16 [P, S + 2, S + 2] with an empty border."""
    around = ((0, 0), (1, 1), (1, 1))
    alpha = np.pad(rgba[..., 3].astype(np.uint16), around)
    colours = (np.pad(rgba[..., channel].astype(np.uint16), around) * alpha // 255 for channel in range(3))
    return [channel.astype(np.int16) for channel in (*colours, alpha)]
