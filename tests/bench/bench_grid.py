"""A million thumbnails beside a thousand: what it takes to show, scroll, zoom and select them.

python -m tests.bench.bench_grid [--few 1000] [--many 1000000] [--size 32]

For each action the median and the longest of some rounds, taken in turn, and the ratio of the medians. Then the longest
gap of the event loop, by a 1 ms timer, while each of the two is shown and scrolled by a wheel that turns all the time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QApplication

from studio.app import theme
from studio.app.widgets.sprites.grid import SpriteGrid
from tests.bench.tools import command_line, say

WINDOWS = ((1000, 700), (1900, 1000))  # a page of the smallest window, and of a whole screen
ROUNDS = 20
GAP_S = 3.0


def main() -> None:
    """Print a table for both sizes of the grid, then the gaps."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    parser = command_line(__doc__)
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=32)
    chosen = parser.parse_args()
    app = QApplication([])
    theme.apply(app, "dark")
    subjects = [Subject(count, chosen.size) for count in (chosen.few, chosen.many)]
    for width, height in WINDOWS:
        say(f"\n{width} x {height}{'':18}{chosen.few:>18,} {chosen.many:>26,}")
        for subject in subjects:
            subject.grid.resize(width, height)
            subject.grid.show()
            QCoreApplication.processEvents()
        for what, action in ACTIONS.items():
            report(what, [[timed(action, subject) for subject in subjects] for _ in range(ROUNDS)])
        gaps = [longest_gap(subject) for subject in subjects]
        say(f"{'longest gap of the event loop':30} {gaps[0]:14.1f} ms {gaps[1]:23.1f} ms")


class Subject:
    """A grid of `count` sprites, no two of them alike, that share their memory: each begins a pixel after the last."""

    def __init__(self, count: int, size: int) -> None:
        pixels = np.random.default_rng(0).integers(0, 256, 4 * (count + size * size), dtype=np.uint8)
        strides = (4, 4 * size, 4, 1)
        self.rgba = np.lib.stride_tricks.as_strided(pixels, (count, size, size, 4), strides, writeable=False)
        self.names = [f"class/{number}.png" for number in range(count)]
        self.labels = np.zeros(count, np.int64)
        self.grid = SpriteGrid()

    def show(self) -> None:
        """Show the sprites; the other actions need that."""
        self.grid.set_sprites(self.rgba, names=self.names, labels=self.labels, class_names=("class",))

    def scroll(self) -> None:
        """One notch of the wheel, from the start to the end and there anew."""
        bar = self.grid.view.verticalScrollBar()
        bar.setValue((bar.value() + 3 * bar.singleStep()) % max(1, bar.maximum()))

    def jump(self) -> None:
        """To the end, or back."""
        bar = self.grid.view.verticalScrollBar()
        bar.setValue(0 if bar.value() else bar.maximum())

    def select(self) -> None:
        """All, or nothing again."""
        view = self.grid.view
        view.clearSelection() if len(view.spans()) else view.selectAll()

    def filter(self) -> None:
        """Every second sprite, then all."""
        all_shown = self.grid.visible_count() == len(self.rgba)
        self.grid.set_visible(np.arange(0, len(self.rgba), 2) if all_shown else None)


ACTIONS: dict[str, Callable[[Subject], object]] = {
    "show": Subject.show,
    "a step of the wheel": Subject.scroll,
    "to the end and back": Subject.jump,
    "select all and none": Subject.select,
    "zoom": lambda subject: subject.grid.zoom.set(1 + subject.grid.zoom.value % 8),
    "filter": Subject.filter,
}


def timed(action: Callable[[Subject], object], subject: Subject) -> float:
    """Milliseconds that an action takes, painting among it."""
    QCoreApplication.processEvents()
    start = time.perf_counter()
    action(subject)
    for _ in range(3):  # a new layout is asked for, made, and painted in three goes
        QCoreApplication.processEvents()
    return 1000 * (time.perf_counter() - start)


def longest_gap(subject: Subject) -> float:
    """The longest time in milliseconds between two beats of a timer while the sprites are shown and scrolled."""
    beats = [time.perf_counter()]
    timer = QTimer()
    timer.timeout.connect(lambda: beats.append(time.perf_counter()))
    timer.start(1)
    subject.show()
    while time.perf_counter() < beats[0] + GAP_S:
        subject.scroll()
        QCoreApplication.processEvents()
    timer.stop()
    return 1000 * float(np.diff(beats).max())


def report(what: str, rounds: list[list[float]]) -> None:
    """Print medians and longest of both, and the ratio of the medians."""
    (few, many), (few_longest, many_longest) = np.median(rounds, axis=0), np.max(rounds, axis=0)
    words = f"{few:8.2f} ms (longest {few_longest:6.1f}) {many:8.2f} ms (longest {many_longest:6.1f})"
    say(f"{what:22} {words}   x {many / few:.2f}")


if __name__ == "__main__":
    main()
