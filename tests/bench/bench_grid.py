"""100,000 thumbnails: when they are shown, and the longest gaps while they are zoomed, scrolled and selected.

python -m tests.bench.bench_grid [--count 100000] [--size 32]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

WINDOWS = ((1000, 700), (1900, 1000))  # a page of the smallest window, and of a whole screen
SETTLING_S = 1.5
PLACES = 100


def main() -> None:
    """Print milliseconds for both sizes of the grid and for every second zoom."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtWidgets import QApplication

    from studio.app import theme
    from studio.app.widgets.sprite_grid import SpriteGrid

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=32)
    chosen = parser.parse_args()
    app = QApplication([])
    theme.apply(app, "dark")
    rgba = np.random.default_rng(0).integers(0, 256, (chosen.count, chosen.size, chosen.size, 4), dtype=np.uint8)
    names = [f"class/{number}.png" for number in range(chosen.count)]
    grid = SpriteGrid()
    for width, height in WINDOWS:
        grid.resize(width, height)
        grid.show()
        app.processEvents()

        def show() -> None:
            grid.set_sprites(rgba, names=names)
            app.processEvents()
            grid.view.viewport().repaint()

        report(f"{width} x {height}: {chosen.count:,} shown", [timed(show)])
        report("  settling", settle(app.processEvents))
        for zoom in (1, 2, 4, 8):
            grid.set_zoom(zoom)
            report(f"  zoom {zoom}, settling", settle(app.processEvents))
            bar = grid.view.verticalScrollBar()
            gaps = []
            for place in np.linspace(0, bar.maximum(), PLACES):
                bar.setValue(int(place))
                gaps.append(timed(app.processEvents))
            report(f"  zoom {zoom}, scrolling", gaps)
        grid.set_zoom(2)
        for what, select in (
            ("all", grid.view.selectAll),
            ("every 10th", partial(grid.select, range(0, chosen.count, 10))),
        ):
            report(f"  select {what}", [timed(select) + timed(app.processEvents)])


def timed(action: Callable[[], object]) -> float:
    """Milliseconds that an action takes."""
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)


def settle(process: Callable[[], object]) -> list[float]:
    """The gaps while the batches of the layout are worked off."""
    start, gaps = time.perf_counter(), []
    while time.perf_counter() - start < SETTLING_S:
        gaps.append(timed(process))
    return [gap for gap in gaps if gap > 1] or [0.0]


def report(what: str, gaps: list[float]) -> None:
    """Print the median and the longest of some gaps."""
    sys.stdout.write(f"{what:34} median {np.median(gaps):6.1f} ms, longest {max(gaps):6.1f} ms\n")


if __name__ == "__main__":
    main()
