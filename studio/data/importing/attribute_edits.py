"""Attributes that the user gives to imported sprites, one of the user's edits: change and apply them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from studio.data.attributes.attributes import Attributes
from studio.data.attributes.columns import AttributeColumns
from studio.data.edits import Edits, SpriteEdit
from studio.data.import_result import ReadSprites
from studio.data.importing.edit_changes import EditChange

Values = Mapping[str, str]  # value by attribute; '' for none


class AttributeChange(EditChange):
    """A change of the attributes of imported sprites. A value as in the files is no edit."""

    noun = "sprites changed"

    def __init__(
        self,
        before: Edits | EditChange,
        read: ReadSprites,
        indices: Sequence[int],
        values_of: Callable[[int], Values],
    ) -> None:
        """Create a change. See EditChange. values_of: returns the new values of an imported sprite, by its index."""
        super().__init__(before, read, indices)
        self._values_of = values_of

    def _changed(self, index: int, row: int, old: SpriteEdit) -> SpriteEdit:
        of_file = self._read.sprites.attributes.of(row)
        values = {**old.attributes, **self._values_of(index)}
        changed = {name: value for name, value in values.items() if of_file.get(name, "") != value}
        return msgspec.structs.replace(old, attributes=changed)


def with_values(attributes: Attributes, changes: Mapping[int, Values], count: int) -> Attributes:
    """Return the attributes of `count` sprites with changed values, by the index of the sprite."""
    columns = AttributeColumns(attributes)
    for index, values in changes.items():
        for name, value in values.items():
            columns.put(index, name, value)
    return columns.build(count)
