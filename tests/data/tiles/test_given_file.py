"""Given tiles survive a session; damaged files are refused."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from studio.data.tiles.given_file import GivenSets, given_from_bytes, given_to_bytes
from studio.data.tiles.layout import TileSetSpec

_SIZE = 8


def given_sets() -> GivenSets:
    """Two sets with some tiles; the second has two variants."""
    grass, land = TileSetSpec("corner", ("nature/grass", "transparent")), TileSetSpec("blob", ("ländle", "water"))
    sets = {(spec, _SIZE): np.zeros((count, _SIZE, _SIZE, 4), np.uint8) for spec, count in ((grass, 16), (land, 96))}
    for number, tiles in enumerate(sets.values()):
        tiles[3 + number] = np.random.default_rng(number).integers(1, 256, tiles.shape[1:])
    return sets


def test_given_tiles_survive_storing() -> None:
    sets = given_sets()
    read = given_from_bytes(given_to_bytes(sets))
    assert [*read] == [*sets]
    for key, tiles in sets.items():
        np.testing.assert_array_equal(read[key], tiles)


def packed(about: object, *tiles: np.ndarray) -> bytes:
    """Return an npz file in the format of given tiles."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {str(number): each for number, each in enumerate(tiles)}
    np.savez(buffer, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)
    return buffer.getvalue()


_SET = {"kind": "corner", "terrains": ["a", "b"], "variants": 1}
_TILES = np.ones((16, _SIZE, _SIZE, 4), np.uint8)


@pytest.mark.parametrize(
    ("about", "tiles"),
    [
        ({}, [_TILES]),
        ([{**_SET, "kind": "round"}], [_TILES]),
        ([{**_SET, "terrains": ["a", "a"]}], [_TILES]),
        ([{**_SET, "variants": 100}], [_TILES]),
        ([_SET, _SET], [_TILES]),
        ([_SET], [_TILES[:15]]),
        ([_SET], [_TILES[:0]]),
        ([_SET], [_TILES[:, :3]]),
        ([_SET], [_TILES[..., 0]]),
        ([_SET], [_TILES.astype(np.float32)]),
        ([_SET], [_TILES * 0]),
        ([_SET], [np.array(1, np.uint8)]),
        ([_SET], [np.array([None])]),
    ],
)
def test_files_without_valid_tile_sets_are_refused(about: object, tiles: list[np.ndarray]) -> None:
    assert given_from_bytes(packed([_SET], _TILES))
    with pytest.raises(ValueError, match=r"."):
        given_from_bytes(packed(about, *tiles))


def test_damaged_bytes_are_refused_or_read_as_tiles() -> None:
    data, rng = given_to_bytes(given_sets()), np.random.default_rng(0)
    for damaged in (b"", b"not a file", data[:-30], data[: len(data) // 2]):
        with pytest.raises(ValueError, match=r"."):
            given_from_bytes(damaged)
    for _ in range(300):
        changed = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            changed[place] ^= 1 << int(rng.integers(8))
        try:
            read = given_from_bytes(bytes(changed))
        except ValueError:
            continue
        assert all(tiles.dtype == np.uint8 for tiles in read.values())
