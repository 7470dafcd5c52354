"""Sprites by the million for benchmarks: no two are alike, made quickly and always the same."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from studio.core.arrays import Rgba
from studio.data.files.scratch import ScratchBuffer
from studio.data.sprites import Sprites
from studio.data.store import packed
from tests.data.making import png_of

_AT_ONCE = 5000
_IN_ARCHIVE, _IN_FOLDER = 50_000, 1000


def pixels(count: int) -> Iterator[Rgba]:
    """Sprites uint8 [n, 32, 32, 4], `count` of them in all: blocky shapes of sixteen colours, mirrored."""
    rng = np.random.default_rng(0)
    colours = np.zeros((17, 4), np.uint8)
    colours[1:] = [*rng.integers(0, 256, (16, 4))]
    colours[1:, 3] = 255
    for start in range(0, count, _AT_ONCE):
        n = min(_AT_ONCE, count - start)
        half = rng.integers(0, 17, (n, 8, 4))
        whole = np.concatenate([half, half[:, :, ::-1]], 2).repeat(4, 1).repeat(4, 2)
        whole[rng.random((n, 32, 32)) < 0.05] = 1  # specks, so that it is no enlargement
        yield colours[whole]


def write(folder: Path, count: int, *, in_archives: bool) -> None:
    """One PNG a sprite, a thousand in each folder; in zip archives fifty such folders in each."""
    folder.mkdir(parents=True, exist_ok=True)
    sprites = enumerate(sprite for part in pixels(count) for sprite in part)
    pngs = ((f"class {number // _IN_FOLDER:04d}/{number:07d}.png", png_of(sprite)) for number, sprite in sprites)
    if in_archives:
        for start in range(0, count, _IN_ARCHIVE):
            with zipfile.ZipFile(folder / f"pack {start:07d}.zip", "w") as archive:
                for name, png in islice(pngs, _IN_ARCHIVE):
                    archive.writestr(name, png)
        return
    for name, png in pngs:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(png)


def mapped_sprites(folder: Path, count: int, classes: int = 20) -> Sprites:
    """The same sprites in a packed file in `folder`; mapped when they are many."""
    there = ScratchBuffer(folder)
    for part in pixels(count):
        there.add(part)
    rgba = there.array().reshape(count, 32, 32, 4)
    labels = np.arange(count, dtype=np.int64) % classes
    names = tuple(f"{number:07d}.png" for number in range(count))
    path = folder / "many.safetensors"
    packed.save(Sprites(rgba, labels, tuple(f"class {label:02d}" for label in range(classes)), names, "many"), path)
    there.close()
    return packed.load(path)
