"""Buttons for a recipe's presets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QWidget

from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.core import formatting
from studio.core.config import TrainingConfig

if TYPE_CHECKING:
    from studio.recipes.base import Preset


class PresetButtons(QWidget):
    """Preset buttons. chosen: the preset's title."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._presets: Sequence[tuple[Preset, TrainingConfig]] = ()
        self._group = QButtonGroup(self)
        self._row = FlowLayout(factory.GRID, factory.GRID)  # long texts wrap instead of widening the column
        self._help = factory.text("", "muted")
        self.setLayout(factory.column(self._row, self._help))
        self._group.idClicked.connect(self._on_preset_clicked)

    def show_presets(self, presets: Sequence[tuple[Preset, TrainingConfig]], marked: str, others: str) -> None:
        """Show a button for each preset. marked: the active preset's title. others: help text if none is active."""
        if presets != self._presets:
            self._presets = presets
            self._make_buttons()
        self._group.setExclusive(False)
        for button, (preset, _) in zip(self._group.buttons(), presets, strict=True):
            button.setChecked(preset.title == marked)
        self._group.setExclusive(True)
        summary = next((preset.help for preset, _ in presets if preset.title == marked), "")
        self._help.setText(summary or others)

    def _make_buttons(self) -> None:
        for button in self._group.buttons():
            self._group.removeButton(button)
            self._row.removeWidget(button)
            button.hide()  # else visible until Qt deletes the button
            button.deleteLater()
        for index, (preset, config) in enumerate(self._presets):
            button = factory.button(f"{preset.title}\n{_length(preset, config)}", preset.help)
            button.setCheckable(True)
            button.setMinimumHeight(48)
            self._group.addButton(button, index)
            self._row.addWidget(button)

    @Slot(int)
    def _on_preset_clicked(self, index: int) -> None:
        self.chosen.emit(self._presets[index][0].title)


def _length(preset: Preset, config: TrainingConfig) -> str:
    if preset.about_s:
        return "about " + formatting.duration(max(10, round(preset.about_s, -1)))
    given = [(config.steps, "step"), (config.epochs, "epoch")]
    counted = [formatting.count(value, noun) for value, noun in given if value]
    return " or ".join(counted) or formatting.duration(60 * config.minutes)
