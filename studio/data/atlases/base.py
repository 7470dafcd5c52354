"""Base class of atlas formats. An atlas file lists the sprites of a sheet with their positions.

To add a format, define a subclass of `AtlasFormat` in a new file of this folder, or in a package that names its module
in the entry-point group 'studio.data.atlases'. `SheetSource` finds the subclass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from studio.core.names import escape_unprintable, nfc
from studio.data.files.source_files import SourceFile, UnreadableFile
from studio.data.images.decoding import read_bytes

_MAX_BYTES = 8 << 20  # per description file; parsing blocks other threads


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels. x, y: its top left corner. w, h: width and height."""

    x: int
    y: int
    w: int
    h: int

    def inside(self, width: int, height: int) -> bool:
        """Return whether the box is non-empty and lies inside an image of this size."""
        return self.w > 0 and self.h > 0 and 0 <= self.x <= width - self.w and 0 <= self.y <= height - self.h

    def overlaps(self, other: Box) -> bool:
        """Return whether the two boxes share a pixel."""
        across = self.x < other.x + other.w and other.x < self.x + self.w
        return across and self.y < other.y + other.h and other.y < self.y + self.h


@dataclass(frozen=True, slots=True)
class Region:
    """A sprite of a sheet as read from the description file, unchecked."""

    name: str  # name of the sprite in the file
    box: Box | None  # rectangle in the sheet, for a rotated sprite as packed; None if missing
    turns: int | None = 0  # quarter turns clockwise by the packer; None for an unsupported rotation
    whole: tuple[int, int] | None = None  # (width, height) before trimming transparent borders; None if untrimmed
    place: Box | None = None  # rectangle of the upright trimmed sprite within `whole`; None if untrimmed
    zero_fills: bool = False  # whether a width or height of 0 in `box` extends to the edge of the image
    may_be_empty: bool = False  # whether a transparent sprite is an unused tile, to be skipped without a message
    attributes: tuple[tuple[str, str], ...] = ()  # attributes in the file: (name, value)


@dataclass(frozen=True, slots=True)
class Atlas:
    """The positions of the sprites in a sheet, read from description files."""

    sources: tuple[str, ...]  # names of one or more description files
    regions: tuple[Region, ...]  # the sprites in file order
    size: tuple[int, int] | None = None  # width and height of the image, declared in the file; None if missing
    size_decides: bool = False  # whether the description suits only an image of exactly `size`
    premultiplied: bool = False  # whether the file declares premultiplied alpha
    clear_colour: tuple[int, int, int] | None = None  # RGB of transparent pixels, if the file names a colour

    @property
    def source(self) -> str:
        """The names of the description files, shortened for messages: 'coin.tres', 'coin.tres and 2 more'."""
        first, more = escape_unprintable(self.sources[0]), len(self.sources) - 1
        return f"{first} and {more:,} more" if more else first


class AtlasFormat(ABC):
    """A file format with the sprites of a sheet. Keep no state: several threads call the methods."""

    name: str = ""
    order: ClassVar[int] = 0  # formats with a lower order come first

    @abstractmethod
    def descriptions(self, file: SourceFile) -> Sequence[str]:
        """Return the names of files that may describe the image `file`.

        Opens no file: the import calls this method for every image.
        """

    @abstractmethod
    def read(self, file: SourceFile) -> Atlas | None:
        """Return the sprite positions in the image `file`; None for an image without a description.

        Raises OSError, and UnreadableFile for an unusable description; the import then ignores the description.
        Damaged bytes never raise other exceptions.
        """

    def problem(self, file: SourceFile) -> str:
        """Return why the tile set `file` describes no imported picture, or ''. Raises OSError and UnreadableFile."""
        return ""

    def links(self, file: SourceFile) -> Sequence[str]:
        """Return the paths in the tile set `file` of pictures and other tile sets. Raises OSError, UnreadableFile."""
        return ()

    @abstractmethod
    def example(self, folder: Path) -> Path:
        """Write a test sheet with two sprites and a description into `folder`; return the path of the image."""


class FolderKey:
    """A cache key for the folder of `file`. Keys of files with one shared `siblings` object are equal.

    Comparing object identities is fast; comparing contents may mean a million file names.
    """

    def __init__(self, file: SourceFile) -> None:
        self.file = file

    def __hash__(self) -> int:
        return id(self.file.siblings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FolderKey) and self.file.siblings is other.file.siblings


@lru_cache(maxsize=8)  # called for every image of a folder
def _with_suffix(folder: FolderKey, suffix: str) -> tuple[str, ...]:
    return tuple(sorted(name for name in folder.file.siblings if name.lower().endswith(suffix)))


@lru_cache(maxsize=32)
def _by_casefolded_name(folder: FolderKey, suffix: str) -> dict[str, str]:
    return {casefolded(name): name for name in reversed(_with_suffix(folder, suffix))}


def siblings_with_suffix(file: SourceFile, suffix: str) -> Sequence[str]:
    """Return the sorted names of files with a suffix like '.json' in the folder of `file`."""
    return _with_suffix(FolderKey(file), suffix)


def find_sibling(file: SourceFile, name: str) -> str:
    """Find a file by name in the folder of `file`, ignoring case; return its actual name, or '' if missing."""
    if name in file.siblings:
        return name
    _, dot, suffix = name.rpartition(".")
    names = _by_casefolded_name(FolderKey(file), f".{suffix.lower()}") if dot else {}
    return names.get(casefolded(name), "")


def casefolded(name: str) -> str:
    """Return a file name case-folded and in composed Unicode, for case-insensitive comparisons."""
    return nfc(name).casefold()


def base_name(path: str) -> str:
    """Return the file name at the end of a path with slashes or backslashes."""
    return path.replace("\\", "/").rpartition("/")[2]


def matches_path(file: SourceFile, path: str) -> bool:
    """Return whether a path written in a description file names the image `file`.

    Folders in the path are ignored. Case is ignored unless another file in the folder has exactly this name.
    """
    name = base_name(path)
    return name == file.file_name or (casefolded(name) == casefolded(file.file_name) and name not in file.siblings)


def whole_number(value: object) -> int | None:
    """Convert a value like 16, 16.0 or '16' to int; return None for fractions and other values."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    if not isinstance(value, float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def whole_numbers(values: Sequence[object], count: int) -> list[int]:
    """Convert `count` values to int; return [] for another count or if `whole_number` rejects a value."""
    numbers = [number for number in map(whole_number, values) if number is not None]
    return numbers if len(numbers) == len(values) == count else []


def exceeds_size_limit(file: SourceFile, name: str) -> bool:
    """Return whether the file `name`, in the folder of `file`, is larger than 8 MB. Raises OSError."""
    return file.sibling(name).size > _MAX_BYTES


def read_description(file: SourceFile, name: str) -> bytes:
    """Return the bytes of the file `name` in the folder of `file`. Raises UnreadableFile above 8 MB, and OSError."""
    data = read_start(file, name, _MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise UnreadableFile("refused", f"{escape_unprintable(name)} is larger than {_MAX_BYTES >> 20} MB")
    return data


def read_start(file: SourceFile, name: str, most: int) -> bytes:
    """Return the first `most` bytes of the file `name` in the folder of `file`.

    Returns b'' for a missing, damaged or inaccessible file; another part of the import reports inaccessible files.
    Raises OSError for other errors.
    """
    try:
        return read_bytes(file.sibling(name), most)
    except (PermissionError, FileNotFoundError, UnreadableFile):
        return b""


def write_example_sheet(folder: Path) -> Path:
    """Write 'gems.png', with two sprites of 8 x 8 pixels side by side, as a sheet for tests; return its path."""
    pixels = np.zeros((8, 16, 4), np.uint8)
    pixels[2:6, 1:7] = (200, 60, 40, 255)
    pixels[1:7, 10:14] = (40, 60, 200, 255)
    Image.fromarray(pixels).save(folder / "gems.png")
    return folder / "gems.png"
