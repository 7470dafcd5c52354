"""Sprites by the million for benchmarks: no two are alike, made quickly and always the same."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from studio.core.events import Rgba
from studio.data.scratch import Scratch
from studio.data.sprites import Sprites
from studio.data.store import packed
from tests.data.making import png_of

_AT_ONCE = 5000
_IN_ARCHIVE, _IN_FOLDER = 50_000, 1000


def pixels(count: int, size: int = 32, seed: int = 0) -> Iterator[Rgba]:
    """Sprites uint8 [n, size, size, 4], `count` of them in all: blocky shapes of sixteen colours, mirrored."""
    rng = np.random.default_rng(seed)
    colours = np.zeros((17, 4), np.uint8)
    colours[1:] = [*rng.integers(0, 256, (16, 4))]
    colours[1:, 3] = 255
    for start in range(0, count, _AT_ONCE):
        n = min(_AT_ONCE, count - start)
        half = rng.integers(0, 17, (n, size // 4, size // 8))
        whole = np.concatenate([half, half[:, :, ::-1]], 2).repeat(4, 1).repeat(4, 2)
        whole[rng.random((n, size, size)) < 0.05] = 1  # specks, so that it is no enlargement
        yield colours[whole]


def write_folders(folder: Path, count: int) -> None:
    """One PNG a sprite, a thousand in each of the folders."""
    for number, png in enumerate(_pngs(count)):
        name = folder / f"class {number // _IN_FOLDER:04d}" / f"{number:07d}.png"
        if not number % _IN_FOLDER:
            name.parent.mkdir(parents=True)
        name.write_bytes(png)


def write_archives(folder: Path, count: int) -> None:
    """The same in archives of 50,000."""
    folder.mkdir(parents=True, exist_ok=True)
    pngs = enumerate(_pngs(count))
    for start in range(0, count, _IN_ARCHIVE):
        with zipfile.ZipFile(folder / f"pack {start:07d}.zip", "w") as archive:
            for number, png in (next(pngs) for _ in range(min(_IN_ARCHIVE, count - start))):
                archive.writestr(f"class {number // _IN_FOLDER:04d}/{number:07d}.png", png)


def mapped_sprites(folder: Path, count: int, classes: int = 20) -> Sprites:
    """The same sprites in a packed file in `folder`; mapped when they are many."""
    there = Scratch(folder)
    for part in pixels(count):
        there.add(part)
    rgba = there.array().reshape(count, 32, 32, 4)
    labels = np.arange(count, dtype=np.int64) % classes
    names = tuple(f"{number:07d}.png" for number in range(count))
    path = folder / "many.safetensors"
    packed.save(Sprites(rgba, labels, tuple(f"class {label:02d}" for label in range(classes)), names, "many"), path)
    there.close()
    return packed.load(path)


def _pngs(count: int) -> Iterator[bytes]:
    return (png_of(sprite) for part in pixels(count) for sprite in part)
