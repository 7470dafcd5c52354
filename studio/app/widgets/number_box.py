"""A spin box for numbers between 1e-7 and 1e6, shown as people write them."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QDoubleSpinBox, QWidget

_DECIMALS = 30  # Qt rounds values to so many: with 30 every double from 1e-7 on stays what it was
_SMALL = 1e-4  # below it zeros would have to be counted


class NumberBox(QDoubleSpinBox):
    """Steps by a tenth of the number's own magnitude; '1e-5' and '0,5' are understood."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDecimals(_DECIMALS)

    def textFromValue(self, value: float) -> str:
        """0.0015 -> '0.0015', 2.5e-5 -> '2.5e-5', 20.0 -> '20'."""
        if 0 < abs(value) < _SMALL:
            mantissa, exponent = np.format_float_scientific(value, trim="-").split("e")
            return f"{mantissa}e{int(exponent)}"
        return str(np.format_float_positional(value, trim="-"))

    def valueFromText(self, text: str) -> float:
        """The number that was typed; not a number while it is none."""
        try:
            return float(self._bare(text).replace(",", "."))
        except ValueError:
            return math.nan

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Anything may be typed on the way to a number; only numbers within the bounds are taken."""
        value = self.valueFromText(text)
        good = math.isfinite(value) and self.minimum() <= value <= self.maximum()
        return QValidator.State.Acceptable if good else QValidator.State.Intermediate, text, position

    def fixup(self, text: str) -> str:
        """On leaving the field: the nearest number that is allowed, or the last one."""
        value = self.valueFromText(text)
        if not math.isfinite(value):
            value = self.value()
        return self.textFromValue(min(max(value, self.minimum()), self.maximum())) + self.suffix()

    def stepBy(self, steps: int) -> None:
        """0.0015 steps by 0.0001, 20 by 1; a way down takes the same steps as the way up."""
        value = self.value()
        for _ in range(abs(steps)):
            step = self._step(value, upwards=steps > 0)
            value = round(value / step + math.copysign(1, steps)) * step
        self.setValue(float(f"{value:.12g}"))
        self.selectAll()

    def _step(self, value: float, *, upwards: bool) -> float:
        if value == 0:
            return float(10.0 ** math.floor(math.log10(max(self.maximum(), self.minimum() * -1) / 100)))
        exponent = math.floor(math.log10(abs(value)) + 1e-9)
        towards_zero = (value > 0) != upwards
        if towards_zero and math.isclose(abs(value), 10.0**exponent):
            exponent -= 1  # 0.01 goes down to 0.0099, as it came up
        return float(10.0 ** (exponent - 1))

    def _bare(self, text: str) -> str:
        return text.removesuffix(self.suffix()).strip()
