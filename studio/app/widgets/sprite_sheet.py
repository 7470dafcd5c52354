"""A few sprites, as large as whole-number zoom allows."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from studio.core.events import Rgba


class SpriteSheetView(QWidget):
    """Up to some hundred sprites in a grid that fills the widget at the largest whole factor. Cheap to update."""

    clicked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_sprites(self, rgba: Rgba, captions: Sequence[str] = ()) -> None:
        """Show `rgba` uint8 [N, S, S, 4]; captions stand under the sprites. An empty array clears the view."""

    def set_placeholder(self, text: str) -> None:
        """The text shown while there are no sprites."""


class SpriteStrip(SpriteSheetView):
    """Sprites in one row, as many as fit."""
