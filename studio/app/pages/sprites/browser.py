"""The open sprites in a grid, with search, zoom and what can be done with the selected sprites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app.pages.sprites.search import SpriteSearch
from studio.app.pages.sprites.selection import SelectionBar
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.app.widgets.sprites.zoom import ZoomSlider
from studio.core.arrays import Rgba
from studio.data.sprites import Sprites

_THUMBNAIL = "sprites_thumbnail"  # settings key: side of a thumbnail in logical pixels
_FORMER_ZOOM = "sprites_zoom"  # settings key of older versions: logical pixels for a sprite pixel
_USUAL_SIZE = 32  # pixels of a sprite, to turn a former zoom into a thumbnail


class SpriteBrowser(QWidget):
    """A grid of the open sprites. The page chooses sprites by class and colour; the search field narrows the choice."""

    filtered = Signal()  # other sprites are shown
    all_requested = Signal()  # show all classes and colours

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._settings = session.settings
        self.grid = SpriteGrid()
        self.search, self.zoom = SpriteSearch(), ZoomSlider(self.grid.zoom)
        self.selection = SelectionBar(self.grid, session)
        self.show_all = factory.button("Clear filter", "Show all sprites.", slot=self._on_show_all_clicked)
        self._chosen: NDArray[np.int64] | None = None
        self._shown: NDArray[np.int64] | None = None  # chosen and found sprites
        self._pixels: Rgba | None = None
        self._names: Sequence[str] = ()
        no_match = factory.row(factory.text("No sprite matches.", "muted", wrap=False), self.show_all, 1)
        self._stack = factory.stack(self.grid, factory.panel(factory.column(no_match, 1)))
        above = factory.row(self.search, 1, self.zoom, grows=0)
        self.setLayout(factory.column(above, self._stack, self.selection, margin=factory.GRID, grows=1))
        thumbnail, zoom = self._settings.text(_THUMBNAIL), self._settings.text(_FORMER_ZOOM)
        if thumbnail.isdecimal():
            self.grid.zoom.set_thumbnail(int(thumbnail))
        elif zoom.isdecimal():
            self.grid.zoom.set_thumbnail(int(zoom) * _USUAL_SIZE)
        self.search.found.connect(self._on_found)
        self.grid.activated.connect(self.grid.open_large)

    def save_state(self) -> None:
        self._settings.set_text(_THUMBNAIL, str(self.grid.zoom.thumbnail))

    def show_sprites(self, sprites: Sprites, chosen: NDArray[np.int64] | None, *, is_same: bool) -> None:
        """Show the sprites of an import. chosen: see `choose`.

        is_same: of the same files as before, so that search, scroll position and selection stay. If the selected
        sprites are gone or hidden, the next sprite is selected.
        """
        indices = [*self.grid.selected()[:1], *self.grid.after_selection()] if is_same else []
        wanted = [self._names[index] for index in indices]
        has_same_pixels, self._pixels = sprites.rgba is self._pixels, sprites.rgba
        self._names, self._chosen, names = sprites.names, chosen, sprites.class_names
        if not is_same:
            self.search.clear()
        self.search.set_sprites(sprites)
        if has_same_pixels:  # sprites were moved to other classes
            self.grid.replace_labels(sprites.labels, names)
            if np.array_equal(self._shown, self._matches()):  # type: ignore[arg-type]  # None is an object array
                return
        else:
            self.grid.set_sprites(sprites.rgba, self._names, labels=sprites.labels, class_names=names, stays=is_same)
        self._filter(stays=True)
        for name in wanted:
            if name in self._names and self.grid.go_to(self._names.index(name)):
                break

    def choose(self, indices: NDArray[np.int64] | None) -> None:
        """Show the search hits among these sprites, ascending int64 [n]; None: among all sprites."""
        self._chosen = indices
        self._filter(stays=False)

    def shown_count(self) -> int | None:
        """Return the number of shown sprites; None if no filter is set."""
        is_all = self._chosen is None and self.search.indices is None
        return None if is_all else self.grid.visible_count()

    @Slot()
    def focus_search(self) -> None:
        """Move the focus to the search field."""
        self.search.setFocus()
        self.search.selectAll()

    def clear_search(self) -> bool:
        """Clear the search. Return False if it is clear."""
        was_clear = not self.search.text()
        self.search.clear()
        return not was_clear

    def _matches(self) -> NDArray[np.int64] | None:
        """Return the chosen and found sprites: int64 [n], ascending; None for all."""
        chosen, found = self._chosen, self.search.indices
        if chosen is None or found is None:
            return found if chosen is None else chosen
        return np.intersect1d(chosen, found, assume_unique=True)

    def _filter(self, *, stays: bool) -> None:
        """Show the chosen and found sprites. stays: keep the scroll position."""
        shown = self._shown = self._matches()
        self.grid.set_visible(shown, stays=stays)
        self._stack.setCurrentIndex(1 if shown is not None and not len(shown) else 0)
        self.filtered.emit()

    @Slot()
    def _on_found(self) -> None:
        self._filter(stays=False)

    @Slot()
    def _on_show_all_clicked(self) -> None:
        self.search.clear()
        self.all_requested.emit()
        self.grid.setFocus()
