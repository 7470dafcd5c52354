"""How long the loss plot takes to redraw, painting included: python -m tests.bench.bench_plot [POINTS]."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from PySide6.QtWidgets import QApplication

from studio.app import theme
from studio.app.widgets.plot.loss_plot import LossPlot
from tests.bench.tools import say

ROUNDS = 60


def main() -> None:
    """Print median and worst milliseconds of what a user or a training causes."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    app = QApplication([])
    theme.apply(app, "light")
    plot = LossPlot()
    plot.resize(900, 450)
    plot.show()
    rng = np.random.default_rng(0)
    steps = np.arange(count)
    losses = (0.08 + 0.9 * np.exp(-steps / (count / 20))) * np.exp(rng.normal(0, 0.16, count))
    start = time.perf_counter()
    plot.append(steps, losses.astype(np.float32))
    for step in range(0, count, max(1, count // 100)):
        plot.append_validation(step, float(losses[step]))
        plot.add_mark(step, "checkpoint")
    plot.refresh()
    app.processEvents()
    say(f"{count:,} points: append and first redraw {1000 * (time.perf_counter() - start):.1f} ms")
    canvas = plot.canvas

    def redraw() -> None:
        plot.refresh()
        canvas.widget.viewport().repaint()

    def append() -> None:
        first = int(plot.tabs["Loss"].raw.steps[-1]) + 1
        plot.append(range(first, first + 20), rng.random(20))
        redraw()

    def zoom() -> None:
        middle = rng.uniform(0.3, 0.7) * count
        canvas.set_ranges((middle - count / 8, middle + count / 8), canvas.ranges()[1])
        canvas.moved_by_user.emit(True, False)
        redraw()

    report("redraw", redraw)
    report("append 20 steps and redraw", append)
    report("zoomed in, redraw", zoom)
    report("append 20 steps, no redraw", lambda: plot.append([count * 2], [0.1]))


def report(what: str, action: Callable[[], None]) -> None:
    """Time an action many times."""
    durations_ms = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        durations_ms.append(1000 * (time.perf_counter() - start))
    middle, worst = statistics.median(durations_ms), max(durations_ms)
    say(f"{what:28} median {middle:6.2f} ms, worst {worst:6.2f} ms")


if __name__ == "__main__":
    main()
