"""What a training says, as curves and marks in its plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studio.app.pages import run_words
from studio.core import wording
from studio.core.events import Advised, CheckpointSaved, LossChunk, QualityMeasured, Validated
from studio.engine.history import History

if TYPE_CHECKING:
    from studio.app.widgets.loss_plot import LossPlot, Numbers

_SERIES = {"lr": "Learning rate", "grad_norm": "Gradient norm", "sprites_per_s": "Speed", "memory_bytes": "Memory"}
_GB = 2**30


class LiveCurves:
    """Draws nothing until it is given a plot, which is made when its library is there."""

    def __init__(self) -> None:
        self.plot: LossPlot | None = None

    def recall(self, history: History) -> None:
        """A run that goes on: its curves so far."""
        if self.plot is None:
            return
        for name, curve in history.series.items():
            if name == "loss":
                self.plot.append(curve.steps, curve.values)
            elif name in _SERIES:
                scale = 1 / _GB if name == "memory_bytes" else 1
                self.plot.append_series(_SERIES[name], curve.steps, curve.values * scale, run_words.UNITS.get(name, ""))
        for name, curve in history.validation.items():
            self._add_heldout(name, curve.steps, curve.values)
        for name, curve in history.quality.items():
            self._add_quality(name, curve.steps, curve.values)
        for step in history.checkpoints:
            self.plot.add_mark(step, "checkpoint")

    def add_losses(self, chunk: LossChunk) -> None:
        if self.plot is None:
            return
        steps = range(chunk.first_step, chunk.first_step + len(chunk.losses))
        self.plot.append(steps, chunk.losses)
        self.plot.append_series(_SERIES["grad_norm"], steps, chunk.grad_norms)
        for name, value in (
            ("lr", chunk.lr),
            ("sprites_per_s", chunk.sprites_per_s),
            ("memory_bytes", chunk.memory_bytes / _GB),
        ):
            self.plot.append_series(_SERIES[name], [steps[-1]], [value], run_words.UNITS.get(name, ""))

    def add_validation(self, event: Validated) -> None:
        for name, value in event.metrics.items():
            self._add_heldout(name, [event.step], [value])

    def add_quality(self, event: QualityMeasured) -> None:
        for name, value in event.figures.items():
            self._add_quality(name, [event.step], [value])

    def mark_checkpoint(self, event: CheckpointSaved) -> None:
        if self.plot is not None:
            self.plot.add_mark(event.step, "checkpoint")

    def mark_best(self, event: Advised) -> None:
        """Where to stop, or would have been best to."""
        if self.plot is not None and event.verdict != "improving":
            self.plot.add_mark(event.best_step, "best")

    def _add_heldout(self, name: str, steps: Numbers, values: Numbers) -> None:
        """The loss goes to the losses; other figures have a tab of their own."""
        if self.plot is not None and name == "loss":
            for step, loss in zip(steps, values, strict=True):
                self.plot.append_validation(int(step), float(loss))
        elif self.plot is not None:
            self.plot.append_series(f"Held-out {wording.figure_title(name)}", steps, values, dots=True)

    def _add_quality(self, name: str, steps: Numbers, values: Numbers) -> None:
        """Next to the losses: no other series says as much."""
        if self.plot is not None and name in run_words.QUALITY:
            place = 1 + list(run_words.QUALITY).index(name)
            self.plot.append_series(run_words.QUALITY[name], steps, values, place=place, dots=True)
