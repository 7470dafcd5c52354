"""Given tiles stay unchanged and fix the borders of missing tiles; tiles in wrong places are refused."""

from __future__ import annotations

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.data.tiles.given import FREE, fix_given, name_places, place_tiles, sketch_tiles
from studio.data.tiles.layout import TileSetSpec

_SIZE = 16
_COLOURS = np.array([[40, 150, 50], [40, 70, 200], [220, 200, 120]], np.uint8)
_CORNERS = TileSetSpec("corner", ("nature/grass", "water"))
_BLOB = TileSetSpec("blob", ("grass", "water"))


def _painted(spec: TileSetSpec, seed: int = 0) -> Rgba:
    """Paint a set as artists do: terrains with a different texture in each tile, and without equal borders."""
    layout = spec.layout(_SIZE)
    terrain = layout.split(layout.shares.transpose(1, 2, 0)[None]).argmax(-1)
    texture = np.random.default_rng(seed).integers(-25, 26, (*terrain.shape, 1))
    rgb = np.clip(_COLOURS[terrain].astype(int) + texture, 0, 255).astype(np.uint8)
    return np.concatenate([rgb, np.full((*terrain.shape, 1), 255, np.uint8)], -1)


def _begun(spec: TileSetSpec, numbers: list[int]) -> Rgba:
    painted = _painted(spec)
    begun = np.zeros_like(painted)
    begun[numbers] = painted[numbers]
    return begun


@pytest.mark.parametrize(("spec", "numbers"), [(_CORNERS, [0, 3, 5, 9, 10, 14]), (_BLOB, [0, 7, 20, 46, 47])])
def test_given_tiles_stay_and_fix_the_borders_of_other_tiles(spec: TileSetSpec, numbers: list[int]) -> None:
    begun, layout = _begun(spec, numbers), spec.layout(_SIZE)
    fixed, keep = fix_given(spec, begun)
    np.testing.assert_array_equal(fixed[numbers], begun[numbers])
    missing = np.setdiff1d(np.arange(spec.tile_count), numbers)
    assert keep[numbers].all() and keep[missing].any() and not keep[missing].all((1, 2)).any()
    drawn = layout.apply_ties(np.where(keep[..., None], fixed, _painted(spec, 1)), keep)
    np.testing.assert_array_equal(drawn[numbers], begun[numbers])
    assert layout.fits(drawn, keep) and not layout.fits(drawn)
    both = missing[:, None], missing
    alike = (layout.places[both[0]][..., :3] == layout.places[both[1]][..., :3]).all(-1)
    assert (drawn[both[0], :1] == drawn[both[1], :1]).all((2, 3, 4))[alike & (spec.kind == "corner")].all()


def test_borders_come_from_the_tile_with_the_fewest_terrains() -> None:
    plain = int(np.flatnonzero((_CORNERS.layout(_SIZE).corners == 0).all(1))[0])
    every = [*range(15)]
    fixed, _ = fix_given(_CORNERS, _begun(_CORNERS, every if plain in every else [*every, plain][1:]))
    corners = _CORNERS.layout(_SIZE).corners
    missing = int(np.setdiff1d(np.arange(16), np.flatnonzero(fixed[..., 3].all((1, 2))))[0])
    corner = int(np.flatnonzero(corners[missing] == 0)[0])
    part = (slice(None, 2), slice(-2, None))[corner // 2], (slice(None, 2), slice(-2, None))[corner % 2]
    np.testing.assert_array_equal(fixed[missing][part], fixed[plain][part])


def test_a_tile_with_wrong_terrains_is_refused() -> None:
    painted, corners = _painted(_CORNERS), _CORNERS.layout(_SIZE).corners
    (grass,), (water,) = (np.flatnonzero((corners == terrain).all(1)) for terrain in (0, 1))
    mixed = int(np.flatnonzero(corners.sum(1) == 1)[0])
    begun = np.zeros_like(painted)
    begun[[grass, water]], begun[mixed] = painted[[grass, water]], painted[water]
    with pytest.raises(UsageError, match=rf"Tile {mixed + 1} shows water at its .* corner, but .* has grass there"):
        fix_given(_CORNERS, begun)
    begun[water], begun[mixed] = 0, painted[mixed]
    fix_given(_CORNERS, begun)
    swapped = _begun(_BLOB, [*range(48)])
    swapped[[10, 46]] = swapped[[47, 10]]
    swapped[30] = 0
    with pytest.raises(UsageError, match="shows"):
        fix_given(_BLOB, swapped)


def test_unsuitable_sets_are_refused() -> None:
    tiles = _painted(_CORNERS)
    for given, message in (
        (tiles[:3], "has 3 tiles"),
        (tiles, "All tiles"),
        (np.zeros_like(tiles), "No tile is given"),
    ):
        with pytest.raises(UsageError, match=message):
            fix_given(_CORNERS, given)


def test_images_are_tiles_or_sheets_of_the_set() -> None:
    painted, none = _painted(_CORNERS), np.zeros_like(_painted(_CORNERS))
    sheet = np.ascontiguousarray(painted.reshape(4, 4, _SIZE, _SIZE, 4).swapaxes(1, 2)).reshape(64, 64, 4)
    np.testing.assert_array_equal(place_tiles(_CORNERS, none, [("all.png", sheet)], 3), painted)
    found = place_tiles(_CORNERS, none, [("a", painted[0]), ("b", painted[1])], 14)
    np.testing.assert_array_equal(found[14:], painted[:2])
    found = place_tiles(_CORNERS, found, [("c", painted[2])], FREE)
    np.testing.assert_array_equal(found[0], painted[2])
    for images, target in (([("a", painted[0])] * 2, 15), ([("a", painted[0, :3])], 0)):
        with pytest.raises(UsageError):
            place_tiles(_CORNERS, none, images, target)


def test_sketches_and_names_show_the_terrains() -> None:
    colours = np.array([[1, 2, 3, 9], [4, 5, 6, 9]], np.uint8)
    sketches, names = sketch_tiles(_CORNERS, _SIZE, colours), name_places(_CORNERS, _SIZE)
    number = names.index(next(name for name in names if name.endswith(": grass water / grass water")))
    assert (sketches[number][:, 0] == colours[0]).all() and (sketches[number][:, -1] == colours[1]).all()
    assert name_places(_BLOB, _SIZE)[-1] == "Tile 48: any any any / any water any / any any any"
