"""Draws a training's events as curves and marks in the plot."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from studio.app.background.worker import JobEnded, JobPaused
from studio.app.pages import run_texts
from studio.app.state.training.training import CurrentTraining
from studio.core import formatting
from studio.core.events import Advised, CheckpointSaved, Event, LossChunk, QualityMeasured, RolledBack, Validated
from studio.core.metrics import EXACT, LOSS, metric_title
from studio.engine.runs.history import HistoryRead

if TYPE_CHECKING:
    from studio.app.widgets.plot.loss_plot import LossPlot
    from studio.app.widgets.plot.series import Numbers

_SERIES = {"lr": "Learning rate", "grad_norm": "Gradient norm", "sprites_per_s": "Speed", "memory_bytes": "Memory"}
_EXACT = "Exact pixels"
_EXACT_TIP = (
    "Exactly right pixels of validation characters, drawn from their first cell: all cells and each view. steps: "
    "frames drawn from the first frame of their view. side: a side view drawn from the other side."
)
_GB = 2**30
_DRAWN = (
    HistoryRead, LossChunk, Validated, QualityMeasured, CheckpointSaved, RolledBack, Advised, JobPaused, JobEnded,
)  # fmt: skip


class LiveCurves(QObject):
    """Draws a training's events into its loss plot.

    Holds events until the plot exists, because pyqtgraph loads late.
    """

    def __init__(self, training: CurrentTraining, parent: QObject) -> None:
        super().__init__(parent)
        self.plot: LossPlot | None = None
        self._training = training
        self._pending: list[Event] = []
        training.event_received.connect(self.on_event)

    def set_plot(self, plot: LossPlot) -> None:
        """Draw into this plot, starting with the held events."""
        self.plot = plot
        pending, self._pending = self._pending, []
        for event in pending:
            _draw(plot, event, self._examples())

    def clear(self) -> None:
        """Remove all curves and held events, for a new run."""
        self._pending = []
        if self.plot is not None:
            self.plot.clear()

    @Slot(object)
    def on_event(self, event: Event) -> None:
        """Draw an event, or hold the event while the plot doesn't exist."""
        if self.plot is not None:
            _draw(self.plot, event, self._examples())
        elif isinstance(event, _DRAWN):
            self._pending.append(event)

    def _examples(self) -> str:
        return run_texts.examples_of(self._training)


def _draw(plot: LossPlot, event: Event, examples: str) -> None:
    """Draw an event. examples: the noun for training examples, 'sprites' or 'characters'."""
    match event:
        case HistoryRead():
            _restore_history(plot, event, examples)
        case LossChunk():
            _add_losses(plot, event, examples)
        case Validated():
            for name, value in event.metrics.items():
                _add_heldout(plot, name, [event.step], [value])
        case QualityMeasured():
            for name, value in asdict(event.quality).items():
                _add_quality(plot, name, [event.step], [value])
        case CheckpointSaved():
            plot.add_mark(event.step, "checkpoint")
        case RolledBack():
            _mark_rollback(plot, event)
        case Advised() if event.verdict != "improving":  # the advice is to stop
            plot.add_mark(event.best_step, "best")
        case JobPaused() | JobEnded():
            plot.refresh()  # up to the last values


def _restore_history(plot: LossPlot, event: HistoryRead, examples: str) -> None:
    """Draw a resumed run's curves so far."""
    for name, curve in event.history.series.items():
        if name == "loss":
            plot.append(curve.steps, curve.values)
        elif name in _SERIES:
            scale = 1 / _GB if name == "memory_bytes" else 1
            _add_series(plot, name, curve.steps, curve.values * scale, examples)
    for name, curve in event.history.validation.items():
        _add_heldout(plot, name, curve.steps, curve.values)
    for name, curve in event.history.quality.items():
        _add_quality(plot, name, curve.steps, curve.values)
    for step in event.history.checkpoints:
        plot.add_mark(step, "checkpoint")
    for rollback in event.history.rollbacks:
        _mark_rollback(plot, rollback)


def _add_losses(plot: LossPlot, chunk: LossChunk, examples: str) -> None:
    steps = range(chunk.first_step, chunk.first_step + len(chunk.losses))
    plot.append(steps, chunk.losses)
    _add_series(plot, "grad_norm", steps, chunk.grad_norms, examples)
    last = {"lr": chunk.lr, "sprites_per_s": chunk.sprites_per_s, "memory_bytes": chunk.memory_bytes / _GB}
    for name, value in last.items():
        _add_series(plot, name, [steps[-1]], [value], examples)


def _add_series(plot: LossPlot, name: str, steps: Numbers, values: Numbers, examples: str) -> None:
    """Add values to the tab of a series, by its name in metrics.jsonl; memory is in GB."""
    units, from_zero = {"sprites_per_s": f"{examples}/s", "memory_bytes": "GB"}, name == "memory_bytes"
    plot.append_series(_SERIES[name], steps, values, units.get(name, ""), from_zero=from_zero)


def _mark_rollback(plot: LossPlot, event: RolledBack) -> None:
    """Mark the step where training continues with a lower learning rate after a rollback."""
    text = f"Rolled back from step {formatting.number(event.failed_step)}, half the learning rate"
    plot.add_mark(event.step, "incident", text)


def _add_heldout(plot: LossPlot, name: str, steps: Numbers, values: Numbers) -> None:
    """Add validation values: the loss beside the training loss, shares of exact pixels in one tab, others in a tab."""
    metric, _, part = name.partition(" ")
    if name == LOSS.name:
        for step, loss in zip(steps, values, strict=True):
            plot.append_validation(int(step), float(loss))
    elif metric == EXACT.name:
        plot.append_series(_EXACT, steps, values, position=1, dots=True, beside=part, tip=_EXACT_TIP)
    else:
        plot.append_series(f"Validation {metric_title(name)}", steps, values, dots=True)


def _add_quality(plot: LossPlot, name: str, steps: Numbers, values: Numbers) -> None:
    """Add a quality figure in a tab next to the losses."""
    if name in run_texts.QUALITY:
        position = 1 + list(run_texts.QUALITY).index(name)
        plot.append_series(run_texts.QUALITY[name], steps, values, position=position, dots=True)
