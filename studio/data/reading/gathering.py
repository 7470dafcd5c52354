"""What the readers found, until all sizes are known: pixels in a scratch file, of the rest a few bytes a sprite."""

from __future__ import annotations

import threading
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from studio.data.options import LARGEST_CANVAS
from studio.data.reading.read import DecodedSprite, Reading
from studio.data.sheets.recognising import Seen
from studio.data.sources.base import Remark, SourceFile
from studio.data.store.scratch import Scratch

_UNSEEN = -1  # instead of a place among the pixels
_NO_FILE = (1 << 32) - 1  # instead of the number of one


class _Texts(NamedTuple):
    """What most sprites don't have. As in DecodedSprite."""

    part: str
    folders: tuple[str, ...]
    label: str
    remarks: tuple[Remark, ...]
    cut: bool


_NO_TEXTS = _Texts("", (), "", (), cut=False)


class _AboutFile(NamedTuple):
    """What most files don't have. As in Reading."""

    left_out: list[Remark]
    remarks: list[Remark]


class Gathered:
    """Readings of the files of a list, put in by reader threads in any order and had back in that of the list."""

    def __init__(self, files: Sequence[SourceFile], folder: Path | None) -> None:
        self.sizes: Counter[tuple[int, int]] = Counter()  # of what can be seen, by (width, height)
        self.seen: dict[int, tuple[Seen, ...]] = {}  # of pictures that may be sheets, by the number of the file
        self._first_row: dict[int, int] = {}  # of the same files
        self._files, self._pixels = files, Scratch(folder)
        self._file_of, self._place = array("I"), array("q")
        self._size, self._visible = array("I"), array("I")  # width and height, one after the other
        self._texts: dict[int, _Texts] = {}
        self._about: dict[int, _AboutFile] = {}
        self._lock = threading.Lock()

    def put(self, number: int, reading: Reading) -> None:
        """Take over what came of the file of that number. Raises OSError when there is no room for its pixels."""
        with self._lock:
            if reading.seen:
                self.seen[number], self._first_row[number] = reading.seen, len(self._place)
            for sprite in reading.sprites:
                self._put_sprite(number, sprite)
            if reading.left_out or reading.remarks:
                self._about[number] = _AboutFile(reading.left_out, reading.remarks)

    def forget(self, numbers: Collection[int]) -> None:
        """Drop what came of these files: they are to be read once more, in another way."""
        if not numbers:
            return
        gone = np.flatnonzero(np.isin(np.frombuffer(self._file_of, np.uint32), list(numbers)))
        for row in gone.tolist():
            if self._sides(self._visible, row) != (0, 0):
                self.sizes[self._sides(self._size, row)] -= 1
            self._file_of[row], self._place[row] = _NO_FILE, _UNSEEN
        self.sizes = +self.sizes
        for number in numbers:
            self._about.pop(number, None)

    def size_of(self, number: int) -> tuple[int, int]:
        """Width and height of the one picture of a file in `seen`."""
        return self._sides(self._size, self._first_row[number])

    def close(self) -> None:
        """Let go of the pixels."""
        self._pixels.close()

    def fitting(self, size: int, *, exactly: bool) -> int:
        """How many sprites go on a canvas of that size, or are of that size exactly."""
        shown = np.frombuffer(self._place, np.int64) != _UNSEEN if self._place else np.zeros(0, bool)
        sides = np.frombuffer(self._size if exactly else self._visible, np.uint32) if self._place else np.zeros(0)
        pairs = sides.reshape(-1, 2)
        fits = (pairs == size).all(1) if exactly else pairs.max(1, initial=0) <= size
        return int((shown & fits).sum())

    def in_order(self) -> Iterator[tuple[int, SourceFile, Reading]]:
        """Every file that gave anything with what it gave, in the order of the list: (number, file, reading)."""
        pixels = self._pixels.array()
        file_of = np.frombuffer(self._file_of, np.uint32) if self._file_of else np.zeros(0, np.uint32)
        rows = np.argsort(file_of, kind="stable")
        starts = np.searchsorted(file_of[rows], np.arange(len(self._files) + 1))
        for number in range(len(self._files)):
            own = rows[starts[number] : starts[number + 1]].tolist()
            about = self._about.get(number)
            if own or (about is not None and about.left_out):
                left_out, remarks = about or ([], [])
                sprites = [self._sprite(row, pixels) for row in own]
                yield number, self._files[number], Reading(sprites, left_out, remarks)

    def _put_sprite(self, number: int, sprite: DecodedSprite) -> None:
        texts = _Texts(sprite.part, sprite.folders, sprite.label, sprite.remarks, sprite.cut)
        if texts != _NO_TEXTS:
            self._texts[len(self._place)] = texts
        if sprite.visible != (0, 0):
            self.sizes[sprite.size] += 1
        self._place.append(_UNSEEN if sprite.rgba is None else self._pixels.add(sprite.rgba))
        self._file_of.append(number)
        self._size.extend(sprite.size)
        self._visible.extend(sprite.visible)

    def _sprite(self, row: int, pixels: NDArray[np.uint8]) -> DecodedSprite:
        size, visible = self._sides(self._size, row), self._sides(self._visible, row)
        part, folders, label, remarks, cut = self._texts.get(row, _NO_TEXTS)
        place, rgba = self._place[row], None
        if place != _UNSEEN:
            width, height = visible if max(size) > LARGEST_CANVAS else size
            rgba = pixels[place : place + 4 * width * height].reshape(height, width, 4)
        return DecodedSprite(part, folders, label, size, visible, rgba, remarks, cut)

    @staticmethod
    def _sides(pairs: array[int], row: int) -> tuple[int, int]:
        return pairs[2 * row], pairs[2 * row + 1]
