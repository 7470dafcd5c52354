"""How much a curve is smoothed."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QLabel, QSlider, QWidget

from studio.app import parts
from studio.core import wording

_PER_DECADE = 10
_LAST = 4 * _PER_DECADE  # 10,000 steps
_SLIDER_WIDTH = 88


class SmoothingSlider(QWidget):
    """A time constant from 1 to 10,000 steps, or none. changed: by the user."""

    changed = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _LAST)
        self.slider.setPageStep(_PER_DECADE // 2)
        self.slider.setFixedWidth(_SLIDER_WIDTH)
        parts.describe(self.slider, "Smoothing", "Over how many steps the bold curve is averaged; at the left, none.")
        self._words = QLabel()
        self._words.setToolTip(self.slider.toolTip())
        self._words.setMinimumWidth(self._words.fontMetrics().horizontalAdvance("10,000 steps") + 4)
        self.setLayout(parts.row(self.slider, self._words))
        self._say(0)
        self.slider.valueChanged.connect(self._moved)

    def set_steps(self, steps: float) -> None:
        """Show this time constant."""
        self.slider.blockSignals(True)
        self.slider.setValue(0 if steps < 1 else round(_PER_DECADE * math.log10(steps)))
        self.slider.blockSignals(False)
        self._say(steps)

    @Slot(int)
    def _moved(self, place: int) -> None:
        steps = float(_rounded(10 ** (place / _PER_DECADE))) if place else 0.0
        self._say(steps)
        self.changed.emit(steps)

    def _say(self, steps: float) -> None:
        self._words.setText(wording.count(round(steps), "step") if steps else "Not smoothed")


def _rounded(steps: float) -> int:
    """Two digits are enough: 1259 -> 1300."""
    return int(float(f"{steps:.2g}"))
