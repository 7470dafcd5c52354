"""Panel beside the results: an animation, a sprite tiled with its nearest training sprites, or a map of tiles."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QBoxLayout, QWidget

from studio.app.background.model_jobs import NearestSprites
from studio.app.pages.generate.tile_map import TileMap
from studio.app.state.models.inference import Inference
from studio.app.widgets import factory
from studio.app.widgets.editor.previews import Preview, tiled
from studio.app.widgets.sprites.player import Player
from studio.core.arrays import Rgba
from studio.data.tiles.tile_set import TileSet

_COUNT, _ZOOM = 3, 4
_WIDTH, _HEIGHT, _SIDE = 136, 128, 40  # logical pixels: width beside the grid, height below it, side of a sprite
_BAR = 16  # width of the scroll bar in logical pixels
_UNLIMITED = (1 << 24) - 1  # Qt's largest size of a widget
_TIP = "A training sprite close to the selected sprite."
_TILED = "Selected sprite, tiled"
_HINT = "Select a sprite to see it tiled and its nearest training sprites."


class NeighboursPanel(QWidget):
    """An animation, a tiled sprite with its nearest training sprites, or a map of tiles. Keeps its size when empty."""

    def __init__(self, inference: Inference) -> None:
        super().__init__()
        self._is_editing = False
        self.player = Player()
        self.tiled = tiled()
        self.map = TileMap(_WIDTH)
        self.previews = [Preview("Nearest sprite", _TIP, zoom=_ZOOM, side=_SIDE) for _ in range(_COUNT)]
        self.verdict = factory.caption("")
        self._heading = factory.caption("Nearest training sprites")
        self._caption = factory.caption("")
        nearest = factory.row(*self.previews, 1)
        self._about = factory.panel(factory.column(self._heading, nearest, self.verdict, 1, spacing=4))
        self._box = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.addWidget(self._caption, 0, Qt.AlignmentFlag.AlignTop)
        for picture in (self.tiled, self.map):
            self._box.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        self._box.addWidget(self.player)
        self._box.addWidget(self._about, 1)
        self._box.addStretch()  # else the caption and a picture share the height
        self._area = factory.scroll_area(factory.panel(self._box))
        self.setLayout(factory.column(self._area))
        inference.neighbours_found.connect(self._on_neighbours_found)
        self.set_below(False)
        self.show_hint()

    def set_below(self, is_below: bool) -> None:
        """Arrange the panel as a row below the grid, or as a column beside it."""
        direction = QBoxLayout.Direction.LeftToRight if is_below else QBoxLayout.Direction.TopToBottom
        self._box.setDirection(direction)
        self.player.set_direction(direction)
        width, height = (_UNLIMITED, _HEIGHT) if is_below else (_WIDTH + _BAR, _UNLIMITED)
        self.setMinimumSize(0 if is_below else width, height if is_below else 0)
        self.setMaximumSize(width, height)
        self._refresh_caption()

    def is_playing(self) -> bool:
        """Return whether the panel shows an animation."""
        return not self.player.isHidden()

    def show_hint(self) -> None:
        """Show a hint instead of a sprite."""
        self._show_only(_HINT, None)

    def show_frames(self, frames: Rgba) -> None:
        """Play an animation, uint8 [N, S, S, 4]."""
        self.player.show_frames(frames)
        self._show_only("", self.player)

    def show_tiled(self, sprite: Rgba) -> None:
        """Show a sprite, uint8 [S, S, 4], tiled. Its nearest training sprites appear once found."""
        self.tiled.show_sprite(sprite)
        self._show_only(_TILED, self.tiled)
        self.set_editing(self._is_editing)

    def set_editing(self, is_editing: bool) -> None:
        """Leave out the tiled sprite while the editor is open, which shows the edited sprite tiled."""
        self._is_editing = is_editing
        if not self._about.isHidden():
            self.tiled.setHidden(is_editing)
            self._caption.setText("" if is_editing else _TILED)
            self._refresh_caption()

    def show_tile_set(self, tile_set: TileSet) -> None:
        """Show a random map of a tile set."""
        self.map.show_tile_set(tile_set)
        self._show_only("Map of these tiles", self.map)

    def _show_only(self, caption: str, picture: QWidget | None) -> None:
        """Show a caption and a picture, or the caption alone for None. Hide the other widgets."""
        self._caption.setText(caption)
        for widget in (self.player, self.tiled, self.map, self._heading, *self.previews, self.verdict):
            widget.setVisible(widget is picture)
        self._about.setVisible(picture is self.tiled)
        self._refresh_caption()

    def _refresh_caption(self) -> None:
        """Show the caption, unless a row has no room for it beside a picture."""
        is_row = self._box.direction() == QBoxLayout.Direction.LeftToRight
        has_picture = not (self.tiled.isHidden() and self.map.isHidden())
        self._caption.setVisible(bool(self._caption.text()) and not (is_row and has_picture))

    @Slot(object)
    def _on_neighbours_found(self, found: NearestSprites) -> None:
        if self._about.isHidden():  # the selection has changed since the request
            return
        for index, preview in enumerate(self.previews):
            preview.setVisible(index < len(found.sprites))
            if index < len(found.sprites):
                preview.show_sprite(found.sprites[index])
                preview.setToolTip(found.names[index])
        self.verdict.setText("A copy of the first sprite." if found.is_copy else "Not a copy.")
        for widget in (self._heading, self.verdict):
            widget.show()
