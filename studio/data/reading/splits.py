"""Recognise sibling folders named train, val and test: the splits of a data set."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from studio.data.reading.finding import Folder, FoundFiles
from studio.data.sources.base import DRAWING_SUFFIXES

_TRAINING = frozenset({"train", "training"})
_TEST = frozenset({"test", "testing"})
_SPLITS = _TRAINING | _TEST | {"val", "valid", "validation", "dev"}
_PICTURES = tuple(DRAWING_SUFFIXES)
_AT_ONCE = 1024  # folders between two yields


@dataclass(frozen=True, slots=True)
class SplitFolders:
    """Sibling folders that are the splits of a data set."""

    parent: str  # name of the parent folder, ending in '/'; '' for the root
    names: tuple[str, ...]  # folder names in the order training, validation, test

    def sentence(self) -> str:
        """Return a sentence for users, without full stop: "'train' and 'val' are splits of a data set, not classes"."""
        names = [f"'{name}'" for name in self.names]
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        test = f"; {names[-1]} is the test set" if self.names[-1].lower() in _TEST else ""
        return f"{listed} are splits of a data set, not classes{test}"


def remove_split_folders(files: FoundFiles) -> Generator[int, None, list[SplitFolders]]:
    """Find split folders (train, val, test) and remove them from the class names of `files`. Marks test files.

    Two or more sibling folders with pictures are splits if all have the name of a split and at least one is named
    train or training. Yields the number of processed folders; returns the splits found.
    """
    parents: dict[str, set[str]] = {}
    for number, folder in enumerate(files.folders):
        if not number % _AT_ONCE:
            yield number
        parents.update((parent, set()) for parent, name in _levels(folder) if name.lower() in _TRAINING)
    if not parents:
        return []
    for number, folder in enumerate(files.folders):
        if not number % _AT_ONCE:
            yield number
        if any(name.lower().endswith(_PICTURES) for name in folder.siblings):
            for parent, name in _levels(folder):
                if parent in parents:
                    parents[parent].add(name)
    found = [SplitFolders(parent, _in_order(names)) for parent, names in sorted(parents.items()) if _are_splits(names)]
    splits = {each.parent for each in found}
    for number, folder in enumerate(files.folders):
        if not number % _AT_ONCE:
            yield number
        levels = list(_levels(folder))
        if any(parent in splits for parent, _ in levels):
            classes = tuple(name for parent, name in levels if parent not in splits)
            is_test = any(parent in splits and name.lower() in _TEST for parent, name in levels)
            files.folders[number] = replace(folder, folders=classes, is_test=is_test)
    return found


def _are_splits(names: set[str]) -> bool:
    lower = {name.lower() for name in names}
    return len(names) > 1 and lower <= _SPLITS and bool(lower & _TRAINING)


def _in_order(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: (name.lower() not in _TRAINING, name.lower() in _TEST, name)))


def _levels(folder: Folder) -> Iterator[tuple[str, str]]:
    """Yield (parent folder, name) for each folder in the class name; the parent ends in '/'."""
    parts = folder.name.split("/")[:-1]
    first = len(parts) - len(folder.folders)
    for level, name in enumerate(folder.folders):
        yield "".join(f"{part}/" for part in parts[: first + level]), name
