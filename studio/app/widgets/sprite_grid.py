"""A grid of sprites that stays smooth at 100,000."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from studio.core.events import Rgba


class SpriteGrid(QWidget):
    """Thumbnails at whole-number zoom. An index is always the position in the array given to `set_sprites`.

    activated: double click or Enter on the sprite of that index. drag_requested: the user drags the selection out.
    """

    activated = Signal(int)
    selection_changed = Signal()
    zoom_changed = Signal(int)
    drag_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_sprites(
        self, rgba: Rgba, names: Sequence[str] = (), captions: Sequence[str] = (), classes: Sequence[str] = ()
    ) -> None:
        """Show `rgba` uint8 [N, S, S, 4] (not copied: must not change). Texts: none, or one a sprite.

        Captions stand under the sprites; names and classes make the tool tip.
        """

    def set_visible(self, indices: NDArray[np.int64] | Sequence[int] | None) -> None:
        """Show only these sprites, in this order; None shows all. The selection is cleared."""

    def visible_count(self) -> int:
        """How many sprites the filter leaves."""
        return 0

    def set_captions(self, captions: Sequence[str]) -> None:
        """Other captions for the same sprites."""

    def set_marks(self, marks: NDArray[np.int8] | None) -> None:
        """Mark sprites: int8 [N], 1 kept, -1 rejected, 0 neither; None removes all marks."""

    def selected(self) -> list[int]:
        """Indices of the selected sprites, ascending."""
        return []

    def current(self) -> int:
        """Index of the sprite with the keyboard focus; -1 when there is none."""
        return -1

    def select(self, indices: Sequence[int]) -> None:
        """Select exactly these sprites (those that are visible) and scroll to the first."""

    def zoom(self) -> int:
        """Screen pixels (logical) a sprite pixel."""
        return 1

    def set_zoom(self, zoom: int) -> None:
        """Set the zoom, 1 to 8."""

    def zoom_in(self) -> None:
        """One step larger."""

    def zoom_out(self) -> None:
        """One step smaller."""
