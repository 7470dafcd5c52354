"""A form for a config dataclass: a control for each setting, with bounds, unit and help."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from PySide6.QtCore import QLocale, Signal, Slot
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QSpinBox,
    QWidget,
)

from studio.app.widgets import factory
from studio.app.widgets.combo_box import ComboBox
from studio.app.widgets.input import WheelNeedsFocus
from studio.app.widgets.layout import Collapsible
from studio.app.widgets.path_field import PathField
from studio.core.config import Config, Setting, Value, settings_of
from studio.core.errors import UsageError

_LARGEST_INT = 2**31 - 1
_LARGEST = 1e12
_LABEL_WIDTH = 128
_CONTROL_WIDTH = 112
_DECIMALS = 30  # Qt rounds to this many decimals; 30 keeps doubles from 1e-7 up exact
_SMALL = 1e-4  # smaller numbers are shown as 1e-5


class ConfigForm(QWidget):
    """The settings of a config as labelled controls; advanced settings are collapsed.

    changed: the user edited a value, valid or not. Not emitted by `set_config`.
    """

    changed = Signal()

    def __init__(self, initial: Config, exclude: Collection[str] = ()) -> None:
        super().__init__()
        self._initial = initial
        self._showing = False
        self._settings = tuple(item for item in settings_of(type(initial)) if item.name not in exclude)
        self._controls: dict[str, QWidget] = {}
        self._reasons: dict[str, factory.FieldError] = {}
        box = factory.column(self._rows([item for item in self._settings if not item.advanced]))
        self.setLayout(box)
        advanced = self._rows([item for item in self._settings if item.advanced])
        self._advanced = Collapsible("Advanced", factory.panel(advanced)) if advanced.count() else None
        if self._advanced is not None:
            box.addWidget(self._advanced)
        self.set_config(initial)

    def config(self) -> Config:
        """Return the shown config. Settings without a control keep their last values. Raises UsageError."""
        return self._initial.replace(**{item.name: self._read(item) for item in self._settings})

    def set_config(self, config: Config) -> None:
        """Show the values of `config`, a config of the form's type."""
        self._initial = config
        self._showing = True
        for item in self._settings:
            control = input_of(self._controls[item.name])
            if isinstance(control, QComboBox):
                control.setCurrentIndex(control.findData(getattr(config, item.name)))
            else:
                control.metaObject().userProperty().write(control, getattr(config, item.name))
        self._showing = False
        self._mark_invalid()

    def set_advanced_summary(self, text: str) -> None:
        """Set the line shown while the advanced settings are collapsed."""
        if self._advanced is not None:
            self._advanced.set_summary(text)

    def problem(self) -> str:
        """Return the first error in the values; '' for a valid config."""
        try:
            self.config()
        except UsageError as error:
            return error.title
        return ""

    def show_error(self, name: str, reason: str) -> None:
        """Show an error at a setting's field until the next edit; expand the advanced settings if needed."""
        self._reasons[name].show_reason(reason)
        if self._advanced is not None and any(item.name == name and item.advanced for item in self._settings):
            self._advanced.set_open(True)

    def set_locked(self, reason: str, names: Collection[str]) -> None:
        """Lock these settings' controls and show the reason as their tooltip; '' unlocks them."""
        for name in names:
            factory.set_enabled(self._controls[name], reason)

    @Slot()
    def _on_edited(self) -> None:
        if not self._showing:
            self._mark_invalid()
            self.changed.emit()

    def _rows(self, settings: list[Setting]) -> QGridLayout:
        layout = QGridLayout()
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(2 * factory.GRID)
        layout.setVerticalSpacing(factory.GRID)
        layout.setColumnMinimumWidth(0, _LABEL_WIDTH)
        layout.setColumnStretch(1, 1)
        for row, item in enumerate(settings):
            control = self._controls[item.name] = self._control(item)
            if isinstance(control, QCheckBox):
                layout.addWidget(control, 2 * row, 0, 1, 2)
                continue
            label = QLabel(item.label)
            label.setToolTip(item.help)
            label.setWordWrap(True)  # a long label must not widen the form
            label.setBuddy(input_of(control))
            reason = self._reasons[item.name] = factory.FieldError(input_of(control), item.help)
            if isinstance(control, PathField):  # a path needs the whole width
                layout.addLayout(factory.column(label, control, spacing=factory.GRID // 2), 2 * row, 0, 1, 2)
            else:
                layout.addWidget(label, 2 * row, 0)
                layout.addWidget(control, 2 * row, 1)
            layout.addWidget(reason, 2 * row + 1, 0, 1, 2)
        return layout

    def _control(self, item: Setting) -> QWidget:
        made = _make(item)
        control = input_of(made)
        control.setObjectName(item.name)
        factory.set_name_and_tip(control, f"{item.label} ({item.unit})" if item.unit else item.label, item.help)
        WheelNeedsFocus(control)
        field = control.lineEdit() if isinstance(control, QAbstractSpinBox) else control
        if isinstance(field, QLineEdit):
            field.textChanged.connect(self._on_edited)
        elif isinstance(control, QComboBox):
            control.currentIndexChanged.connect(self._on_edited)
        elif isinstance(control, QCheckBox):
            control.toggled.connect(self._on_edited)
        if isinstance(control, QSpinBox | QDoubleSpinBox):  # a step changes the text without its signal
            control.valueChanged.connect(self._on_edited)
        return made

    def _read(self, item: Setting) -> Value:
        """Return a control's value. Raises UsageError."""
        control = input_of(self._controls[item.name])
        if isinstance(control, QCheckBox):
            return control.isChecked()
        if isinstance(control, QComboBox):
            return item.check(control.currentData())
        if isinstance(control, NumberBox):
            text, value = control.cleanText(), control.value()
            return value if text == control.textFromValue(value) else item.parse(text.replace(",", "."))
        if isinstance(control, QSpinBox):
            return item.parse(control.cleanText().replace(control.locale().groupSeparator(), ""))
        assert isinstance(control, QLineEdit)
        return item.check(control.text())

    def _mark_invalid(self) -> None:
        """Mark each invalid value and show its error below the field."""
        is_valid = not self.problem()
        for item in self._settings:
            if item.name in self._reasons:
                self._reasons[item.name].show_reason("" if is_valid else self._problem_of(item))

    def _problem_of(self, item: Setting) -> str:
        """Return why a setting's value is invalid by itself or with the other settings; '' for a valid value."""
        try:
            self._initial.replace(**{item.name: self._read(item)})
        except UsageError as error:
            return error.title
        return ""


def input_of(control: QWidget) -> QWidget:
    """Return the part of a setting's control that holds the value: the text field of a path field, else the control."""
    return control.line if isinstance(control, PathField) else control


def _make(item: Setting) -> QWidget:
    """Return a control for the setting's type, bounds and choices."""
    if item.kind is bool:
        return QCheckBox(item.label)
    if item.choices:
        combo = ComboBox()
        for choice in item.choices:
            combo.addItem(item.text(choice), choice)
        _fit(combo)
        return combo
    if item.path:
        return PathField("folder" if item.path == "folder" else "file")
    if item.kind is str:
        line = QLineEdit()
        line.setMaxLength(_LARGEST_INT)  # room for many names of excluded sprites
        return line
    if item.kind is int:
        return int_box(item)
    box = NumberBox()
    box.setRange(-_LARGEST if item.low is None else item.low, _LARGEST if item.high is None else item.high)
    box.setSpecialValueText(item.low_text)
    _finish(box, item)
    return box


def int_box(item: Setting) -> QSpinBox:
    """Return a spin box for an integer setting."""
    box = QSpinBox()
    low, high = -_LARGEST_INT if item.low is None else item.low, _LARGEST_INT if item.high is None else item.high
    box.setRange(max(int(low), -_LARGEST_INT), min(int(high), _LARGEST_INT))
    box.setLocale(QLocale("en_US"))  # thousands separators as in our texts
    box.setGroupSeparatorShown(True)
    box.setSpecialValueText(item.low_text)
    _finish(box, item)
    return box


def _finish(box: QSpinBox | NumberBox, item: Setting) -> None:
    if item.unit:
        box.setSuffix(f" {item.unit}")
    box.setStepType(QAbstractSpinBox.StepType.AdaptiveDecimalStepType)
    box.setCorrectionMode(QAbstractSpinBox.CorrectionMode.CorrectToNearestValue)
    factory.pad_spin_box(box)
    _fit(box)


def _fit(control: QWidget) -> None:
    """Give all controls the same width, whatever their longest text."""
    control.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    control.setMinimumWidth(_CONTROL_WIDTH)


class NumberBox(QDoubleSpinBox):
    """A spin box for floats that accepts '1e-5' and '0,5'. A step is a tenth of the number's magnitude."""

    def __init__(self) -> None:
        super().__init__()
        self.setDecimals(_DECIMALS)

    def textFromValue(self, value: float) -> str:
        """Return the shortest text: 0.0015 -> '0.0015', 2.5e-5 -> '2.5e-5', 20.0 -> '20'."""
        if 0 < abs(value) < _SMALL:
            mantissa, exponent = np.format_float_scientific(value, trim="-").split("e")
            return f"{mantissa}e{int(exponent)}"
        return str(np.format_float_positional(value, trim="-"))

    def valueFromText(self, text: str) -> float:
        """Return the typed number, the minimum for the special value text, or NaN for other text."""
        special = self.specialValueText()
        if special and text.casefold() == special.casefold():
            return self.minimum()
        try:
            return float(text.removesuffix(self.suffix()).replace(",", "."))
        except ValueError:
            return math.nan

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Accept finite numbers within the bounds; allow any other text while typing."""
        value = self.valueFromText(text)
        good = math.isfinite(value) and self.minimum() <= value <= self.maximum()
        return QValidator.State.Acceptable if good else QValidator.State.Intermediate, text, position

    def fixup(self, text: str) -> str:
        """Return the nearest allowed number as text, or the last value if the text is no number."""
        value = self.valueFromText(text)
        if not math.isfinite(value):
            value = self.value()
        return self.textFromValue(min(max(value, self.minimum()), self.maximum())) + self.suffix()

    def stepBy(self, steps: int) -> None:
        """Step by a tenth of the magnitude: 0.0015 by 0.0001, 20 by 1. Steps down mirror steps up.

        The lowest step up from a special value, such as 'Off' for 0, steps down to the special value again.
        """
        value = self.value()
        if self.specialValueText() and steps < 0 and value <= self._step(self.minimum(), upwards=True):
            value, steps = self.minimum(), 0
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
            exponent -= 1  # 0.01 steps down to 0.0099, mirroring the way up
        return float(10.0 ** (exponent - 1))
