"""What a classifier takes for what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget


class ConfusionView(QWidget):
    """A confusion matrix and the accuracy of each class. cell_clicked: (true class, predicted class)."""

    cell_clicked = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_confusion(self, counts: NDArray[np.int64], class_names: Sequence[str]) -> None:
        """Show int64 [K, K] counts of [true class, predicted class]."""

    def clear(self) -> None:
        """Show nothing."""
