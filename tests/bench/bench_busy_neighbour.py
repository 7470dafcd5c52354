"""Training beside another program that computes on all cores: what is left of its speed.

    python -m tests.bench.bench_busy_neighbour [--sprites FOLDER] [--seconds 60] [--recipe generator] [--width 0]

The neighbour is a loop of convolutions in torch with as many threads as there are cores. Each training is a process of
its own, for the same time: in quiet with one thread and with all, and beside the neighbour with all, once bound to them
and once left to choose. Its first seconds, in which buffers are made and threads are tried, are not counted; a second
figure counts them. Prints sprites/s and what share they are of what one thread does in quiet; the mark is a half.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn import functional as F

from studio.core import places
from studio.core.events import LossChunk
from studio.core.process import prepare_for_training
from studio.data.importing import ImportOptions, SpritesImported, import_sprites
from studio.engine import catalog
from studio.engine.control import Control
from studio.engine.devices import choose, detect
from studio.engine.train import train_new

WARM_UP_S = 15.0


def convolve_for_ever(threads: int) -> None:
    """The neighbour; says when it has begun."""
    torch.set_num_threads(threads)
    x, kernel = torch.randn(16, 64, 32, 32), torch.randn(64, 64, 3, 3)
    F.conv2d(x, kernel, padding=1)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        F.conv2d(x, kernel, padding=1)


@contextlib.contextmanager
def neighbour(threads: int) -> Iterator[None]:
    """Beside it for as long as the block lasts."""
    command = [sys.executable, "-m", __spec__.name, "--role", "neighbour", "--threads", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


def rates(chosen: argparse.Namespace) -> tuple[float, float]:
    """Sprites per second of a training, in this process: without its first seconds, and with them."""
    prepare_for_training()
    *_, found = import_sprites([chosen.sprites], ImportOptions())
    assert isinstance(found, SpritesImported)
    recipe, device = catalog.recipe(chosen.recipe), choose(detect(), "cpu")
    network = {"width": chosen.width} if chosen.width else {}
    config = recipe.Config(minutes=chosen.seconds / 60, holdout=0.0, threads=chosen.threads, **network)
    sprites, _ = recipe.select(found.sprites, config)
    marks: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        start_s = time.perf_counter()
        for event in train_new(Path(folder) / "run", sprites, recipe, config, device, Control()):
            if isinstance(event, LossChunk):
                marks.append((time.perf_counter() - start_s, event.first_step + len(event.losses)))
    warm = next((mark for mark in marks[:-1] if mark[0] >= WARM_UP_S), marks[0])
    (first_s, first), (last_s, last) = warm, marks[-1]
    return (last - first) * config.batch_size / (last_s - first_s), last * config.batch_size / last_s


def rates_apart(threads: int) -> tuple[float, float]:
    """The same in a process of its own, bound to that many threads; 0 leaves it the choice."""
    command = [sys.executable, "-m", __spec__.name, *sys.argv[1:], "--role", "training", "--threads", str(threads)]
    steady, whole = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return float(steady), float(whole)


def main() -> None:
    """Train four times and print what it gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sprites", type=Path, default=places.demo_sprites())
    parser.add_argument("--seconds", type=float, default=60.0, help=f"of each training, {WARM_UP_S:g} not counted")
    parser.add_argument("--recipe", default="generator")
    parser.add_argument("--width", type=int, default=0, help="of the network; 0 takes the recipe's own")
    parser.add_argument("--role", choices=("neighbour", "training"), help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.role == "neighbour":
        convolve_for_ever(chosen.threads)
    if chosen.role == "training":
        sys.stdout.write("{} {}\n".format(*rates(chosen)))
        return
    most = torch.get_num_threads()
    alone = rates_apart(1)

    def show(what: str, found: tuple[float, float]) -> None:
        steady, whole = found
        sys.stdout.write(
            f"{what:44} {steady:7.1f} sprites/s  x {steady / alone[0]:.2f}   from the start {whole:7.1f}\n"
        )
        sys.stdout.flush()

    show("in quiet, one thread", alone)
    show(f"in quiet, {most} threads", rates_apart(most))
    with neighbour(most):
        show(f"beside the neighbour, {most} threads", rates_apart(most))
        show("beside the neighbour, threads as it chooses", rates_apart(0))


if __name__ == "__main__":
    main()
