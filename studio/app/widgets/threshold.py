"""A threshold of alpha, tried out on what is shown before it is used."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QLabel, QSlider, QWidget

from studio.app import parts
from studio.app.widgets.flow import Flow

_HALF, _MOST = 128, 255
_TIP = "Pixels at least this opaque become solid, all others clear; move it to see what becomes of the sprites."


class Threshold(QWidget):
    """changed: the threshold to show now, 1 to 255; 0 shows the sprites as they are."""

    changed = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(1, _MOST)
        self.slider.setPageStep(16)
        self.slider.setValue(_HALF)
        self.slider.setMinimumWidth(80)
        self.slider.setMaximumWidth(160)
        self.preview = QCheckBox("Preview")
        self._value = QLabel(f"{_HALF}")
        self._value.setMinimumWidth(self._value.fontMetrics().horizontalAdvance("255"))
        parts.describe(self.slider, "Solid from", _TIP)
        parts.describe(self.preview, "Preview", "Show the sprites as they would be.")
        label = parts.text("Solid from alpha", "muted", wrap=False)
        label.setBuddy(self.slider)
        flow = Flow(2 * parts.GRID, parts.GRID)
        flow.addWidget(parts.panel(parts.row(label, self.slider, self._value)))
        flow.addWidget(self.preview)
        self.setLayout(flow)
        self.slider.valueChanged.connect(self._move)
        self.preview.toggled.connect(self._tell)

    def reset(self) -> None:
        """Show the sprites as they are."""
        self.preview.setChecked(False)

    @Slot(int)
    def _move(self, value: int) -> None:
        self._value.setText(str(value))
        if self.preview.isChecked():
            self._tell()
        else:
            self.preview.setChecked(True)

    @Slot()
    def _tell(self) -> None:
        self.changed.emit(self.slider.value() if self.preview.isChecked() else 0)
