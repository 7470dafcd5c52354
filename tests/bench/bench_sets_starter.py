"""What a starter for sets gives: exactly right pixels of held-out characters, trained with and without it.

    python -m tests.bench.bench_sets_starter CHARACTERS [--collections mini-world] [--count 30] [--seeds 0 1 2]

CHARACTERS: the folder of assets/starter/make_sets_starter.py. For each collection, that script trains a starter without
the collection, and without others whose names begin with its name. Each seed holds out characters of the collection as
the studio does (split_by_group), and trains as the preset 'Standard' on `count` of the others, from random weights and
from the starter. The best checkpoint of each run is judged on the characters held out. --steps and --starter-steps
shorten the trainings. --starters: folder that keeps the starters for a later call.
"""

from __future__ import annotations

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch

from studio.core.config import TrainingConfig
from studio.core.generators import run_to_end
from studio.data.importing.importing import SpritesImported, import_sprites
from studio.data.options import ImportOptions
from studio.data.similarity.groups import group_near_duplicates
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices.detection import find_device
from studio.engine.devices.types import Device
from studio.engine.models.loading import load_model
from studio.engine.runs.split import split_by_group
from studio.engine.steps.batches import DeviceSprites
from studio.engine.steps.benchmark import training_budget
from studio.engine.training.loop import train_new
from studio.engine.training.parents import Parent, parse_starter
from studio.recipes.base import Evaluation, Recipe
from tests.bench.tools import command_line, say

SCRIPT = Path(__file__).parents[2] / "assets" / "starter" / "make_sets_starter.py"
HELD_OUT = 0.25  # share of a collection's characters that judge
CPU = torch.device("cpu")


def made_starter(characters: Path, without: str, folder: Path, steps: int) -> Parent:
    """Return the starter without a collection; train it unless `folder` holds it."""
    path = folder / f"without {without}{f' {steps}' if steps else ''}.safetensors"
    if not path.exists():
        length = ["--steps", str(steps)] if steps else []
        words = [SCRIPT, characters, "--without", without, "--out", path, *length]
        subprocess.run([sys.executable, *map(str, words)], check=True)
    return parse_starter(path.read_bytes(), "CC0-1.0")


def characters_in(folder: Path, rows: str, recipe: Recipe) -> Sprites:
    """Return the characters in a folder of sheets that the recipe can learn, with groups of near duplicates."""
    *_, read = import_sprites([folder], ImportOptions(sets="sheets", rows=rows))
    assert isinstance(read, SpritesImported)
    return run_to_end(group_near_duplicates(recipe.select(read.sprites, recipe.Config())[0], None))


def split(sprites: Sprites, count: int, seed: int) -> tuple[Sprites, Sprites]:
    """Return `count` characters to learn from, and those held out."""
    layout, validation = sprites.sets, split_by_group(sprites, HELD_OUT, seed).validation
    is_heldout = np.asarray(np.isin(layout.table, validation).any(axis=1))  # bool [sets]
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(~is_heldout))[:count]
    every = np.ones(len(layout.cells), np.bool_)
    is_chosen = np.isin(np.arange(len(layout)), chosen)
    return sprites.of_sets(layout.part(is_chosen, every)), sprites.of_sets(layout.part(is_heldout, every))


def judged(few: Sprites, heldout: Sprites, recipe: Recipe, config: TrainingConfig, parent: Parent | None,
           device: Device) -> tuple[int, Evaluation]:  # fmt: skip
    """Train on the few characters; return the step and the figures of the best checkpoint."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        for _ in train_new(run, few, recipe, config, device, Control(), parent):
            pass
        model = load_model(run, "best", device)
    layout = heldout.sets
    known = layout.part(np.ones(len(layout), np.bool_), np.isin(layout.cells, model.spec.cells))
    examples, indices = recipe.examples(heldout.of_sets(known), np.arange(len(heldout)))
    batches = DeviceSprites(examples, CPU, indices=indices).plain_batches(16, len(examples))
    with torch.no_grad():
        return model.step, recipe.evaluate(model.network, batches, model.config, model.spec)


def shown(metrics: Mapping[str, float]) -> str:
    """The figures as one line."""
    return "  ".join(f"{name} {value:.3f}" for name, value in metrics.items())


def means(found: Iterable[Evaluation]) -> dict[str, float]:
    """The mean of each figure over the seeds."""
    every = [evaluation.metrics for evaluation in found]
    return {name: float(np.mean([metrics[name] for metrics in every])) for name in every[0]}


def main() -> None:
    """Print a line for each collection, seed and start, and the means over the seeds."""
    parser = command_line(__doc__)
    parser.add_argument("characters", type=Path)
    parser.add_argument("--collections", nargs="+", default=["ninja-adventure", "mini-world"])
    parser.add_argument("--rows", default="down,up,left,right", help="names of the rows of the sheets")
    parser.add_argument("--count", type=int, default=30, help="characters to learn from")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=0, help="of a training; 0: the preset's")
    parser.add_argument("--starter-steps", type=int, default=0, help="of a starter; 0: the script's")
    parser.add_argument("--starters", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    starters = chosen.starters or Path(tempfile.mkdtemp())
    starters.mkdir(parents=True, exist_ok=True)
    recipe, device = catalog.recipe("sets"), find_device("cpu", probe=True)
    for collection in chosen.collections:
        starter = made_starter(chosen.characters, collection, starters, chosen.starter_steps)
        sprites = characters_in(chosen.characters / collection, chosen.rows, recipe)
        for title, parent in (("from nothing", None), ("from the starter", starter)):
            found = []
            for seed in chosen.seeds:
                few, heldout = split(sprites, chosen.count, seed)
                budget = training_budget(recipe, few, device, parent.settings if parent else None)
                changes = {**recipe.usual_changes(budget), "seed": seed, "threads": chosen.threads}
                if chosen.steps:
                    changes = {"steps": chosen.steps, "seed": seed, "threads": chosen.threads}
                config = recipe.defaults(budget).replace(**changes)
                step, evaluation = judged(few, heldout, recipe, config, parent, device)
                found.append(evaluation)
                if parent is None:
                    about = f"{len(few.sets)} characters, judged by {len(heldout.sets)}"
                    say(f"{collection}, seed {seed}, {about}: given cells repeated  {shown(evaluation.baseline)}")
                say(f"{collection}, seed {seed}, {title}, step {step}: {shown(evaluation.metrics)}")
            say(f"{collection}, mean, {title}: {shown(means(found))}")


if __name__ == "__main__":
    main()
