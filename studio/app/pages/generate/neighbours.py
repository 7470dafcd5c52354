"""Beside a sprite: how it looks tiled, what it is nearest to of all that was learnt from, and whether it is a copy.

Beside a set of corner tiles: how they look laid out.
"""

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
_WIDTH, _SIDE = 136, 40  # logical pixels, of all and of one
_BAR = 16  # at the right of what is scrolled, in logical pixels
_LAID_OUT = "All of them, each beside those that fit; the picture goes on beyond its own borders."
_TIP = "One of the sprites that the model learnt from that are nearest to the selected one."
_COPY = "It is a copy of the first."
_REST = "Select one sprite: here is how it looks tiled, and what it is nearest to of all that the model learnt from."
_OWN = "None is so near that it would be a copy."


class NeighboursPanel(QWidget):
    """One sprite, or a set of tiles, looked at closely. Its place is kept while there is neither: no sprite moves."""

    def __init__(self, inference: Inference) -> None:
        super().__init__()
        self.tiled = tiled()
        self.laid_out = Preview("Laid out", _LAID_OUT, zoom=2, side=_WIDTH)
        self.previews = [Preview("Nearest sprite", _TIP, zoom=_ZOOM, side=_SIDE) for _ in range(_COUNT)]
        self.verdict = factory.caption("")
        self.setFixedWidth(_WIDTH + _BAR)
        self._heading = factory.caption("Nearest it learnt from")
        self._caption = factory.caption("")
        nearest, pictures = factory.row(*self.previews, 1), (self.tiled, self.laid_out)
        content = factory.column(self._caption, *pictures, self._heading, nearest, self.verdict, 1, spacing=4)
        self.setLayout(factory.column(factory.scroll_area(factory.panel(content))))
        inference.neighbours_found.connect(self._on_neighbours_found)
        self.show_hint()

    def show_hint(self) -> None:
        """Say what is shown here once there is something to look at."""
        self._begin(_REST, None)

    def show_tiled(self, sprite: Rgba) -> None:
        """Show uint8 [S, S, 4]; what is nearest follows."""
        self.tiled.show_sprite(sprite)
        self._begin("The selected one, tiled", self.tiled)

    def show_corner_tiles(self, tiles: Rgba) -> None:
        """Show a set of corner tiles uint8 [16, S, S, 4]."""
        self.laid_out.show_sprite(join_tiles(tiles)[0])
        self._begin("Laid out", self.laid_out)

    def _begin(self, caption: str, picture: Preview | None) -> None:
        """Show this picture alone, or none."""
        self._caption.setText(caption)
        for widget in (self.tiled, self.laid_out, self._heading, *self.previews, self.verdict):
            widget.setVisible(widget is picture)

    @Slot(object)
    def _on_neighbours_found(self, found: NearestSprites) -> None:
        if self.tiled.isHidden():  # it was asked for a sprite that is no longer looked at
            return
        for index, preview in enumerate(self.previews):
            preview.setVisible(index < len(found.sprites))
            if index < len(found.sprites):
                preview.show_sprite(found.sprites[index])
                preview.setToolTip(found.names[index])
        self.verdict.setText(_COPY if found.is_copy else _OWN)
        for widget in (self._heading, self.verdict):
            widget.show()
