"""What a classifier says of sprites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from studio.core.events import Rgba


class ProbabilitiesView(QWidget):
    """Each sprite with the bars of its most probable classes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_predictions(
        self, rgba: Rgba, probabilities: NDArray[np.float32], class_names: Sequence[str], top: int = 3
    ) -> None:
        """Show uint8 [N, S, S, 4] sprites and float32 [N, K] probabilities."""
