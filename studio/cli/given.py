"""Read the given cells of `studio complete`: pictures of cells, sheets, or folders of pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studio.core.arrays import Mask, Rgba
from studio.core.errors import BadInputError, SetsError
from studio.core.names import escape_unprintable, existing_path
from studio.data.files.source_files import SourceFile
from studio.data.importing.single_sprite import load_frames
from studio.data.reading.finding import resolve_roots, walk_files
from studio.data.sets.cutting import check_cell, cut_sheet, sheet_size
from studio.data.sets.layout import find_cell, list_cells
from studio.data.sets.placing import CellGrid, place_frames
from studio.data.sources.base import DRAWING_SUFFIXES
from studio.engine.sampling.settings import GivenSets


@dataclass(frozen=True)
class Given:
    """A value of --given."""

    cell: int | None  # index of the cell; None for a sheet
    path: Path  # picture or folder


def parse_given(words: Sequence[str], cells: Sequence[str]) -> list[Given]:
    """Parse values of --given: CELL=FILE, CELL=FOLDER, SHEET or FOLDER. cells: names. Raises SetsError."""
    found = [_parse(word, cells) for word in words]
    if not found:
        hint = "Add --given CELL=FILE or --given SHEET. 'studio generate' draws whole new characters."
        raise SetsError("No cell is given.", f"{hint} {_cells_of(cells)}")
    if len({given.path.is_dir() for given in found}) > 1:
        title = "--given names a folder and a single picture."
        raise SetsError(title, "Name folders to draw many characters, or pictures to draw one.")
    return found


def _parse(word: str, cells: Sequence[str]) -> Given:
    """Parse a value of --given; the path of a sheet may contain '='. Raises SetsError."""
    equals = [place for place, letter in enumerate(word) if letter == "="]
    for place in equals:
        if (cell := find_cell(cells, word[:place])) >= 0:
            return Given(cell, existing_path(word[place + 1 :]))
    if equals and not existing_path(word).exists():
        raise SetsError(f"The model has no cell {word[: equals[0]]!r}.", _cells_of(cells))
    return Given(None, existing_path(word))


def _cells_of(cells: Sequence[str]) -> str:
    return f"Cells of this model: {list_cells(cells)}."


def read_given(given: Sequence[Given], cells: Sequence[str], size: int) -> GivenSets:
    """Read one character from pictures, or many from folders. size: width and height of a cell in pixels.

    Equal file names in several folders belong to one character. Raises BadInputError, SetsError.
    """
    drafts: dict[str, _Draft] = {}
    for item in given:
        pictures = _pictures_in(item.path) if item.path.is_dir() else {given[0].path.stem: [item.path]}
        for name, paths in pictures.items():
            draft = drafts.setdefault(escape_unprintable(name), _Draft(cells, size))
            for path in paths:
                draft.add(item.cell, path)
    stacked = (np.stack([getattr(draft, part) for draft in drafts.values()]) for part in ("cells", "given"))
    return GivenSets(tuple(drafts), *stacked)


class _Draft:
    """The given cells of one character."""

    def __init__(self, names: Sequence[str], size: int) -> None:
        self._names, self._size = names, size
        self._sources: dict[int, str] = {}  # name of the picture by cell
        self.cells: Rgba = np.zeros((len(names), size, size, 4), np.uint8)
        self.given: Mask = np.zeros(len(names), np.bool_)

    def add(self, cell: int | None, path: Path) -> None:
        """Read a picture of a cell, or without a cell a sheet or frames. Raises BadInputError, SetsError."""
        frames, name = load_frames(path, whole=True), escape_unprintable(path.name)
        picture = frames[0].rgba
        size = picture.shape[1], picture.shape[0]
        if len(frames) > 1:
            if cell is not None:
                raise SetsError(f"{name} has {len(frames)} frames.", f"Give it without a cell: --given {name}")
            images = [(frame.part, frame.rgba) for frame in frames]
            grid = CellGrid(tuple(self._names))
            self._put(place_frames(images, grid, self._size, grid.cell_of_file(name)), name)
            return
        if cell is not None:
            if size == sheet_size(self._names, self._size):
                raise SetsError(f"{name} is a sheet of all cells.", f"Give it without a cell: --given {name}")
            check_cell(picture, self._size, name)
            self._put({cell: picture}, name)
            return
        if size == (self._size, self._size):
            raise SetsError(f"{name} is a single cell.", f"Say which: --given {self._names[0]}={name}")
        cut, is_filled = cut_sheet(picture, self._names, self._size, name)
        self._put({int(number): cut[number] for number in np.flatnonzero(is_filled)}, name)

    def _put(self, pictures: Mapping[int, Rgba], name: str) -> None:
        """Store pictures by cell. Raises SetsError for a repeated cell."""
        for cell, picture in pictures.items():
            if cell in self._sources:
                title = f"The cell {self._names[cell]} is given twice: {self._sources[cell]}, {name}."
                raise SetsError(title, "Give each cell once.")
            self._sources[cell] = name
            self.cells[cell], self.given[cell] = picture, True


def _pictures_in(folder: Path) -> dict[str, list[Path]]:
    """Return the picture files in a folder by their names without suffix, sorted. Raises BadInputError."""
    (root,) = resolve_roots([folder])
    found: Iterable[SourceFile] = (item for item in walk_files(root) if isinstance(item, SourceFile))
    pictures: dict[str, list[Path]] = {}
    for file in sorted(found, key=lambda file: file.name):
        if file.member is None and file.suffix in DRAWING_SUFFIXES:
            pictures.setdefault(file.name[: len(file.name) - len(file.suffix)], []).append(file.path)
    if not pictures:
        raise BadInputError(f"There are no pictures in {str(folder)!r}.", "Choose a folder of PNG or Aseprite files.")
    return pictures
