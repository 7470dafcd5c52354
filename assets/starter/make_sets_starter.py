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
from typing import NamedTuple

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import numpy as np
from building import HERE, check_files, save, train
from numpy.typing import NDArray

from studio.core import paths
from studio.data.importing.importing import SpritesImported, import_sprites
from studio.data.options import ImportOptions
from studio.data.sets.layout import GAP, SetLayout
from studio.data.sprites import Sprites, unstack
from studio.engine import catalog
from studio.engine.training.parents import StarterInfo
from studio.recipes.base import Spec

OUT = HERE / "sets.safetensors"
SEED = 20261128
SIZE = 16
STEPS = 4000
WIDTH = 32
ROWS, FRAMES = ("down", "up", "left", "right"), ("stand", "step", "stand2", "step2")
CELLS = tuple(f"{row}/{frame}" for row in ROWS for frame in FRAMES)
ROUND = ("down", "down-right", "right", "up-right", "up", "up-left", "left", "down-left")
NO_FRAME = 99


class Collection(NamedTuple):
    """How the sheets of a collection are laid out. columns: the column of each of FRAMES."""

    rows: tuple[str, ...] = ROWS
    columns: tuple[int, ...] = (0, 1, 2, 3)


COLLECTIONS = {
    "demo characters": Collection(),
    "kenney-rpg-urban": Collection(columns=(0, 1, NO_FRAME, 2)),
    "mini-world": Collection(columns=(0, 2, 3, 4)),
    "ninja-adventure": Collection(),
    "ninja-adventure-monsters": Collection(),
    "puny-characters": Collection(ROUND, (0, 2, 1, 3)),
    "superpowers-ninja": Collection(),
    "superpowers-ninja-monsters": Collection(),
}


class Characters(NamedTuple):
    """Characters with the cells CELLS."""

    names: list[str]
    cells: NDArray[np.uint8]  # [M, C, SIZE, SIZE, 4]
    present: NDArray[np.bool_]  # [M, C]


def characters_in(folder: Path, collection: Collection) -> Characters:
    """Return the characters of a folder of sheets that fit the canvas."""
    options = ImportOptions(sets="sheets", rows=",".join(collection.rows))
    *_, read = import_sprites([folder], options)
    assert isinstance(read, SpritesImported)
    layout = read.sprites.sets
    stacked = read.sprites.stacked_sets(np.arange(len(read.sprites)))
    cells, there = unstack(stacked.rgba), stacked.targets > 0
    known = {cell: number for number, cell in enumerate(layout.cells)}
    wanted = [known.get(f"{row}/{column + 1}", -1) for row in ROWS for column in collection.columns]
    present = there[:, wanted] & (np.array(wanted) >= 0)
    own = cells[:, wanted] * present[..., None, None, None]
    fitted = [_fit(character) for character in own]
    is_kept = [character is not None for character in fitted]
    names = [f"{folder.name}/{name}" for name, kept in zip(layout.sets, is_kept, strict=True) if kept]
    return Characters(names, np.stack([one for one in fitted if one is not None]), present[is_kept])


def _fit(cells: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """Return a character's cells on the canvas, uint8 [C, SIZE, SIZE, 4]; None if the character is larger.

    All cells of a larger canvas are cropped alike: the lowest pixel stands on the bottom, the figure in the middle.
    """
    if cells.shape[1] == SIZE:
        return cells
    ys, xs = (np.flatnonzero((cells[..., 3] > 0).any(axes)) for axes in ((0, 2), (0, 1)))
    height, width = ys[-1] - ys[0] + 1, xs[-1] - xs[0] + 1
    if max(height, width) > SIZE:
        return None
    fitted = np.zeros((len(cells), SIZE, SIZE, 4), np.uint8)
    left = (SIZE - width) // 2
    fitted[:, SIZE - height :, left : left + width] = cells[:, ys[0] : ys[-1] + 1, xs[0] : xs[-1] + 1]
    return fitted


def as_sprites(parts: list[Characters]) -> Sprites:
    """Return the characters of all collections as one set of sprites."""
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
    # One thread: with another number of them, the last bits are others.
    config = recipe.Config(steps=chosen.steps, width=WIDTH, flip=True, seed=SEED, holdout=0.02, threads=1)
    weights = train(sprites, recipe, config)
    learnt = {name for name, _ in recipe.build(config, Spec.of(sprites)).named_parameters()}  # the rest is computed
    settings = {name: getattr(config, name) for name in recipe.fixed_by_weights}
    about = StarterInfo(recipe.name, settings, SIZE, chosen.steps, sprites.title, sprites.fingerprint, CELLS)
    save(chosen.out, {name: tensor for name, tensor in weights.items() if name in learnt}, about)


if __name__ == "__main__":
    main()
