"""The open sprites in a grid or a table, with search, zoom and what can be done with the selected sprites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app import theme
from studio.app.pages.sprites.search import SpriteSearch
from studio.app.pages.sprites.selection import SelectionBar
from studio.app.state.session import Session
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.widgets import factory
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.app.widgets.sprites.set_table import SetTable
from studio.app.widgets.sprites.zoom import ZoomSlider
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.data.import_result import SpritesImported
from studio.data.options import ImportOptions
from studio.data.sets.layout import NO_SETS
from studio.data.sets.renaming import Axis, CellRenamer
from studio.data.sprites import Sprites

_THUMBNAIL = "sprites_thumbnail"  # settings key: side of a thumbnail in logical pixels
_FORMER_ZOOM = "sprites_zoom"  # settings key of older versions: logical pixels for a sprite pixel
_VIEW = "sprites_view"  # settings key: "table" or "grid"
_AS_TABLE = "Show a row for each character, with its views and frames as columns."
_USUAL_SIZE = 32  # pixels of a sprite, to turn a former zoom into a thumbnail


class SpriteBrowser(QWidget):
    """A grid of the open sprites, or a table of their sets.

    The page chooses sprites by class and colour; the search field narrows the choice.
    """

    filtered = Signal()  # the shown sprites changed
    view_changed = Signal()  # the grid replaced the table, or the table replaced the grid
    all_requested = Signal()  # show all classes and colours

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._settings, self._open_sprites = session.settings, session.open_sprites
        self.grid = SpriteGrid()
        self.search, self.zoom = SpriteSearch(), ZoomSlider(self.grid.zoom)
        self.selection = SelectionBar(self.grid, session)
        self.table = SetTable(self.grid, SetNames(session.open_sprites))
        self.as_table = factory.toggle("Table", _AS_TABLE, self._on_as_table_clicked)
        self.show_all = factory.button("Clear filter", "Show all sprites.", slot=self._on_show_all_clicked)
        self._chosen: NDArray[np.int64] | None = None
        self._matching: NDArray[np.int64] | None = None  # chosen and found sprites
        self._has_sets = False
        self._pixels: Rgba | None = None
        self._names: Sequence[str] = ()
        no_match = factory.row(factory.text("No sprite matches.", "muted", wrap=False), self.show_all, 1)
        self._stack = factory.stack(self.grid, factory.panel(factory.column(no_match, 1)))
        above = factory.row(self.search, 1, self.as_table, self.zoom, grows=0)
        self.setLayout(factory.column(above, self._stack, self.selection, margin=factory.GRID, grows=1))
        self.as_table.setIcon(theme.icon("table"))
        self.as_table.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.as_table.setChecked(self._settings.text(_VIEW) == "table")
        self.as_table.hide()
        thumbnail, zoom = self._settings.text(_THUMBNAIL), self._settings.text(_FORMER_ZOOM)
        if thumbnail.isdecimal():
            self.grid.zoom.set_thumbnail(int(thumbnail))
        elif zoom.isdecimal():
            self.grid.zoom.set_thumbnail(int(zoom) * _USUAL_SIZE)
        self.search.found.connect(self._on_found)
        self.grid.activated.connect(self.grid.open_large)
        session.open_sprites.ended.connect(self.refresh_names)

    def save_state(self) -> None:
        self._settings.set_text(_THUMBNAIL, str(self.grid.zoom.thumbnail))
        self._settings.set_text(_VIEW, "table" if self.as_table.isChecked() else "grid")

    def shows_table(self) -> bool:
        """Return whether the browser shows the table of sets."""
        return self._has_sets and self.as_table.isChecked()

    @Slot()
    def show_table(self) -> None:
        """Show the table of sets instead of the grid."""
        self.as_table.setChecked(True)
        self._on_as_table_clicked()
        self.grid.setFocus()

    def show_sprites(self, sprites: Sprites, chosen: NDArray[np.int64] | None, *, is_same: bool) -> None:
        """Show an import's sprites. chosen: see `choose`.

        is_same: the files didn't change, so search, scroll position and selection stay. If the selected sprites
        vanished, selects the next sprite.
        """
        stays = self.grid.selected() if is_same and sprites.names == self._names else []
        indices = [*self.grid.selected()[:1], *self.grid.after_selection()] if is_same else []
        wanted = [self._names[index] for index in indices]
        has_same_pixels, self._pixels = sprites.rgba is self._pixels, sprites.rgba
        self._names, self._chosen, names = sprites.names, chosen, sprites.class_names
        if not is_same:
            self.search.clear()
        self.search.set_sprites(sprites)
        if has_same_pixels:  # only classes changed
            self.grid.replace_labels(sprites.labels, names)
            is_same_table = self._show_sets(sprites)
            if is_same_table and np.array_equal(self._matching, self._matches()):  # type: ignore[arg-type]  # or None
                return
        else:
            self.grid.set_sprites(sprites.rgba, self._names, labels=sprites.labels, class_names=names, stays=is_same)
            self._show_sets(sprites)
        self._filter(stays=True)
        for name in wanted:
            if name in self._names and self.grid.go_to(self._names.index(name)):
                break
        if len(stays) > 1 and not has_same_pixels:  # sprites were recoloured
            self.grid.select(stays)

    def choose(self, indices: NDArray[np.int64] | None) -> None:
        """Show the search hits among the sprites `indices`, ascending int64 [n]; None to search every sprite."""
        self._chosen = indices
        self._filter(stays=False)

    def shown_count(self) -> int | None:
        """Return the number of shown sprites; None without a filter."""
        is_all = self._chosen is None and self.search.indices is None
        return None if is_all else self.grid.visible_count()

    @Slot()
    def focus_search(self) -> None:
        """Move the focus to the search field."""
        self.search.setFocus()
        self.search.selectAll()

    def clear_search(self) -> bool:
        """Clear the search. Return whether the search had a text."""
        was_clear = not self.search.text()
        self.search.clear()
        return not was_clear

    def _show_sets(self, sprites: Sprites) -> bool:
        """Show the sets in the table, and the table if the user wants it. Return whether no cell changed."""
        was_table, self._has_sets = self.shows_table(), len(sprites.sets) > 0
        is_same = self.table.show_sets(sprites.sets)
        self.as_table.setVisible(self._has_sets)
        if was_table != self.shows_table():
            self._switch_view()
        return is_same

    def _switch_view(self) -> None:
        self.grid.show_instead(self.table if self.shows_table() else None)
        self.view_changed.emit()

    def _matches(self) -> NDArray[np.int64] | None:
        """Return the indices of chosen and found sprites, int64 [n], ascending; None for every sprite."""
        chosen, found = self._chosen, self.search.indices
        if chosen is None or found is None:
            return found if chosen is None else chosen
        return np.intersect1d(chosen, found, assume_unique=True)

    def _filter(self, *, stays: bool) -> None:
        """Show the chosen and found sprites; the table also shows the rest of their sets. stays: keep the position."""
        shown = self._matching = self._matches()
        if self.shows_table():
            shown = self.table.show_sets_with(shown)
        self.grid.set_visible(shown, stays=stays)
        self._stack.setCurrentIndex(1 if shown is not None and not len(shown) else 0)
        self.filtered.emit()

    @Slot()
    def _on_as_table_clicked(self) -> None:
        selected = self.grid.selected()
        self._switch_view()
        self._filter(stays=True)
        self.grid.select(selected)

    @Slot()
    def refresh_names(self) -> None:
        """Show the cell names from the running import, or else from the last import."""
        sprites = self._open_sprites.sprites
        if sprites is not None:
            self.table.show_sets(sprites.sets)

    @Slot()
    def _on_found(self) -> None:
        self._filter(stays=False)

    @Slot()
    def _on_show_all_clicked(self) -> None:
        self.search.clear()
        self.all_requested.emit()
        self.grid.setFocus()


class SetNames:
    """Renames views and frames in the table of sets: changes the import options `rows` and `columns`, undoably."""

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
        """Return the renamer for the open sprites; create a new renamer after an import."""
        result, latest = self._open_sprites.result, self._open_sprites.latest.options
        if self._made is None or self._made[0] is not result or self._made[1] != latest:
            layout, names = (result.sprites.sets, result.sprites.names) if result is not None else (NO_SETS, ())
            self._made = result, latest, CellRenamer(layout, names, self._open_sprites.options, latest)
        return self._made[2]
