"""What recolouring teaches a starter: the loss on held-out sprites in other hues, trained with and without it.

    python -m tests.bench.bench_recolouring SPRITES [--width 16] [--steps 300] [--seeds 0 1 2]

Trains on nine tenths of the sprites, in collections by their top folder, as assets/starter/make_starter.py does. The
other tenth judges, with its own palette: as it is, and recoloured. Both trainings see equal sprites in equal order.
"""

from __future__ import annotations

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "assets" / "starter"))
from pretraining import CPU, PALETTE, pretrain
from recolouring import NATURAL, Recolouring, random_recolouring, recolour

from studio.core.config import TrainingConfig
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.steps.batches import DeviceSprites
from studio.recipes.base import Batch, Recipe, Spec
from tests.bench.tools import command_line, say
from tests.data.making import imported

JUDGED = 0.1  # share of the sprites


def by_top_folder(sprites: Sprites) -> list[Sprites]:
    """Return a collection for each top folder of the sprites."""
    folders = np.array([name.split("/")[0] for name in sprites.names])
    return [replace(sprites.take(np.flatnonzero(folders == folder)), title=folder) for folder in np.unique(folders)]


def recoloured(batches: Iterator[Batch], how: Recolouring) -> Iterator[Batch]:
    """Yield recoloured batches."""
    for batch in batches:
        yield replace(batch, x=recolour(batch.x.permute(0, 2, 3, 1), how).permute(0, 3, 1, 2))


@torch.no_grad()
def loss_on(heldout: Sprites, network: Any, recipe: Recipe, config: TrainingConfig, how: Recolouring) -> float:
    """Return the loss on recoloured held-out sprites without a class, with their palette recoloured too."""
    palette = recipe.statistics(heldout, config)[PALETTE]
    network.get_buffer(PALETTE).copy_(recolour(palette, how))
    unlabelled = replace(heldout, labels=np.zeros(len(heldout), np.int64), class_names=("",))
    batches = DeviceSprites(unlabelled, CPU).plain_batches(64, len(heldout))
    anyone = (replace(batch, y=torch.full_like(batch.y, network.classes)) for batch in recoloured(batches, how))
    return recipe.evaluate(network, anyone, config, Spec.of(unlabelled)).metrics["loss"]


def main() -> None:
    """Train with and without recolouring for each seed, and print the losses."""
    parser = command_line(__doc__)
    parser.add_argument("sprites", type=Path)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    chosen = parser.parse_args()
    sprites, recipe = imported(chosen.sprites).sprites, catalog.recipe("generator")
    order = np.random.default_rng(0).permutation(len(sprites))
    part = int(JUDGED * len(sprites))
    heldout, collections = sprites.take(np.sort(order[:part])), by_top_folder(sprites.take(np.sort(order[part:])))
    rng = np.random.default_rng(1)
    others = [how for how in (random_recolouring(rng) for _ in range(12)) if how != NATURAL]
    for seed in chosen.seeds:
        for recolours in (False, True):
            config = recipe.Config(steps=chosen.steps, width=chosen.width, class_dropout=0.3, seed=seed, threads=1)
            start_s = time.process_time()
            weights = pretrain(collections, recipe, config, recolours=recolours)
            took_s = time.process_time() - start_s
            network = recipe.build(config, Spec(sprites.size, ()))
            network.load_state_dict({name: weights[name] for name in weights if name != "label.weight"}, strict=False)
            with torch.no_grad():
                network.label.weight.copy_(weights["label.weight"][-1:])
            network.eval()
            natural = loss_on(heldout, network, recipe, config, NATURAL)
            turned = np.mean([loss_on(heldout, network, recipe, config, how) for how in others])
            how, step_ms = "recoloured" if recolours else "own colours", 1000 * took_s / chosen.steps
            say(f"seed {seed}, {how}: {step_ms:.0f} ms of a core for a step, loss on held-out sprites {natural:.3f}, "
                f"in other hues {turned:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
