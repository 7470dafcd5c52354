"""Mix-in for formats whose files list pictures: tile sets, maps and XML atlases."""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from studio.core.names import escape_unprintable
from studio.data.atlases.base import (
    Atlas,
    Box,
    FolderKey,
    Region,
    base_name,
    casefolded,
    find_sibling,
    matches_path,
    read_description,
    siblings_with_suffix,
)
from studio.data.files.source_files import MAX_ELSEWHERE, SourceFile, UnreadableFile
from studio.data.images.decoding import read_bytes, read_header
from studio.data.options import MAX_SHEET_SPRITES

_MAX_FILES = 1000  # description files read in a folder
_HEAD_BYTES = 1 << 16  # from the start of a picture; contain width and height
_MAX_SHOWN = 200  # characters of a message
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class TileGrid:
    """The grid of a tile set. Pairs are (horizontal, vertical), in pixels. Raises UnreadableFile for impossible sizes.

    names: names of tiles by index, counted from the upper left; 'grass/tile 3' for a tile of the class grass.
    attributes: (name, value) pairs of tiles by index.
    """

    source: str  # name of the description, for messages
    tile: Pair
    margin: Pair = (0, 0)  # left of the first column, above the first row
    spacing: Pair = (0, 0)  # between tiles
    columns: int = 0  # 0: as many columns as fit into the picture
    names: Mapping[int, str] = field(default_factory=dict)
    attributes: Mapping[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min(self.tile) < 1 or min(*self.margin, *self.spacing) < 0:
            raise UnreadableFile("unreadable", f"{escape_unprintable(self.source)} has an impossible tile size")

    def box(self, column: int, row: int, size: Pair = (1, 1)) -> Box:
        """Return the box of a tile. size: columns and rows that the tile covers."""
        (width, height), (left, top), (across, down) = self.tile, self.margin, self.spacing
        x, y = left + column * (width + across), top + row * (height + down)
        return Box(x, y, size[0] * (width + across) - across, size[1] * (height + down) - down)

    def regions(self, width: int, height: int) -> Sequence[Region]:
        """Return a region for each tile in a picture of this size. Raises UnreadableFile for too many tiles."""
        across, down = self.spacing
        fitting = (width - self.margin[0] + across) // (self.tile[0] + across)
        columns, rows = self.columns or fitting, (height - self.margin[1] + down) // (self.tile[1] + down)
        shown = min(fitting, columns)  # the file may claim billions of columns
        if shown * rows > MAX_SHEET_SPRITES:
            words = f"{escape_unprintable(self.source)} describes {shown * rows:,} tiles"
            raise UnreadableFile("refused", f"{words}: too many to be read")
        indices = ((row * columns + column, column, row) for row in range(rows) for column in range(shown))
        return [
            Region(
                self.names.get(index, f"tile {index}"),
                self.box(column, row),
                may_be_empty=True,
                attributes=self.attributes.get(index, ()),
            )
            for index, column, row in indices
        ]


@dataclass(frozen=True, eq=False, slots=True)
class DescribedPicture:
    """A picture in a description file, with a grid of tiles or with regions."""

    path: str  # the picture's path in the file
    grid: TileGrid | None = None
    regions: Sequence[Region] = ()
    size: Pair | None = None  # width and height of the picture, declared in the file
    clear_colour: tuple[int, int, int] | None = None  # RGB of transparent pixels


class PictureList(ABC):
    """Mix-in for an `AtlasFormat` whose files list pictures. Reads a file once for all pictures of a folder."""

    suffixes: ClassVar[Sequence[str]]  # with dots; files with the first suffix come first

    @abstractmethod
    def pictures(self, data: bytes, name: str) -> Iterable[DescribedPicture]:
        """Parse a file and yield its pictures; nothing for files of other programs. Raises UnreadableFile."""

    def descriptions(self, file: SourceFile) -> Sequence[str]:
        own = [name for suffix in self.suffixes for name in siblings_with_suffix(file, suffix)]
        return own + [path for path in file.elsewhere if self.is_own(path)]

    def is_own(self, name: str) -> bool:
        """Return whether a file name has a suffix of this format."""
        return name.lower().endswith(tuple(self.suffixes))

    def read(self, file: SourceFile) -> Atlas | None:
        for name in self.descriptions(file):
            if name in file.siblings and casefolded(_stem(name)) == casefolded(file.stem):
                pictures = list(self.pictures(read_description(file, name), name))
                found = next((each for each in pictures if matches_path(file, each.path)), None)
                if found is None and len(pictures) == 1 and not find_sibling(file, base_name(pictures[0].path)):
                    (found,) = pictures  # the picture was renamed
                if found is not None:
                    return _atlas(file, name, found)
        for name, found in _by_image(self, FolderKey(file)).get(casefolded(file.file_name), ()):
            if matches_path(file, found.path):
                return _atlas(file, name, found)
        return None

    def links(self, file: SourceFile) -> Sequence[str]:
        return [picture.path for picture in _pictures(self, file)] if self.is_own(file.file_name) else []

    def problem(self, file: SourceFile) -> str:
        for picture in _pictures(self, file) if self.is_own(file.file_name) else ():
            if find_sibling(file, base_name(picture.path)):
                continue
            target, words = path_in_import(file, picture.path), f"its picture {escape_unprintable(picture.path)!r}"
            if not target:
                return f"{words[:_MAX_SHOWN]} lies outside the imported folder: open the folder of the whole project"
            if posixpath.dirname(target) == posixpath.dirname(file.name):
                return f"{words[:_MAX_SHOWN]} is missing: open the folder with both"
        return ""


@lru_cache(maxsize=16)  # called for every image of a folder
def _by_image(form: PictureList, folder: FolderKey) -> dict[str, list[tuple[str, DescribedPicture]]]:
    """Return (file name, description) pairs by case-folded image name; skip unusable files."""
    found: dict[str, list[tuple[str, DescribedPicture]]] = {}
    file = folder.file
    for name in form.descriptions(file)[:_MAX_FILES]:
        with suppress(OSError, UnreadableFile):
            for picture in _pictures(form, file.sibling(name)):
                if name not in file.elsewhere or _is_in_folder(file, file.elsewhere[name], picture.path):
                    found.setdefault(casefolded(base_name(picture.path)), []).append((name, picture))
    return found


@lru_cache(maxsize=2 * MAX_ELSEWHERE)
def _pictures(form: PictureList, description: SourceFile) -> list[DescribedPicture]:
    return list(form.pictures(read_description(description, description.file_name), description.file_name))


def _is_in_folder(file: SourceFile, description: SourceFile, path: str) -> bool:
    """Return whether a path in a description leads to the folder of `file`."""
    target = path_in_import(description, path)
    return bool(target) and casefolded(posixpath.dirname(target)) == casefolded(posixpath.dirname(file.name))


def path_in_import(description: SourceFile, path: str) -> str:
    """Return the `SourceFile.name` for a path in a description; '' if it leads out of the imported folder."""
    path = escape_unprintable(path.replace("\\", "/"))
    target = posixpath.normpath(posixpath.join(posixpath.dirname(description.name), path))
    return "" if target.startswith(("/", "..")) else target


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _atlas(file: SourceFile, name: str, picture: DescribedPicture) -> Atlas:
    """Return the sprite positions in the image `file`; a grid has all tiles that fit into the image."""
    size, regions = picture.size, picture.regions
    if picture.grid is not None:
        header = read_header(read_bytes(file, _HEAD_BYTES), file.suffix)
        actual = header.width, header.height
        if size is None or not _is_enlarged(size, actual):  # the picture may have grown since
            size = actual
        regions = picture.grid.regions(*size)
    if not regions:
        raise UnreadableFile("unreadable", f"{escape_unprintable(name)} lists no sprites of this image")
    return Atlas((name,), tuple(regions), size, clear_colour=picture.clear_colour)


def _is_enlarged(size: Pair, actual: Pair) -> bool:
    """Return whether `actual` is a whole multiple of `size`: the picture was scaled up after the export."""
    return min(size) > 0 and actual != size and actual[0] % size[0] == 0 and actual[0] * size[1] == actual[1] * size[0]


def class_path(parts: Iterable[str], name: str) -> str:
    """Return the region name 'grass + water/tile 3' for a tile `name` with the class words `parts`."""
    words: Iterator[str] = (part.strip() for part in parts)
    label = " + ".join(dict.fromkeys(word for word in words if word))
    return f"{label}/{name}" if label else name
