"""The user's changes of attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from studio.app.state.sprites.sprites import OpenSprites
from studio.core.formatting import count
from studio.data.attributes.attributes import NO_ATTRIBUTES, NONE, Attributes
from studio.data.edits import Edits
from studio.data.import_result import ReadSprites
from studio.data.importing.attribute_edits import AttributeChange
from studio.data.importing.edit_changes import EditChange


class AttributeEdits:
    """Changes attributes of open sprites. Every change adds a step to the page's undo history; files stay unchanged."""

    def __init__(self, open_sprites: OpenSprites) -> None:
        self._open_sprites = open_sprites

    @property
    def attributes(self) -> Attributes:
        """The attributes of the open sprites."""
        sprites = self._open_sprites.sprites
        return NO_ATTRIBUTES if sprites is None else sprites.attributes

    def why_not(self) -> str:
        """Return the reason, as a sentence, if attributes can't be changed now; else ''."""
        return self._open_sprites.why_no_edits()

    def set_value(self, indices: Sequence[int], name: str, value: str) -> None:
        """Give open sprites a value of a new or existing attribute; '' for none."""
        words = f"{name} {value!r}" if value else f"no {name}"
        changed = [index for index in indices if self.attributes.of(index).get(name, "") != value]
        self._change(changed, lambda index: {name: value}, f"give {count(len(changed), 'sprite')} {words}")

    def rename(self, old: str, new: str) -> None:
        """Rename an attribute of all open sprites."""
        attributes = self.attributes
        self._change(
            self._sprites_with(old), lambda index: {old: "", new: attributes.of(index)[old]}, f"rename {old!r}"
        )

    def remove(self, name: str) -> None:
        """Remove an attribute from all open sprites."""
        self._change(self._sprites_with(name), lambda index: {name: ""}, f"remove {name!r}")

    def _sprites_with(self, name: str) -> list[int]:
        """Return the indices of the sprites with a value of an attribute."""
        attributes = self.attributes
        if name not in attributes.names:
            return []
        indices: list[int] = np.flatnonzero(attributes.table[:, attributes.names.index(name)] != NONE).tolist()
        return indices

    def _change(self, indices: Sequence[int], values_of: Callable[[int], Mapping[str, str]], title: str) -> None:
        def change(edits: Edits | EditChange, read: ReadSprites) -> AttributeChange:
            return AttributeChange(edits, read, indices, values_of)

        if indices:
            self._open_sprites.edit(change, title)
