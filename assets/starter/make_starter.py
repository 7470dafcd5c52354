"""Trains the network that a training may start from, on sprites that are in the public domain (CC0) only.

    python assets/starter/make_starter.py TILES

TILES: the folder of `sources.json`'s first source, as it was published; `tiles.sha256` says which of its files are
learnt from. The others are drawn by assets/demo/demo_art. The same machine makes the same bytes, in some twenty
minutes on one core. --without art or --without tiles makes one that has never seen that source, to be judged by it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import numpy as np
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "demo"))
from make_demo_sprites import CLASSES, draw_on_canvases

from studio.core.errors import BadInputError
from studio.core.events import LossChunk, RunFinished
from studio.data.importing.importing import SpritesImported, import_sprites
from studio.data.options import ImportOptions
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices import detection
from studio.engine.runs import checkpoints
from studio.engine.training.loop import train_new
from studio.engine.training.parents import StarterInfo
from studio.recipes.base import Spec

HERE = Path(__file__).resolve().parent
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
    lines = [line.split("  ", 1) for line in (HERE / "tiles.sha256").read_text().splitlines()]
    known = {name: sha256 for sha256, name in lines}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*.png")}
    wrong = sorted(known.keys() ^ found)
    wrong += [name for name in sorted(known.keys() & found) if known[name] != _sha256(folder / name)]
    if wrong:
        raise BadInputError(f"{folder} is not the source of the starter.", f"{len(wrong)} files differ: {wrong[0]}.")
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


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


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
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        for event in train_new(
            run, sprites, recipe, config, detection.choose_device(detection.probe_devices(), "cpu"), Control()
        ):
            if isinstance(event, LossChunk) and event.first_step % 100 < len(event.losses):
                sys.stdout.write(f"step {event.first_step} of {chosen.steps}: loss {event.losses.mean():.3f}\n")
                sys.stdout.flush()
            elif isinstance(event, RunFinished):
                path = checkpoints.checkpoint_path(run / "checkpoints", event.step)
                weights = load_file(path / "average.safetensors")
    for name in recipe.rows(Spec.of(sprites)):
        weights[name] = weights[name][-1:]  # the row that stands for any class
    settings = {name: getattr(config, name) for name in recipe.fixed_by_weights}
    about = StarterInfo(recipe.name, settings, SIZE, chosen.steps, sprites.title, sprites.fingerprint)
    halves = {name: tensor.half().contiguous() for name, tensor in weights.items()}
    save_file(halves, chosen.out, metadata={"about": json.dumps(asdict(about))})
    sys.stdout.write(f"{chosen.out}: {chosen.out.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
