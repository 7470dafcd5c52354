"""Curves of several runs over one another. Importing this module imports pyqtgraph (0.4 s)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from studio.app.widgets.loss_plot import Numbers


class CurvesPlot(QWidget):
    """Loss curves to compare, with a legend; log switch, smoothing, crosshair and saving as in `LossPlot`."""

    save_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def set_curves(self, curves: Sequence[tuple[str, Numbers, Numbers]]) -> None:
        """Show (label, steps, losses) of each run, in the order of the theme's curve colours."""

    def save(self, path: Path) -> None:
        """Write the plot as .png, .svg or .csv. Raises OSError, or UsageError for another suffix."""
