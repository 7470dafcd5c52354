"""How long an import takes, cold and from the cache, and how soon a closed one ends.

python -m tests.bench.bench_import FOLDER [--repeats 5]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

from studio.data.importing import ImportOptions, SpritesImported, import_sprites


def timed(folder: Path, cache: Path | None) -> tuple[SpritesImported, float]:
    """The result of an import and its seconds."""
    start = time.perf_counter()
    *_, found = import_sprites([folder], ImportOptions(), cache)
    assert isinstance(found, SpritesImported)
    return found, time.perf_counter() - start


def cancelled(folder: Path, after_events: int) -> float:
    """Seconds that closing an import takes after some of its events."""
    job, threads = import_sprites([folder], ImportOptions()), threading.active_count()
    for _ in zip(range(after_events), job, strict=False):
        pass
    start = time.perf_counter()
    job.close()
    duration = time.perf_counter() - start
    assert threading.active_count() <= threads + 2
    return duration


def main() -> None:
    """Print minimum, median and maximum of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    cold = [timed(chosen.folder, None) for _ in range(chosen.repeats)]
    with tempfile.TemporaryDirectory() as cache:
        timed(chosen.folder, Path(cache))
        warm = [timed(chosen.folder, Path(cache)) for _ in range(chosen.repeats)]
    assert all(found.from_cache for found, _ in warm)
    closing = [cancelled(chosen.folder, after) for after in (1, 3, 10, 30) for _ in range(chosen.repeats)]
    sys.stdout.write(f"{len(cold[0][0].sprites):,} sprites, {len(cold[0][0].quarantine):,} left out\n")
    for name, times in (("cold", [t for _, t in cold]), ("cached", [t for _, t in warm]), ("cancel", closing)):
        ordered = sorted(times)
        median = ordered[len(ordered) // 2]
        sys.stdout.write(f"{name:7} min {ordered[0]:.3f} s  median {median:.3f} s  max {ordered[-1]:.3f} s\n")


if __name__ == "__main__":
    main()
