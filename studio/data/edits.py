"""Store the user's edits to sprites, classes, colours, attributes: a JSON file per sprite folder in the studio's home.

Edits have a hash of the sprite's pixels as key, so edits survive renamed sprite files. New names for an attribute and
its values make up a single edit, with '@' and the attribute's name in the files as key.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from studio.core import files, paths, records
from studio.core.errors import BadInputError, UsageError
from studio.core.names import escape_unprintable
from studio.data.attributes.columns import checked_attribute, checked_value

RENAMED = "@"  # first character of keys for attributes
_VERSION = 2  # without new colours and attributes, version 1, for earlier versions of the studio
_LONGEST_CLASS = 200  # characters
_COLOUR = re.compile("[0-9a-f]{6}")
_IGNORE = "'--edits off' ignores it."


class EditsError(BadInputError):
    """An edits file that is damaged, unreadable or not writable. The studio never overwrites a damaged file."""


class SpriteEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The edits to a sprite, or to an attribute in every sprite. Every field is optional."""

    name: str = ""  # the sprite's name at the time of the edit, for human readers of the file
    class_name: str = msgspec.field(default="", name="class")  # new class; "" for the class in the files
    colours: dict[str, str] = {}  # new colour by colour in the files, as hex codes: {"bf0201": "0e0bdd"}

    attributes: dict[str, str] = {}  # new value by attribute; "" for no value
    renamed: dict[str, str] = {}  # for an attribute: new value by file's value; key "": new name. New "" removes

    @property
    def is_empty(self) -> bool:
        """Whether the edit has no effect."""
        return not (self.class_name or self.colours or self.attributes or self.renamed)

    def check(self) -> None:
        """Raise ValueError for an unusable class, colour, attribute or value."""
        texts = [(checked_class_name, "class name", self.class_name)] if self.class_name else []
        names = (*self.attributes, *filter(None, (self.renamed.get(""),)))
        texts += [(checked_attribute, "attribute", name) for name in names]
        values = (*self.attributes.values(), *self.renamed, *self.renamed.values())
        texts += [(checked_value, "value", value) for value in values]
        for check, noun, text in texts:
            try:
                is_usable = check(text) == text
            except UsageError:
                is_usable = False
            if not is_usable:
                raise ValueError(f"'{escape_unprintable(text)}' is no {noun}")
        for colour in (*self.colours, *self.colours.values()):
            if not _COLOUR.fullmatch(colour):
                raise ValueError(f"'{escape_unprintable(colour)}' is no colour like 'bf0201'")


class _Header(msgspec.Struct):
    version: int


class _EditsFile(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of an edits file. sprites: edits by `content_key`."""

    version: int
    folder: str
    sprites: dict[str, SpriteEdit]


@dataclass(frozen=True)
class FolderEdits:
    """The edits to the sprites in a folder.

    labels: prefixes of the folder's sprite names; an empty label fits every name. sprites: edits by content key.
    is_whole: True for an import of the whole folder, False for an import of some files.
    """

    folder: Path
    labels: tuple[str, ...]
    sprites: Mapping[str, SpriteEdit]
    is_whole: bool = True

    def holds(self, name: str) -> bool:
        """Return whether the sprite called `name` comes from the folder."""
        return any(not label or f"{name}/".startswith((f"{label}/", f"{label}#")) for label in self.labels)


Edits = tuple[FolderEdits, ...]  # an entry per imported folder


def edits_path(folder: Path) -> Path:
    """Return the path of a sprite folder's edits file. A link to the folder leads to the file, too."""
    real = os.path.normcase(os.path.realpath(folder))
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return paths.edits() / f"{files.safe_name(folder.name)}-{digest}.json"


def read_edits(folder: Path) -> Mapping[str, SpriteEdit]:
    """Read a sprite folder's edits, by content key; empty without a file. Raises EditsError.

    A renamed or moved folder keeps its edits: this function copies the edits to a file for the new path.
    """
    path = edits_path(folder)
    try:
        if not path.exists() and (sprites := _edits_of_former_path(folder)):
            _write(folder, sprites)
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        hint = f"{path}: {error.strerror or error}. Check the file's permissions. {_IGNORE}"
        raise EditsError(_unreadable(folder), hint) from None
    try:
        return _parse(data).sprites
    except _NewerVersionError:
        hint = f"{path} was written by a newer version of the studio. Update the studio. {_IGNORE}"
        raise EditsError(_unreadable(folder), hint) from None
    except ValueError as error:
        hint = f"{path} is damaged: {error}. Repair or delete the file. {_IGNORE}"
        raise EditsError(_unreadable(folder), hint) from None


def _edits_of_former_path(folder: Path) -> Mapping[str, SpriteEdit]:
    """Find the edits of a renamed folder: most edited files must be in `folder`; empty without a match."""
    for each in _all_files() if folder.is_dir() else ():
        edited = {folder / edit.name.partition("#")[0] for edit in each.sprites.values() if edit.name}
        if not Path(each.folder).exists() and 2 * sum(file.is_file() for file in edited) > len(edited):
            return each.sprites
    return {}


def _all_files() -> Iterator[_EditsFile]:
    """Yield the contents of every edits file. Skips damaged files; opening the folder reports the damage."""
    for path in sorted(paths.edits().glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            yield _parse(path.read_bytes())


def unfollowed_edits(opened: Edits) -> dict[Path, int]:
    """Count edits to opened sprites that belong to another folder, inside or around the opened folders, by folder.

    An import follows only the opened folders' edits, because class names begin at the opened folder.
    """
    counts: dict[Path, int] = {}
    own = {os.path.abspath(each.folder) for each in opened}  # noqa: PTH100 - as in resolve_roots
    followed = {key for each in opened for key in each.sprites}
    for each in _all_files():
        folder = Path(each.folder)
        if each.folder in own or not each.sprites:
            continue
        is_inside = any(folder.is_relative_to(here) for here in own)
        for key, edit in each.sprites.items():
            places = (folder / edit.name, folder.parent / edit.name)  # several folders opened at once: 'folder/name'
            has_sprite = is_inside or any(place.is_relative_to(here) for place in places for here in own)
            if has_sprite and key not in followed:
                counts[folder] = counts.get(folder, 0) + 1
    return counts


class _NewerVersionError(ValueError):
    """Raised for an edits file from a newer version of the studio."""


def _parse(data: bytes) -> _EditsFile:
    """Parse an edits file. Raises ValueError."""
    if records.parse(data, _Header).version > _VERSION:
        raise _NewerVersionError
    parsed = records.parse(data, _EditsFile)
    for edit in parsed.sprites.values():
        edit.check()
    return parsed


def save_edits(before: Edits, after: Edits) -> None:
    """Update the edits files with the changes from `before` to `after`. Raises EditsError.

    Edits saved by another window stay. An edits file is removed with its last edit.
    """
    known = {each.folder: each.sprites for each in before}
    for each in after:
        old, new = known.get(each.folder, {}), each.sprites
        changed = {key: new.get(key) for key in {*old, *new} if old.get(key) != new.get(key)}
        if changed:
            merged = {**read_edits(each.folder), **changed}
            _write(each.folder, {key: edit for key, edit in merged.items() if edit is not None})


def with_edits(edits: Edits, changes: Sequence[Mapping[str, SpriteEdit]]) -> Edits:
    """Return edits with changes for each folder, by content key; an empty edit removes the sprite's entry."""
    return tuple(
        replace(each, sprites={key: edit for key, edit in {**each.sprites, **own}.items() if not edit.is_empty})
        for each, own in zip(edits, changes, strict=True)
    )


def checked_class_name(text: str) -> str:
    """Return a typed class name without blanks around its parts ('item / sword '). Raises UsageError if unusable."""
    parts = [part.strip() for part in text.split("/")]
    if not all(parts):
        raise UsageError("Type a class name.", "A slash separates class and sub-class: weapon/sword.")
    name = escape_unprintable("/".join(parts))
    if len(name) > _LONGEST_CLASS:
        raise UsageError("The class name is too long.", f"Use at most {_LONGEST_CLASS} characters.")
    return name


def _write(folder: Path, sprites: Mapping[str, SpriteEdit]) -> None:
    path = edits_path(folder)
    version = _VERSION if any(edit.colours or edit.attributes or edit.renamed for edit in sprites.values()) else 1
    contents = msgspec.to_builtins(_EditsFile(version, str(folder), dict(sorted(sprites.items()))))
    try:
        if sprites or _edits_of_former_path(folder):  # an empty file prevents copying the former path's edits again
            files.write_atomic(path, json.dumps(contents, indent=1).encode())
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        title = f"The edits of {folder.name!r} can't be saved: {error.strerror or error}."
        raise EditsError(title, f"Free some space, or check the permissions of {path.parent}.") from None


def _unreadable(folder: Path) -> str:
    return f"The edits of {escape_unprintable(folder.name)!r} can't be read."
