"""Names of the views and frames of the open sprites' sets, edited in the table of sets."""

from __future__ import annotations

from studio.app.state.sprites.sprites import OpenSprites
from studio.core.errors import BadInputError
from studio.data.import_result import SpritesImported
from studio.data.options import ImportOptions
from studio.data.sets.layout import NO_SETS
from studio.data.sets.renaming import Axis, CellRenamer


class SetNames:
    """A `CellNamer` that changes the import options `rows` and `columns`, as undoable steps."""

    def __init__(self, open_sprites: OpenSprites) -> None:
        self._open_sprites = open_sprites
        self._made: tuple[SpritesImported | None, ImportOptions, CellRenamer] | None = None

    def shown_name(self, axis: Axis, name: str) -> str:
        """Return the name that the running import will give a view or frame, or else its name."""
        return self._renamer().shown_name(axis, name)

    def why_fixed(self, axis: Axis, name: str) -> str:
        """Return the reason for a fixed name, a sentence, or ''."""
        return self._renamer().why_fixed(axis, name)

    def rename(self, axis: Axis, name: str, text: str) -> str:
        """Import again with a new name of a view or frame. Return the reason for a refused name, or ''."""
        try:
            options = self._renamer().rename(axis, name, text)
        except BadInputError as error:
            return f"{error.title} {error.hint}"
        noun = "view" if axis == "rows" else "frame"
        self._open_sprites.change_options(options, f"rename {noun}s" if "," in text else f"rename {noun} {name!r}")
        return ""

    def _renamer(self) -> CellRenamer:
        """Return the renamer of the open sprites; make a new renamer after each import."""
        result, latest = self._open_sprites.result, self._open_sprites.latest.options
        if self._made is None or self._made[0] is not result or self._made[1] != latest:
            layout, names = (result.sprites.sets, result.sprites.names) if result is not None else (NO_SETS, ())
            self._made = result, latest, CellRenamer(layout, names, self._open_sprites.options, latest)
        return self._made[2]
