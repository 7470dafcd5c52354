"""A palette as swatches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget


class Swatches(QWidget):
    """Colours in wrapping rows; the tool tip of each says its hex code and count. colour_clicked: index of a colour."""

    colour_clicked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_palette(self, colours: NDArray[np.uint8], counts: NDArray[np.int64] | Sequence[int] = ()) -> None:
        """Show uint8 [K, 4] RGBA (or [K, 3]) and, when given, how many pixels have each."""
