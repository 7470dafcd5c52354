"""Trains the network that a training may start from, on sprites that are in the public domain (CC0) only.

    python assets/starter/make_starter.py TILES

TILES: the folder of the generator's first source in `sources.json`, as it was published; `tiles.sha256` says which of
its files are learnt from. The others are drawn by assets/demo/demo_art. The same machine makes the same bytes, in some
twenty minutes on one core. --without art or --without tiles makes one that has never seen that source, to be judged by
it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import numpy as np
from building import HERE, check_files, save, train

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "demo"))
from make_demo_sprites import CLASSES, draw_on_canvases

from studio.data.importing.importing import SpritesImported, import_sprites
from studio.data.options import ImportOptions
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.training.parents import StarterInfo
from studio.recipes.base import Spec

OUT = HERE / "starter.safetensors"
SEED = 20261123
SIZE = 32
PER_CLASS = 300  # drawn sprites: as many, in all, as there are tiles
STEPS = 4000
WIDTH = 32  # of twice that, sixty sprites take twice the time; they come out a little nearer, with more copies
CLASS_DROP = 0.3  # the classes are not those that it will be used for


def drawn_sprites() -> Sprites:
    """Sprites by the demo's artists, each somewhere on its canvas."""
    rgba = draw_on_canvases(SEED, PER_CLASS, SIZE)
    labels = np.arange(len(CLASSES)).repeat(PER_CLASS)
    names = tuple(f"drawn {number}" for number in range(len(rgba)))
    return Sprites(rgba, labels, tuple(f"drawn/{name}" for name in CLASSES), names, "drawn sprites")


def published_tiles(folder: Path) -> Sprites:
    """The tiles that the manifest names. Raises BadInputError when one is missing or another than it was."""
    check_files(folder, "tiles.sha256")
    *_, read = import_sprites([folder], ImportOptions(size=SIZE))
    assert isinstance(read, SpritesImported)
    return read.sprites


def together(parts: list[Sprites]) -> Sprites:
    """All of them as one set."""
    first = np.cumsum([0, *(len(part.class_names) for part in parts)])
    return Sprites(
        np.concatenate([part.rgba for part in parts]),
        np.concatenate([part.labels + start for part, start in zip(parts, first[:-1], strict=True)]),
        tuple(name for part in parts for name in part.class_names),
        tuple(name for part in parts for name in part.names),
        " and ".join(part.title for part in parts),
    )


def main() -> None:
    """Train it, and write its averaged weights in half precision, those of single classes left out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tiles", type=Path)
    parser.add_argument("--without", choices=["art", "tiles"])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    parts = [] if chosen.without == "tiles" else [published_tiles(chosen.tiles)]
    sprites = together(parts if chosen.without == "art" else [*parts, drawn_sprites()])
    recipe = catalog.recipe("generator")
    # One thread: with another number of them, the last bits are others.
    config = recipe.Config(
        steps=chosen.steps, width=WIDTH, class_dropout=CLASS_DROP, flip=True, seed=SEED, holdout=0.02, threads=1
    )
    weights = train(sprites, recipe, config)
    for name in recipe.rows(Spec.of(sprites)):
        weights[name] = weights[name][-1:]  # the row that stands for any class
    settings = {name: getattr(config, name) for name in recipe.fixed_by_weights}
    about = StarterInfo(recipe.name, settings, SIZE, chosen.steps, sprites.title, sprites.fingerprint)
    save(chosen.out, weights, about)


if __name__ == "__main__":
    main()
