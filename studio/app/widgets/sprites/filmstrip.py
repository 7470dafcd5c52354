"""Live samples with their history."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSlider, QWidget

from studio.app.widgets import factory
from studio.app.widgets.input import WheelNeedsFocus
from studio.app.widgets.sprites.player import Playback
from studio.app.widgets.sprites.sheet_view import SpriteSheetView, show_samples
from studio.core.arrays import Rgba
from studio.core.events import SamplesReady

_WIDE = 480  # logical pixels; a narrower strip has no room for the speed
_ROOM_BYTES = 96 << 20  # a night's samples would take 1 GB, so long films are thinned


class Filmstrip(QWidget):
    """A training's samples of a fixed seed, with a slider for earlier steps. save_requested: save an animation."""

    save_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.view = SpriteSheetView()
        self._film: list[SamplesReady] = []
        self._live = True
        self._held: int | None = None  # the shown step before `peek`; -1 for live
        self._slider = QSlider(Qt.Orientation.Horizontal)
        self._slider.setRange(0, 0)
        WheelNeedsFocus(self._slider)
        factory.set_name_and_tip(self._slider, "Sample step", "Drag to see earlier samples of the same seed.")
        self._step = factory.text("–", "muted", wrap=False)
        self._step.setMinimumWidth(self.fontMetrics().horizontalAdvance("Step 000,000"))
        self._latest = factory.button("Latest", "Show the newest samples and follow new ones.", role="flat")
        tip = "Save the samples as a GIF or APNG animation."
        self.save = factory.tool_button("film", "Save timelapse", tip, self.save_requested)
        self.playback = Playback(self._slider, "timelapse")
        parts = (self.playback.play, self._step, self._slider, self.playback.speed, self._latest, self.save)
        below = factory.row(*parts, grows=2)
        self.setLayout(factory.column(self.view, below, grows=0))
        self._slider.valueChanged.connect(self._on_slider_moved)
        self._latest.clicked.connect(self.go_live)
        self._refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the room of a narrow strip to the slider."""
        super().resizeEvent(event)
        self.playback.speed.setVisible(self.width() >= _WIDE)

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size, in which the speed is hidden."""
        hint, speed = super().minimumSizeHint(), self.playback.speed
        return hint if speed.isHidden() else hint - QSize(speed.minimumSizeHint().width() + factory.GRID, 0)

    def add(self, samples: SamplesReady) -> None:
        """Append samples, replacing samples from their step on. Show the new samples if live."""
        shown = self.shown_step()
        del self._film[bisect.bisect_left(self.steps(), samples.step) :]  # a resumed run draws them again
        self._film.append(samples)
        self._film = thinned(self._film, _ROOM_BYTES)
        self._fit_slider()
        self._show_again(shown)

    def show_film(self, film: Sequence[SamplesReady]) -> None:
        """Show a run's samples, or newer samples of the same run; keep the shown step."""
        shown = self.shown_step()
        self._film = thinned(list(film), _ROOM_BYTES)
        self._fit_slider()
        if self._film:
            self._show_again(shown)
        else:
            self.clear()

    def clear(self) -> None:
        """Remove all samples, for a new run."""
        self._film, self._live, self._held = [], True, None
        self._fit_slider()
        self.view.set_sprites(np.zeros((0, 1, 1, 4), np.uint8))
        self._refresh()

    @Slot(int)
    def peek(self, step: int) -> None:
        """Show the newest samples up to `step` temporarily, while the loss curve is hovered."""
        if self._held is None:
            self._held = -1 if self._live else self.shown_step()
        self.show_step(step)

    @Slot()
    def end_peek(self) -> None:
        """Show the samples that were shown before `peek` again."""
        held, self._held = self._held, None
        if held == -1:
            self.go_live()
        elif held is not None:
            self.show_step(held)

    def show_step(self, step: int) -> None:
        """Show the newest samples up to `step`."""
        if self._film:
            self._live = False
            self._show(max(0, bisect.bisect_right(self.steps(), step) - 1))

    @Slot()
    def go_live(self) -> None:
        """Show the newest samples and follow new samples."""
        self._live = True
        if self._film:
            self._show(len(self._film) - 1)
        self._refresh()

    def is_live(self) -> bool:
        """Return whether new samples are shown at once."""
        return self._live

    def steps(self) -> list[int]:
        return [samples.step for samples in self._film]

    def shown_step(self) -> int:
        """Return the shown step; -1 without samples."""
        return self._film[self._slider.value()].step if self._film else -1

    def sprites_at(self, step: int) -> Rgba | None:
        """Return the newest samples up to `step`, uint8 [N, S, S, 4]; None without samples."""
        index = bisect.bisect_right(self.steps(), step) - 1
        return self._film[index].sprites if index >= 0 else None

    def _show_again(self, step: int) -> None:
        """Show the newest samples if live, or else this step, which may be removed, moved or replaced."""
        if self._live:
            self._show(len(self._film) - 1)
        else:
            self.show_step(step)

    @Slot(int)
    def _on_slider_moved(self, index: int) -> None:
        self._live = index == len(self._film) - 1
        self._show(index)

    def _show(self, index: int) -> None:
        samples = self._film[index]
        with QSignalBlocker(self._slider):
            self._slider.setValue(index)
        show_samples(self.view, samples)
        self._refresh()

    def _fit_slider(self) -> None:
        with QSignalBlocker(self._slider):
            self._slider.setRange(0, max(0, len(self._film) - 1))
        self.playback.refresh()

    def _refresh(self) -> None:
        step = self.shown_step()
        self._step.setText(f"Step {step:,}" if step >= 0 else "–")
        self._slider.setEnabled(len(self._film) > 1)
        self._latest.setEnabled(not self._live)
        factory.set_enabled(self.save, self._why_no_film())

    def _why_no_film(self) -> str:
        """Return why no timelapse can be saved; '' if possible."""
        if len(self._film) < 2:
            return "Too few samples for a timelapse."
        first = self._film[0].sprites
        is_still = all(np.array_equal(first, samples.sprites) for samples in reversed(self._film[1:]))
        return "Only the predictions change, not the sprites." if is_still else ""


def thinned(film: list[SamplesReady], room_bytes: int) -> list[SamplesReady]:
    """Return `film`, with every other frame removed repeatedly until it fits the room. First and last frame stay."""
    while len(film) > 2 and sum(samples.sprites.nbytes for samples in film) > room_bytes:
        film = [*film[:-1:2], film[-1]] if len(film) > 3 else [film[0], film[-1]]
    return film
