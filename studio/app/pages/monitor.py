"""The right side of the Train page: what the training is doing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QSizePolicy, QSplitter, QTabWidget, QWidget

from studio.app import parts
from studio.app.answers import RunDescribed
from studio.app.pages import run_words
from studio.app.session import Session
from studio.app.widgets.confusion import ConfusionView
from studio.app.widgets.filmstrip import Filmstrip
from studio.app.widgets.readings import Readings
from studio.core.events import (
    Advised,
    CheckpointSaved,
    Event,
    LossChunk,
    QualityMeasured,
    RunStarted,
    SamplesReady,
    Validated,
)
from studio.engine.history import HistoryRead

if TYPE_CHECKING:
    from studio.app.widgets.loss_plot import LossPlot, Numbers

_REDRAW_CPU_MS = 1000
_REDRAW_GPU_MS = 100
_SERIES = {"lr": "Learning rate", "grad_norm": "Gradient norm", "sprites_per_s": "Speed", "memory_bytes": "Memory"}
_GB = 2**30


class Monitor(QWidget):
    """Readings, curves, live samples with their history, and for a classifier what it takes for what."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._class_names: tuple[str, ...] = ()
        self.plot: LossPlot | None = None
        self.readings = Readings()
        self.filmstrip = Filmstrip()
        self.confusion = ConfusionView()
        self.tabs = QTabWidget()
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self._plot_place = parts.column()
        self._lay_out()
        self._hearers: dict[type[Event], Callable[..., None]] = {
            RunStarted: self._begin,
            RunDescribed: self._describe,
            HistoryRead: self._recall,
            LossChunk: self._add_losses,
            SamplesReady: self._add_samples,
            Validated: self._add_validation,
            QualityMeasured: self._add_quality,
            CheckpointSaved: self._mark_checkpoint,
            Advised: self._mark_best,
        }
        session.training.said.connect(self._hear)
        session.training.state_changed.connect(self._note_state)

    def _lay_out(self) -> None:
        self.filmstrip.view.set_placeholder("Samples appear here as the model learns, from before its first step.")
        for name in run_words.READINGS:
            self.readings.set_reading(name, "–", run_words.READINGS[name])
        self.tabs.addTab(self.filmstrip, "Samples")
        self.tabs.addTab(self.confusion, "Which class for which")
        self.tabs.setTabVisible(1, False)
        plot = parts.panel(self._plot_place)
        plot.setMinimumHeight(220)
        self.tabs.setMinimumHeight(200)
        self.splitter.addWidget(plot)
        self.splitter.addWidget(self.tabs)
        self.splitter.setChildrenCollapsible(False)
        # What it would like decides nothing: it takes the room there is, and the page scrolls below its minimum.
        self.splitter.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.splitter.setSizes([360, 340])
        self.splitter.restoreState(self._session.settings.layout("monitor"))
        box = parts.column(self.readings, self.splitter)
        box.setStretch(1, 1)
        self.setLayout(box)

    def set_plot(self, plot: LossPlot) -> None:
        """Take the plot, which is made when its library is there."""
        self.plot = plot
        self._plot_place.addWidget(plot)
        plot.step_hovered.connect(self.filmstrip.peek)
        plot.hover_ended.connect(self.filmstrip.end_peek)

    @Slot(object)
    def _hear(self, event: Event) -> None:
        hearer = self._hearers.get(type(event))
        if hearer is not None:
            hearer(event)

    @Slot()
    def _note_state(self) -> None:
        """A new run begins with empty curves."""
        training = self._session.training
        if training.state == "starting" and training.path is None:
            self.readings.clear()
            self.filmstrip.clear()
            self.confusion.clear()
            self.tabs.setTabVisible(1, False)
            if self.plot is not None:
                self.plot.clear()
        elif training.chunk is not None:
            self._show_readings(training.chunk)

    def _begin(self, event: RunStarted) -> None:
        device = self._session.training.device
        if self.plot is not None and device is not None:
            self.plot.set_redraw_interval_ms(_REDRAW_CPU_MS if device.kind == "cpu" else _REDRAW_GPU_MS)

    def _describe(self, event: RunDescribed) -> None:
        self._class_names = event.record.class_names

    def _recall(self, event: HistoryRead) -> None:
        """A run that goes on: its curves and samples so far."""
        for step, sprites in event.samples:
            self.filmstrip.add(step, sprites)
        if self.plot is None:
            return
        for name, curve in event.history.series.items():
            if name == "loss":
                self.plot.append(curve.steps, curve.values)
            elif name in _SERIES:
                scale = 1 / _GB if name == "memory_bytes" else 1
                self.plot.append_series(_SERIES[name], curve.steps, curve.values * scale, run_words.UNITS.get(name, ""))
        for name, curve in event.history.validation.items():
            if name != "loss":
                self.plot.append_series(f"Held-out {name}", curve.steps, curve.values, dots=True)
                continue
            for step, loss in zip(curve.steps, curve.values, strict=True):
                self.plot.append_validation(int(step), float(loss))
        for name, curve in event.history.quality.items():
            self._plot_quality(name, curve.steps, curve.values)
        for step in event.history.checkpoints:
            self.plot.add_mark(step, "checkpoint")
        if self._session.training.advice is not None:
            self._mark_best(self._session.training.advice)

    def _add_losses(self, chunk: LossChunk) -> None:
        if self.plot is not None:
            steps = range(chunk.first_step, chunk.first_step + len(chunk.losses))
            self.plot.append(steps, chunk.losses)
            self.plot.append_series(_SERIES["grad_norm"], steps, chunk.grad_norms)
            for name, value in (
                ("lr", chunk.lr),
                ("sprites_per_s", chunk.sprites_per_s),
                ("memory_bytes", chunk.memory_bytes / _GB),
            ):
                self.plot.append_series(_SERIES[name], [steps[-1]], [value], run_words.UNITS.get(name, ""))
        self._show_readings(chunk)

    def _show_readings(self, chunk: LossChunk) -> None:
        for name, words in run_words.readings(chunk, self._session.training).items():
            self.readings.set_reading(name, words, run_words.READINGS[name])

    def _add_samples(self, event: SamplesReady) -> None:
        self.filmstrip.add(event.step, event.sprites, event.captions)

    def _add_validation(self, event: Validated) -> None:
        if self.plot is not None:
            self.plot.append_validation(event.step, event.metrics["loss"])
            for name, value in event.metrics.items():
                if name != "loss":
                    self.plot.append_series(f"Held-out {name}", [event.step], [value], dots=True)
        if event.confusion is not None and len(self._class_names) == len(event.confusion):
            self.confusion.set_confusion(event.confusion, self._class_names)
            self.tabs.setTabVisible(1, True)
        if self._session.training.chunk is not None:
            self._show_readings(self._session.training.chunk)

    def _add_quality(self, event: QualityMeasured) -> None:
        for name, value in event.figures.items():
            self._plot_quality(name, [event.step], [value])
        if "copies" in event.figures:
            self.readings.set_reading("Copies", run_words.copies(event.figures), run_words.COPIES)

    def _plot_quality(self, name: str, steps: Numbers, values: Numbers) -> None:
        """Next to the losses: no other series says as much."""
        if self.plot is not None and name in run_words.QUALITY:
            place = 1 + list(run_words.QUALITY).index(name)
            self.plot.append_series(run_words.QUALITY[name], steps, values, place=place, dots=True)

    def _mark_checkpoint(self, event: CheckpointSaved) -> None:
        if self.plot is not None:
            self.plot.add_mark(event.step, "checkpoint")

    def _mark_best(self, event: Advised) -> None:
        """Where to stop, or would have been best to."""
        if self.plot is not None and event.verdict != "improving":
            self.plot.add_mark(event.best_step, "best")
