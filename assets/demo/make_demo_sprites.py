"""Draws the demo sprites and the demo characters.

Sprites: for every class one sheet and, beside it, a list of its frames. Characters: one sheet each.

The same seed gives the same bytes: run it again after a change to the drawings and commit what it writes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from demo_art import (
    bats,
    bugs,
    fish,
    gems,
    ghosts,
    heroes,
    keys,
    mushrooms,
    potions,
    shields,
    ships,
    slimes,
    swords,
    trees,
)
from demo_art.canvas import Canvas
from demo_art.characters.cast import characters
from demo_art.finish import Pixels, is_clean, is_new, limit_colours
from numpy.random import Generator
from PIL import Image

SEED = 20240607
PER_CLASS = 240
COLUMNS = 16
OUT = Path(__file__).resolve().parent
SPRITES, CHARACTERS = "demo sprites", "demo characters"
Draw = Callable[[Generator], Canvas]
CLASSES: dict[str, tuple[int, Draw]] = {
    "bats": (bats.SIZE, bats.draw),
    "bugs": (bugs.SIZE, bugs.draw),
    "fish": (fish.SIZE, fish.draw),
    "gems": (gems.SIZE, gems.draw),
    "ghosts": (ghosts.SIZE, ghosts.draw),
    "heroes": (heroes.SIZE, heroes.draw),
    "keys": (keys.SIZE, keys.draw),
    "mushrooms": (mushrooms.SIZE, mushrooms.draw),
    "potions": (potions.SIZE, potions.draw),
    "shields": (shields.SIZE, shields.draw),
    "ships": (ships.SIZE, ships.draw),
    "slimes": (slimes.SIZE, slimes.draw),
    "swords": (swords.SIZE, swords.draw),
    "trees": (trees.SIZE, trees.draw),
}


def draw_class(seed: int, draw: Draw, seen: set[bytes]) -> list[Pixels]:
    """Draws until there are enough sprites that are clean and unlike all others."""
    rng = np.random.default_rng([SEED, seed])
    kept: list[Pixels] = []
    while len(kept) < PER_CLASS:
        pixels = limit_colours(draw(rng).rgba())
        if pixels is None or not is_clean(pixels) or not is_new(pixels, kept) or pixels.tobytes() in seen:
            continue
        seen.add(pixels.tobytes())
        kept.append(pixels)
    return kept


def draw_on_canvases(seed: int, per_class: int, size: int) -> Pixels:
    """Clean sprites uint8 [N, size, size, 4] of every class in turn, each somewhere on its canvas; near twins stay."""
    canvases: list[Pixels] = []
    for number, (own_size, draw) in enumerate(CLASSES.values()):
        rng = np.random.default_rng([seed, number])
        while len(canvases) < per_class * (number + 1):
            pixels = limit_colours(draw(rng).rgba())
            if pixels is not None and is_clean(pixels):
                canvas = np.zeros((size, size, 4), np.uint8)
                y, x = rng.integers(0, size - own_size + 1, 2)
                canvas[y : y + own_size, x : x + own_size] = pixels
                canvases.append(canvas)
    return np.stack(canvases)


def write_class(name: str, size: int, sprites: list[Pixels]) -> None:
    """Lays the sprites out in a grid and writes the sheet and its frames."""
    lines = -(-len(sprites) // COLUMNS)
    sheet = np.zeros((lines * size, COLUMNS * size, 4), dtype=np.uint8)
    frames = []
    for index, pixels in enumerate(sprites):
        row, column = divmod(index, COLUMNS)
        x, y = column * size, row * size
        sheet[y : y + size, x : x + size] = pixels
        frames.append({"filename": f"{name}_{index:03d}", "frame": {"x": x, "y": y, "w": size, "h": size}})
    Image.fromarray(sheet).save(OUT / SPRITES / f"{name}.png", optimize=True)
    meta = {
        "app": "make_demo_sprites.py",
        "image": f"{name}.png",
        "size": {"w": sheet.shape[1], "h": sheet.shape[0]},
        "scale": "1",
    }
    text = json.dumps({"frames": frames, "meta": meta}, separators=(",", ":"))
    (OUT / SPRITES / f"{name}.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def write_characters() -> int:
    """Writes a sheet a character and returns how many there are."""
    (OUT / CHARACTERS).mkdir(exist_ok=True)
    sheets = characters()
    for name, sheet in sheets.items():
        Image.fromarray(sheet).save(OUT / CHARACTERS / f"{name}.png", optimize=True)
    return len(sheets)


def main() -> None:
    """Draws and writes every class and every character."""
    (OUT / SPRITES).mkdir(exist_ok=True)
    seen: set[bytes] = set()
    for seed, (name, (size, draw)) in enumerate(CLASSES.items()):
        write_class(name, size, draw_class(seed, draw, seen))
    count = write_characters()
    sys.stdout.write(f"{len(seen)} sprites in {len(CLASSES)} classes and {count} characters written to {OUT}\n")


if __name__ == "__main__":
    main()
