"""100,000 thumbnails: how long until they are shown, and the longest gap while scrolling through them.

QT_QPA_PLATFORM=offscreen python -m tests.bench.bench_grid [--count 100000] [--size 32]
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from PySide6.QtWidgets import QApplication

from studio.app import theme
from studio.app.widgets.sprite_grid import SpriteGrid


def main() -> None:
    """Print the time to the first picture and the gaps of a scroll from top to bottom in 300 steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=32)
    chosen = parser.parse_args()
    app = QApplication(sys.argv[:1])
    theme.apply(app, "dark")
    rgba = np.random.default_rng(0).integers(0, 256, (chosen.count, chosen.size, chosen.size, 4), dtype=np.uint8)
    names = [f"class/{number}.png" for number in range(chosen.count)]
    grid = SpriteGrid()
    grid.resize(1000, 700)
    grid.show()
    app.processEvents()
    start = time.perf_counter()
    grid.set_sprites(rgba, names=names)
    app.processEvents()
    grid.view.viewport().repaint()
    shown_s = time.perf_counter() - start
    bar, gaps = grid.view.verticalScrollBar(), []
    while time.perf_counter() - start < 1.0:  # the batches of the layout
        before = time.perf_counter()
        app.processEvents()
        gaps.append(time.perf_counter() - before)
    settling_s = max(gaps)
    gaps = []
    for place in np.linspace(0, bar.maximum(), 300):
        before = time.perf_counter()
        bar.setValue(int(place))
        app.processEvents()
        gaps.append(time.perf_counter() - before)
    sys.stdout.write(f"{chosen.count:,} sprites: shown after {1000 * shown_s:.0f} ms, longest gap while settling ")
    sys.stdout.write(f"{1000 * settling_s:.0f} ms; scrolling: median {1000 * np.median(gaps):.1f} ms, ")
    sys.stdout.write(f"longest {1000 * max(gaps):.1f} ms\n")


if __name__ == "__main__":
    main()
