"""Make folders of large sprites, to compare trainings on sprites of 32, 64 and 96 pixels.

    python -m tests.bench.large_sprites SPRITES OUT
    studio train OUT/demo64 --from nothing --levels 4 --width 32 --steps 660 --threads 1 --out RUN
    studio evaluate RUN --checkpoint last --count 512

SPRITES: a folder with 'dcss' and 'characters'. OUT/demo32, demo64 and demo96 hold 160 drawings of each kind that the
demo generator draws at any size. OUT/compo64 and compo96 hold scenes: monsters, items or small figures of 32 pixels,
side by side on a larger canvas.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.bench.tools import command_line

sys.path.append(str(Path(__file__).resolve().parents[2] / "assets" / "demo"))
from demo_art.palette import COLOURS
from demo_art.sized import KINDS
from demo_art.styles import Style

Pixels = NDArray[np.uint8]  # [S, S, 4]
A_KIND, SCENES = 160, 1600
CELL = 32  # pixels of a figure
LEAST_PIXELS = 40  # visible pixels of a figure


def draw_demo(out: Path, size: int) -> None:
    """Write drawings of all kinds, in the demo's style."""
    for kind in sorted(KINDS):
        for number in range(A_KIND):
            rng = _rng(size, number, kind)
            _save(out / kind / f"{number:03}.png", Style(COLOURS).paint(KINDS[kind](rng, size), rng))


def compose_scenes(out: Path, pools: dict[str, list[Pixels]], size: int) -> None:
    """Write scenes of figures; each scene has figures of one pool and fills half of its cells or more."""
    cells = [(y, x) for y in range(0, size, CELL) for x in range(0, size, CELL)]
    for name, pool in pools.items():
        for number in range(SCENES // len(pools)):
            rng, scene = _rng(size, number, name), Image.new("RGBA", (size, size))
            count = rng.integers(len(cells) // 2, len(cells) + 1)
            for place in sorted(rng.choice(len(cells), count, replace=False)):
                y, x = cells[place]
                scene.alpha_composite(Image.fromarray(pool[rng.integers(len(pool))]), (x, y))
            _save(out / name / f"{number:03}.png", np.asarray(scene))


def figures(sprites: Path) -> dict[str, list[Pixels]]:
    """Return the monsters, the items and the small figures, by name of the pool."""
    tiles = {name: _read(sorted((sprites / "dcss" / name).rglob("*.png"))) for name in ("mon", "item")}
    pools = {name: [tile for tile in found if tile.shape == (CELL, CELL, 4)] for name, found in tiles.items()}
    sheets = _read(sorted((sprites / "characters" / "puny-characters").glob("*.png")))
    cells = [
        sheet[y : y + CELL, x : x + CELL]
        for sheet in sheets
        for y in range(0, sheet.shape[0] - CELL + 1, CELL)
        for x in range(0, sheet.shape[1] - CELL + 1, CELL)
    ]
    return {**pools, "puny": [cell for cell in cells if (cell[..., 3] > 0).sum() > LEAST_PIXELS]}


def _rng(size: int, number: int, name: str) -> np.random.Generator:
    return np.random.default_rng([size, number, sum(map(ord, name))])


def _read(paths: Sequence[Path]) -> list[Pixels]:
    return [np.asarray(Image.open(path).convert("RGBA")) for path in paths]


def _save(path: Path, pixels: Pixels) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def main() -> None:
    """Write all folders."""
    parser = command_line(__doc__)
    parser.add_argument("sprites", type=Path)
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    for size in (32, 64, 96):
        draw_demo(chosen.out / f"demo{size}", size)
    pools = figures(chosen.sprites)
    for size in (64, 96):
        compose_scenes(chosen.out / f"compo{size}", pools, size)


if __name__ == "__main__":
    main()
