"""Group related sprites: frames of one file, mirror images, recolours and other near duplicates.

A train/validation split must not separate a group: the validation loss would measure memorisation.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core import files
from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.core.npz import load_arrays
from studio.data.images.canvas import as_uint32
from studio.data.similarity.near_duplicates import SimilarPairs, find_similar
from studio.data.sprites import Sprites

MOST_COMPARED = 100_000  # sprites; larger sets are grouped by file only
_ANIMATION = 32  # sprites; longest usual animation in a sheet, always allowed as a group
_LONGEST_ANIMATION = 256  # frames; files with more are not animations
_RUN = 8  # sprites; length of most animations in a sheet
_LARGEST_SHARE = 0.1  # largest group, as a share of the class
_SHORTEST_CUT = 4  # sprites; shorter chains of near duplicates are never cut
_BATCH_SIZE = 256  # sprites
_FEWEST_COLOURS = 3  # in a drawing; with fewer colours, equal shapes mean little
_PIXELS_PER_COLOUR = 2  # average; fewer would match unrelated pictures
_MOST_FILES = 50  # cache files
_VERSION = 1  # increase when the search changes
_NAME = "twins-*.npz"

Pairs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """Near duplicates in a set of sprites."""

    copies: Pairs  # [P, 2], pairs with a moved, mirrored or recoloured copy
    similar: SimilarPairs  # pairs with a few differing pixels


def groups_by_file(first: Pairs, is_of_sheet: NDArray[np.bool_], labels: NDArray[np.int64]) -> Pairs:
    """Group sprites by file; return the groups by sprite, int64 [N].

    first: int64 [N], index of the file's first sprite. is_of_sheet: bool [N], True for sprites from a sheet. labels:
    int64 [N], classes. To leave enough sprites for validation, splits a sheet with more than a tenth of a class into
    runs of eight sprites, and very long animations.
    """
    groups, sizes = first.copy(), np.bincount(first, minlength=len(first))
    counts = np.bincount(labels)[labels] if len(labels) else labels
    largest = np.where(is_of_sheet, np.maximum(_ANIMATION, _LARGEST_SHARE * counts), _LONGEST_ANIMATION)
    for file in np.flatnonzero(sizes > largest).tolist():
        members = np.flatnonzero(first == file)
        groups[members] = members[np.arange(len(members)) // _RUN * _RUN]
    return groups


def group_near_duplicates(sprites: Sprites, cache_dir: Path | None) -> Generator[Event, None, Sprites]:
    """Put near duplicates into one group; return the regrouped sprites. Yields Progress.

    Sprites from a file already share a group (see `groups_by_file`). Copies are joined first, then sprites that differ
    in a few pixels, most similar first. No group grows beyond a tenth of its class: long chains are cut at the weakest
    link. A set that the user chose counts as one sprite. cache_dir: folder where the pairs are stored for later calls.
    """
    groups = _Groups(sprites)
    if len(sprites) <= MOST_COMPARED:
        near = yield from find_near_duplicates(sprites, cache_dir)
        groups.join(near.copies, _ANIMATION)
        order = np.argsort(near.similar.changed, kind="stable")
        groups.join(np.stack([near.similar.first, near.similar.second], 1)[order], _SHORTEST_CUT)
    return dataclasses.replace(sprites, groups=groups.numbers())


def find_near_duplicates(sprites: Sprites, cache_dir: Path | None) -> Generator[Event, None, NearDuplicates]:
    """Return all near duplicates; yields Progress. cache_dir: folder where the result is stored for later calls."""
    if cache_dir is None:
        return (yield from _search(sprites))
    for done in sprites.compute_fingerprint():
        yield Progress(done, len(sprites), "sprites looked up")
    kept = cache_dir / _NAME.replace("*", f"{_VERSION}-{sprites.fingerprint}")
    with contextlib.suppress(OSError, ValueError, KeyError):
        arrays = load_arrays(kept.read_bytes())
        return _unpacked(arrays["copies"], arrays["similar"], len(sprites))
    found = yield from _search(sprites)
    similar = found.similar
    with contextlib.suppress(OSError):
        files.sweep_temporaries(cache_dir)
        with files.atomic_path(kept) as temporary:
            rows = np.stack([similar.first, similar.second, similar.mirrored, similar.changed])
            np.savez(temporary, copies=found.copies, similar=rows)
        for old in sorted(cache_dir.glob(_NAME), key=os.path.getmtime)[:-_MOST_FILES]:
            old.unlink()
    return found


def _search(sprites: Sprites) -> Generator[Event, None, NearDuplicates]:
    """Search for all near duplicates; yields Progress."""
    copies = yield from _same_drawings(sprites.rgba)
    similar = yield from find_similar(sprites.rgba)
    return NearDuplicates(copies, similar)


def _unpacked(copies: Pairs, similar: Pairs, count: int) -> NearDuplicates:
    """Convert arrays from a cache file to near duplicates. Raises ValueError for invalid arrays.

    copies: int64 [P, 2], indices of equal sprites. similar: int64 [4, Q], the fields of SimilarPairs as rows. count:
    number of sprites, which bounds the indices.
    """
    if copies.ndim != 2 or copies.shape[1] != 2 or similar.ndim != 2 or len(similar) != 4:
        raise ValueError("no pairs")
    if copies.dtype != np.int64 or similar.dtype != np.int64:
        raise ValueError("no indices")
    for first, second in (copies.T, similar[:2]):
        if not ((first >= 0) & (first < second) & (second < count)).all():
            raise ValueError("pairs of other sprites")
    return NearDuplicates(copies, SimilarPairs(similar[0], similar[1], similar[2] == 1, similar[3]))


class _Groups:
    """A union-find structure over sprites."""

    def __init__(self, sprites: Sprites) -> None:
        self._tenth = _LARGEST_SHARE * sprites.class_counts()[sprites.labels]
        _, first, group = np.unique(sprites.groups, return_index=True, return_inverse=True)
        self._parent = first[group].astype(np.int64)  # initially the group's first sprite
        self._sizes = np.bincount(self._parent, minlength=len(sprites))
        cells = np.unique(sprites.sets.table) if sprites.sets.chosen else np.zeros(0, np.int32)
        cells = cells[cells >= 0]
        self._units = np.ones(len(sprites), np.int64)  # number of sprites that count together as one unit
        self._units[cells] = self._sizes[self._parent[cells]]

    def join(self, pairs: Pairs, always: int) -> None:
        """Join the two groups of every pair, int64 [P, 2], in order, up to a tenth of the class or `always` sprites."""
        largest = np.maximum(always * self._units, self._tenth)
        for one, other in pairs.tolist():
            low, high = sorted((self._root(one), self._root(other)))
            size = self._sizes[low] + self._sizes[high]
            if low != high and size <= min(largest[low], largest[high]):
                self._parent[high], self._sizes[low] = low, size

    def numbers(self) -> NDArray[np.int64]:
        """Return every sprite's group, by the index of the group's first sprite: int64 [N]."""
        return np.array([self._root(index) for index in range(len(self._parent))], np.int64)

    def _root(self, index: int) -> int:
        while self._parent[index] != index:
            self._parent[index] = self._parent[self._parent[index]]
            index = int(self._parent[index])
        return index


def _same_drawings(rgba: Rgba) -> Generator[Event, None, Pairs]:
    """Return pairs of sprites equal except for colours, position and mirroring: int64 [P, 2]. Yields Progress."""
    first: dict[bytes, int] = {}
    pairs = []
    for start in range(0, len(rgba), _BATCH_SIZE):
        for index, sprite in enumerate(as_uint32(rgba[start : start + _BATCH_SIZE]), start):
            drawing = _drawing_digest(sprite)
            if drawing is not None and first.setdefault(drawing, index) != index:
                pairs.append((first[drawing], index))
        yield Progress(min(start + _BATCH_SIZE, len(rgba)), len(rgba), "sprites compared")
    return np.array(pairs, np.int64).reshape(-1, 2)


def _drawing_digest(pixels: NDArray[np.uint32]) -> bytes | None:
    """Return a digest of uint32 [S, S], shared by recoloured, mirrored and moved copies.

    Numbers colours by first appearance. None for sprites with too few or too many colours.
    """
    seen = pixels != 0
    rows, columns = np.flatnonzero(seen.any(1)), np.flatnonzero(seen.any(0))
    if not len(rows):
        return None
    box = pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    colours, number = np.unique(box, return_inverse=True)
    count = len(colours) - (colours[0] == 0)
    if count < _FEWEST_COLOURS or count * _PIXELS_PER_COLOUR > np.count_nonzero(box):
        return None
    number = number.reshape(box.shape) + (colours[0] != 0)  # 0 is transparent
    return min(_digest(number), _digest(number[:, ::-1]))


def _digest(number: NDArray[np.int64]) -> bytes:
    """Return a digest of colour numbers [h, w], 0 for transparent, renumbered by first appearance."""
    flat = np.ascontiguousarray(number).ravel()
    used, first = np.unique(flat, return_index=True)
    rank = np.zeros(int(used[-1]) + 1, np.int64)
    rank[used[used > 0][np.argsort(first[used > 0])]] = np.arange(1, np.count_nonzero(used) + 1)
    return hashlib.blake2b(rank[flat].tobytes() + repr(number.shape).encode(), digest_size=16).digest()
