"""The import decides which pictures of a folder are sheets."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.data.making import Pixels, imported, notes, sprite, write


def wall(rng: np.random.Generator) -> Pixels:
    """Draw courses of bricks in random sizes: the gaps between bricks look like the borders of tiles."""
    width, height = int(rng.choice([16, 32])), int(rng.choice([8, 16, 32]))
    y, x = np.mgrid[:64, :64]
    is_gap = (y % height >= height - 2) | (x % width >= width - 2)
    rgba = np.zeros((64, 64, 4), np.uint8)
    rgba[..., 3] = 255
    rgba[~is_gap, :3] = rng.integers(60, 90, (64, 64, 1))[~is_gap] + [90, 20, 0]
    return rgba


def test_drawings_of_bricks_among_single_sprites_are_not_offered_for_slicing(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for number in range(12):
        write(tmp_path / "art" / f"wall{number}.png", wall(rng))
    assert len(imported(tmp_path).sheets) > 3
    for number in range(60):
        write(tmp_path / "art" / f"thing{number}.png", sprite(number, 64))
    found = imported(tmp_path)
    assert len(found.sprites) == 72 and not found.sheets and not notes(found, "looks like a sheet")
    sliced = imported(tmp_path, sheets="grid")  # the user calls the walls sheets
    assert len(sliced.sheets) > 3
