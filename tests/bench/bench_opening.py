"""How smoothly the window answers while it opens sprites that it has never seen.

    python -m tests.bench.bench_opening FOLDER [--times 3]
    python -m tests.bench.bench_opening --count 300000 [--archives] [--times 3]

Each time in a process and a home of its own. A timer of 1 ms runs in the window's thread; its longest gap and the 99th
percentile are printed for the import itself and for what is looked for in the sprites afterwards. QT_QPA_PLATFORM and
DISPLAY decide what kind of window it is.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QApplication

from studio.app.application import Studio
from studio.core.process import prepare_for_training
from tests.bench.many_sprites import write
from tests.bench.tools import command_line, say, told_by

_QUIET_S = 1.0  # without a job: what follows the one before has begun by then


class Opener(QObject):
    """Opens a folder in a window that is otherwise at rest, and closes it when all has been looked at."""

    def __init__(self, studio: Studio, folder: Path) -> None:
        super().__init__(studio)
        self.gaps_ms: dict[str, list[float]] = {"opening": [], "looking over": []}
        self._studio, self._folder = studio, folder
        self._open_sprites = studio.session.open_sprites
        self._phase = ""
        self._beat_s = self._busy_s = time.perf_counter()
        self._beat = QTimer(self)
        self._beat.setTimerType(Qt.TimerType.PreciseTimer)
        self._beat.timeout.connect(self._count_beat)
        self._beat.start(1)
        self._open_sprites.ended.connect(self._look_over)

    @Slot()
    def _count_beat(self) -> None:
        now_s = time.perf_counter()
        if self._phase:
            self.gaps_ms[self._phase].append(1000 * (now_s - self._beat_s))
        self._beat_s = now_s
        if self._studio.session.job_queue.running():
            self._busy_s = now_s
        elif now_s - self._busy_s > _QUIET_S:
            self._go_on()

    @Slot()
    def _look_over(self) -> None:
        self._phase = "looking over"

    def _go_on(self) -> None:
        if self._phase:
            self._beat.stop()
            self._studio.window.close()
        elif self._studio.session.catalog.plots_are_ready:
            self._phase = "opening"
            self._open_sprites.open_paths([self._folder])


def open_here(folder: Path) -> None:
    """Open the folder in a window of this process; print the gaps as JSON."""
    prepare_for_training()
    app = QApplication(sys.argv[:1])
    studio = Studio(app)
    opener = Opener(studio, folder)
    studio.run()
    say(json.dumps(opener.gaps_ms))


def opened(folder: Path) -> str:
    """Open the folder in a process of its own; the gaps, in milliseconds, in words."""
    with tempfile.TemporaryDirectory() as home:
        phases = told_by(__spec__.name, folder, "--inside", STUDIO_HOME=home)
    return "   ".join(
        f"{phase} {sum(gaps) / 1000:5.1f} s: longest {max(gaps):5.1f} ms, p99 {np.percentile(gaps, 99):4.1f} ms"
        for phase, gaps in phases.items()
    )


def main() -> None:
    """Print the gaps of each time."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="sprites to open; else some are made")
    parser.add_argument("--count", type=int, default=50_000, help="how many to make")
    parser.add_argument("--archives", action="store_true", help="made in zip archives, not in folders")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        open_here(chosen.folder)
        return
    with tempfile.TemporaryDirectory() as made:
        folder = chosen.folder or Path(made) / "sprites"
        if chosen.folder is None:
            write(folder, chosen.count, in_archives=chosen.archives)
        for _ in range(chosen.times):
            say(opened(folder))


if __name__ == "__main__":
    main()
