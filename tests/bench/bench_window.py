"""What the window costs a training beside it, and how smoothly it answers meanwhile.

    python -m tests.bench.bench_window FOLDER [--steps 80] [--pairs 3] [--heartbeat]

Pairs of the same run: by the command line, and in the real window with the Train page on show. Wall time from the
first samples to the last step on disk, as each process sees it. With --heartbeat a 10 ms timer runs in the window's
thread and its gaps are printed; it costs a few per cent itself, so the pairs leave it out. QT_QPA_PLATFORM and DISPLAY
decide what kind of window it is.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QApplication

from studio.app.application import Studio
from studio.app.background.jobs import TrainingRequest
from studio.core.events import Event, RunFinished, SamplesReady
from studio.core.process import prepare_for_training
from tests.bench.tools import command_line, say, told_by

_SETTLED_S = 5.0  # the first seconds of a training may stutter


class Driver(QObject):
    """Starts a training as soon as sprites and devices are there; closes the window when it is done."""

    def __init__(self, studio: Studio, steps: int, heartbeat: bool) -> None:
        super().__init__(studio)
        self.seconds = 0.0
        self.gaps_s: list[float] = []
        self._studio, self._steps = studio, steps
        self._started_s = self._beat_s = 0.0
        self._poll, self._beat = QTimer(self), QTimer(self)
        self._poll.timeout.connect(self._try_to_start)
        self._poll.start(50)
        self._beat.setTimerType(Qt.TimerType.PreciseTimer)
        self._beat.timeout.connect(self._count_beat)
        if heartbeat:
            self._beat.start(10)
        studio.session.training.event_received.connect(self._hear)
        studio.session.training.state_changed.connect(self._leave_when_done)

    @Slot()
    def _try_to_start(self) -> None:
        session = self._studio.session
        device = session.catalog.device("cpu")
        if device is None or session.open_sprites.sprites is None or not session.catalog.recipes:
            return
        self._poll.stop()
        self._studio.window.show_page("train")
        recipe = session.catalog.recipes["generator"]
        session.training.start(
            TrainingRequest(session.open_sprites.sprites, recipe, recipe.Config(steps=self._steps), device)
        )

    @Slot(object)
    def _hear(self, event: Event) -> None:
        if isinstance(event, SamplesReady) and not self._started_s:
            self._started_s = time.perf_counter()
        elif isinstance(event, RunFinished):
            self.seconds = time.perf_counter() - self._started_s
            self._beat.stop()

    @Slot()
    def _leave_when_done(self) -> None:
        if self.seconds and not self._studio.session.training.is_busy():
            self._studio.window.close()  # sooner, it would ask whether to stop the training

    @Slot()
    def _count_beat(self) -> None:
        now = time.perf_counter()
        if self._started_s and self._beat_s and now - self._started_s > _SETTLED_S:
            self.gaps_s.append(now - self._beat_s)
        self._beat_s = now


def by_command(folder: Path, steps: int, home: Path) -> float:
    """Seconds of training by the command line, in a process of its own."""
    out = home / f"cli {time.monotonic_ns()}"
    command = [sys.executable, "-m", "studio", "train", str(folder), "--recipe", "generator", "--steps", str(steps)]
    command += ["--device", "cpu", "--out", str(out), "--json"]
    started = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)["type"]
            if event == "SamplesReady" and not started:
                started = time.perf_counter()
            elif event == "RunFinished":
                return time.perf_counter() - started
    raise RuntimeError(f"the command ended with {process.returncode}")


def in_window(folder: Path, steps: int, heartbeat: bool) -> tuple[float, list[float]]:
    """Seconds of training in the window, and the heartbeat's gaps in seconds; in a process of its own."""
    flags = ["--steps", steps, "--inside", *["--heartbeat"] * heartbeat]
    with tempfile.TemporaryDirectory() as home:
        seconds, gaps = told_by(__spec__.name, folder, *flags, STUDIO_HOME=home)
    return seconds, gaps


def run_window(folder: Path, steps: int, heartbeat: bool) -> None:
    """Open the window, train by its own session, print the seconds and the gaps as JSON, and close."""
    prepare_for_training()
    app = QApplication(sys.argv[:1])
    studio = Studio(app, sprites=[folder])
    driver = Driver(studio, steps, heartbeat)
    studio.run()
    say(json.dumps([driver.seconds, driver.gaps_s]))


def main() -> None:
    """Print each pair and the median."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--heartbeat", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        run_window(chosen.folder, chosen.steps, chosen.heartbeat)
        return
    if chosen.heartbeat:
        _, gaps = in_window(chosen.folder, chosen.steps, True)
        ordered = sorted(gaps)
        p99 = ordered[int(0.99 * len(ordered))]
        say(f"{len(gaps):,} heartbeats of 10 ms: p99 {1000 * p99:.1f} ms, longest {1000 * ordered[-1]:.1f} ms")
        return
    ratios = []
    with tempfile.TemporaryDirectory() as home:
        for _ in range(chosen.pairs):
            command_s = by_command(chosen.folder, chosen.steps, Path(home))
            window_s, _ = in_window(chosen.folder, chosen.steps, False)
            ratios.append(window_s / command_s)
            say(f"command line {command_s:.1f} s   window {window_s:.1f} s   x {ratios[-1]:.3f}")
    say(f"median {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
