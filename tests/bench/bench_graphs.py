"""Steps as CUDA graphs against the same steps asked for one operation at a time, on a card, in turns.

    python -m tests.bench.bench_graphs [--device cuda] [--recipe generator] [--widths 64 128] [--batches 64 256]

For each width and batch size: milliseconds of a step and sprites/s, without and with the graph, the median of three
rounds of a hundred steps; the arithmetic of a step and how much of it is done a second, and the memory that both hold.
Sprites are 32 x 32 and made up: a step takes the same time with any.
"""

from __future__ import annotations

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import statistics

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.devices.detection import empty_cache, find_device, memory_in_use
from studio.engine.steps.benchmark import BenchmarkTrainer
from studio.recipes.base import Recipe
from tests.bench.tools import command_line, say

CLASSES, COUNT, SIZE = 8, 2048, 32
WARM_UP_STEPS, STEPS, ROUNDS = 12, 100, 3


def made_up() -> Sprites:
    """Noise, in classes, with two numbers each."""
    rng = np.random.default_rng(0)
    rgba = rng.integers(0, 256, (COUNT, SIZE, SIZE, 4), dtype=np.uint8)
    names = tuple(f"class{number}" for number in range(CLASSES))
    targets = rng.standard_normal((COUNT, 2)).astype(np.float32)
    return Sprites(rgba, np.arange(COUNT) % CLASSES, names, ("",) * COUNT, "noise", targets, ("one", "two"))


def compare(recipe: Recipe, sprites: Sprites, device_id: str, precision: str, width: int, batch: int) -> None:
    """Print a line for this width and batch size."""
    device, config = torch.device(device_id), recipe.Config().replace(width=width, batch_size=batch)
    plain, recorded = (
        BenchmarkTrainer(recipe, config, sprites, device, precision, use_graph=use_graph) for use_graph in (False, True)
    )
    for training in (plain, recorded):
        training.time_steps(WARM_UP_STEPS)
    with FlopCounterMode(display=False) as counted:
        plain.train_step()
    rounds = [(plain.time_steps(STEPS), recorded.time_steps(STEPS)) for _ in range(ROUNDS)]
    before_s, after_s = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio = statistics.median(before / after for before, after in rounds)
    work = counted.get_total_flops()
    say(
        f"width {width:4}  batch {batch:4}  {1000 * before_s:8.2f} ms {batch / before_s:9,.0f} sprites/s  "
        f"with the graph {1000 * after_s:8.2f} ms {batch / after_s:9,.0f} sprites/s  {ratio:.2f} times  "
        f"{work / 1e9:.1f} GFLOP a step, {work / after_s / 1e12:.1f} TFLOP/s  {memory_in_use(device) >> 20} MiB held"
    )


def main() -> None:
    """Compare at each width and batch size."""
    parser = command_line(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--recipe", default="generator")
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256])
    chosen = parser.parse_args()
    device, sprites = find_device(chosen.device, probe=True), made_up()
    say(f"{device.name}, torch {torch.__version__}, {device.precision}")
    for width in chosen.widths:
        for batch in chosen.batches:
            compare(catalog.recipe(chosen.recipe), sprites, device.id, device.precision, width, batch)
            empty_cache(device.torch)


if __name__ == "__main__":
    main()
