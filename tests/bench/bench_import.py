"""How long an import takes, cold and from the cache, and how soon a closed one ends; or what very many sprites cost.

python -m tests.bench.bench_import FOLDER [--repeats 5]
python -m tests.bench.bench_import --count 1000000 [--archives] [--keep FOLDER]
"""

from __future__ import annotations

import gc
import tempfile
import threading
import time
from pathlib import Path

import psutil

from studio.core.events import Progress
from studio.data.importing.importing import ImportOptions, SpritesImported, import_sprites
from tests.bench.many_sprites import write
from tests.bench.tools import command_line, say
from tests.data.making import imported


def timed(folder: Path, cache: Path | None) -> tuple[SpritesImported, float]:
    """The result of an import and its seconds."""
    start = time.perf_counter()
    return imported(folder, cache=cache), time.perf_counter() - start


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


def anonymous_bytes() -> int:
    """Memory of this process that is no mapped file's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return int(psutil.Process().memory_full_info().uss)
    return next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if line.startswith("RssAnon"))


def cost(folder: Path, cache: Path) -> str:
    """Import once and watch: seconds, the longest of them between two events and where, memory, collectable objects."""
    gc.collect()
    memory, objects = anonymous_bytes(), len(gc.get_objects())
    start = last = time.perf_counter()
    longest_s, gap_before, peak, found = 0.0, "", 0, None
    for event in import_sprites([folder], ImportOptions(), cache):
        what = event.what if isinstance(event, Progress) else type(event).__name__
        longest_s, gap_before = max((longest_s, gap_before), (time.perf_counter() - last, what))
        peak = max(peak, anonymous_bytes() - memory)
        found = event if isinstance(event, SpritesImported) else None
        last = time.perf_counter()
    assert found is not None
    gc.collect()
    count, duration_s = len(found.sprites), last - start
    return (
        f"{count:,} sprites in {duration_s:.1f} s ({count / duration_s:,.0f} a second), longest gap "
        f"{1000 * longest_s:.0f} ms ({gap_before}), memory {peak / 2**20:,.0f} MB, "
        f"{len(gc.get_objects()) - objects:,} objects for the collector"
    )


def import_many(folder: Path, count: int, *, in_archives: bool) -> None:
    """Make the sprites if they are not there, import them twice and print what it cost."""
    sprites = folder / "sprites"
    if not sprites.exists():
        write(sprites, count, in_archives=in_archives)
    for name in ("cold", "cached"):
        say(f"{name:7} {cost(sprites, folder / 'cache')}")


def main() -> None:
    """Print minimum, median and maximum of each."""
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--count", type=int, default=0, help="make so many sprites and import them")
    parser.add_argument("--archives", action="store_true", help="made in zip archives, not in folders")
    parser.add_argument("--keep", type=Path, help="make them here and leave them")
    chosen = parser.parse_args()
    if chosen.count:
        with tempfile.TemporaryDirectory() as temporary:
            import_many(chosen.keep or Path(temporary), chosen.count, in_archives=chosen.archives)
        return
    if chosen.folder is None:
        parser.error("name a folder or a --count")
    cold = [timed(chosen.folder, None) for _ in range(chosen.repeats)]
    with tempfile.TemporaryDirectory() as cache:
        timed(chosen.folder, Path(cache))
        warm = [timed(chosen.folder, Path(cache)) for _ in range(chosen.repeats)]
    assert all(found.from_cache for found, _ in warm)
    closing = [cancelled(chosen.folder, after) for after in (1, 3, 10, 30) for _ in range(chosen.repeats)]
    say(f"{len(cold[0][0].sprites):,} sprites, {len(cold[0][0].quarantine):,} left out")
    for name, times in (("cold", [t for _, t in cold]), ("cached", [t for _, t in warm]), ("cancel", closing)):
        ordered = sorted(times)
        median = ordered[len(ordered) // 2]
        speed = f"  {len(cold[0][0].sprites) / ordered[0]:,.0f} sprites a second at best" if name != "cancel" else ""
        say(f"{name:7} min {ordered[0]:.3f} s  median {median:.3f} s  max {ordered[-1]:.3f} s{speed}")


if __name__ == "__main__":
    main()
