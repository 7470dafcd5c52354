"""Hold an import's read results until every size is known: pixels in a scratch file, other fields in columns."""

from __future__ import annotations

import threading
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from studio.data.files.scratch import ScratchBuffer
from studio.data.files.source_files import SourceFile, SourceIssue
from studio.data.options import LARGEST_CANVAS
from studio.data.reading.read import DecodedSprite, ReadResult
from studio.data.sheets.recognising import SheetCandidate

_NO_PIXELS = -1  # offset of a sprite without pixels
_NO_FILE = (1 << 32) - 1  # file number of a dropped sprite


class _RareFields(NamedTuple):
    """Fields of a DecodedSprite, empty for most sprites and stored only if set."""

    part: str = ""
    folders: tuple[str, ...] = ()
    label: str = ""
    remarks: tuple[SourceIssue, ...] = ()
    cut: bool = False
    attributes: tuple[tuple[str, str], ...] = ()


_NO_RARE_FIELDS = _RareFields()


class _FileIssues(NamedTuple):
    """Fields of a ReadResult, empty for most files and stored only if set."""

    left_out: list[SourceIssue]
    remarks: list[SourceIssue]


class ImportBuffer:
    """Holds the read results for `files`. Reader threads `put` results in any order; `in_order` yields sorted results.

    sizes: sprite counts by (width, height), without empty sprites. candidates, sheet_sizes: possible grids and (width,
    height) of possible sheets, by file number. sliced: numbers of the sliced files.
    """

    def __init__(self, files: Sequence[SourceFile], folder: Path | None) -> None:
        self.sizes: Counter[tuple[int, int]] = Counter()
        self.candidates: dict[int, tuple[SheetCandidate, ...]] = {}
        self.sheet_sizes: dict[int, tuple[int, int]] = {}
        self.sliced: set[int] = set()
        self.files, self._pixels = files, ScratchBuffer(folder)
        self._file_of, self._offsets = array("I"), array("q")
        self._size, self._visible = array("I"), array("I")  # alternating widths and heights
        self._rare: dict[int, _RareFields] = {}
        self._issues: dict[int, _FileIssues] = {}
        self._lock = threading.Lock()

    def put(self, number: int, result: ReadResult) -> None:
        """Store the read result for file `number`. Raises OSError on a full disk."""
        with self._lock:
            if result.candidates:
                self.candidates[number], self.sheet_sizes[number] = result.candidates, result.sheet_size
            if any(sprite.cut for sprite in result.sprites):
                self.sliced.add(number)
            for sprite in result.sprites:
                self._put_sprite(number, sprite)
            if result.left_out or result.remarks:
                self._issues[number] = _FileIssues(result.left_out, result.remarks)

    def drop(self, numbers: Collection[int]) -> None:
        """Drop the read results for the files `numbers`. The import then reads and slices these files by a grid."""
        dropped = np.flatnonzero(np.isin(np.array(self._file_of), list(numbers)))
        for row in dropped.tolist():
            if self._sides(self._visible, row) != (0, 0):
                self.sizes[self._sides(self._size, row)] -= 1
            self._file_of[row], self._offsets[row] = _NO_FILE, _NO_PIXELS
        self.sizes = +self.sizes
        self.sliced.difference_update(numbers)
        for number in numbers:
            self._issues.pop(number, None)

    def close(self) -> None:
        """Free the pixels' memory or scratch file."""
        self._pixels.close()

    def count_fitting(self, size: int, *, exactly: bool) -> int:
        """Count the sprites fitting on a square canvas with width `size`. exactly: sprites that measure `size` only."""
        if not self._offsets:
            return 0
        has_pixels = np.frombuffer(self._offsets, np.int64) != _NO_PIXELS
        sides = np.frombuffer(self._size if exactly else self._visible, np.uint32).reshape(-1, 2)
        fits = (sides == size).all(1) if exactly else sides.max(1) <= size
        return int((has_pixels & fits).sum())

    def picture_sizes(self) -> dict[int, tuple[int, int]]:
        """Return the picture's (width, height) for files with a single picture, by file number."""
        numbers, first, counts = np.unique(np.array(self._file_of), return_index=True, return_counts=True)
        single = zip(numbers[counts == 1].tolist(), first[counts == 1].tolist(), strict=True)
        return {number: self._sides(self._size, row) for number, row in single if number != _NO_FILE}

    def count_by_fit(
        self, size: int, sheets: Collection[int], *, exactly: bool
    ) -> tuple[int, tuple[tuple[int, int, int], ...]]:
        """Count the images outside the files `sheets`: fitting images, as in `count_fitting`, and other images by size.

        Returns (number of fitting images, (width, height, number of other images) by size).
        """
        file_of = np.array(self._file_of)
        visible, sides = (np.array(values).reshape(-1, 2) for values in (self._visible, self._size))
        counted = ~np.isin(file_of, [*sheets, _NO_FILE]) & visible.any(1)
        fits = (sides == size).all(1) if exactly else visible.max(1, initial=0) <= size
        others, counts = np.unique(sides[counted & ~fits], axis=0, return_counts=True)
        skipped = zip(*others.T.tolist(), counts.tolist(), strict=True) if len(counts) else ()
        return int((counted & fits).sum()), tuple(skipped)

    def in_order(self) -> Iterator[tuple[int, SourceFile, ReadResult]]:
        """Yield (number, file, result) in file order, for files with sprites or left-out parts."""
        pixels = self._pixels.array()
        file_of = np.frombuffer(self._file_of, np.uint32) if self._file_of else np.zeros(0, np.uint32)
        rows = np.argsort(file_of, kind="stable")
        starts = np.searchsorted(file_of[rows], np.arange(len(self.files) + 1))
        for number in range(len(self.files)):
            own = rows[starts[number] : starts[number + 1]].tolist()
            issues = self._issues.get(number)
            if own or (issues is not None and issues.left_out):
                left_out, remarks = issues or ([], [])
                sprites = [self._sprite(row, pixels) for row in own]
                yield number, self.files[number], ReadResult(sprites, left_out, remarks)

    def _put_sprite(self, number: int, sprite: DecodedSprite) -> None:
        rare = _RareFields(sprite.part, sprite.folders, sprite.label, sprite.remarks, sprite.cut, sprite.attributes)
        if rare != _NO_RARE_FIELDS:
            self._rare[len(self._offsets)] = rare
        if sprite.visible != (0, 0):
            self.sizes[sprite.size] += 1
        self._offsets.append(_NO_PIXELS if sprite.rgba is None else self._pixels.add(sprite.rgba))
        self._file_of.append(number)
        self._size.extend(sprite.size)
        self._visible.extend(sprite.visible)

    def _sprite(self, row: int, pixels: NDArray[np.uint8]) -> DecodedSprite:
        size, visible = self._sides(self._size, row), self._sides(self._visible, row)
        part, folders, label, remarks, cut, attributes = self._rare.get(row, _NO_RARE_FIELDS)
        offset, rgba = self._offsets[row], None
        if offset != _NO_PIXELS:
            width, height = visible if max(size) > LARGEST_CANVAS else size
            rgba = pixels[offset : offset + 4 * width * height].reshape(height, width, 4)
        return DecodedSprite(part, folders, label, size, visible, rgba, remarks, cut, attributes)

    @staticmethod
    def _sides(pairs: array[int], row: int) -> tuple[int, int]:
        return pairs[2 * row], pairs[2 * row + 1]
