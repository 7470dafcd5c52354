"""Watching a run that another process trains, by what it writes into the run's folder. No torch here.

The folder may be on a drive that another machine shares, or be brought up to date from one by and by.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from studio.core.events import (
    CheckpointSaved,
    Event,
    Events,
    LossChunk,
    QualityMeasured,
    RolledBack,
    RunFinished,
    RunStarted,
    Validated,
)
from studio.engine.control.protocol import Heartbeat, read_heartbeat
from studio.engine.runs.analysis.advice import Adviser
from studio.engine.runs.evaluation import read_evaluations
from studio.engine.runs.folder import CONFUSION_FILE, RunDir, RunRecord
from studio.engine.runs.history import (
    CurveReader,
    HistoryRead,
    MetricsTail,
    RunHistory,
    budget_used,
    read_confusion,
    trained_so_far,
)
from studio.engine.runs.listing import resume_hint
from studio.engine.runs.metrics import CheckpointLine, LossLine, MetricsLine, QualityLine, ResumeLine, ValidationLine
from studio.engine.runs.samples import SampleReader

_QUIET_S = 6.0  # without a beat, before the lock is looked at
_LOST_S = 60.0  # without a beat, where no lock tells whether anybody trains


@dataclass(frozen=True)
class TrainingSeen(Event):
    """The end of a look. live: what the training says; None: none is heard of yet. silent_s: since when that is so, or
    since when `live` is the same.
    """

    live: Heartbeat | None
    silent_s: float


@dataclass(frozen=True)
class TrainingLost(Event):
    """The training has failed, or has ended without saying so; why, as in StudioError."""

    title: str
    hint: str


class RunWatcher:
    """Looks at a run over and over: at first at all that it has, then at what is new. Used in one thread.

    Raises RunError where there is no run.
    """

    def __init__(self, path: Path) -> None:
        self.record: RunRecord = RunDir(path).record()
        self._run = RunDir(path)
        self._samples = SampleReader(path, self.record.size)
        self._tail: MetricsTail | None = None  # None before the first look
        self._reached = 0, 0.0  # steps and seconds of training
        self._adviser = Adviser(RunHistory(), self._used_up)
        self._validated: Validated | None = None  # the newest, whose confusion matrix was not found yet
        self._shown_step = -1  # of the newest samples that were handed on
        self._live: Heartbeat | None = None
        self._heard_s = time.monotonic()
        self._has_lock = False  # whether its lock was seen: not on every shared drive

    def poll(self) -> Events:
        """What the training has done since the last look, as its own events; in the first one HistoryRead.

        RunStarted comes when it is first heard of. The last event is TrainingSeen, or RunFinished or TrainingLost when
        there is nothing more to watch. Raises RunError.
        """
        if self._tail is None:
            yield self._first_look()
        is_first_word = self._listen()
        if is_first_word and self._live is not None:
            yield self._started(self._live)
        has_ended = self._has_ended()  # before the last look: what is written until then is seen
        yield from self._adviser.follow(self._news())
        yield from self._with_confusion()
        yield self._end() if has_ended else TrainingSeen(self._live, self._silent_s())

    def _listen(self) -> bool:
        """Read what the training says of itself; returns whether that is the first word of it."""
        live = read_heartbeat(self._run.path)
        if live is None or live == self._live:
            return False
        is_first_word, self._live, self._heard_s = self._live is None, live, time.monotonic()
        if is_first_word:
            self._has_lock = self._run.is_busy()
        return is_first_word

    def _first_look(self) -> HistoryRead:
        curves, path = CurveReader(self._run.path), self._run.path
        history, samples = curves.read(), self._samples.read()
        self._reached = trained_so_far(history)
        self._tail, self._adviser = curves.tail, Adviser(history, self._used_up)
        self._shown_step = samples[-1].step if samples else -1
        return HistoryRead(path, history, samples, read_evaluations(path), self._used_up())

    def _used_up(self) -> float:
        return budget_used(self.record, *self._reached)

    def _news(self) -> Events:
        """What has been written since."""
        assert self._tail is not None
        _, added = self._tail.read()
        for line in added:
            if (event := self._event_of(line)) is not None:
                yield event
        for samples in self._samples.read():
            if samples.step > self._shown_step:
                self._shown_step = samples.step
                yield samples

    def _event_of(self, line: MetricsLine) -> Event | None:
        """The event that a line of metrics.jsonl was written for."""
        match line:
            case LossLine():
                self._reached = line.step + len(line.loss), line.elapsed_s
                return self._chunk(line)
            case ValidationLine():
                self._validated = Validated(line.step, line.metrics)
                return self._validated
            case QualityLine():
                return QualityMeasured(line.step, line.quality)
            case CheckpointLine():
                return CheckpointSaved(line.checkpoint, self._run.checkpoints)
            case RolledBack():
                return line
            case ResumeLine():
                self._shown_step = min(self._shown_step, line.resumed)
        return None

    def _chunk(self, tick: LossLine) -> LossChunk:
        live = self._live
        return LossChunk(
            tick.step, np.array(tick.loss, dtype=np.float32), np.array(tick.grad_norm, dtype=np.float32), tick.lr,
            tick.sprites_per_s, tick.elapsed_s, math.inf if live is None or live.eta_s is None else live.eta_s,
            0.0 if live is None else live.epoch, int(tick.memory_bytes),
        )  # fmt: skip

    def _with_confusion(self) -> Iterator[Validated]:
        """The newest figures again, when the confusion matrix that belongs to them is there: it is written later."""
        validated, found = self._validated, read_confusion(self._run.path / CONFUSION_FILE)
        if validated is not None and found is not None and found[0] == validated.step:
            self._validated = None
            yield replace(validated, confusion=found[1])

    def _started(self, live: Heartbeat) -> RunStarted:
        record = self.record
        return RunStarted(
            self._run.path, record.recipe, record.device, live.precision or record.precision, record.parameters,
            live.train_count, live.heldout_count, live.first_step, live.elapsed_s,
            record.parent,
        )  # fmt: skip

    def _silent_s(self) -> float:
        return time.monotonic() - self._heard_s

    def _has_ended(self) -> bool:
        """Whether the training that was heard of has ended; also without a word: it was killed, or its machine has."""
        if self._live is None:
            return False
        if read_heartbeat(self._run.path) is None and self._run.progress().state != "training":
            return True
        if self._silent_s() < _QUIET_S or self._run.is_busy():
            return False
        return self._has_lock or self._silent_s() > _LOST_S

    def _end(self) -> RunFinished | TrainingLost:
        """How the training has ended, as its state.json says; it may begin again."""
        self._live = None
        progress = self._run.progress()
        match progress.state:
            case "finished" | "stopped" as reason:
                return RunFinished(reason, progress.step, progress.elapsed_s, self._run.path)
            case "failed":
                return TrainingLost(f"{self._run.path.name} has failed.", progress.message)
        return TrainingLost(
            f"The training of {self._run.path.name} no longer responds.", resume_hint(self._run.saved_step())
        )
