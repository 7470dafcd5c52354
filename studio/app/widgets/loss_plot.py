"""The loss plot and its tabs. Importing this module imports pyqtgraph (0.4 s)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

Numbers = NDArray[np.generic] | Sequence[float] | Sequence[int]
Mark = Literal["checkpoint", "incident", "best"]


class LossPlot(QWidget):
    """One run: loss (raw, smoothed, validation) and, a tab away, other series over the same steps.

    step_hovered: the step under the crosshair; hover_ended: the mouse has left. save_requested: the Save button; the
    owner asks for a path and calls `save`.
    """

    step_hovered = Signal(int)
    hover_ended = Signal()
    save_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def append(self, steps: Numbers, losses: Numbers) -> None:
        """Append losses at rising `steps`; what was known from steps[0] on is replaced (a resumed run)."""

    def append_validation(self, step: int, loss: float) -> None:
        """Append a point of the validation line."""

    def append_series(self, name: str, steps: Numbers, values: Numbers, unit: str = "") -> None:
        """Append to another series ('Learning rate'); the first call with a name adds its tab."""

    def add_mark(self, step: int, kind: Mark, text: str = "") -> None:
        """Mark a step on every tab."""

    def clear(self) -> None:
        """Forget all data: a new run begins."""

    def set_redraw_interval_ms(self, interval_ms: int) -> None:
        """Shortest time between redraws for new data: every redraw slows a training beside it."""

    def set_smoothing(self, steps: float) -> None:
        """Time constant of the smoothed curve, in steps; 0 switches it off."""

    def set_log(self, log: bool) -> None:
        """Logarithmic or linear loss axis."""

    def auto_range(self) -> None:
        """Fit the axes to the data, and follow new data again."""

    def save(self, path: Path) -> None:
        """Write the tab on show as .png, .svg or .csv. Raises OSError, or UsageError for another suffix."""
