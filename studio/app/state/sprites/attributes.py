"""The user's changes of attributes."""

from __future__ import annotations

from collections.abc import Sequence

from studio.app.state.sprites.edits import SpriteEdits
from studio.app.state.sprites.sprites import OpenSprites
from studio.core.formatting import count
from studio.data.attributes.attributes import NO_ATTRIBUTES, Attributes
from studio.data.edits import Edits
from studio.data.import_result import ReadSprites
from studio.data.importing.attribute_edits import AttributeChange, AttributeRenaming
from studio.data.importing.edit_changes import EditChange


class AttributeEdits:
    """Changes attributes of open sprites. Every change adds a step to the page's undo history; files stay unchanged."""

    def __init__(self, open_sprites: OpenSprites) -> None:
        self._open_sprites, self._edits = open_sprites, SpriteEdits(open_sprites)

    @property
    def attributes(self) -> Attributes:
        """The attributes of the open sprites."""
        sprites = self._open_sprites.sprites
        return NO_ATTRIBUTES if sprites is None else sprites.attributes

    def why_not(self) -> str:
        """Return the reason, as a sentence, if attributes can't be changed now; else ''."""
        return self._edits.problem()

    def set_value(self, indices: Sequence[int], name: str, value: str) -> None:
        """Give open sprites a value of a new or existing attribute; '' for none."""
        words = f"{name} {value!r}" if value else f"no {name}"
        changed = [index for index in indices if self.attributes.of(index).get(name, "") != value]

        def change(edits: Edits | EditChange, read: ReadSprites) -> AttributeChange:
            return AttributeChange(edits, read, changed, {name: value})

        if changed:
            self._edits.change(change, f"give {count(len(changed), 'sprite')} {words}")

    def rename(self, name: str, value: str, new: str) -> None:
        """Rename a value of all open sprites, or with value '' the attribute."""
        self._rename(name, new, value, f"rename {value or name!r}")

    def remove(self, name: str, value: str) -> None:
        """Remove a value from all open sprites, or with value '' the attribute."""
        self._rename(name, "", value, f"remove {value or name!r}")

    def _rename(self, name: str, new: str, value: str, title: str) -> None:
        def change(edits: Edits | EditChange, read: ReadSprites) -> AttributeRenaming:
            return AttributeRenaming(edits, read, name, new, value)

        self._edits.change(change, title)
