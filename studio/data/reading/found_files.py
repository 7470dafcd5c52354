"""A million found files in little memory: what files of a folder share is kept once, the rest in columns."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

from studio.data.naming import shown
from studio.data.sources.base import Entries, Member, SourceFile

_RUN = 4096  # files that are sorted in one go: sorting lets no other thread work


class Row(NamedTuple):
    """What a file has of its own. group: the number of what it shares. file_name, size, mtime_ns: as in SourceFile."""

    group: int
    file_name: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """What the files of one folder share. where, name: what theirs begin with; `where` is an archive's whole path."""

    where: str
    name: str
    folders: tuple[str, ...]
    home: str
    beside: frozenset[str]
    members: Entries | None

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle, the names in one text: a million of them one by one would stop every other thread."""
        names = "/".join(self.beside) if self.members is None else self.members
        return _unpickled, (self.where, self.name, self.folders, self.home, names)

    def made(self, row: Row) -> SourceFile:
        """One of its files."""
        member = Member(row.file_name, self.members) if self.members is not None else None
        where = self.where if member else self.where + row.file_name
        name = self.name + shown(row.file_name)
        return SourceFile(where, name, self.folders, self.home, self.beside, row.size, row.mtime_ns, member)


def _unpickled(where: str, name: str, folders: tuple[str, ...], home: str, names: str | Entries) -> Group:
    if isinstance(names, str):
        return Group(where, name, folders, home, frozenset(filter(None, names.split("/"))), None)
    return Group(where, name, folders, home, frozenset(names), names)


class FoundFiles(Sequence[SourceFile]):
    """Files in the order in which they were added, and once sorted by name; each is made anew when it is asked for.

    Objects by the million would also stop the window whenever Python looks for garbage among them.
    """

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self._numbers: dict[int, int] = {}  # by the identity of what the files of a group share
        self._names: list[str] = []  # without folders, as on the disk
        self._group_of = array("I")
        self._sizes, self._mtimes_ns = array("q"), array("q")
        self._order = array("I")

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> SourceFile: ...
    @overload
    def __getitem__(self, place: slice) -> list[SourceFile]: ...
    def __getitem__(self, place: int | slice) -> SourceFile | list[SourceFile]:
        if isinstance(place, slice):
            return [self.groups[row.group].made(row) for row in self.rows(place)]
        row = self._row(self._order[place])
        return self.groups[row.group].made(row)

    def rows(self, place: slice) -> list[Row]:
        """The same files as rows; what they share is in `groups`."""
        return [self._row(number) for number in self._order[place]]

    def add(self, file: SourceFile) -> None:
        """Put a file at the end."""
        shared = id(file.member.folder if file.member else file.beside)
        number = self._numbers.get(shared)
        if number is None:
            number = self._numbers[shared] = len(self.groups)
            where = file.where if file.member else file.where.removesuffix(file.file_name)
            name = file.name.removesuffix(shown(file.file_name))
            members = file.member.folder if file.member else None
            self.groups.append(Group(where, name, file.folders, file.home, file.beside, members))
        self._order.append(len(self._names))
        self._names.append(file.file_name)
        self._group_of.append(number)
        self._sizes.append(file.size)
        self._mtimes_ns.append(file.mtime_ns)

    def sorting(self) -> Generator[int, None, None]:
        """Sort by name, then by path, a little at a time: yields how many files are in order."""
        runs = []
        for start in range(0, len(self), _RUN):
            runs.append(sorted(self._order[start : start + _RUN], key=self._key))
            yield 0
        order = array("I")
        for row in heapq.merge(*runs, key=self._key):
            order.append(row)
            if not len(order) % _RUN:
                yield len(order)
        self._order = order

    def _key(self, row: int) -> tuple[str, str]:
        group, name = self.groups[self._group_of[row]], self._names[row]
        return group.name + shown(name), group.where if group.members is not None else group.where + name

    def _row(self, number: int) -> Row:
        return Row(self._group_of[number], self._names[number], self._sizes[number], self._mtimes_ns[number])
