"""Pictures of all sizes, gathered until all sizes are known -> `Sprites`: one canvas, each sprite once, in classes."""

from __future__ import annotations

import hashlib
import shutil
import threading
from array import array
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.data.files import scratch
from studio.data.files.scratch import Scratch
from studio.data.files.source_files import Quarantined, Remark, SourceFile
from studio.data.images.canvas import (
    LARGE_PICTURE,
    looks_like_sheet,
    paste_centred,
    propose_canvas_size,
    visible_bounds,
)
from studio.data.labels.labelling import Labelling, names_in_file
from studio.data.options import LARGEST_CANVAS, SHEET_GROUPS, FoundSheet, ImportOptions
from studio.data.reading.read import DecodedSprite, Reading
from studio.data.sheets.leftover import leftover_strips
from studio.data.sheets.recognising import SheetCandidate
from studio.data.similarity.groups import groups_by_file
from studio.data.sprites import Sprites

MOST_SPRITES = 4_000_000
_UNSEEN = -1  # instead of a place among the pixels
_NO_FILE = (1 << 32) - 1  # instead of the number of one
_SHEET = "looks like a sheet"
_ADVICE = {
    "as they are": "let Sheets be grid or packed (--sheets grid), or save a JSON that describes its sprites",
    "grid": "no such grid is seen in it, so give its tiles (--tile 16 --spacing 1)",
    "packed": "nothing parts its sprites, so try a grid (--sheets grid)",
}


@dataclass(frozen=True, eq=False, slots=True)
class Duplicate:
    """A sprite that was left out because one that was kept has the same pixels.

    item: as it stands in the quarantine. first: index of the one that was kept. class_name, numbers: what would be its
    own; one number for each of Sprites.target_names, NaN where it is missing.
    """

    item: Quarantined
    first: int
    class_name: str
    numbers: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ImportResult:
    """As in SpritesImported; `sprites` may be empty. duplicates: those of the sprites, in the order of their files."""

    sprites: Sprites
    quarantine: tuple[Quarantined, ...]
    notes: tuple[Quarantined, ...]
    sizes: Mapping[tuple[int, int], int]
    proposed_size: int
    duplicates: tuple[Duplicate, ...]
    sheets: tuple[FoundSheet, ...] = ()


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


class ImportBuffer:
    """Readings of the files of a list, put in by reader threads in any order and had back in that of the list.

    Pixels go to a scratch file; the rest is a few bytes a sprite.
    """

    def __init__(self, files: Sequence[SourceFile], folder: Path | None) -> None:
        self.sizes: Counter[tuple[int, int]] = Counter()  # of what can be seen, by (width, height)
        # Of pictures that may be sheets, by the number of the file.
        self.candidates: dict[int, tuple[SheetCandidate, ...]] = {}
        self.sheet_sizes: dict[int, tuple[int, int]] = {}  # width and height, by the number of the file
        self._files, self._pixels = files, Scratch(folder)
        self._file_of, self._offsets = array("I"), array("q")
        self._size, self._visible = array("I"), array("I")  # width and height, one after the other
        self._texts: dict[int, _Texts] = {}
        self._about: dict[int, _AboutFile] = {}
        self._lock = threading.Lock()

    def put(self, number: int, reading: Reading) -> None:
        """Take over what came of the file of that number. Raises OSError when there is no room for its pixels."""
        with self._lock:
            if reading.candidates:
                self.candidates[number], self.sheet_sizes[number] = reading.candidates, reading.sheet_size
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
            self._file_of[row], self._offsets[row] = _NO_FILE, _UNSEEN
        self.sizes = +self.sizes
        for number in numbers:
            self._about.pop(number, None)

    def close(self) -> None:
        """Let go of the pixels."""
        self._pixels.close()

    def fitting(self, size: int, *, exactly: bool) -> int:
        """How many sprites go on a canvas of that size, or are of that size exactly."""
        shown = np.frombuffer(self._offsets, np.int64) != _UNSEEN if self._offsets else np.zeros(0, bool)
        sides = np.frombuffer(self._size if exactly else self._visible, np.uint32) if self._offsets else np.zeros(0)
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
            self._texts[len(self._offsets)] = texts
        if sprite.visible != (0, 0):
            self.sizes[sprite.size] += 1
        self._offsets.append(_UNSEEN if sprite.rgba is None else self._pixels.add(sprite.rgba))
        self._file_of.append(number)
        self._size.extend(sprite.size)
        self._visible.extend(sprite.visible)

    def _sprite(self, row: int, pixels: NDArray[np.uint8]) -> DecodedSprite:
        size, visible = self._sides(self._size, row), self._sides(self._visible, row)
        part, folders, label, remarks, cut = self._texts.get(row, _NO_TEXTS)
        place, rgba = self._offsets[row], None
        if place != _UNSEEN:
            width, height = visible if max(size) > LARGEST_CANVAS else size
            rgba = pixels[place : place + 4 * width * height].reshape(height, width, 4)
        return DecodedSprite(part, folders, label, size, visible, rgba, remarks, cut)

    @staticmethod
    def _sides(pairs: array[int], row: int) -> tuple[int, int]:
        return pairs[2 * row], pairs[2 * row + 1]


class _Table:
    """What has been kept and left out so far."""

    def __init__(self, options: ImportOptions, size: int, labelling: Labelling, folder: Path | None) -> None:
        self.options, self.size, self.labelling = options, size, labelling
        self.pixels = Scratch(folder)  # uint8 [N, size, size, 4]
        self.names: list[str] = []
        self.classes: dict[str, int] = {}  # numbers by name, in the order of their first sprites
        self.class_names: list[str] = []  # by that number
        self.class_of = array("q")
        self.rows = array("q")  # of the labelling
        self.first_of_file = array("q")  # index of the first sprite of the same file
        self.is_of_sheet = array("b")  # and whether that is a sheet
        self.is_test = array("b")  # as in Sprites
        self.places: dict[bytes, int] = {}  # digest of the pixels -> index of the sprite
        self.quarantine: list[Quarantined] = []
        self.notes: list[Quarantined] = []
        self.duplicates: list[Duplicate] = []

    def class_number(self, name: str) -> int:
        """The number of a class, a new one if it has none yet."""
        number = self.classes.setdefault(name, len(self.class_names))
        if number == len(self.class_names):
            self.class_names.append(name)
        return number

    def sprites(self, title: str) -> Sprites:
        """Those that were kept, their classes sorted by name."""
        count, size = len(self.names), self.size
        class_names = tuple(sorted(self.classes))
        rank = {name: label for label, name in enumerate(class_names)}
        ranks = np.array([rank[name] for name in self.class_names], np.int64)
        labels = ranks[np.array(self.class_of, np.int64)] if count else np.zeros(0, np.int64)
        rgba = self.pixels.array().reshape(count, size, size, 4)
        self.pixels.close()
        targets = self.labelling.targets_of(np.array(self.rows, np.int64))
        names, target_names = tuple(self.names), self.labelling.target_names
        groups = groups_by_file(np.array(self.first_of_file, np.int64), np.array(self.is_of_sheet, np.bool_), labels)
        is_test = np.array(self.is_test, np.bool_)
        return Sprites(rgba, labels, class_names, names, title, targets, target_names, groups=groups, is_test=is_test)


def arrange(
    gathered: ImportBuffer,
    options: ImportOptions,
    title: str,
    problems: Sequence[Quarantined],
    labelling: Labelling,
    sheets: Mapping[int, SheetCandidate],
    folder: Path | None,
) -> Generator[int, None, ImportResult]:
    """Returns an ImportResult, with what could not even be looked at (`problems`) in its quarantine.

    sheets: what was recognised, by the number of the file, whether it was cut or not.
    Yields the number of the file that it is at, after each sprite. Very many sprites go to a scratch file in `folder`.
    Raises BadInputError, and OSError when there is no room.
    """
    proposed = propose_canvas_size(gathered.sizes)
    size = options.size or proposed
    room = gathered.fitting(size, exactly=options.other_sizes == "leave out")
    if room > MOST_SPRITES:
        raise BadInputError(f"There are more than {MOST_SPRITES:,} sprites.", "Import a smaller folder.")
    _check_room(room, size, scratch.usable(folder))
    table = _Table(options, size, labelling, folder)
    found = []
    for number, file, reading in gathered.in_order():
        sheet = sheets.get(number)
        if sheet is not None:
            pieces = sum(sprite.cut for sprite in reading.sprites)  # 0 for a sheet that stays uncut
            found.append(FoundSheet(file.name, sheet.grid, pieces or sheet.sprites))
        for _ in _add_file(table, file, reading, sheet):
            yield number
    gathered.close()
    quarantine = sorted([*problems, *table.quarantine], key=lambda item: item.name)
    sprites = table.sprites(title)
    notes = sorted([*table.notes, *labelling.notes()], key=lambda item: item.name)
    lists = (tuple(quarantine), tuple(notes))
    return ImportResult(sprites, *lists, dict(gathered.sizes), proposed, tuple(table.duplicates), tuple(found))


def _check_room(count: int, size: int, folder: Path) -> None:
    """Raises BadInputError when so many sprites of that size can't be kept."""
    needed = count * size * size * 4
    if needed > scratch.IN_MEMORY and shutil.disk_usage(folder).free < needed + scratch.SPARE:
        title = f"{formatting.count(count, 'sprite')} on a canvas of {size} x {size} need {formatting.memory(needed)}"
        free = formatting.memory(shutil.disk_usage(folder).free)
        hint = f"Free some space where {folder} is, choose a smaller canvas, or import a smaller folder."
        raise BadInputError(f"{title} on the drive, which has {free} left.", hint)


def _fits(sprite: DecodedSprite, size: int, options: ImportOptions) -> bool:
    if sprite.rgba is None:
        return False
    return sprite.size == (size, size) if options.other_sizes == "leave out" else max(sprite.visible) <= size


def _add_file(table: _Table, file: SourceFile, reading: Reading, sheet: SheetCandidate | None) -> Iterator[None]:
    """Put one sprite of a file after the other on the canvas or in quarantine, and its remarks if any was kept."""
    table.quarantine += [_quarantined(file, remark) for remark in reading.left_out]
    before = len(table.names)
    names = names_in_file([sprite.part for sprite in reading.sprites])
    for sprite, names_of_sprite in zip(reading.sprites, names, strict=True):
        row = table.labelling.row_of(file, names_of_sprite)
        if _put_on_canvas(table, file, sprite, sheet, row):
            table.first_of_file.append(before)
            table.is_of_sheet.append(sprite.cut or bool(sprite.folders))  # that of a sheet that a file describes
            table.is_test.append(file.is_of_test_set)
            table.notes += [_quarantined(file, remark) for remark in sprite.remarks]
            if sheet is not None and not sprite.cut and not sprite.part:
                table.notes.append(_quarantined(file, Remark(_SHEET, _in_words(sprite, sheet))))
        yield
    kept = len(table.names) > before
    for remark in reading.remarks:
        if kept or remark.group in (*SHEET_GROUPS, "magenta ground"):
            reason = remark.reason
            if remark.group == "partly described" and sheet is not None:
                reason = f"{reason}, {_looks(sheet, 'more sprite')}"
            table.notes.append(_quarantined(file, replace(remark, reason=reason)))


def _put_on_canvas(
    table: _Table, file: SourceFile, sprite: DecodedSprite, sheet: SheetCandidate | None, row: int
) -> bool:
    """Put a sprite at the end of the table, or in quarantine where it can't be. Whether it is kept."""
    if not _fits(sprite, table.size, table.options):
        table.quarantine.append(_quarantined(file, _misfit(sprite, sheet, table.size, table.options)))
        return False
    assert sprite.rgba is not None
    place = len(table.names)
    canvas = np.zeros((table.size, table.size, 4), np.uint8)
    _fit(sprite.rgba, canvas)
    class_name = (
        sprite.label or table.labelling.class_of(row) or _folder_class(file, sprite, table.options.class_levels)
    )
    first = table.places.setdefault(hashlib.blake2b(canvas.data, digest_size=16).digest(), place)
    if first != place and table.options.duplicates == "leave out":
        classes = (table.class_names[table.class_of[first]], class_name)
        differ = table.labelling.differ(table.rows[first], row)
        reason = same_as(table.names[first], classes, numbers_differ=differ)
        item = _quarantined(file, Remark("duplicate", reason, sprite.part))
        numbers = table.labelling.targets_of(np.array([row]))[0].tolist()
        table.quarantine.append(item)
        table.duplicates.append(Duplicate(item, first, class_name, tuple(numbers)))
        return False
    table.pixels.add(canvas)
    table.names.append(_name(file, sprite.part))
    table.class_of.append(table.class_number(class_name))
    table.rows.append(row)
    return True


def _folder_class(file: SourceFile, sprite: DecodedSprite, levels: int) -> str:
    """The class by folders. That a sheet which is cut, or its row, makes one was asked for, however deep it lies."""
    if sprite.cut:
        return "/".join((*file.folders[:levels], *sprite.folders))
    return "/".join((*file.folders, *sprite.folders)[:levels]) or file.home


def same_as(name: str, classes: tuple[str, str], *, numbers_differ: bool) -> str:
    """Why a duplicate is left out. name: of the sprite that is kept. classes: of that one and of the duplicate."""
    kept, own = classes
    conflict = "" if kept == own else f", which is in another class: {kept!r}, not {own!r}"
    return f"the same pixels as {name}{conflict}" + (", which has other numbers" if numbers_differ else "")


def too_few(class_name: str, count: int) -> str:
    """Why a sprite of a small class is left out."""
    return f"its class {class_name!r} has only {formatting.count(count, 'sprite')}"


def _fit(rgba: Rgba, canvas: Rgba) -> None:
    """Centre the picture on the canvas; where it is larger, its visible part."""
    if max(rgba.shape[:2]) > canvas.shape[0]:
        box = visible_bounds(rgba)
        assert box is not None
        left, top, right, bottom = box
        rgba = rgba[top:bottom, left:right]
    paste_centred(rgba, canvas)


def _in_words(sprite: DecodedSprite, sheet: SheetCandidate) -> str:
    """'256 x 16 pixels, looks like 21 sprites of 12 x 16'."""
    width, height = sprite.size
    return f"{width:,} x {height:,} pixels, {_looks(sheet, 'sprite')}"


def _looks(sheet: SheetCandidate, noun: str) -> str:
    """Return 'looks like 5 sprites of 16 x 16', and the pixels left over behind the last tiles."""
    sprites = formatting.count(sheet.sprites, noun)
    rest = leftover_strips(*sheet.rest)
    return f"looks like {sprites} of {sheet.grid.tile_width} x {sheet.grid.tile_height}" + (f", {rest}" if rest else "")


def _misfit(sprite: DecodedSprite, sheet: SheetCandidate | None, size: int, options: ImportOptions) -> Remark:
    width, height = sprite.size
    if sprite.visible == (0, 0):
        return Remark("empty", "nothing to see: every pixel is fully transparent", sprite.part)
    too_large = max(width, height) > LARGE_PICTURE and looks_like_sheet(width, height, size)
    if not sprite.part and (sheet is not None or too_large):
        perhaps = f"{width:,} x {height:,} pixels, perhaps a sheet of many sprites"
        reason = perhaps if sheet is None else _in_words(sprite, sheet)
        return Remark(_SHEET, f"{reason}: {_ADVICE[options.sheets]}")
    if options.other_sizes == "leave out":
        return Remark("wrong size", f"{width} x {height} pixels instead of {size} x {size}", sprite.part)
    return Remark("wrong size", f"{width} x {height} pixels: too large for the canvas of {size} x {size}", sprite.part)


def _quarantined(file: SourceFile, remark: Remark) -> Quarantined:
    return Quarantined(_name(file, remark.part), remark.reason, remark.group, file.path)


def _name(file: SourceFile, part: str) -> str:
    return f"{file.name}#{part}" if part else file.name


def commonest(quarantine: Sequence[Quarantined], most: int = 3) -> str:
    """The commonest reasons in words, with how often: '8 x empty: the file has no bytes; ...'."""
    counts = Counter(item.reason for item in quarantine)
    return "; ".join(f"{count:,} x {reason}" for reason, count in counts.most_common(most))
