"""What every description of a sheet answers: which files beside a picture may hold it, and where its sprites lie.

A new kind is one new file in this folder (or in a package that names its module in the entry-point group
'studio.data.atlases'): a subclass of `AtlasFormat`. The sheet source finds it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from studio.data.files.naming import escape_unprintable, folded
from studio.data.files.source_files import SourceFile, UnreadableFile
from studio.data.images.decoding import read_bytes

_LARGEST = 8 << 20  # bytes of one description; reading it holds up every other thread


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels, from the top left."""

    x: int
    y: int
    w: int
    h: int

    def inside(self, width: int, height: int) -> bool:
        return self.w > 0 and self.h > 0 and 0 <= self.x <= width - self.w and 0 <= self.y <= height - self.h

    def overlaps(self, other: Box) -> bool:
        across = self.x < other.x + other.w and other.x < self.x + self.w
        return across and self.y < other.y + other.h and other.y < self.y + self.h


@dataclass(frozen=True, slots=True)
class Region:
    """A sprite of a sheet as its description says, which may lie.

    name: as it is written there. box: where it lies in the sheet, as it lies there; None where that is not given.
    turns: by how many quarter turns clockwise it was turned when it was packed; None for a turn that is not read.
    whole, place: width and height before transparent borders were trimmed, and where the upright sprite lies in that;
    None where nothing was trimmed.
    zero_fills: whether a width or height of 0 in `box` reaches to the edge of the picture.
    """

    name: str
    box: Box | None
    turns: int | None = 0
    whole: tuple[int, int] | None = None
    place: Box | None = None
    zero_fills: bool = False


@dataclass(frozen=True, slots=True)
class Atlas:
    """The description of a sheet.

    sources: the names of the description files, at least one. regions: the sprites in the order of the files.
    size: width and height of the picture in pixels according to the file; None in a file without a size.
    size_decides: the description is valid only for a picture of exactly `size`.
    premultiplied: the picture has premultiplied alpha according to the file.
    """

    sources: tuple[str, ...]
    regions: tuple[Region, ...]
    size: tuple[int, int] | None = None
    size_decides: bool = False
    premultiplied: bool = False

    @property
    def source(self) -> str:
        """The description files for messages: 'coin.tres', 'coin.tres and 2 more'."""
        more = len(self.sources) - 1
        return (
            f"{escape_unprintable(self.sources[0])} and {more:,} more" if more else escape_unprintable(self.sources[0])
        )


class AtlasFormat(ABC):
    """A way to describe a sheet in files beside it. Stateless: asked on several threads at once."""

    name: str = ""
    order: ClassVar[int] = 0  # formats with a lower one are asked first

    @abstractmethod
    def descriptions(self, file: SourceFile) -> Sequence[str]:
        """The files beside the picture `file` that may describe it. From the names alone: asked for every picture."""

    @abstractmethod
    def read(self, file: SourceFile) -> Atlas | None:
        """Return the description of `file`; None if the files beside `file` describe other pictures or nothing.

        Raises Refused for an unusable description: the caller then reads the picture without a description. Raises
        OSError. Damaged bytes never raise other exceptions.
        """

    @abstractmethod
    def example(self, folder: Path) -> Path:
        """Write a sheet of two sprites and what describes it into `folder`; return the picture, for the tests."""


class _Same:
    """The very same set: to find a set that is only like one kept would mean to compare all names every time."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def __hash__(self) -> int:
        return id(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.names is other.names


@lru_cache(maxsize=8)  # every picture of a folder asks about the same set
def _with_suffix(beside: _Same, suffix: str) -> tuple[str, ...]:
    return tuple(sorted(name for name in beside.names if name.lower().endswith(suffix)))


@lru_cache(maxsize=32)
def _by_folded_name(beside: _Same, suffix: str) -> dict[str, str]:
    return {folded(name): name for name in reversed(_with_suffix(beside, suffix))}


def find_beside(file: SourceFile, name: str) -> str:
    """Return the name of a file beside `file` that equals `name`, with upper and lower case ignored; '' if missing."""
    if name in file.beside:
        return name
    _, dot, suffix = name.rpartition(".")
    return _by_folded_name(_Same(file.beside), f".{suffix.lower()}").get(folded(name), "") if dot else ""


def last_part(path: str) -> str:
    """Return the file name at the end of a path with slashes or backslashes."""
    return path.replace("\\", "/").rpartition("/")[2]


def means(file: SourceFile, path: str) -> bool:
    """Whether a path in a description means `file`. Folders are ignored; case is ignored if no exact match exists."""
    name = last_part(path)
    return name == file.file_name or (folded(name) == folded(file.file_name) and name not in file.beside)


def whole_number(value: object) -> int | None:
    """Convert a value in a description, 16, 16.0 or '16', to int; return None for fractions and other values."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    if not isinstance(value, float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def all_named(file: SourceFile, suffix: str) -> Sequence[str]:
    """Every file beside `file` with this suffix, sorted."""
    return _with_suffix(_Same(file.beside), suffix)


def too_large(file: SourceFile, name: str) -> bool:
    """Whether `description` would refuse a file beside `file`. Raises OSError."""
    return file.neighbour(name).size > _LARGEST


def description(file: SourceFile, name: str) -> bytes:
    """Return the bytes of the file `name` beside `file`. Raises Refused for too large files, and OSError."""
    data = beginning(file, name, _LARGEST + 1)
    if len(data) > _LARGEST:
        raise UnreadableFile("refused", f"{escape_unprintable(name)} beside it is larger than {_LARGEST >> 20} MB")
    return data


def beginning(file: SourceFile, name: str, most: int) -> bytes:
    """Return up to `most` bytes of a file beside `file`; b'' for a forbidden, missing or damaged file.

    The import lists the damaged file once; the pictures beside it are still read. Raises OSError for other faults.
    """
    try:
        return read_bytes(file.neighbour(name), most)
    except (PermissionError, FileNotFoundError, UnreadableFile):
        return b""
