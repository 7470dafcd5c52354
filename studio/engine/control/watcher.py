"""Watch another process's training through the files of the run folder, perhaps on a shared drive."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from studio.core import events
from studio.core.events import Event, Events, LossChunk, RunFinished, RunStarted, Validated
from studio.engine.control.protocol import Heartbeat, read_heartbeat
from studio.engine.runs import history
from studio.engine.runs.analysis.advice import Adviser
from studio.engine.runs.evaluation import read_evaluations
from studio.engine.runs.folder import CONFUSION_FILE, RunDir, RunRecord
from studio.engine.runs.history import HistoryRead, MetricsTail, RunHistory
from studio.engine.runs.listing import resume_hint
from studio.engine.runs.metrics import CheckpointLine, LossLine, MetricsLine, QualityLine, ResumeLine, ValidationLine
from studio.engine.runs.samples import SampleReader

_QUIET_S = 6.0  # without a heartbeat, before the lock is checked
_DEAD_S = 60.0  # without a heartbeat, on drives without locks


@dataclass(frozen=True)
class TrainingSeen(Event):
    """The last event of a poll while the training runs."""

    live: Heartbeat | None  # None before the first heartbeat
    silent_s: float  # seconds since the heartbeat last changed


@dataclass(frozen=True)
class TrainingLost(Event):
    """The training has failed, or no longer responds. title, hint: texts for the user, as in StudioError."""

    title: str
    hint: str


class RunWatcher:
    """Polls a run folder, in one thread: first for the whole history, then for new events. Raises RunError."""

    def __init__(self, path: Path) -> None:
        self.record: RunRecord = RunDir(path).record()
        self._run = RunDir(path)
        self._samples = SampleReader(path, self.record.size)
        self._tail: MetricsTail | None = None  # None before the first poll
        self._reached = 0, 0.0  # steps, seconds of training
        self._adviser = Adviser(RunHistory(), self._used_up)
        self._validated: Validated | None = None  # the newest, until its confusion matrix appears
        self._shown_step = -1  # step of the newest yielded samples
        self._live: Heartbeat | None = None
        self._last_beat_s = time.monotonic()
        self._has_lock = False  # whether the lock was seen; some shared drives have no locks

    def poll(self) -> Events:
        """Yield the training's events since the last poll.

        The first poll begins with HistoryRead; the first heartbeat yields RunStarted. The last event is TrainingSeen
        while the training runs, RunFinished or TrainingLost after its end. Raises RunError.
        """
        if self._tail is None:
            yield self._read_history()
        if self._read_heartbeat() and self._live is not None:
            yield self._started(self._live)
        has_ended = self._has_ended()  # checked first: files written before the end are still read
        yield from self._adviser.follow(self._new_events())
        yield from self._with_confusion()
        yield self._end() if has_ended else TrainingSeen(self._live, self._silent_s())

    def _read_heartbeat(self) -> bool:
        """Read the heartbeat in live.json; returns True for the first heartbeat."""
        live = read_heartbeat(self._run.path)
        if live is None or live == self._live:
            return False
        is_first_beat, self._live, self._last_beat_s = self._live is None, live, time.monotonic()
        if is_first_beat:
            self._has_lock = self._run.is_busy()
        return is_first_beat

    def _read_history(self) -> HistoryRead:
        curves, path = history.CurveReader(self._run.path), self._run.path
        past, samples = curves.read(), self._samples.read()
        self._reached = history.trained_so_far(past)
        self._tail, self._adviser = curves.tail, Adviser(past, self._used_up)
        self._shown_step = samples[-1].step if samples else -1
        return HistoryRead(path, past, samples, read_evaluations(path), self._used_up())

    def _used_up(self) -> float:
        return history.budget_used(self.record, *self._reached)

    def _new_events(self) -> Events:
        assert self._tail is not None
        _, added = self._tail.read()
        for line in added:
            if (event := self._to_event(line)) is not None:
                yield event
        for samples in self._samples.read():
            if samples.step > self._shown_step:
                self._shown_step = samples.step
                yield samples

    def _to_event(self, line: MetricsLine) -> Event | None:
        """Return the event for a line of metrics.jsonl; None for lines without an event."""
        match line:
            case LossLine():
                self._reached = line.step + len(line.loss), line.elapsed_s
                return self._chunk(line)
            case ValidationLine():
                self._validated = Validated(line.step, line.metrics)
                return self._validated
            case QualityLine():
                return events.QualityMeasured(line.step, line.quality)
            case CheckpointLine():
                return events.CheckpointSaved(line.checkpoint, self._run.checkpoints)
            case events.RolledBack():
                return line
            case ResumeLine():
                self._shown_step = min(self._shown_step, line.resumed)  # samples after this step will be drawn again
        return None

    def _chunk(self, tick: LossLine) -> LossChunk:
        live = self._live
        return LossChunk(
            tick.step, np.array(tick.loss, dtype=np.float32), np.array(tick.grad_norm, dtype=np.float32), tick.lr,
            tick.sprites_per_s, tick.elapsed_s, math.inf if live is None or live.eta_s is None else live.eta_s,
            0.0 if live is None else live.epoch, int(tick.memory_bytes),
        )  # fmt: skip

    def _with_confusion(self) -> Iterator[Validated]:
        """Yield the newest Validated event again once the run folder contains the confusion matrix."""
        validated, found = self._validated, history.read_confusion(self._run.path / CONFUSION_FILE)
        if validated is not None and found is not None and found.step == validated.step:
            self._validated = None
            yield replace(validated, confusion=found.counts, predictions=found.predictions, attributes=found.attributes)

    def _started(self, live: Heartbeat) -> RunStarted:
        record, precision = self.record, live.precision or self.record.precision
        return RunStarted(
            self._run.path, record.recipe, record.device, precision, record.parameters, live.train_count,
            live.heldout_count, live.first_step, live.elapsed_s, record.parent, record.examples,
        )  # fmt: skip

    def _silent_s(self) -> float:
        return time.monotonic() - self._last_beat_s

    def _has_ended(self) -> bool:
        """Return whether the training has ended, even if its process or its machine was killed."""
        if self._live is None:
            return False
        if read_heartbeat(self._run.path) is None and self._run.progress().state != "training":
            return True
        if self._silent_s() < _QUIET_S or self._run.is_busy():
            return False
        return self._has_lock or self._silent_s() > _DEAD_S  # the process held the lock earlier and has died since

    def _best_step(self) -> int | None:
        from studio.engine import catalog  # imports torch, which the start of the program does not wait for
        from studio.engine.runs.checkpoints import best_step

        recipe = catalog.recipes().get(self.record.recipe)  # None without the recipe's plug-in
        return best_step(self._run.checkpoints, recipe.best_by if recipe else None)

    def _end(self) -> RunFinished | TrainingLost:
        """Return the event that says how the training ended, from state.json. The training may start again later."""
        self._live = None
        progress = self._run.progress()
        match progress.state:
            case "finished" | "stopped" as reason:
                return RunFinished(reason, progress.step, progress.elapsed_s, self._run.path, self._best_step())
            case "failed":
                return TrainingLost(f"{self._run.path.name} has failed.", progress.message)
        title = f"The training of {self._run.path.name} no longer responds."
        return TrainingLost(title, resume_hint(self._run.saved_step()))
