"""Find sprites that differ in a few pixels, are moved by a pixel, or are mirrored.

A 112-bit difference hash (after N. Krawetz 2013) describes how brightness and coverage change between neighbouring
cells in an 8 x 8 grid over the centred sprite. Seven sorted lists bring similar hashes together; their sprites are then
compared by pixels.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.data.images.canvas import sprite_slices

_CELLS = 8
_LEAST_STEP = 3  # levels, 0 to 255; cells with larger differences count as different
_BYTES = 14  # bytes of a hash
_NEIGHBOURS = 8  # following hashes in a sorted list for comparison
_HASHES_AT_ONCE = 1 << 14  # hashes to compare with their neighbours, per batch
_FARTHEST_BITS = 16
_MOST_CHANGED = 0.04  # share of visible pixels; above, drawings differ
_LEAST_DIFFERENCE = 12  # least difference in a premultiplied channel; with a higher value, dark floors would match
_PAIRS_AT_ONCE = 512  # pairs in a batch of the quick comparison
_ROWS_COMPARED = 4  # evenly spread rows for the quick comparison
_COMPARED_PIXELS = 1 << 19  # pixels in a batch, geometry 40 bytes of memory each
_MOVES = (0, -1, 1)  # pixels to move a sprite, because a stray pixel shifts the centre


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """Pairs of similar sprites, sorted by the second sprite, then by the first."""

    first: NDArray[np.int64]  # [P], sprite index, smaller than `second`
    second: NDArray[np.int64]  # [P]
    mirrored: NDArray[np.bool_]  # [P], match with a mirror image
    changed: NDArray[np.int64]  # [P], number of differing pixels

    def first_matches(self) -> SimilarPairs:
        """Return one pair for each second sprite: the pair with the earliest similar sprite."""
        _, pairs = np.unique(self.second, return_index=True)
        return SimilarPairs(self.first[pairs], self.second[pairs], self.mirrored[pairs], self.changed[pairs])

    def describe(self, pair: int, first_name: str) -> str:
        """Describe the second sprite of a pair: 'like item/ruby.png, mirrored, but for 3 pixels'."""
        turned = ", mirrored" if self.mirrored[pair] else ""
        changed = int(self.changed[pair])
        but = f" but for {formatting.count(changed, 'pixel')}" if changed else ", moved" * (not turned)
        return f"like {first_name}{turned}{but}"


def find_similar(rgba: Rgba) -> Generator[Event, None, SimilarPairs]:
    """Return the pairs of similar sprites in uint8 [N, S, S, 4]; yields Progress."""
    hashes = yield from _hashes(rgba)
    candidates = yield from _candidates(hashes)
    candidates = yield from _worth_comparing(rgba, candidates)
    first, second, mirrored = candidates.T
    changed = np.empty(len(first), np.int64)
    for part in sprite_slices(rgba, len(first), _COMPARED_PIXELS):
        changed[part] = _changed(rgba[first[part]], rgba[second[part]], mirrored[part] == 1)
        yield Progress(part.stop, len(first), "pairs of sprites compared")
    alike = changed >= 0
    found = candidates[alike], changed[alike]
    order = np.lexsort((found[0][:, 2], found[0][:, 0], found[0][:, 1]))
    pairs, changed = found[0][order], found[1][order]
    return SimilarPairs(pairs[:, 0], pairs[:, 1], pairs[:, 2] == 1, changed)


def _hashes(rgba: Rgba) -> Generator[Event, None, NDArray[np.uint8]]:
    """Compute hashes of sprites and mirror images: uint8 [2, N, 14]."""
    found = np.zeros((2, len(rgba), _BYTES), np.uint8)
    for part in sprite_slices(rgba):
        level = _level(centred(rgba[part]))
        for side, each in enumerate((level, level[:, :, ::-1])):
            cells = _cells(each)
            down, across = np.diff(cells, axis=1) > _LEAST_STEP, np.diff(cells, axis=2) > _LEAST_STEP
            bits = np.concatenate([down.reshape(len(each), -1), across.reshape(len(each), -1)], 1)
            found[side, part] = np.packbits(bits, axis=1)
        yield Progress(part.stop, len(rgba), "sprites compared")
    return found


def centred(rgba: Rgba) -> Rgba:
    """Move the visible pixels of each sprite, uint8 [N, S, S, 4], to the centre, by whole pixels."""
    position = np.arange(rgba.shape[1])
    moves = _moves(np.asarray(rgba[..., 3] > 0))
    rows, columns = ((position - move[:, None]) % len(position) for move in moves)  # visible pixels never wrap around
    moved: Rgba = rgba[np.arange(len(rgba))[:, None, None], rows[:, :, None], columns[:, None, :]]
    return moved


def _moves(seen: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Return the moves, down and right, that centre each sprite's visible pixels, bool [N, S, S]: two int64 [N]."""
    size = seen.shape[1]
    moves = []
    for axis in (2, 1):  # projections on rows and on columns
        line = np.asarray(seen.any(axis=axis))
        low, high = line.argmax(1), size - 1 - line[:, ::-1].argmax(1)
        moves.append(np.where(line.any(1), (size - 1 - low - high) // 2, 0))
    return moves


def _level(rgba: Rgba) -> NDArray[np.int16]:
    """Return the mean of brightness and coverage (alpha) at each pixel: int16 [N, S, S], 0 to 255."""
    alpha = rgba[..., 3].astype(np.int32)
    light = (rgba[..., :3].astype(np.int32) @ np.array([2, 5, 1])) * alpha // (8 * 255)
    return np.asarray((light + alpha) // 2, np.int16)


def _cells(level: NDArray[np.int16]) -> NDArray[np.float64]:
    """Divide images [N, S, S] into 8 x 8 cells; return the mean per cell: float64 [N, 8, 8]."""
    if level.shape[1] < _CELLS:
        enlarged = -(-_CELLS // level.shape[1])
        level = level.repeat(enlarged, 1).repeat(enlarged, 2)
    edges = np.linspace(0, level.shape[1], _CELLS + 1).astype(np.int64)
    sums = np.add.reduceat(np.add.reduceat(level.astype(np.float64), edges[:-1], 1), edges[:-1], 2)
    sides = np.diff(edges)
    return np.asarray(sums / (sides[:, None] * sides))


def _candidates(hashes: NDArray[np.uint8]) -> Generator[Event, None, NDArray[np.int64]]:
    """Find pairs of similar hashes, uint8 [2, N, 14]: int64 [P, 3], first < second, 1 if mirrored. Yields Progress."""
    count = hashes.shape[1]
    both = hashes.reshape(2 * count, _BYTES)
    found = np.zeros(0, np.int64)  # pairs encoded as numbers: sorting rows of three takes long and holds the GIL
    bands = range(0, _BYTES, 2)
    apart = np.arange(1, _NEIGHBOURS + 1)
    for number, start in enumerate(bands, 1):
        order, pairs = _in_order(np.ascontiguousarray(np.roll(both, -start, axis=1))), [found]
        for begin in range(0, len(order), _HASHES_AT_ONCE):
            here = np.arange(begin, min(begin + _HASHES_AT_ONCE, len(order)))[:, None]
            one, other = np.broadcast_arrays(order[here], order[np.minimum(here + apart, len(order) - 1)])  # [H, 8]
            distance = np.bitwise_count(both[one] ^ both[other]).sum(2, dtype=np.uint8)
            near = (distance <= _FARTHEST_BITS) & (one % count != other % count) & ((one < count) | (other < count))
            one, other = one[near], other[near]
            low, high = np.minimum(one % count, other % count), np.maximum(one % count, other % count)
            pairs.append(2 * (low * count + high) + ((one < count) != (other < count)))
            yield Progress(number, len(bands), "lists of hashes searched")
        found = np.unique(np.concatenate(pairs))
    first, second = np.divmod(found // 2, count)
    return np.stack([first, second, found % 2], 1)


def _worth_comparing(rgba: Rgba, candidates: NDArray[np.int64]) -> Generator[Event, None, NDArray[np.int64]]:
    """Drop candidate pairs that differ too much in a few rows and one channel.

    A quick test that never drops a similar pair. candidates: int64 [P, 3] from `_candidates`. Yields Progress.
    """
    size = rgba.shape[1]
    rows = np.unique(np.linspace(0, size - 1, _ROWS_COMPARED + 2)[1:-1].round().astype(np.int64))
    geometry = yield from _geometry(rgba)
    kept = [candidates[:0]]
    for start in range(0, len(candidates), _PAIRS_AT_ONCE):
        part = candidates[start : start + _PAIRS_AT_ONCE]
        first, second, mirrored = part.T
        one = _green(rgba, first, geometry, np.zeros(len(part), np.bool_), rows)[:, :, 1:-1]
        best = np.full(len(part), np.iinfo(np.int64).max)
        others = _green(rgba, second, geometry, mirrored == 1, np.concatenate([rows - down for down in _MOVES]))
        for other in np.split(others, len(_MOVES), axis=1):
            for right in _MOVES:
                moved = other[:, :, 1 - right : 1 - right + size]
                best = np.minimum(best, np.count_nonzero(np.abs(one - moved) > _LEAST_DIFFERENCE, axis=(1, 2)))
        kept.append(part[best <= _most_changed(np.minimum(geometry.visible[first], geometry.visible[second]))])
        yield Progress(min(start + _PAIRS_AT_ONCE, len(candidates)), len(candidates), "pairs of sprites checked")
    return np.concatenate(kept)


@dataclass(frozen=True, eq=False)
class _Geometry:
    """Moves down and right that centre sprites and mirror images, int64 [2, N]; number of visible pixels, int64 [N]."""

    down: NDArray[np.int64]
    right: NDArray[np.int64]
    visible: NDArray[np.int64]


def _geometry(rgba: Rgba) -> Generator[Event, None, _Geometry]:
    """Compute the sprites' geometry; yields Progress."""
    down, right = np.zeros((2, len(rgba)), np.int64), np.zeros((2, len(rgba)), np.int64)
    visible = np.zeros(len(rgba), np.int64)
    for part in sprite_slices(rgba):
        seen = np.asarray(rgba[part, :, :, 3] > 0)
        visible[part] = np.count_nonzero(seen, axis=(1, 2))
        for side, each in enumerate((seen, seen[:, :, ::-1])):
            down[side, part], right[side, part] = _moves(each)
        yield Progress(part.stop, len(rgba), "sprites compared")
    return _Geometry(down, right, visible)


def _green(
    rgba: Rgba, chosen: NDArray[np.int64], geometry: _Geometry, mirrored: NDArray[np.bool_], rows: NDArray[np.int64]
) -> NDArray[np.int16]:
    """Return the premultiplied green of some rows of selected sprites, centred: int16 [P, rows, S + 2].

    The result has an empty border; a row outside the canvas is empty.
    """
    size, side = rgba.shape[1], mirrored.astype(np.int64)
    row = (rows - geometry.down[side, chosen][:, None]) % size
    column = (np.arange(size) - geometry.right[side, chosen][:, None]) % size
    column = np.where(mirrored[:, None], size - 1 - column, column)
    index = chosen[:, None, None], row[:, :, None], column[:, None, :]
    green = rgba[(*index, 1)].astype(np.uint16) * rgba[(*index, 3)] // 255
    green[:, (rows < 0) | (rows >= size)] = 0
    return np.pad(green.astype(np.int16), ((0, 0), (0, 0), (1, 1)))


def _in_order(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the indices, int64 [N], that sort rows [N, _BYTES] byte by byte."""
    padded = np.zeros((len(rows), 16), np.uint8)
    padded[:, :_BYTES] = rows
    high, low = padded.view(">u8").astype(np.uint64).T
    return np.lexsort((low, high))


def _changed(first: Rgba, second: Rgba, mirrored: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the differing pixels of pairs of sprites, at the best alignment: int64 [P], -1 for too many.

    first, second: uint8 [P, S, S, 4], the sprites of each pair. mirrored: bool [P], compare the mirrored second sprite.
    """
    second = np.where(mirrored[:, None, None, None], second[:, :, ::-1], second)
    one, other = _channels(centred(first), border=1), _channels(centred(second), border=2)
    size = one.shape[2]
    best = np.full(len(first), np.iinfo(np.int64).max)
    for down in _MOVES:
        for right in _MOVES:
            moved = other[:, :, 1 - down : 1 - down + size, 1 - right : 1 - right + size]
            differs = (np.abs(one - moved) > _LEAST_DIFFERENCE).any(1)
            best = np.minimum(best, np.count_nonzero(differs, axis=(1, 2)))
    visible = np.minimum(*(np.count_nonzero(channels[:, 3], axis=(1, 2)) for channels in (one, other)))
    return np.where(best <= _most_changed(visible), best, -1)


def _most_changed(visible: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how many pixels may differ between two similar sprites, float64 [P].

    visible: int64 [P], number of visible pixels of the smaller sprite in each of P pairs.
    """
    return np.asarray(np.maximum(1.0, _MOST_CHANGED * visible))


def _channels(rgba: Rgba, border: int) -> NDArray[np.int16]:
    """Return premultiplied red, green and blue, and alpha: int16 [P, 4, E, E], E = S + 2 * border, the border empty."""
    channels = np.moveaxis(rgba, 3, 1).astype(np.uint16)
    channels[:, :3] = channels[:, :3] * channels[:, 3:] // 255
    return np.pad(channels.astype(np.int16), ((0, 0), (0, 0), (border, border), (border, border)))
