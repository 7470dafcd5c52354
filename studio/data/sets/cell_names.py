"""Parse and write the import options `rows` and `columns`, which name the views and frames of sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from studio.core.errors import BadInputError
from studio.core.names import escape_unprintable

_LONGEST = 80  # characters of a name
_EQUALS = "="  # between a found name and the user's name


@dataclass(frozen=True)
class CellNames:
    """Names of rows or columns.

    names: in sheets, names of the first rows or columns; in other sets, the words that name rows or columns.
    renamed: the user's names by found names (from files, folders, tags, atlases or sets.csv).
    """

    names: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, label: str) -> CellNames:
        """Parse names separated by commas; 'front=down' renames 'front'. label: the option's. Raises BadInputError."""
        names, renamed = list[str](), dict[str, str]()
        for part in text.split(",") if text.strip() else ():
            found, equals, name = part.rpartition(_EQUALS)
            if not equals:
                names.append(check_name(part, label))
                continue
            found = checked_text(found, label)
            if found in renamed:
                raise BadInputError(f"{label}: {found!r} is renamed twice.", "Example: front=down,back=up")
            renamed[found] = check_name(name, label)
        check_unique(names, label)
        return cls(tuple(names), renamed)

    def to_text(self) -> str:
        """Return the text of the option."""
        return ",".join((*self.names, *(f"{found}{_EQUALS}{name}" for found, name in self.renamed.items())))

    def shown(self, found: str) -> str:
        """Return the user's name for a found name, or else the found name."""
        return self.renamed.get(found, found)

    def found(self, shown: str) -> str:
        """Return a found name that the user calls `shown`."""
        return next((found for found, name in self.renamed.items() if name == shown), shown)

    def with_shown(self, names: Sequence[str], wanted: Sequence[str]) -> CellNames:
        """Return the names after a renaming. names: shown names without repeats. wanted: new name by shown name.

        Equal new names join rows or columns. 'down=down' then records 'down' as a found name.
        """
        renamed = {found: dict(zip(names, wanted, strict=True)).get(name, name) for found, name in self.renamed.items()}
        for name, new in zip(names, wanted, strict=True):
            if name not in self.renamed.values() and (new != name or wanted.count(new) > 1):
                renamed[name] = new
        listed = [*renamed.values()]
        return CellNames(
            self.names, {found: name for found, name in renamed.items() if found != name or listed.count(name) > 1}
        )


def check_name(text: str, label: str) -> str:
    """Return a typed name without spaces around it. Raises BadInputError for an unusable name."""
    name = checked_text(text, label)
    if "/" in name:
        raise BadInputError(f"{label}: {name!r} holds a slash.", "A slash separates row and column: down/step.")
    return name


def checked_text(text: str, label: str) -> str:
    """Return a text without spaces around it, at most 80 characters. Raises BadInputError for an empty text."""
    name = escape_unprintable(text.strip())[:_LONGEST]
    if not name:
        raise BadInputError(f"{label}: a name is missing.", "Example: down,up,left,right")
    return name


def check_unique(names: Sequence[str], label: str) -> None:
    """Raise BadInputError for equal names."""
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadInputError(f"{label}: {twice!r} is there twice.", "Number equal names: step, step2.")


def can_rename(found: str) -> bool:
    """Return whether the options can rename a found name."""
    return "," not in found and found == escape_unprintable(found.strip())[:_LONGEST]
