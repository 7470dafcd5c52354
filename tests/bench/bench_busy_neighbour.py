"""Training beside another program that computes on all cores: what is left of its speed.

    python -m tests.bench.bench_busy_neighbour [--sprites FOLDER] [--seconds 60] [--recipe generator] [--width 0]

The neighbour is a loop of convolutions in torch with as many threads as there are cores. Each training is a process of
its own, for the same time: in quiet with one thread and with all, and beside the neighbour with all, once bound to them
and once left to choose. Its first seconds, in which buffers are made and threads are tried, are not counted; a second
figure counts them. Prints sprites/s and what share they are of what one thread does in quiet; the mark is a half.
"""

from __future__ import annotations

import sys

from studio.core.process import prepare_for_training

if __name__ == "__main__" and sys.argv[-1] == "training":
    prepare_for_training()  # before torch comes in

import argparse
import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn import functional as F

from studio.core import paths
from studio.engine.devices.detection import choose_device, probe_devices
from tests.bench.tools import configured, say, ticks_of, told_by, training_command_line
from tests.data.making import imported

WARM_UP_S = 15.0


def convolve_for_ever(threads: int) -> None:
    """The neighbour; says when it has begun."""
    torch.set_num_threads(threads)
    x, kernel = torch.randn(16, 64, 32, 32), torch.randn(64, 64, 3, 3)
    F.conv2d(x, kernel, padding=1)
    say("ready")
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
    device = choose_device(probe_devices(), "cpu")
    recipe, config = configured(chosen, minutes=chosen.seconds / 60, holdout=0.0, threads=chosen.threads)
    sprites, _ = recipe.select(imported(chosen.sprites).sprites, config)
    ticks = ticks_of(sprites, recipe, config, device)
    first_s, first = next((tick for tick in ticks[:-1] if tick[0] >= WARM_UP_S), ticks[0])
    last_s, last = ticks[-1]
    return (last - first) * config.batch_size / (last_s - first_s), last * config.batch_size / last_s


def main() -> None:
    """Train four times and print what it gave."""
    parser = training_command_line(__doc__)
    parser.add_argument("--sprites", type=Path, default=paths.demo_sprites())
    parser.add_argument("--seconds", type=float, default=60.0, help=f"of each training, {WARM_UP_S:g} not counted")
    parser.add_argument("--role", choices=("neighbour", "training"), help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.role == "neighbour":
        convolve_for_ever(chosen.threads)
    if chosen.role == "training":
        say(json.dumps(rates(chosen)))
        return
    most = torch.get_num_threads()
    alone = 0.0

    def show(what: str, threads: int) -> None:
        """Of a training in a process of its own, bound to so many threads; 0 leaves it the choice."""
        nonlocal alone
        steady, whole = told_by(__spec__.name, *sys.argv[1:], "--threads", threads, "--role", "training")
        alone = alone or steady
        say(f"{what:44} {steady:7.1f} sprites/s  x {steady / alone:.2f}   from the start {whole:7.1f}")

    show("in quiet, one thread", 1)
    show(f"in quiet, {most} threads", most)
    with neighbour(most):
        show(f"beside the neighbour, {most} threads", most)
        show("beside the neighbour, threads as it chooses", 0)


if __name__ == "__main__":
    main()
