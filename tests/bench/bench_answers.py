"""How soon the window is there, and how soon it does what it is told while it trains on all cores.

    python -m tests.bench.bench_answers FOLDER [--starts 5]

Each start is a process of its own, timed from its launch. Printed, median and worst of the starts: the first paint
(torch is not imported by then, or the start fails), the list of devices, a cancelled import gone, Pause and Stop
acknowledged on the page and done, and the steps that were taken after Pause. QT_QPA_PLATFORM and DISPLAY decide what
kind of window it is.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QApplication

from studio.app.application import Studio
from studio.app.background.jobs import TrainingRequest
from studio.core.process import prepare_for_training
from tests.bench.tools import command_line, say, told_by

_STEPS_BEFORE_PAUSE = 5


class Walk:
    """One start, gone through by hand; `found` holds what was measured, by name and unit."""

    def __init__(self, launched_s: float) -> None:
        self._launched_s = launched_s  # time.time(), which is the same in every process
        self._app = QApplication(sys.argv[:1])
        self._studio = Studio(self._app)
        self._torch_at_paint: list[bool] = []
        self.found: dict[str, float] = {}

    def start(self) -> None:
        """Until recipes and devices are there."""
        window, catalog = self._studio.window, self._studio.session.catalog
        window.painted.connect(self._note_paint)
        window.show()
        self._until(lambda: self._torch_at_paint)
        self.found["first paint, ms"] = 1000 * (time.time() - self._launched_s)
        assert not self._torch_at_paint[0], "torch was imported before the first paint"
        self._until(lambda: catalog.devices)
        self.found["devices listed, ms"] = 1000 * (time.time() - self._launched_s)
        self._until(lambda: catalog.recipes and self._is_quiet())

    def open(self, folder: Path) -> None:
        """Begin an import, cancel it, and open the folder after all."""
        open_sprites = self._studio.session.open_sprites
        open_sprites.open_paths([folder])
        self._app.processEvents()
        open_sprites.cancel()
        self.found["import cancelled, ms"] = self._until(self._is_quiet)
        open_sprites.open_paths([folder])
        self._until(lambda: open_sprites.sprites is not None and self._is_quiet())

    def train(self) -> None:
        """Train the generator; pause, go on, and stop."""
        session, controls = self._studio.session, self._studio.window.train.controls
        training, recipe = session.training, session.catalog.recipes["generator"]
        sprites, device = session.open_sprites.sprites, session.catalog.device("cpu")
        assert sprites is not None and device is not None
        self._studio.window.show_page("train")
        training.start(TrainingRequest(sprites, recipe, recipe.Config(steps=10_000), device))
        self._until(lambda: self._step() >= _STEPS_BEFORE_PAUSE)
        (job,) = session.job_queue.running()
        before = self._step()
        self._press("Pause", controls.pause.click, lambda: job.state.name == "PAUSED")
        self.found["steps after Pause"] = self._step() - before
        controls.pause.click()
        self._until(lambda: self._step() > before + _STEPS_BEFORE_PAUSE)
        self._press("Stop and save", controls.stop.click, lambda: not training.is_busy())

    def close(self) -> None:
        """End the window and its threads."""
        self._studio.window.close()
        self._studio.session.close()

    def _press(self, name: str, click: Callable[[], None], done: Callable[[], object]) -> None:
        start_s = time.perf_counter()
        click()
        self._app.processEvents()  # with the repaint that shows it
        self.found[f"{name} acknowledged, ms"] = 1000 * (time.perf_counter() - start_s)
        self._until(done)
        self.found[f"{name} done, ms"] = 1000 * (time.perf_counter() - start_s)

    def _until(self, done: Callable[[], object]) -> float:
        """Let the window live until `done`; returns milliseconds."""
        start_s = time.perf_counter()
        while not done():
            self._app.processEvents()
            time.sleep(0.001)
        return 1000 * (time.perf_counter() - start_s)

    def _step(self) -> int:
        control = self._studio.session.training.control
        return control.live.step if control is not None and control.live is not None else 0

    def _is_quiet(self) -> bool:
        return not self._studio.session.job_queue.running()

    def _note_paint(self) -> None:
        self._torch_at_paint.append("torch" in sys.modules)


def in_a_process(folder: Path) -> dict[str, float]:
    """What one start in a process of its own, with a home of its own, found."""
    with tempfile.TemporaryDirectory() as home:
        found: dict[str, float] = told_by(__spec__.name, folder, "--launched", time.time(), STUDIO_HOME=home)
    return found


def main() -> None:
    """Print what the starts found."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--launched", type=float, default=0.0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.launched:
        prepare_for_training()
        walk = Walk(chosen.launched)
        walk.start()
        walk.open(chosen.folder)
        walk.train()
        walk.close()
        say(json.dumps(walk.found))
        return
    starts = [in_a_process(chosen.folder) for _ in range(chosen.starts)]
    for name in starts[0]:
        values = [found[name] for found in starts]
        say(f"{name:32} median {statistics.median(values):8.1f}   worst {max(values):8.1f}")


if __name__ == "__main__":
    main()
