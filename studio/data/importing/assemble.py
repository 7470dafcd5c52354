"""Build `Sprites` from read results: put each sprite on the canvas, drop duplicates, assign classes and targets."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from studio.core import formatting
from studio.core.errors import BadInputError
from studio.core.pictures import pixel_digest
from studio.data.attributes.reading import AttributeReader, parse_names
from studio.data.files import scratch
from studio.data.files.scratch import ScratchBuffer
from studio.data.files.source_files import ImportIssue, SourceFile, SourceIssue
from studio.data.images.canvas import (
    LARGE_PICTURE,
    crop_transparent,
    looks_like_sheet,
    paste_centred,
    propose_canvas_size,
)
from studio.data.import_result import SHEET_GROUPS, DetectedSheet, Duplicate, ImportResult, duplicate_reason
from studio.data.importing.import_buffer import ImportBuffer
from studio.data.importing.set_places import add_sets, propose_unsliced
from studio.data.importing.sheet_summary import folder_class, sheet_class, summarize_sheets
from studio.data.labels.lookup import LabelLookup, names_in_file
from studio.data.options import ImportOptions
from studio.data.reading.read import DecodedSprite, ReadResult
from studio.data.sets.table import SetTables
from studio.data.sheets.leftover import leftover_strips
from studio.data.sheets.recognising import SheetCandidate
from studio.data.similarity.groups import groups_by_file
from studio.data.sprites import Sprites

MAX_SPRITES = 4_000_000
_SHEET = "looks like a sheet"
_SLICING_ADVICE = {
    "as they are": "set Sheets to grid or packed (--sheets grid), or add a JSON description",
    "grid": "no grid detected, enter the tile size (--tile 16 --spacing 1)",
    "packed": "no gaps found, try a grid (--sheets grid)",
}


def assemble(
    buffer: ImportBuffer,
    options: ImportOptions,
    title: str,
    problems: Sequence[ImportIssue],
    labels: LabelLookup,
    sheets: Mapping[int, SheetCandidate],
    folder: Path | None,
    tables: SetTables,
) -> Generator[int, None, ImportResult]:
    """Build the sprites and issues of an import from the read results in `buffer`, and close the buffer.

    Yields the current file number after each sprite. problems: issues of unreadable files, for the quarantine. sheets:
    detected sheets by file number, sliced or not. folder: where large pixel data go to a scratch file. tables: sets.csv
    files. Raises BadInputError for too many sprites or too little disk space, and OSError for a full disk.
    """
    proposed = propose_canvas_size(buffer.sizes)
    size = options.size or proposed
    count = buffer.count_fitting(size, exactly=options.other_sizes == "leave out")
    if count > MAX_SPRITES:
        raise BadInputError(f"More than {MAX_SPRITES:,} sprites.", "Import a smaller folder.")
    _check_disk_space(count, size, scratch.writable_folder(folder))
    summary = summarize_sheets(buffer, options, sheets)
    assembler = _Assembler(options.replace(sheet_classes=summary.classes or "sheet"), size, labels, folder)
    detected = []
    for number, file, result in buffer.in_order():
        sheet = sheets.get(number)
        if sheet is not None:
            tiles = sum(sprite.cut for sprite in result.sprites)  # 0 for a sheet that stays whole
            detected.append(DetectedSheet(file.name, sheet.grid, tiles or sheet.sprites))
        for _ in assembler.add_file(file, result, sheet):
            yield number
    proposed_sets = propose_unsliced(buffer, options, sheets)
    buffer.close()
    quarantine = tuple(sorted([*problems, *assembler.quarantine], key=lambda issue: issue.name))
    sprites = assembler.sprites(title)
    notes = tuple(
        sorted([*assembler.notes, *labels.notes(), *assembler.attributes.notes], key=lambda issue: issue.name)
    )
    sizes, duplicates = dict(buffer.sizes), tuple(assembler.duplicates)
    summary = replace(summary, hidden=assembler.hidden_folders())
    about = (quarantine, notes, sizes, proposed, duplicates, tuple(detected), summary, proposed_sets)
    imported = yield from add_sets(ImportResult(sprites, *about), options, tables, len(buffer.files))
    proposal = assembler.attributes.proposal(len(sprites), has_sets=len(imported.sprites.sets) > 0)
    return replace(imported, proposed_attributes=proposal)


def _check_disk_space(count: int, size: int, folder: Path) -> None:
    """Raise BadInputError if `count` sprites of `size` x `size` pixels fit neither in memory nor on the disk."""
    needed = count * size * size * 4
    if needed > scratch.MEMORY_LIMIT and shutil.disk_usage(folder).free < needed + scratch.RESERVED_BYTES:
        title = f"{formatting.count(count, 'sprite')} on a canvas of {size} x {size} need {formatting.memory(needed)}"
        free = formatting.memory(shutil.disk_usage(folder).free)
        hint = f"Free some space where {folder} is, choose a smaller canvas, or import a smaller folder."
        raise BadInputError(f"{title} on the drive, which has {free} left.", hint)


class _Assembler:
    """Collects the kept sprites of an import, and the issues of kept and excluded sprites."""

    def __init__(self, options: ImportOptions, size: int, labels: LabelLookup, folder: Path | None) -> None:
        self.quarantine: list[ImportIssue] = []
        self.notes: list[ImportIssue] = []
        self.duplicates: list[Duplicate] = []
        self._options, self._size, self._labels = options, size, labels
        self._pixels = ScratchBuffer(folder)  # uint8 [N, size, size, 4]
        self._names: list[str] = []
        self._class_numbers: dict[str, int] = {}  # by class name, in the order of the first sprites
        self._class_names: list[str] = []  # by class number
        self._class_of = array("q")  # class number by sprite
        self._label_rows = array("q")  # labels row by sprite, or -1
        self._first_of_file = array("q")  # index of the first sprite from the file
        self._is_of_sheet = array("b")
        self._is_test = array("b")
        self._index_of: dict[bytes, int] = {}  # pixel digest -> sprite index
        self.attributes = AttributeReader(options.attributes, parse_names(options.attribute_names))
        self._shown_folders: set[str] = set()  # folders of kept sprites
        self._sheet_folders: set[str] = set()  # folders of sheets too large for the canvas

    def sprites(self, title: str) -> Sprites:
        """Return the kept sprites, with classes sorted by name."""
        count, size = len(self._names), self._size
        class_names = tuple(sorted(self._class_numbers))
        ranks = np.array([class_names.index(name) for name in self._class_names], np.int64)
        labels = ranks[np.array(self._class_of, np.int64)] if count else np.zeros(0, np.int64)
        rgba = self._pixels.array().reshape(count, size, size, 4)
        self._pixels.close()
        first, is_of_sheet = np.array(self._first_of_file, np.int64), np.array(self._is_of_sheet, np.bool_)
        return Sprites(
            rgba, labels, class_names, tuple(self._names), title,
            targets=self._labels.targets_of(np.array(self._label_rows, np.int64)),
            target_names=self._labels.target_names,
            groups=groups_by_file(first, is_of_sheet, labels),
            is_test=np.array(self._is_test, np.bool_),
            attributes=self.attributes.build(count),
        )  # fmt: skip

    def hidden_folders(self) -> tuple[str, ...]:
        """Return the folders without kept sprites whose sheets are too large for the canvas."""
        return tuple(sorted(self._sheet_folders - self._shown_folders))

    def add_file(self, file: SourceFile, result: ReadResult, sheet: SheetCandidate | None) -> Iterator[None]:
        """Add the sprites and issues of a file; yields after every sprite.

        Most remarks on the file are added only if a sprite is kept. sheet: the detected sheet, if any.
        """
        self.quarantine += [_issue(file, issue) for issue in result.left_out]
        first = len(self._names)
        names = names_in_file([sprite.part for sprite in result.sprites])
        for sprite, label_names in zip(result.sprites, names, strict=True):
            if self._add_sprite(file, sprite, sheet, self._labels.row_of(file, label_names)):
                self._first_of_file.append(first)
                self._is_of_sheet.append(sprite.cut or bool(sprite.folders))  # described sheets give folders
                self._is_test.append(file.is_of_test_set)
                self.notes += [_issue(file, remark) for remark in sprite.remarks]
                if sheet is not None and not sprite.cut and not sprite.part:
                    self.notes.append(_issue(file, SourceIssue(_SHEET, _size_and_sprites(sprite, sheet))))
            yield
        any_kept = len(self._names) > first
        if any_kept or sheet is not None:
            folders = self._shown_folders if any_kept else self._sheet_folders
            folders.add(folder_class(file, self._options.class_levels))
        for remark in result.remarks:
            if any_kept or remark.group in (*SHEET_GROUPS, "magenta ground"):
                reason = remark.reason
                if remark.group == "partly described" and sheet is not None:
                    reason = f"{reason}, {_looks_like(sheet, 'more sprite')}"
                self.notes.append(_issue(file, replace(remark, reason=reason)))

    def _add_sprite(self, file: SourceFile, sprite: DecodedSprite, sheet: SheetCandidate | None, row: int) -> bool:
        """Append a sprite, or an issue if it does not fit or is a duplicate; return whether it was kept. row: or -1."""
        if sprite.rgba is None or not self._fits(sprite):
            self.quarantine.append(_issue(file, self._size_issue(sprite, sheet)))
            return False
        index = len(self._names)
        canvas = np.zeros((self._size, self._size, 4), np.uint8)
        is_larger = max(sprite.rgba.shape[:2]) > self._size
        paste_centred(crop_transparent(sprite.rgba) if is_larger else sprite.rgba, canvas)
        class_name = sprite.label or self._labels.class_of(row) or self._folder_class(file, sprite)
        first = self._index_of.setdefault(pixel_digest(canvas), index)
        if first != index and self._options.duplicates == "leave out":
            classes = (self._class_names[self._class_of[first]], class_name)
            differ = self._labels.differ(self._label_rows[first], row)
            reason = duplicate_reason(self._names[first], classes, numbers_differ=differ)
            issue = _issue(file, SourceIssue("duplicate", reason, sprite.part))
            numbers = self._labels.targets_of(np.array([row]))[0].tolist()
            self.quarantine.append(issue)
            self.duplicates.append(Duplicate(issue, first, class_name, tuple(numbers)))
            return False
        self._pixels.add(canvas)
        self._names.append(_name(file, sprite.part))
        number = self._class_numbers.setdefault(class_name, len(self._class_names))
        if number == len(self._class_names):
            self._class_names.append(class_name)
        self._class_of.append(number)
        self._label_rows.append(row)
        folders = file.folders if sprite.cut else (*file.folders, *sprite.folders)
        given = (folders, file.stem, "" if sprite.cut else sprite.part, sprite.attributes)
        self.attributes.add(index, self._names[-1], *given, self._labels.attributes_of(row))
        return True

    def _fits(self, sprite: DecodedSprite) -> bool:
        if self._options.other_sizes == "leave out":
            return sprite.size == (self._size, self._size)
        return max(sprite.visible) <= self._size

    def _folder_class(self, file: SourceFile, sprite: DecodedSprite) -> str:
        """Return the class name of a sprite: up to `class_levels` folders; tiles may add the sheet's or row's name."""
        levels = self._options.class_levels
        if sprite.cut and self._options.sheet_classes != "folder":
            return sheet_class(file, sprite.folders[0], levels)
        if sprite.cut or not sprite.folders:
            return folder_class(file, levels)
        return "/".join((*file.folders, *sprite.folders)[:levels])

    def _size_issue(self, sprite: DecodedSprite, sheet: SheetCandidate | None) -> SourceIssue:
        """Return the issue for a sprite that does not fit on the canvas: empty, a whole sheet, or a wrong size."""
        width, height = sprite.size
        if sprite.visible == (0, 0):
            return SourceIssue("empty", "empty: every pixel is transparent", sprite.part)
        size = self._size
        too_large = max(width, height) > LARGE_PICTURE and looks_like_sheet(width, height, size)
        if not sprite.part and (sheet is not None or too_large):
            perhaps = f"{width:,} x {height:,} pixels, perhaps a sheet of many sprites"
            reason = perhaps if sheet is None else _size_and_sprites(sprite, sheet)
            return SourceIssue(_SHEET, f"{reason}: {_SLICING_ADVICE[self._options.sheets]}")
        exact = self._options.other_sizes == "leave out"
        reason = " instead of" if exact else ": too large for the canvas of"
        return SourceIssue("wrong size", f"{width} x {height} pixels{reason} {size} x {size}", sprite.part)


def _size_and_sprites(sprite: DecodedSprite, sheet: SheetCandidate) -> str:
    """Describe a sheet for users: '256 x 16 pixels, looks like 21 sprites of 12 x 16'."""
    width, height = sprite.size
    return f"{width:,} x {height:,} pixels, {_looks_like(sheet, 'sprite')}"


def _looks_like(sheet: SheetCandidate, noun: str) -> str:
    """Describe the grid of a sheet for users: 'looks like 5 sprites of 16 x 16', and any pixels left over."""
    sprites = formatting.count(sheet.sprites, noun)
    rest = leftover_strips(*sheet.rest)
    return f"looks like {sprites} of {sheet.grid.tile_width} x {sheet.grid.tile_height}" + (f", {rest}" if rest else "")


def _issue(file: SourceFile, issue: SourceIssue) -> ImportIssue:
    return ImportIssue(_name(file, issue.part), issue.reason, issue.group, file.path)


def _name(file: SourceFile, part: str) -> str:
    return f"{file.name}#{part}" if part else file.name
