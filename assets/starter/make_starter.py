"""Train the generator's starter, from whose weights a training may start, on public-domain (CC0) sprites only.

    python assets/starter/make_starter.py SPRITES [--width 64] [--state FILE]

SPRITES: a folder with 'dcss' and 'characters'; sources.json says where from, tiles.sha256 and characters.sha256 list
the files. The scripts of assets/demo/demo_art draw the other collections: see collecting.py. The same machine makes the
same bytes, in two hours on one core; --state FILE lets a second call continue an interrupted training. --without NAME
leaves out the collections whose titles begin with NAME, such as dcss, ninja-adventure or drawn. The collection then
judges the starter: see tests/bench/bench_small_data.py.

The bundled starter.safetensors is older: the script of commit d86b0d36 trained it on tiles and drawings, in one palette
for all. Starters of the present script draw floors and walls worse after a fine-tuning, see Few sprites in the guide's
measurements.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

from building import HERE, save
from collecting import collect
from pretraining import pretrain

from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.training.parents import StarterInfo

SEED = 20261128
SIZE = 32  # sprites up to twice this size may start from the starter
STEPS = {32: 24_000, 64: 12_000}  # by width: two hours on one core
OUT = {32: HERE / "starter.safetensors", 64: HERE / "starter-64.safetensors"}
LEVELS = "3"  # the same weights for every size
CLASS_DROP = 0.3  # users have other classes


def fingerprint(collections: Sequence[Sprites]) -> str:
    """Return a hash of all collections, 32 hex digits."""
    return hashlib.sha256(" ".join(sprites.fingerprint for sprites in collections).encode()).hexdigest()[:32]


def main() -> None:
    """Train the starter and write its averaged weights in half precision, without the classes of single collections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sprites", type=Path)
    parser.add_argument("--width", type=int, choices=sorted(STEPS), default=32)
    parser.add_argument("--without", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--steps", type=int, help="of the training")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--state", type=Path, help="file to continue from after an interruption")
    chosen = parser.parse_args()
    steps = chosen.steps or STEPS[chosen.width]
    collections, recipe = collect(chosen.sprites, chosen.without, SEED), catalog.recipe("generator")
    # Another number of threads changes the last bits.
    config = recipe.Config(
        steps=steps, width=chosen.width, levels=LEVELS, class_dropout=CLASS_DROP, flip=True, seed=SEED, threads=1
    )
    weights = pretrain(collections, recipe, config, state=chosen.state)
    weights["label.weight"] = weights["label.weight"][-1:]  # the row that stands for any class
    settings = recipe.fixed_settings(config, SIZE)
    title = f"{sum(map(len, collections))} published and drawn sprites"
    about = StarterInfo(recipe.name, settings, SIZE, steps, title, fingerprint(collections))
    save(chosen.out or OUT[chosen.width], weights, about)


if __name__ == "__main__":
    main()
