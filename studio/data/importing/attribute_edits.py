"""Change imported sprites' attributes by user edits, and apply the edits."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import msgspec

from studio.core.events import Event
from studio.data.attributes.attributes import Attributes
from studio.data.attributes.columns import AttributeColumns
from studio.data.edits import RENAMED, Edits, SpriteEdit
from studio.data.import_result import ReadSprites
from studio.data.importing.edit_changes import EditChange, SpriteChange
from studio.data.sprites import Sprites

Values = Mapping[str, str]  # value by attribute; '' without a value


class AttributeChange(SpriteChange):
    """Changes imported sprites' attributes. Needs no edit where the new value equals the file's value."""

    noun = "sprites changed"

    def __init__(self, before: Edits | EditChange, read: ReadSprites, indices: Sequence[int], values: Values) -> None:
        """Create a change. See SpriteChange. values: the sprites' new values."""
        super().__init__(before, read, indices)
        self._values = values

    def _changed(self, index: int, row: int, old: SpriteEdit, folder: Mapping[str, SpriteEdit]) -> SpriteEdit:
        of_file = renamed_values(self._read.sprites.attributes.of(row), folder)
        values = {**old.attributes, **self._values}
        changed = {name: value for name, value in values.items() if of_file.get(name, "") != value}
        return msgspec.structs.replace(old, attributes=changed)


class AttributeRenaming(EditChange):
    """Renames an attribute or a value in every imported sprite, by an edit per attribute in the files."""

    def __init__(self, before: Edits | EditChange, read: ReadSprites, name: str, new: str, value: str = "") -> None:
        """Create a change. new: the new name for the attribute `name`, or for its value `value`; '' removes either."""
        super().__init__(before, read)
        self._name, self._new, self._value = name, new, value

    def _changes(self, before: Edits) -> Generator[Event, None, list[dict[str, SpriteEdit]]]:
        yield from ()
        return [self._of_folder(each.sprites) for each in before]

    def _of_folder(self, folder: Mapping[str, SpriteEdit]) -> dict[str, SpriteEdit]:
        """Return a folder's changed edits: of the attribute, and of sprites with a user's value."""
        changes, of_files = {}, self._read.sprites.attributes
        for name, values in zip(of_files.names, of_files.values, strict=True):
            edit = folder.get(RENAMED + name, SpriteEdit())
            if edit.renamed.get("", name) == self._name:
                changes[RENAMED + name] = msgspec.structs.replace(edit, renamed=self._renamed(edit, name, values))
        for key, edit in folder.items():
            if self._name in edit.attributes:
                changes[key] = msgspec.structs.replace(edit, attributes=self._of_sprite(edit.attributes))
        return changes

    def _renamed(self, edit: SpriteEdit, name: str, values: Sequence[str]) -> dict[str, str]:
        renamed = dict(edit.renamed)
        if self._value:
            renamed |= {each: self._new for each in values if edit.renamed.get(each, each) == self._value}
        else:
            renamed[""] = self._new
        return {old: new for old, new in renamed.items() if new != (old or name)}  # without names as in the files

    def _of_sprite(self, given: Values) -> dict[str, str]:
        if self._value:
            value = given[self._name]
            return {**given, self._name: self._new if value == self._value else value}
        names = ((self._new if name == self._name else name, value) for name, value in given.items())
        return {name: value for name, value in names if name}


def renamed_values(values: Values, folder: Mapping[str, SpriteEdit]) -> dict[str, str]:
    """Return a sprite's values with renamed attributes and values. folder: the edits in the sprite's folder."""
    found = {}
    for name, value in values.items():
        renamed = folder[RENAMED + name].renamed if RENAMED + name in folder else {}
        if new := renamed.get("", name):
            found[new] = renamed.get(value, value)
    return found


def with_renames(sprites: Sprites, edits: Edits) -> Attributes:
    """Return sprites' attributes with renamed attributes and values."""
    attributes = sprites.attributes
    if not attributes or not any(key.startswith(RENAMED) for each in edits for key in each.sprites):
        return attributes
    columns = AttributeColumns()
    for index, name in enumerate(sprites.names):
        folder = next((each for each in edits if each.holds(name)), edits[0])
        for attribute, value in renamed_values(attributes.of(index), folder.sprites).items():
            columns.put(index, attribute, value)
    return columns.build(len(sprites))


def with_values(attributes: Attributes, changes: Mapping[int, Values], count: int) -> Attributes:
    """Return the attributes of `count` sprites with changed values. changes: new values by sprite index."""
    columns = AttributeColumns(attributes)
    for index, values in changes.items():
        for name, value in values.items():
            columns.put(index, name, value)
    return columns.build(count)
