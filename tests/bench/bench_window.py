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
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from studio.core.process import prepare_for_training


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
    command = [sys.executable, "-m", "tests.bench.bench_window", str(folder), "--steps", str(steps), "--inside"]
    command += ["--heartbeat"] * heartbeat
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "STUDIO_HOME": home}
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    seconds, gaps = json.loads(answer.splitlines()[-1])
    return seconds, gaps


def run_window(folder: Path, steps: int, heartbeat: bool) -> None:
    """Open the window, train by its own session, print the seconds and the gaps as JSON, and close."""
    prepare_for_training()
    from PySide6.QtWidgets import QApplication

    from studio.app.application import Studio
    from tests.bench.window_driver import Driver

    app = QApplication(sys.argv[:1])
    studio = Studio(app, paths=[folder])
    driver = Driver(studio, steps, heartbeat)
    studio.run()
    sys.stdout.write(json.dumps([driver.seconds, driver.gaps_s]) + "\n")


def main() -> None:
    """Print each pair and the median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
        sys.stdout.write(
            f"{len(gaps):,} heartbeats of 10 ms: p99 {1000 * p99:.1f} ms, longest {1000 * ordered[-1]:.1f} ms\n"
        )
        return
    ratios = []
    with tempfile.TemporaryDirectory() as home:
        for _ in range(chosen.pairs):
            command_s = by_command(chosen.folder, chosen.steps, Path(home))
            window_s, _ = in_window(chosen.folder, chosen.steps, False)
            ratios.append(window_s / command_s)
            sys.stdout.write(f"command line {command_s:.1f} s   window {window_s:.1f} s   x {ratios[-1]:.3f}\n")
    sys.stdout.write(f"median {statistics.median(ratios):.3f}\n")


if __name__ == "__main__":
    main()
