"""Maps of terrains: small repeating maps with every tile of a set, and random maps."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Terrains = NDArray[np.int8]  # [H, W], index of a terrain

# Terrains at the corners of 4 x 4 tiles: a torus with all 16 combinations of four corners.
_TWO_TERRAINS = np.array([[1, 1, 1, 0], [1, 1, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0]], np.int8)
# Cells of a terrain ('#') on a ground: a torus with all 47 blob tiles and all 16 combinations of 2 x 2 cells.
_BLOB_ROWS = (
    "....#.#.##", "..#.##..#.", ".#.#######", "####.####.", ".#.####.##",
    ".#####.#.#", "##.#######", "####.#.##.", "..#.######", "#.########",
)  # fmt: skip
_SMOOTHINGS = 2  # passes over a random map; more passes give larger areas


def corner_torus(terrain_count: int) -> Terrains:
    """Return the terrains at corners as a repeating map with every combination of four corners.

    For 2 and 3 terrains, a combination occurs once. For 4 terrains, the map has a surplus row.
    """
    if terrain_count == 2:
        return _TWO_TERRAINS
    sequence = _pair_sequence(terrain_count)
    # Shift rows further and further: the shifts put every pair of corners above every pair (Cock 1988).
    shifts = list(range(len(sequence)))
    if terrain_count % 2 == 0:
        shifts.append(len(sequence) // 2)  # all shifts together must be whole turns: the map repeats
    return np.stack([np.roll(sequence, -sum(shifts[:row])) for row in range(len(shifts))])


def blob_torus() -> Terrains:
    """Return a repeating map of cells, 0 on a ground of 1, with every blob tile."""
    return np.array([[0 if cell == "#" else 1 for cell in row] for row in _BLOB_ROWS], np.int8)


def random_map(terrain_count: int, rows: int, columns: int, seed: int) -> Terrains:
    """Return a random map with connected areas of terrain: int8 [rows, columns]."""
    heights = np.random.default_rng(seed).normal(size=(terrain_count, rows, columns))
    for _, axis in itertools.product(range(_SMOOTHINGS), (1, 2)):
        heights = heights + np.roll(heights, 1, axis) + np.roll(heights, -1, axis)
    return np.asarray(heights.argmax(0), np.int8)


def _pair_sequence(count: int) -> Terrains:
    """Return a repeating sequence of terrains with every ordered pair of neighbours: int8 [count ** 2]."""
    found, edges = list[int](), {terrain: list(range(count)) for terrain in range(count)}
    path = [0]
    while path:  # an Euler circuit (Hierholzer)
        if edges[path[-1]]:
            path.append(edges[path[-1]].pop())
        else:
            found.append(path.pop())
    return np.array(found[1:], np.int8)
