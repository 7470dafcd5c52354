"""Base class of sources. A source claims files by name and reads images from these files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from studio.data.files.source_files import SourceFile, SourceImage, SourceIssue, UnreadableFile
from studio.data.images.kinds import DRAWING_SUFFIXES, PICTURE_SUFFIXES

__all__ = [
    "DRAWING_SUFFIXES", "PICTURE_SUFFIXES", "Source", "SourceFile", "SourceImage", "SourceIssue", "UnreadableFile",
]  # names for subclasses of Source # fmt: skip


class Source(ABC):
    """An input format that reads images from files. To add a format, define a subclass in this package."""

    name: str
    order: ClassVar[int] = 0  # sources with a lower order are asked first

    @abstractmethod
    def claims(self, file: SourceFile) -> bool:
        """Return whether this source reads `file`. The import asks for every file, hence open no files here."""

    @abstractmethod
    def read(self, file: SourceFile) -> Iterator[SourceImage | SourceIssue]:
        """Yield the images in `file` in file order, and issues. Yield nothing for a file without images.

        Runs on reader threads and in worker processes: keep no state. Raises UnreadableFile for an unusable file and
        OSError for an inaccessible file; damaged bytes never raise other exceptions.
        """

    def descriptions(self, file: SourceFile) -> Sequence[str]:
        """Return the names of the description files that `read` uses for `file`. Raises OSError."""
        return ()

    @abstractmethod
    def example(self, folder: Path) -> Path:
        """Write a small valid file of one or two sprites into `folder` for the tests, and return its path."""
