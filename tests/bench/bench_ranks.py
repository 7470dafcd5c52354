"""Several processes that train one run against one alone: each on a core of its own, in turn, in rounds.

    python -m tests.bench.bench_ranks [--processes 1 2] [--steps 20] [--rounds 3] [--recipe generator] [--width 0]

Prints sprites/s of each number of processes, and how many times one alone's that is. torchrun starts them; each is kept
on one core and computes with one thread. The first steps, in which buffers are made, are not counted. Linux only.
"""

from __future__ import annotations

import os
import statistics
import sys

from studio.core.process import prepare_for_training
from tests.bench.tools import configured, say, told_by, training_command_line


def measure(recipe_words: list[str]) -> None:
    """What one of the processes does; the first one says how many sprites a second all have learnt from."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(os.environ["LOCAL_RANK"]) % len(cores)]})
    prepare_for_training()
    from studio.core import paths
    from studio.engine.control.control import Control
    from studio.engine.devices.detection import find_device
    from studio.engine.distributed.ranks import process_group
    from studio.engine.training.loop import train_worker
    from tests.bench.bench_loop import WARM_UP_STEPS, engine_rate
    from tests.data.making import imported

    parser = training_command_line(__doc__)
    parser.add_argument("--steps", type=int)
    chosen = parser.parse_args(recipe_words)
    recipe, config = configured(chosen, steps=WARM_UP_STEPS + chosen.steps, holdout=0.0, threads=1, precision="fp32")
    with process_group("cpu") as group:
        if group.is_first:
            sprites, _ = recipe.select(imported(paths.demo_sprites()).sprites, config)
            say(str(engine_rate(sprites, recipe, config, find_device("cpu"), group)))
        else:
            train_worker(find_device("cpu"), Control(), group)


def main() -> None:
    """Run the rounds and print what they gave."""
    parser = training_command_line(__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    words = ["--recipe", chosen.recipe, "--width", chosen.width, "--steps", chosen.steps]
    rates: dict[int, list[float]] = {count: [] for count in chosen.processes}
    for _ in range(chosen.rounds):
        for count, found in rates.items():
            torchrun = ("torch.distributed.run", "--nproc-per-node", count, "-m", __spec__.name)
            found.append(told_by(*torchrun, "--measure", *words))
        say("   ".join(f"{count}: {found[-1]:7.1f} sprites/s" for count, found in rates.items()))
    alone = statistics.median(rates[chosen.processes[0]])
    for count, found in rates.items():
        say(f"{chosen.recipe}, {count} processes: {statistics.median(found) / alone:.2f} times {chosen.processes[0]}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2:])
    else:
        main()
