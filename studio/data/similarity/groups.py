"""Groups of sprites that belong together: frames of one file, mirror images, recolours and other near duplicates.

What is learnt from one tells of all the others. A split that parts them measures memory, not learning.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from studio.core import files
from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.data.images.canvas import as_uint32
from studio.data.similarity.near_duplicates import SimilarPairs, find_similar
from studio.data.sprites import Sprites

MOST_COMPARED = 100_000  # sprites: of more, only those of a file are kept together
_ANIMATION = 32  # sprites: hardly any animation in a sheet is longer; as many may always be a group
_LONGEST_ANIMATION = 256  # frames of a file of its own; what holds more is no animation
_RUN = 8  # sprites: as long as most animations in a sheet of many
_LARGEST_SHARE = 0.1  # of its class that a group may be
_FEWEST_CUT = 4  # sprites: a chain of near duplicates that is no longer is not cut, however small its class is
_AT_ONCE = 256  # sprites
_FEWEST_COLOURS = 3  # of a drawing: with fewer, that another one has the same shapes says little
_PIXELS_A_COLOUR = 2  # at least, on average: where nearly all pixels differ, any picture is a recolour of any other
_MOST_KEPT = 50  # files of pairs that were found
_VERSION = 1  # to be raised when other pairs would be found
_NAME = "twins-*.npz"

Pairs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """Which sprites tell of which: moved, mirrored or recoloured copies, int64 [P, 2], and those that hardly differ."""

    copies: Pairs
    similar: SimilarPairs


def groups_by_file(first: Pairs, is_of_sheet: NDArray[np.bool_], labels: NDArray[np.int64]) -> Pairs:
    """The group of each sprite by its file, int64 [N].

    first: int64 [N], index of the first sprite of the same file. is_of_sheet: bool [N], whether the file is a sheet and
    no animation. labels: int64 [N], classes. A sheet that is more than a tenth of its class is cut into runs of eight,
    or there would be little to hold out; so is what holds more frames than any animation.
    """
    groups, sizes = first.copy(), np.bincount(first, minlength=len(first))
    counts = np.bincount(labels)[labels] if len(labels) else labels
    largest = np.where(is_of_sheet, np.maximum(_ANIMATION, _LARGEST_SHARE * counts), _LONGEST_ANIMATION)
    for file in np.flatnonzero(sizes > largest).tolist():
        members = np.flatnonzero(first == file)
        groups[members] = members[np.arange(len(members)) // _RUN * _RUN]
    return groups


def group_near_duplicates(sprites: Sprites, cache_dir: Path | None) -> Generator[Event, None, Sprites]:
    """The same sprites, with near duplicates in one group; yields Progress.

    Sprites of a file are a group already (see `groups_by_file`). Copies join them first, then sprites that differ in a
    few pixels, the most similar first. No group grows beyond a tenth of its class: a long chain of near duplicates is
    cut at its weakest link. cache_dir: folder for the pairs found, read the next time.
    """
    groups = _Groups(sprites)
    if len(sprites) <= MOST_COMPARED:
        near = yield from find_near_duplicates(sprites, cache_dir)
        groups.join(near.copies, _ANIMATION)
        order = np.argsort(near.similar.changed, kind="stable")
        groups.join(np.stack([near.similar.first, near.similar.second], 1)[order], _FEWEST_CUT)
    return dataclasses.replace(sprites, groups=groups.numbers())


def find_near_duplicates(sprites: Sprites, cache_dir: Path | None) -> Generator[Event, None, NearDuplicates]:
    """All near duplicates among them, kept in `cache_dir` for the next time, if that can be; yields Progress."""
    if cache_dir is None:
        return (yield from _look_for_pairs(sprites))
    for done in sprites.compute_fingerprint():
        yield Progress(done, len(sprites), "sprites looked up")
    kept = cache_dir / _NAME.replace("*", f"{_VERSION}-{sprites.fingerprint}")
    unreadable = contextlib.suppress(OSError, ValueError, EOFError, KeyError, BadZipFile)
    with unreadable, kept.open("rb") as data, np.load(data) as file:  # numpy leaves a damaged file open that it opened
        return _unpacked(file["copies"], file["similar"], len(sprites))
    found = yield from _look_for_pairs(sprites)
    similar = found.similar
    with contextlib.suppress(OSError):
        files.sweep_temporaries(cache_dir)
        with files.atomic_path(kept) as temporary:
            rows = np.stack([similar.first, similar.second, similar.mirrored, similar.changed])
            np.savez(temporary, copies=found.copies, similar=rows)
        for old in sorted(cache_dir.glob(_NAME), key=os.path.getmtime)[:-_MOST_KEPT]:
            old.unlink()
    return found


def _look_for_pairs(sprites: Sprites) -> Generator[Event, None, NearDuplicates]:
    copies = yield from _same_drawings(sprites.rgba)
    similar = yield from find_similar(sprites.rgba)
    return NearDuplicates(copies, similar)


def _unpacked(copies: Pairs, similar: Pairs, count: int) -> NearDuplicates:
    """Of a file's arrays int64 [P, 2] and [4, Q], about so many sprites. Raises ValueError for what can't be pairs."""
    if copies.ndim != 2 or copies.shape[1] != 2 or similar.ndim != 2 or len(similar) != 4:
        raise ValueError("no pairs")
    if copies.dtype != np.int64 or similar.dtype != np.int64:
        raise ValueError("no indices")
    for first, second in (copies.T, similar[:2]):
        if not ((first >= 0) & (first < second) & (second < count)).all():
            raise ValueError("pairs of other sprites")
    return NearDuplicates(copies, SimilarPairs(similar[0], similar[1], similar[2] == 1, similar[3]))


class _Groups:
    """A partition of sprites that can be made coarser (a union-find over them)."""

    def __init__(self, sprites: Sprites) -> None:
        self._tenth = _LARGEST_SHARE * sprites.class_counts()[sprites.labels]
        self._parent = _first_of_each(sprites.groups)
        self._sizes = np.bincount(self._parent, minlength=len(sprites))

    def join(self, pairs: Pairs, always: int) -> None:
        """Join the groups of pairs int64 [P, 2], in this order, unless the group would be too large.

        always: sprites up to which a group may grow in any class.
        """
        largest = np.maximum(always, self._tenth)
        for one, other in pairs.tolist():
            low, high = sorted((self._root(one), self._root(other)))
            size = self._sizes[low] + self._sizes[high]
            if low != high and size <= min(largest[low], largest[high]):
                self._parent[high], self._sizes[low] = low, size

    def numbers(self) -> NDArray[np.int64]:
        """The group of each sprite, int64 [N]: the index of its first member."""
        return np.array([self._root(index) for index in range(len(self._parent))], np.int64)

    def _root(self, index: int) -> int:
        while self._parent[index] != index:
            self._parent[index] = self._parent[self._parent[index]]
            index = int(self._parent[index])
        return index


def _first_of_each(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each entry the first place at which its value stands: int64 [N]."""
    _, first, own = np.unique(groups, return_index=True, return_inverse=True)
    return first[own].astype(np.int64)


def _same_drawings(rgba: Rgba) -> Generator[Event, None, Pairs]:
    """Pairs of sprites that are the same but for colours, place and mirroring: int64 [P, 2]; yields Progress."""
    first: dict[bytes, int] = {}
    pairs = []
    for start in range(0, len(rgba), _AT_ONCE):
        for index, sprite in enumerate(as_uint32(rgba[start : start + _AT_ONCE]), start):
            drawing = _drawing(sprite)
            if drawing is not None and first.setdefault(drawing, index) != index:
                pairs.append((first[drawing], index))
        yield Progress(min(start + _AT_ONCE, len(rgba)), len(rgba), "sprites looked at")
    return np.array(pairs, np.int64).reshape(-1, 2)


def _drawing(pixels: NDArray[np.uint32]) -> bytes | None:
    """A digest that a sprite, uint32 [S, S], shares with its recolours and mirror images, wherever they are placed.

    Colours are numbered in the order in which they come. None for sprites of too few colours, or too many.
    """
    seen = pixels != 0
    rows, columns = np.flatnonzero(seen.any(1)), np.flatnonzero(seen.any(0))
    if not len(rows):
        return None
    box = pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    colours, number = np.unique(box, return_inverse=True)
    count = len(colours) - (colours[0] == 0)
    if count < _FEWEST_COLOURS or count * _PIXELS_A_COLOUR > np.count_nonzero(box):
        return None
    number = number.reshape(box.shape) + (colours[0] != 0)  # 0 stands for clear
    return min(_numbered(number), _numbered(number[:, ::-1]))


def _numbered(number: NDArray[np.int64]) -> bytes:
    """A digest of colour numbers [h, w], 0 for clear, renumbered by their first places."""
    flat = np.ascontiguousarray(number).ravel()
    used, first = np.unique(flat, return_index=True)
    rank = np.zeros(int(used[-1]) + 1, np.int64)
    rank[used[used > 0][np.argsort(first[used > 0])]] = np.arange(1, np.count_nonzero(used) + 1)
    return hashlib.blake2b(rank[flat].tobytes() + repr(number.shape).encode(), digest_size=16).digest()
