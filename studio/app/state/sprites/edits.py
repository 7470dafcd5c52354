"""The user's changes of classes and colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.undo import UndoStep
from studio.core.arrays import Rgba
from studio.core.formatting import count
from studio.data.edits import Edits
from studio.data.import_result import ReadSprites
from studio.data.importing.class_moves import ClassMove
from studio.data.importing.edit_changes import EditChange
from studio.data.importing.recolouring import SpriteRecolouring


class SpriteEdits:
    """Changes open sprites. Every change adds a step to the page's undo history; files stay unchanged."""

    def __init__(self, open_sprites: OpenSprites) -> None:
        self._open_sprites = open_sprites

    def problem(self) -> str:
        """Return the reason, as a sentence, if sprites can't be edited now; else ''."""
        if self._open_sprites.options.edits == "off":
            return "Your edits are off in Import settings."
        result = self._open_sprites.result
        return "" if result and result.edits else "The file of your edits is damaged."

    def move_to_class(self, indices: Sequence[int], class_name: str) -> None:
        """Move open sprites to a new or existing class. Does nothing if the class contains all these sprites."""
        sprites = self._open_sprites.sprites
        if sprites is None:
            return
        names, labels = sprites.class_names, sprites.labels
        indices = [index for index in indices if names[labels[index]] != class_name]
        if indices:
            title = f"move {count(len(indices), 'sprite')} to {class_name!r}"
            self.change(lambda edits, read: ClassMove(edits, read, indices, class_name), title)

    def recolour(self, indices: Sequence[int], recolour: Callable[[Rgba], Rgba]) -> None:
        """Change colours of open sprites. recolour: returns recoloured copies of sprites, uint8 [..., 4]."""
        sprites = self._open_sprites.sprites
        if sprites is not None and len(indices):
            rgba, title = sprites.rgba, f"recolour {count(len(indices), 'sprite')}"
            self.change(lambda edits, read: SpriteRecolouring(edits, read, rgba, indices, recolour), title)

    def change(self, make: Callable[[Edits | EditChange, ReadSprites], EditChange], title: str) -> None:
        """Change the user's edits, unless `problem` returns a reason against it.

        make: receives the current edits and the sprites as read from the files, and returns a change of the edits.
        """
        opened, now = self._open_sprites, self._open_sprites.latest
        found, before = opened.result, now.edits
        if found is None or before is None or now.paths != opened.paths or self.problem():
            return
        change = make(before, found.read)
        undo, redo = partial(self._import, before), partial(self._import, change)
        redo()
        opened.history.add(UndoStep(title, undo, redo))

    def _import(self, edits: Edits | EditChange) -> None:
        """Import the latest files with these edits."""
        self._open_sprites.import_state(self._open_sprites.latest.with_edits(edits))
