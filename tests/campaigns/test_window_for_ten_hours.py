"""Fault 32: what a training says in ten hours, said to the real window in a minute or two."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from PySide6.QtCore import QObject, Qt, QTimer, Slot
from pytestqt.qtbot import QtBot

from studio.app.background import jobs
from studio.app.background.job_events import RunDescribed
from studio.app.background.jobs import TrainingRequest
from studio.app.widgets.plot.series import GrowingArray
from studio.app.window import Window
from studio.core.config import TrainingConfig
from studio.core.events import (
    Advised,
    CheckpointSaved,
    Event,
    Events,
    LossChunk,
    QualityMeasured,
    RunFinished,
    RunStarted,
    SamplesReady,
    Validated,
)
from studio.core.metrics import Quality
from studio.engine.runs.folder import RunRecord
from studio.recipes.generator import GeneratorConfig
from tests.campaigns import tell
from tests.conftest import make_sprites

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

_STEPS, _A_TICK, _STEPS_PER_S = 1_800_000, 10, 50
_SAMPLES, _VALIDATIONS, _CHECKPOINTS, _MEASUREMENTS = 3600, 3600, 600, 200
_FILM_BYTES, _FULL = 96 << 20, 2000
_MOST_GROWN_BYTES = 96 << 20  # beside the curves and the film: what the allocator keeps of samples that are gone
_MOST_GROWN_OBJECTS = 8  # a checkpoint: a mark in the plot is one
_LONGEST_S, _MOST_LONGER, _BEAT_S = 0.4, 2.0, 0.05  # what one beat more or less may come to

RECORD = RunRecord(
    "long", "generator", GeneratorConfig().to_json(), 32, ("class0",), "discs", 24, "0" * 64, "cpu", "test CPU",
    "fp32", 1, "2026-01-01", {}, "group",
)  # fmt: skip


def ten_hours(*asked: object) -> Events:
    """What a training says in that time, as fast as it is taken in."""
    run, rng = Path("long"), np.random.default_rng(0)
    yield RunStarted(run, "generator", "cpu", "fp32", 1, 20, 4, 0, 0.0)
    yield RunDescribed(RECORD)
    losses = (np.exp(-np.arange(_STEPS) / 300_000) + rng.normal(0, 0.02, _STEPS)).astype(np.float32)
    for step in range(0, _STEPS, _A_TICK):
        part = losses[step : step + _A_TICK]
        end, now_s = step + _A_TICK, step / _STEPS_PER_S
        yield LossChunk(step, part, part, 1e-3, 200.0, now_s, _STEPS / _STEPS_PER_S - now_s, step / 6, 1 << 30)
        if not end % (_STEPS // _SAMPLES):
            yield SamplesReady(end, rng.integers(0, 256, (16, 32, 32, 4), np.uint8), ("class0",) * 16)
        if not end % (_STEPS // _VALIDATIONS):
            yield Validated(end, {"loss": float(part.mean())})
        if not end % (_STEPS // _CHECKPOINTS):
            yield CheckpointSaved(end, run / "checkpoints" / str(end))
        if not end % (_STEPS // _MEASUREMENTS):
            yield QualityMeasured(end, Quality(float(part.mean()), 0.01, 0.0, 0.0, 0.0))
            yield Advised(end, "improving", "It still improves.", end)
    yield RunFinished("finished", _STEPS, _STEPS / _STEPS_PER_S, run)


class Heart(QObject):
    """Beats every 10 ms as far as the main thread lets it, and looks now and then at what the window holds.

    gaps_s: for each tenth of the run the most that lay between two beats, of the main thread's own time: what other
    programs and the training take is left out. waits_s: the same with all.
    """

    def __init__(self, window: Window) -> None:
        super().__init__()
        self._window = window
        self.gaps_s, self.waits_s = np.zeros(10), np.zeros(10)
        self.looks: list[tuple[int, int]] = []  # bytes of memory beside what is known to grow, and objects
        self.fullest = 0  # entries in the mailbox
        self._last: tuple[float, float] | None = None
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start(10)

    def stop(self) -> None:
        """Beat no more."""
        self._timer.stop()

    def look(self) -> None:
        """Note what the window holds."""
        gc.collect()
        monitor = self._window.train.monitor
        assert monitor.plot is not None
        series = [tab.raw for tab in monitor.plot.tabs.values()] + [monitor.plot.validation]
        buffers = [buffer for one in series for buffer in (one._steps, one._values)]
        buffers += [curve._values for tab in monitor.plot.tabs.values() for curve in tab.smoothed]
        known = sum(buffer._room.nbytes for buffer in buffers if isinstance(buffer, GrowingArray)) + self.film_bytes()
        self.looks.append((psutil.Process().memory_info().rss - known, len(gc.get_objects())))

    def film_bytes(self) -> int:
        """What the live samples take that can be looked back at."""
        return sum(samples.sprites.nbytes for samples in self._window.train.monitor.filmstrip._film)

    @Slot()
    def _beat(self) -> None:
        chunk = self._window.session.training.chunk
        part = min(9, 10 * chunk.first_step // _STEPS) if chunk is not None else 0
        if self._last is not None:
            self.gaps_s[part] = max(self.gaps_s[part], time.thread_time() - self._last[0])
            self.waits_s[part] = max(self.waits_s[part], time.perf_counter() - self._last[1])
        worker = self._window.session.job_queue._workers["engine"]
        self.fullest = max(self.fullest, len(worker.mailbox))
        if part >= 1 and not self.looks:
            self.look()
        self._last = time.thread_time(), time.perf_counter()


@pytest.fixture
def heart(window: Window) -> Iterator[Heart]:
    made = Heart(window)
    yield made
    made.stop()


def test_fault_32_the_window_is_as_quick_after_ten_hours_as_at_the_beginning(
    qtbot: QtBot, window: Window, heart: Heart, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, monitor = window.session, window.train.monitor
    monkeypatch.setattr(jobs, "train", ten_hours)
    heard = dict.fromkeys((SamplesReady, Validated, CheckpointSaved, QualityMeasured), 0)

    def count(event: Event) -> None:
        if type(event) in heard:
            heard[type(event)] += 1

    session.training.event_received.connect(count)
    window.show_page("train")
    device = session.catalog.device("cpu")
    assert device is not None and monitor.plot is not None
    begun_s = time.perf_counter()
    gc.disable()  # as the application has it, which collects when the window is idle
    try:
        recipe = session.catalog.recipes["generator"]
        session.training.start(TrainingRequest(make_sprites(), recipe, TrainingConfig(), device))
        monitor.plot.set_redraw_interval_ms(100)
        qtbot.waitUntil(lambda: not session.training.is_busy(), timeout=500_000)
        heart.look()
    finally:
        gc.enable()
    heart.stop()
    (early_bytes, early_objects), (late_bytes, late_objects) = heart.looks
    gaps_ms, waits_ms = 1000 * heart.gaps_s, 1000 * heart.waits_s
    shown = len(monitor.filmstrip.steps())
    tell(
        f"{_STEPS:,} steps and {sum(heard.values()):,} other events in {time.perf_counter() - begun_s:.0f} s: "
        f"the longest stretch of the window without looking up {gaps_ms[1]:.0f} ms in the second hour, "
        f"{gaps_ms[-1]:.0f} ms in the last ({waits_ms[1]:.0f} and {waits_ms[-1]:.0f} ms with what others took) and "
        f"{gaps_ms[1:].max():.0f} ms at most; {heart.fullest} entries of mail at most; {shown} samples in "
        f"{heart.film_bytes() >> 20} MB of film; beside curves and film {early_bytes >> 20} -> {late_bytes >> 20} MB, "
        f"{early_objects:,} -> {late_objects:,} objects"
    )
    assert list(heard.values()) == [_SAMPLES, _VALIDATIONS, _CHECKPOINTS, _MEASUREMENTS]
    curves = monitor.plot
    assert len(curves.tabs["Loss"].raw) == _STEPS and len(curves.validation) == _VALIDATIONS
    assert monitor.filmstrip.steps()[-1] == _STEPS and heart.film_bytes() <= _FILM_BYTES
    assert heart.fullest <= _FULL + 100  # nothing waits for ever for room in it
    assert late_bytes - early_bytes < _MOST_GROWN_BYTES
    assert late_objects - early_objects < _MOST_GROWN_OBJECTS * _CHECKPOINTS + 2000
    assert heart.gaps_s[1:].max() < _LONGEST_S
    assert heart.gaps_s[-1] < _MOST_LONGER * heart.gaps_s[1] + _BEAT_S
