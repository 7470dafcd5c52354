"""Live samples and their history."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSlider, QVBoxLayout, QWidget

from studio.app import theme
from studio.app.widgets.sprite_sheet import SpriteSheetView
from studio.core.events import Rgba, SamplesReady

_Frame = tuple[int, Rgba, tuple[str, ...]]
_ROOM_BYTES = 96 << 20  # a night's samples would be a gigabyte: a long film loses every other of its frames


class Filmstrip(QWidget):
    """Samples of one seed over the steps: the sprites above (`view`), a slider over the earlier ones below.

    step_shown: the step whose samples are on show now.
    """

    step_shown = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = SpriteSheetView(self)
        self._film: list[_Frame] = []
        self._live = True
        self._held: int | None = None  # the step on show before a hover, -1 for the newest
        self._slider = QSlider(Qt.Orientation.Horizontal)
        self._slider.setToolTip("Drag to see the same seed at earlier steps.")
        self._slider.setAccessibleName("Step of the samples")
        self._step = QLabel("–")
        theme.set_role(self._step, "muted")
        self._step.setMinimumWidth(self.fontMetrics().horizontalAdvance("Step 00,000,000"))
        self._latest = QPushButton("Latest")
        self._latest.setToolTip("Show the newest samples and follow new ones.")
        theme.set_role(self._latest, "flat")
        below = QHBoxLayout()
        below.addWidget(self._step)
        below.addWidget(self._slider, 1)
        below.addWidget(self._latest)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.view, 1)
        layout.addLayout(below)
        self._slider.valueChanged.connect(self._scrub)
        self._latest.clicked.connect(self.go_live)
        self._refresh()

    def add(self, step: int, sprites: Rgba, captions: Sequence[str] = ()) -> None:
        """Append the samples of `step`, in place of any from that step on; shown at once when the strip is live."""
        shown = self.shown_step()
        del self._film[bisect.bisect_left(self.steps(), step) :]  # a resumed run draws them anew
        self._film.append((step, sprites, tuple(captions)))
        self._film = thinned(self._film, _ROOM_BYTES)
        self._slider.blockSignals(True)
        self._slider.setRange(0, len(self._film) - 1)
        self._slider.blockSignals(False)
        if self._live:
            self._show(len(self._film) - 1)
        elif self.shown_step() != shown:  # what was on show is gone, or in another place
            self.show_step(shown)
        else:
            self._refresh()

    def show_film(self, film: Sequence[SamplesReady]) -> None:
        """Show the samples of a run, or newer ones of the same run: the step on show stays."""
        shown = self.shown_step()
        self._film = thinned([(frame.step, frame.sprites, frame.captions) for frame in film], _ROOM_BYTES)
        self._slider.blockSignals(True)
        self._slider.setRange(0, max(0, len(self._film) - 1))
        self._slider.blockSignals(False)
        if not self._film:
            self.clear()
        elif self._live:
            self._show(len(self._film) - 1)
        else:
            self.show_step(shown)

    def clear(self) -> None:
        """Forget everything: a new run begins."""
        self._film, self._live, self._held = [], True, None
        self._slider.blockSignals(True)
        self._slider.setRange(0, 0)
        self._slider.blockSignals(False)
        self.view.set_sprites(np.zeros((0, 1, 1, 4), np.uint8))
        self._refresh()

    @Slot(int)
    def peek(self, step: int) -> None:
        """Show the newest samples not later than `step` for now: what hovering the loss curve calls."""
        if self._held is None:
            self._held = -1 if self._live else self.shown_step()
        self.show_step(step)

    @Slot()
    def end_peek(self) -> None:
        """Show again what was on show before."""
        held, self._held = self._held, None
        if held == -1:
            self.go_live()
        elif held is not None:
            self.show_step(held)

    def show_step(self, step: int) -> None:
        """Show the newest samples not later than `step`."""
        if self._film:
            self._live = False
            self._show(max(0, bisect.bisect_right(self.steps(), step) - 1))

    @Slot()
    def go_live(self) -> None:
        """Show the newest samples and follow new ones."""
        self._live = True
        if self._film:
            self._show(len(self._film) - 1)
        self._refresh()

    def is_live(self) -> bool:
        """Whether new samples are shown as they come."""
        return self._live

    def steps(self) -> list[int]:
        """The steps that there are samples of."""
        return [step for step, _, _ in self._film]

    def shown_step(self) -> int:
        """The step on show; -1 while there is none."""
        return self._film[self._slider.value()][0] if self._film else -1

    def sprites_at(self, step: int) -> Rgba | None:
        """The newest samples not later than `step`, uint8 [N, S, S, 4]; None when there are none."""
        place = bisect.bisect_right(self.steps(), step) - 1
        return self._film[place][1] if place >= 0 else None

    @Slot(int)
    def _scrub(self, place: int) -> None:
        self._live = place == len(self._film) - 1
        self._show(place)

    def _show(self, place: int) -> None:
        step, sprites, captions = self._film[place]
        self._slider.blockSignals(True)
        self._slider.setValue(place)
        self._slider.blockSignals(False)
        self.view.set_sprites(sprites, captions)
        self._refresh()
        self.step_shown.emit(step)

    def _refresh(self) -> None:
        step = self.shown_step()
        self._step.setText(f"Step {step:,}" if step >= 0 else "–")
        self._slider.setEnabled(len(self._film) > 1)
        self._latest.setEnabled(not self._live)


def thinned(film: list[_Frame], room_bytes: int) -> list[_Frame]:
    """`film` while it fits into the room, else without every other frame, as often as it takes; the ends stay."""
    while len(film) > 2 and sum(sprites.nbytes for _, sprites, _ in film) > room_bytes:
        film = [*film[:-1:2], film[-1]] if len(film) > 3 else [film[0], film[-1]]
    return film
