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

from studio.data.images.decoding import read_bytes
from studio.data.naming import shown
from studio.data.source_files import Refused, SourceFile

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


@dataclass(frozen=True, slots=True)
class Region:
    """A sprite of a sheet as its description says, which may lie.

    name: as it is written there. box: where it lies in the sheet, as it lies there; None where that is not given.
    turns: by how many quarter turns clockwise it was turned when it was packed; None for a turn that is not read.
    whole, place: width and height before transparent borders were trimmed, and where the upright sprite lies in that;
    None where nothing was trimmed.
    """

    name: str
    box: Box | None
    turns: int | None = 0
    whole: tuple[int, int] | None = None
    place: Box | None = None


class AtlasFormat(ABC):
    """A way to describe a sheet in files beside it. Stateless: asked on several threads at once."""

    name: str = ""
    order: ClassVar[int] = 0  # formats with a lower one are asked first

    @abstractmethod
    def descriptions(self, file: SourceFile) -> Sequence[str]:
        """The files beside the picture `file` that may describe it. From the names alone: asked for every picture."""

    @abstractmethod
    def regions(self, file: SourceFile) -> list[Region] | None:
        """The sprites of `file` in the order of its descriptions, at least one. None when they are about others.

        Raises Refused for a description that can't be used, and OSError; nothing else, whatever the bytes are.
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


def named_like(file: SourceFile, suffix: str) -> Sequence[str]:
    """The file beside `file` that has its name but for the suffix, in lower case with its dot; none or one."""
    name = f"{file.stem}{suffix}"
    return (name,) if name in file.beside else ()


def all_named(file: SourceFile, suffix: str) -> Sequence[str]:
    """Every file beside `file` with this suffix, sorted."""
    return _with_suffix(_Same(file.beside), suffix)


def too_large(file: SourceFile, name: str) -> bool:
    """Whether `description` would refuse a file beside `file`. Raises OSError."""
    return file.neighbour(name).size > _LARGEST


def description(file: SourceFile, name: str) -> bytes:
    """What a file beside `file` holds. Raises Refused when it is too large, and OSError."""
    data = read_bytes(file.neighbour(name), _LARGEST + 1)
    if len(data) > _LARGEST:
        kind = name.rpartition(".")[2]
        kind = kind.upper() if kind == "json" else f".{shown(kind)} file"
        raise Refused("refused", f"a sheet whose {kind} is larger than {_LARGEST >> 20} MB")
    return data
