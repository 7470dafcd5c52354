"""The preview of a fix that changes pixels: a sprite before and after, and the alpha threshold."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSlider, QWidget

from studio.app.state.sprites.doctor import SpriteDoctor
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.before_after import BeforeAfter
from studio.core.arrays import Rgba
from studio.core.formatting import count, number
from studio.data.doctor.findings import Fix
from studio.data.doctor.preview import changed_pixels, describe_change

_THRESHOLD = "alpha_threshold"
_HALF = 128
_NARROW = 400  # logical pixels; below, the pictures are smaller
_COMPUTING = "Computing the preview…"
_NO_SPRITES: Rgba = np.zeros((0, 1, 1, 4), np.uint8)


class FixPreview(QWidget):
    """Shows a sprite before and after a fix; hidden without a fix that changes pixels."""

    pixels_changed = Signal(object)  # uint8 [n, S, S, 4], the finding's sprites to show in the grid

    def __init__(self, doctor: SpriteDoctor) -> None:
        super().__init__()
        self._doctor = doctor
        self._fix: Fix | None = None
        self._indices: NDArray[np.int64] = np.zeros(0, np.int64)  # of the finding's sprites among the open sprites
        self._before, self._after = _NO_SPRITES, _NO_SPRITES  # _after holds the first computed sprites
        self._selected = self._most_changed = -1  # positions in `_indices`
        self.threshold = AlphaThreshold()
        self.in_grid = factory.check_box("Preview in grid", "Preview the fix on all sprites below.")
        self.pair = BeforeAfter()
        self._facts = factory.text("", "muted", wrap=False)
        facts = factory.panel(factory.column(self._facts, self.in_grid, 1))
        self.setLayout(factory.column(self.threshold, factory.panel(FlowLayout(16, factory.GRID, self.pair, facts))))
        self.threshold.changed.connect(self._on_threshold_changed)
        self.in_grid.toggled.connect(self._show_in_grid)
        doctor.previewed.connect(self._on_previewed)
        self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.pair.set_side(64 if self.width() < _NARROW else 96)

    def set_fix(self, fix: Fix | None, indices: NDArray[np.int64], before: Rgba) -> None:
        """Preview a fix for the open sprites `indices`, uint8 [n, S, S, 4] before; None hides the preview."""
        self._fix, self._indices = fix if len(indices) else None, indices
        self._before, self._after = before, _NO_SPRITES
        self._selected = self._most_changed = -1
        with QSignalBlocker(self.in_grid):
            self.in_grid.setChecked(False)
        self.threshold.setVisible(fix is not None and bool(fix.changes.get(_THRESHOLD)))
        self.setVisible(self._fix is not None)
        if self._fix is not None:
            self._compute()

    def chosen(self, fix: Fix) -> Fix:
        """Return a fix with the chosen alpha threshold, if the fix has one."""
        if not fix.changes.get(_THRESHOLD):
            return fix
        return replace(fix, changes={**fix.changes, _THRESHOLD: self.threshold.slider.value()})

    def select(self, position: int) -> None:
        """Show the sprite at a position among the finding's sprites; -1 shows the most changed sprite."""
        self._selected = position
        self._show_pair()

    def _compute(self) -> None:
        if self._fix is not None:
            self._doctor.preview(self.chosen(self._fix), self._indices)
        self._show_pair()

    @Slot()
    def _on_threshold_changed(self) -> None:
        self._compute()

    @Slot(object)
    def _on_previewed(self, after: Rgba) -> None:
        self._after = after
        if self._most_changed < 0:  # later results keep the shown sprite
            self._most_changed = int(changed_pixels(self._before[: len(after)], after).argmax())
        self._show_pair()
        if self.in_grid.isChecked() and len(after) == len(self._before):
            self._show_in_grid()

    @Slot()
    def _show_in_grid(self) -> None:
        is_after = self.in_grid.isChecked() and len(self._after) == len(self._before)
        self.pixels_changed.emit(self._after if is_after else self._before)

    def _show_pair(self) -> None:
        if self._fix is None:
            return
        known = len(self._after)
        shown = self._selected if self._selected >= 0 else self._most_changed
        if not 0 <= shown < known:
            self.pair.set_pair(self._before[shown] if shown >= 0 else None, None)
            self._facts.setText(f"{_COMPUTING}\n")
            return
        changed = changed_pixels(self._before[:known], self._after)
        words = describe_change(self._before[shown], self._after[shown], int(changed[shown]))
        self.pair.set_pair(self._before[shown], self._after[shown], words)
        total = f"{number(int(np.count_nonzero(changed)))} of {count(known, 'sprite')} change"
        self._facts.setText(f"{words}\n{total if known == len(self._before) else _COMPUTING}")


class AlphaThreshold(QWidget):
    """A slider for the alpha threshold."""

    changed = Signal(int)  # the threshold, 1 to 255

    def __init__(self) -> None:
        super().__init__()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(1, 255)
        self.slider.setPageStep(16)
        self.slider.setValue(_HALF)
        self.slider.setMinimumWidth(60)
        self.slider.setMaximumWidth(160)
        self._value = QLabel(str(_HALF))
        self._value.setMinimumWidth(self._value.fontMetrics().horizontalAdvance("255"))
        tip = "Pixels with at least this alpha become opaque, the others transparent."
        factory.set_name_and_tip(self.slider, "Alpha threshold", tip)
        label = factory.text("Alpha threshold", "muted", wrap=False)
        label.setBuddy(self.slider)
        self.setLayout(factory.row(label, self.slider, self._value, 1))
        self.slider.valueChanged.connect(self._on_slider_moved)

    @Slot(int)
    def _on_slider_moved(self, value: int) -> None:
        self._value.setText(str(value))
        self.changed.emit(value)
