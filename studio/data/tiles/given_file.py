"""Write the given tiles of tile sets as an npz file without pickle, and read the file in the next session."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from studio.core import records
from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.npz import load_arrays
from studio.data.tiles.layout import MOST_TILES, TileSetSpec

# Given tiles, uint8 [N, S, S, 4], 0 where missing, by set and side of a tile. The set in the key has a single variant;
# the array contains the tiles of all variants.
GivenSets = Mapping[tuple[TileSetSpec, int], Rgba]
_ABOUT = "about"  # name of the array with the sets as JSON; array '0' has the tiles of the first set


def given_to_bytes(sets: GivenSets) -> bytes:
    """Encode the given tiles of several sets as an npz file."""
    about = json.dumps([dataclasses.asdict(spec) for spec, _ in sets]).encode()
    arrays: dict[str, Any] = {str(number): given for number, given in enumerate(sets.values())}
    arrays[_ABOUT] = np.frombuffer(about, np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def given_from_bytes(data: bytes) -> GivenSets:
    """Decode the output of `given_to_bytes`. Raises ValueError for damaged data."""
    arrays = load_arrays(data)
    try:
        specs = records.parse(arrays[_ABOUT].tobytes(), tuple[TileSetSpec, ...])
        tiles = [arrays[str(number)] for number in range(len(specs))]
    except (KeyError, UsageError) as error:
        raise ValueError("no npz file of given tiles") from error
    for spec, given in zip(specs, tiles, strict=True):
        size, counts = given.shape[1:2], range(spec.tile_count, MOST_TILES + 1, spec.tile_count)
        is_whole = given.shape == (*given.shape[:1], *size, *size, 4) and len(given) in counts
        if given.dtype != np.uint8 or spec.variants != 1 or not is_whole or not given[..., 3].any():
            raise ValueError("the tiles fit no tile set")
    return {(spec, given.shape[1]): given for spec, given in zip(specs, tiles, strict=True)}
