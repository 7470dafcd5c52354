"""Beside a sprite: what is nearest to it of all that the model learnt from, and whether it is a copy."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from studio.app.background.job_events import NeighboursFound
from studio.app.state.inference import Inference
from studio.app.widgets import factory
from studio.app.widgets.editor.previews import Preview

_COUNT, _ZOOM = 3, 2
_WIDTH = 136  # logical pixels
_TIP = "One of the sprites that the model learnt from that are nearest to the selected one."
_COPY = "It is a copy of the first."
_OWN = "None is so near that it would be a copy."


class Neighbours(QWidget):
    """Hidden until an answer comes."""

    def __init__(self, inference: Inference) -> None:
        super().__init__()
        self.previews = [Preview("Nearest sprite", _TIP, zoom=_ZOOM) for _ in range(_COUNT)]
        self.verdict = factory.caption("")
        self.setFixedWidth(_WIDTH)
        self.setLayout(factory.column(factory.caption("Nearest it learnt from"), *self.previews, self.verdict, 1))
        inference.neighbours_found.connect(self._show)
        self.hide()

    @Slot(object)
    def _show(self, found: NeighboursFound) -> None:
        for number, preview in enumerate(self.previews):
            preview.setVisible(number < len(found.sprites))
            if number < len(found.sprites):
                preview.show_sprite(found.sprites[number])
                preview.setToolTip(found.names[number])
        self.verdict.setText(_COPY if found.is_copy else _OWN)
        self.show()
