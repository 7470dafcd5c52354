"""Trains the starter of the recipe 'sets' on characters that are in the public domain (CC0) only.

    python assets/starter/make_sets_starter.py CHARACTERS

CHARACTERS: a folder with the packs of `sources.json`, cut into one sheet a character: a row for each view, a column for
each frame; `characters.sha256` lists its files. The demo characters are learnt from, too. The same machine makes the
same bytes. --without NAME leaves out the collections whose names begin so, to judge a starter by characters that it
never saw: see tests/bench/bench_sets_starter.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import numpy as np
from building import HERE, check_files, save, train
from characters import CELLS, COLLECTIONS, Characters, characters_in

from studio.core import paths
from studio.data.sets.layout import GAP, SetLayout
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.training.parents import StarterInfo
from studio.recipes.base import Spec

OUT = HERE / "sets.safetensors"
SEED = 20261128
STEPS = 4000
WIDTH = 32


def as_sprites(parts: list[Characters]) -> Sprites:
    """Join the characters of all collections."""
    names, present = [name for part in parts for name in part.names], np.concatenate([part.present for part in parts])
    rgba = np.concatenate([part.cells for part in parts])[present]
    table = np.where(present, present.cumsum().reshape(present.shape) - 1, GAP).astype(np.int32)
    places = [f"{names[row]}#{CELLS[cell]}" for row, cell in np.argwhere(present).tolist()]
    sets = SetLayout(CELLS, tuple(names), table, "sheets", chosen=True)
    labels = np.zeros(len(rgba), np.int64)
    return Sprites(rgba, labels, ("",), tuple(places), "drawn and published characters", sets=sets)


def main() -> None:
    """Train the starter and write its averaged weights in half precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("characters", type=Path)
    parser.add_argument("--without", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    check_files(chosen.characters, "characters.sha256")
    folders = {name: chosen.characters / name for name in COLLECTIONS} | {"demo characters": paths.demo_characters()}
    parts = [
        characters_in(folder, COLLECTIONS[name])
        for name, folder in folders.items()
        if not name.startswith(tuple(chosen.without))
    ]
    sprites, recipe = as_sprites(parts), catalog.recipe("sets")
    # Another number of threads changes the last bits.
    config = recipe.Config(steps=chosen.steps, width=WIDTH, flip=True, seed=SEED, holdout=0.02, threads=1)
    weights = train(sprites, recipe, config)
    learnt = {name for name, _ in recipe.build(config, Spec.of(sprites)).named_parameters()}  # the rest is computed
    settings = recipe.fixed_settings(config, sprites.size)
    about = StarterInfo(recipe.name, settings, sprites.size, chosen.steps, sprites.title, sprites.fingerprint, CELLS)
    save(chosen.out, {name: tensor for name, tensor in weights.items() if name in learnt}, about)


if __name__ == "__main__":
    main()
