"""Godot tile sets: godot-parser reads them, and the terrains alone choose the studio's tiles. Godot is untried."""

from __future__ import annotations

import re
from pathlib import Path

import godot_parser
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from studio.data.tiles.tile_set import ANY, TileSet
from studio.exports.sprites.formats import sprite_exports
from studio.exports.sprites.godot_tiles import outlines
from studio.exports.sprites.tile_sheet import TileSheet
from tests.exports.sprites.tile_sets import SETS, SIZE, as_sprites, cut, joined, sample, save

each_set = pytest.mark.parametrize("tiles", SETS.values(), ids=SETS.keys())
PLACES = ("top_left_corner", "top_side", "top_right_corner", "left_side", "", "right_side", "bottom_left_corner",
          "bottom_side", "bottom_right_corner")  # fmt: skip
MODES = {0: range(9), 1: (0, 2, 6, 8), 2: (1, 3, 4, 5, 7)}  # of Godot, by number: the places that count


def shared(mode: int, terrain_map: NDArray[np.int8], number: dict[int, int]) -> NDArray[np.int64]:
    """The terrains that Godot wants at the places of each cell: of two, the second where cells differ."""
    named = np.vectorize(number.get)(terrain_map)
    if mode == 1:
        return np.stack([named[:-1, :-1], named[:-1, 1:], named[1:, :-1], named[1:, 1:]], -1)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(terrain_map, 1, mode="edge"), (3, 3))
    own = terrain_map
    wanted = np.empty((*own.shape, 9), int)
    for place in range(9):
        row, column = divmod(place, 3)
        meet = around[:, :, min(row, 1) : max(row, 1) + 1, min(column, 1) : max(column, 1) + 1].reshape(*own.shape, -1)
        wanted[..., place] = np.where((meet == own[..., None]).all(-1), own, 1 if 1 in number else 0)
    return np.asarray(np.vectorize(number.get)(wanted)[..., list(MODES[mode])])


@each_set
def test_the_terrains_alone_choose_the_same_tiles(tiles: TileSet, tmp_path: Path) -> None:
    main = save("godot_tiles", tiles, tmp_path)
    parsed = godot_parser.load(str(main))
    (atlas,), resource = parsed.get_sub_resources(), parsed.find_section("resource")
    assert resource is not None
    assert parsed.get_ext_resources()[0].path == "art.png" and list(resource.properties)[-2] == "sources/0"
    names = [value for key, value in resource.properties.items() if re.fullmatch(r"terrain_set_0/terrain_\d/name", key)]
    assert names == [name for name in tiles.terrains if name]
    found, columns = (
        dict[tuple[int, ...], int](),
        1 + max(int(key.split(":")[0]) for key in atlas.properties if ":" in key),
    )
    mode = resource["terrain_set_0/mode"]
    for key in atlas.properties:
        if re.fullmatch(r"\d+:\d+/0", key):
            x, y = map(int, key[:-2].split(":"))
            bits = [atlas.properties.get(f"{key}/terrains_peering_bit/{bit}", -1) for bit in PLACES]
            bits[4] = atlas.properties.get(f"{key}/terrain", -1)
            found.setdefault(tuple(bits[place] for place in MODES[mode]), x + y * columns)
    if tiles is SETS["variants"]:
        assert atlas["1:0/0/probability"] == pytest.approx(1 / 3, abs=1e-5)
        return
    terrain_map, _ = TileSheet.of(as_sprites(tiles)).sample()
    number = {old: names.index(name) if name else ANY for old, name in enumerate(tiles.terrains)}
    index = np.array([[found[tuple(cell)] for cell in row] for row in shared(mode, terrain_map, number).tolist()])
    assert (joined(cut(tmp_path / "art.png", SIZE, columns)[index]) == sample(tiles)).all()


def test_opaque_pixels_collide(tmp_path: Path) -> None:
    tiles = SETS["corners on nothing"]
    parsed = godot_parser.load(str(save("godot_collisions", tiles, tmp_path)))
    (atlas,) = parsed.get_sub_resources()
    resource = parsed.find_section("resource")
    assert resource is not None and "physics_layer_0/collision_layer" in resource.properties
    shapes = [key for key in atlas.properties if key.startswith("0:0/0/physics_layer_0/polygon_")]
    assert shapes and not any(key.startswith("3:3/0/physics") for key in atlas.properties)  # the tile of nothing
    assert sprite_exports()["godot_collisions"].notes(as_sprites(tiles)) == ()
    opaque = tiles.tiles.copy()
    opaque[..., 3] = 255
    whole = TileSet(opaque, tiles.terrains, tiles.kind, tiles.places, tiles.weights)
    assert "whole" in sprite_exports()["godot_collisions"].notes(as_sprites(whole))[0]


def test_an_untouched_file_verifies(tmp_path: Path) -> None:
    data = save("godot_tiles", SETS["blob"], tmp_path).read_bytes()
    assert "model: trial" in sprite_exports()["godot_tiles"].note_in(data)


def test_the_outline_of_a_square_has_four_points() -> None:
    solid = np.zeros((5, 6), bool)
    solid[1:4, 2:5] = True
    assert outlines(solid) == [[(2, 1), (5, 1), (5, 4), (2, 4)]]
    assert outlines(~solid) == [[(0, 0), (6, 0), (6, 5), (0, 5)]]  # the hole is filled
    assert outlines(np.zeros((4, 4), bool)) == []


def test_outlines_cover_noise_and_never_touch_themselves() -> None:
    solid = np.random.default_rng(5).random((12, 12)) < 0.5
    scale, shapes = 4, outlines(solid)
    picture = Image.new("1", (12 * scale, 12 * scale))
    for shape in shapes:
        assert len(set(shape)) == len(shape) >= 4
        ImageDraw.Draw(picture).polygon([(x * scale, y * scale) for x, y in shape], fill=1)
    covered = np.array(picture)[scale // 2 :: scale, scale // 2 :: scale]  # the centres of the pixels
    assert covered[solid].all()
    holes = covered & ~solid
    flooded = np.pad(~solid, 1, constant_values=True)
    outside = np.zeros_like(flooded)
    outside[0, 0] = True
    for _ in range(flooded.size):
        around = np.pad(outside, 1)
        outside = flooded & (outside | around[:-2, 1:-1] | around[2:, 1:-1] | around[1:-1, :-2] | around[1:-1, 2:])
    assert not (holes & outside[1:-1, 1:-1]).any()
