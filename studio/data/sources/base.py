"""What every kind of input answers: is this file mine, and which pictures are in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from studio.core import former_names
from studio.data.files.source_files import Picture, Remark, SourceFile, UnreadableFile
from studio.data.images.kinds import DRAWING_SUFFIXES, PICTURE_SUFFIXES

__all__ = [
    "DRAWING_SUFFIXES",
    "PICTURE_SUFFIXES",
    "Picture",
    "Remark",
    "Source",
    "SourceFile",
    "UnreadableFile",
]  # names for subclasses of Source


if not TYPE_CHECKING:  # a checker would accept any name
    __getattr__ = former_names.attributes_of(__name__)


class Source(ABC):
    """A kind of input: one subclass in one file of this package, found by itself."""

    name: str
    order: ClassVar[int] = 0  # sources with a lower one are asked first

    @abstractmethod
    def claims(self, file: SourceFile) -> bool:
        """Whether this source reads `file`, from names alone: called for every file, so it must not open any."""

    @abstractmethod
    def read(self, file: SourceFile) -> Iterator[Picture | Remark]:
        """The pictures in `file`, in its order, with remarks. Nothing at all means that it is not for the studio.

        Runs on a reader thread, and in other processes meanwhile: keep no state. Raises Refused for a file that can't
        be used and OSError when it can't be opened; nothing else, whatever the bytes are.
        """

    def descriptions(self, file: SourceFile) -> Sequence[str]:
        """Return the names of the files beside `file` that describe its sprites. Raises OSError."""
        return ()

    @abstractmethod
    def example(self, folder: Path) -> Path:
        """Write a small valid input of two sprites or one into `folder` and return the file to read, for the tests."""
