"""Panel beside the results: a sprite tiled, its nearest training sprites, or corner tiles laid out."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from studio.app.background.model_jobs import NearestSprites
from studio.app.state.models.inference import Inference
from studio.app.widgets import factory
from studio.app.widgets.editor.previews import Preview, tiled
from studio.core.arrays import Rgba
from studio.data.pixels.corner_tiles import join_tiles

_COUNT, _ZOOM = 3, 4
_WIDTH, _SIDE = 136, 40  # logical pixels of the panel and of a sprite
_BAR = 16  # width of the scroll bar in logical pixels
_LAID_OUT = "All 16 tiles laid out so that neighbours match; the image repeats at its edges."
_TIP = "A training sprite close to the selected sprite."
_HINT = "Select a sprite to see it tiled and its nearest training sprites."


class NeighboursPanel(QWidget):
    """A tiled sprite with its nearest training sprites, or corner tiles laid out. Keeps its width when empty."""

    def __init__(self, inference: Inference) -> None:
        super().__init__()
        self.tiled = tiled()
        self.laid_out = Preview("Laid out", _LAID_OUT, zoom=2, side=_WIDTH)
        self.previews = [Preview("Nearest sprite", _TIP, zoom=_ZOOM, side=_SIDE) for _ in range(_COUNT)]
        self.verdict = factory.caption("")
        self.setFixedWidth(_WIDTH + _BAR)
        self._heading = factory.caption("Nearest training sprites")
        self._caption = factory.caption("")
        nearest, pictures = factory.row(*self.previews, 1), (self.tiled, self.laid_out)
        content = factory.column(self._caption, *pictures, self._heading, nearest, self.verdict, 1, spacing=4)
        self.setLayout(factory.column(factory.scroll_area(factory.panel(content))))
        inference.neighbours_found.connect(self._on_neighbours_found)
        self.show_hint()

    def show_hint(self) -> None:
        """Show a hint instead of a sprite."""
        self._show_only(_HINT, None)

    def show_tiled(self, sprite: Rgba) -> None:
        """Show a sprite, uint8 [S, S, 4], tiled. Its nearest training sprites appear once found."""
        self.tiled.show_sprite(sprite)
        self._show_only("Selected sprite, tiled", self.tiled)

    def show_corner_tiles(self, tiles: Rgba) -> None:
        """Show a set of corner tiles, uint8 [16, S, S, 4], laid out as a map."""
        self.laid_out.show_sprite(join_tiles(tiles)[0])
        self._show_only("Laid out", self.laid_out)

    def _show_only(self, caption: str, picture: Preview | None) -> None:
        """Show a caption and a picture, or the caption alone for None. Hide the other widgets."""
        self._caption.setText(caption)
        for widget in (self.tiled, self.laid_out, self._heading, *self.previews, self.verdict):
            widget.setVisible(widget is picture)

    @Slot(object)
    def _on_neighbours_found(self, found: NearestSprites) -> None:
        if self.tiled.isHidden():  # the selection has changed since the request
            return
        for index, preview in enumerate(self.previews):
            preview.setVisible(index < len(found.sprites))
            if index < len(found.sprites):
                preview.show_sprite(found.sprites[index])
                preview.setToolTip(found.names[index])
        self.verdict.setText("A copy of the first sprite." if found.is_copy else "Not a copy.")
        for widget in (self._heading, self.verdict):
            widget.show()
