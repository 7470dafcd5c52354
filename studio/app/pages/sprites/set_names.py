"""Names of the views and frames of the open sprites' sets, edited in the table of sets."""

from __future__ import annotations

from studio.app.state.sprites.sprites import OpenSprites
from studio.core.errors import BadInputError
from studio.data.sets.renaming import Axis, name_at, name_position, with_name


class SetNames:
    """A `CellNamer` that changes the import options `rows` and `columns`, as undoable steps."""

    def __init__(self, open_sprites: OpenSprites) -> None:
        self._open_sprites = open_sprites

    def shown_name(self, axis: Axis, name: str) -> str:
        """Return the name that the running import will give a view or frame, or else its name."""
        position = self._position(axis, name)
        return name if position < 0 else name_at(self._open_sprites.latest.options, axis, position)

    def why_fixed(self, axis: Axis, name: str) -> str:
        """Return why a name can't be edited, as a sentence; '' if it can."""
        sprites = self._open_sprites.sprites
        if sprites is None or self._position(axis, name) >= 0:
            return ""
        if sprites.sets.kind == "csv":
            return "The name is from sets.csv. Edit that file."
        return "The name is from your files or folders. Rename those."

    def rename(self, axis: Axis, name: str, text: str) -> str:
        """Import again with another name of a view or frame. Return why that is impossible; '' if it is possible."""
        sprites, now = self._open_sprites.sprites, self._open_sprites.latest.options
        if sprites is None:
            return ""
        total = len(sprites.sets.rows) if axis == "rows" else sprites.sets.columns[1]
        try:
            options = with_name(now, axis, self._position(axis, name), text, total)
        except BadInputError as error:
            return f"{error.title} {error.hint}"
        noun = "view" if axis == "rows" else "frame"
        self._open_sprites.change_options(options, f"rename {noun}s" if "," in text else f"rename {noun} {name!r}")
        return ""

    def _position(self, axis: Axis, name: str) -> int:
        sprites, options = self._open_sprites.sprites, self._open_sprites.options
        return name_position(sprites.sets, sprites.names, options, axis, name) if sprites is not None else -1
