"""The collections that the generator's starter learns from: published CC0 sprites, and drawings in many styles."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from building import check_files
from characters import COLLECTIONS, ROWS, characters_in
from numpy.typing import NDArray
from PIL import Image

sys.path.append(str(Path(__file__).resolve().parents[1] / "demo"))
from demo_art.canvas import Canvas
from demo_art.characters.cast import characters
from demo_art.finish import is_clean, limit_colours
from demo_art.palette import COLOURS
from demo_art.sized import KINDS
from demo_art.styles import Style, random_style
from make_demo_sprites import CLASSES

from studio.data.importing.importing import SpritesImported, import_sprites
from studio.data.options import ImportOptions
from studio.data.sprites import Sprites

Pixels = NDArray[np.uint8]
DRAWN = {16: 12, 32: 16, 64: 12}  # collections by size
DRAWN_CHARACTERS = 4  # collections, each in another style
A_COLLECTION = 240  # drawn sprites
KINDS_DRAWN = 4, 8  # fewest and most kinds in a collection
TILES, TILE_SIZE = "dcss", 32
DOLLS = 600  # figures composed of the tiles' layers, from back to front
LAYERS = ("cloak", "base", "boots", "legs", "body", "gloves", "hand1", "hand2", "hair", "head")
LAYER_SHARE = 0.6  # of the dolls have a layer; each has a base
Draw = Callable[[np.random.Generator], Canvas]


def collect(folder: Path, without: Sequence[str], seed: int) -> list[Sprites]:
    """Return the collections, without those whose titles begin with a word of `without`.

    folder: with the folders 'dcss' and 'characters'. Raises BadInputError if a file is not the one of the manifests.
    """
    excluded = tuple(without)
    collections = [] if TILES.startswith(excluded) else published_tiles(folder / TILES, seed)
    packs = [name for name in COLLECTIONS if name != "demo characters" and not name.startswith(excluded)]
    if packs:
        check_files(folder / "characters", "characters.sha256")
    collections += [character_frames(folder / "characters" / name, name) for name in packs]
    return collections + ([] if "drawn".startswith(excluded) else drawn(seed))


def published_tiles(folder: Path, seed: int) -> list[Sprites]:
    """Return a collection for each top folder of the tiles, and figures composed of the tiles."""
    check_files(folder, "tiles.sha256")
    *_, read = import_sprites([folder], ImportOptions(size=TILE_SIZE))
    assert isinstance(read, SpritesImported)
    tops = np.array([name.split("/")[0] for name in read.sprites.names])
    collections = []
    for top in np.unique(tops).tolist():
        sprites = read.sprites.take(np.flatnonzero(tops == top))
        known, labels = np.unique(sprites.labels, return_inverse=True)
        names = tuple(sprites.class_names[label] for label in known)
        collections.append(as_collection(f"{TILES} {top}", sprites.rgba, labels.astype(np.int64), names))
    return [*collections, composed_figures(folder / "player", np.random.default_rng(seed))]


def composed_figures(folder: Path, rng: np.random.Generator) -> Sprites:
    """Return figures of random layers: a body with clothes, hair and weapons."""
    files = {layer: sorted((folder / layer).rglob("*.png")) for layer in LAYERS}
    figures = []
    for _ in range(DOLLS):
        figure = Image.new("RGBA", (TILE_SIZE, TILE_SIZE))
        for layer, paths in files.items():
            chance, number = rng.random(), rng.integers(len(paths))
            if layer == "base" or chance < LAYER_SHARE:
                with Image.open(paths[number]) as image:
                    figure.alpha_composite(image.convert("RGBA"))
        figures.append(np.asarray(figure))
    return as_collection(f"{TILES} figures", np.stack(figures), np.zeros(DOLLS, np.int64), ("figures",))


def character_frames(folder: Path, title: str) -> Sprites:
    """Return the different frames of a pack of characters, with the view as the class."""
    pack = characters_in(folder, COLLECTIONS[title])
    views = np.arange(len(ROWS)).repeat(pack.present.shape[1] // len(ROWS))
    labels = np.broadcast_to(views, pack.present.shape)[pack.present]
    return _different(title, pack.cells[pack.present], labels, ROWS)


def drawn(seed: int) -> list[Sprites]:
    """Return the drawn collections: one in the demo's style for each size, the others in random styles."""
    collections = []
    for size, count in DRAWN.items():
        for number in range(count):
            rng = np.random.default_rng([seed, size, number])
            style = random_style(rng) if number else Style(COLOURS)
            collections.append(drawn_collection(f"drawn {size} px {number}", rng, style, size))
    for number in range(DRAWN_CHARACTERS):
        rng = np.random.default_rng([seed, number])
        style = random_style(rng) if number else Style(COLOURS)
        collections.append(drawn_characters(f"drawn characters {number}", style))
    return collections


def drawn_collection(title: str, rng: np.random.Generator, style: Style, size: int) -> Sprites:
    """Return drawings of several random kinds in one style."""
    known = kinds_of(size)
    names = tuple(rng.choice(sorted(known), int(rng.integers(*KINDS_DRAWN, endpoint=True)), replace=False).tolist())
    labels = np.arange(A_COLLECTION) % len(names)
    rgba = np.stack([_placed(style.paint(known[names[label]](rng), rng), size, rng) for label in labels])
    return as_collection(title, rgba, labels.astype(np.int64), names)


def kinds_of(size: int) -> dict[str, Draw]:
    """Return the kinds that fit a canvas of this size, by name."""
    known: dict[str, Draw] = {name: lambda rng, draw=draw: draw(rng, size) for name, draw in KINDS.items()}  # type: ignore[misc]
    for name, (own_size, draw) in CLASSES.items():
        if own_size <= size <= 2 * own_size:
            known[name] = lambda rng, draw=draw: _clean(rng, draw)  # type: ignore[misc]
    return known


def _clean(rng: np.random.Generator, draw: Draw) -> Canvas:
    """Draw until the drawing passes the demo's checks."""
    while True:
        canvas = draw(rng)
        pixels = limit_colours(canvas.rgba())
        if pixels is not None and is_clean(pixels):
            return canvas


def _placed(pixels: Pixels, size: int, rng: np.random.Generator) -> Pixels:
    """Return pixels somewhere on a canvas, uint8 [size, size, 4]."""
    own = len(pixels)
    canvas = np.zeros((size, size, 4), np.uint8)
    y, x = rng.integers(0, size - own + 1, 2)
    canvas[y : y + own, x : x + own] = pixels
    return canvas


def drawn_characters(title: str, style: Style) -> Sprites:
    """Return the different frames of the demo characters in a style, with the view as the class."""
    frames, labels = list[Pixels](), list[int]()
    for sheet in characters(style.colours[:, style.tones]).values():
        size = len(sheet) // len(ROWS)
        for row in range(len(ROWS)):
            cells = sheet[row * size : (row + 1) * size].reshape(size, -1, size, 4).swapaxes(0, 1)
            frames += [*cells]
            labels += [row] * len(cells)
    return _different(title, np.stack(frames), np.array(labels), ROWS)


def _different(title: str, rgba: Pixels, labels: NDArray[np.int64], class_names: Iterable[str]) -> Sprites:
    """Return a collection without repeated sprites."""
    first = np.sort(np.unique(rgba.reshape(len(rgba), -1), axis=0, return_index=True)[1])
    return as_collection(title, rgba[first], labels[first], tuple(class_names))


def as_collection(title: str, rgba: Pixels, labels: NDArray[np.int64], class_names: tuple[str, ...]) -> Sprites:
    """Return sprites with numbered names."""
    return Sprites(rgba, labels, class_names, tuple(f"{title} {number}" for number in range(len(rgba))), title)
