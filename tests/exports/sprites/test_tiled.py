"""Tiled tilesets: pytiled-parser and Tiled itself read them, and the map they draw is the studio's to the pixel."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import pytiled_parser

from studio.core.arrays import Rgba
from studio.data.tiles.tile_set import TileSet
from studio.exports.sprites.tile_sheet import TileSheet
from tests.exports.sprites.tile_sets import SETS, as_sprites, cut, joined, pixels, sample, save

each_set = pytest.mark.parametrize("tiles", SETS.values(), ids=SETS.keys())


def drawn(sample_map: Path) -> Rgba:
    """The picture of a map as pytiled-parser describes it."""
    found = pytiled_parser.parse_map(sample_map)
    (tileset,), (layer,) = found.tilesets.values(), found.layers
    assert isinstance(layer, pytiled_parser.TileLayer) and layer.data and tileset.image
    cells = cut(tileset.image, tileset.tile_width, tileset.columns)
    empty = np.zeros_like(cells[0])
    return joined(np.array([[cells[gid - 1] if gid else empty for gid in row] for row in layer.data]))


@each_set
def test_the_map_is_assembled_from_the_files_alone(tiles: TileSet, tmp_path: Path) -> None:
    main = save("tiled", tiles, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"art.tsx", "art.png", "art.tmx"}
    assert (drawn(main.with_suffix(".tmx")) == sample(tiles)).all()


@each_set
def test_the_terrains_alone_choose_the_same_tiles(tiles: TileSet, tmp_path: Path) -> None:
    """Points where tiles meet have equal terrains on both sides, and every terrain is the one of the map."""
    tileset = pytiled_parser.parse_map(save("tiled", tiles, tmp_path).with_suffix(".tmx")).tilesets[1]
    (terrains,) = tileset.wang_sets or []
    assert [colour.name for colour in terrains.wang_colors] == [name for name in tiles.terrains if name]
    assert terrains.wang_type == {"blob": "mixed", "edge": "edge"}.get(tiles.kind, "corner")
    _, index = TileSheet.of(as_sprites(tiles)).sample()
    ids = np.zeros((len(tiles.tiles), 8), int)
    for tile in terrains.wang_tiles.values():
        ids[tile.tile_id] = tile.wang_id
    points, is_known = ids[index], (ids.max(1) > 0)[index] | ("" in tiles.terrains)  # from the upper side clockwise
    assert is_known.mean() > 0.9
    for first, second in ((0, 4), (1, 3), (7, 5)):
        both = is_known[1:] & is_known[:-1]
        assert (points[1:, :, first] == points[:-1, :, second])[both].all()
    for first, second in ((2, 6), (1, 7), (3, 5)):
        both = is_known[:, 1:] & is_known[:, :-1]
        assert (points[:, :-1, first] == points[:, 1:, second])[both].all()


def test_a_tile_alone_is_no_variant_of_the_terrain_around_it(tmp_path: Path) -> None:
    tiles = SETS["blob"]
    (ground,) = np.flatnonzero(tiles.places[:, 4] == 1)
    root = ElementTree.parse(save("tiled", tiles, tmp_path)).getroot()
    of_water = [tile for tile in root.iter("wangtile") if set(tile.get("wangid", "").split(",")) == {"2"}]
    assert [tile.get("tileid") for tile in of_water] == [str(ground)]


def test_variants_have_probabilities(tmp_path: Path) -> None:
    root = ElementTree.parse(save("tiled", SETS["variants"], tmp_path)).getroot()
    chances = [float(tile.get("probability", 1)) for tile in root.iter("tile")]
    assert chances == pytest.approx([1 / 6, 2 / 6, 3 / 6] * 16, abs=1e-5)


def test_terrains_have_the_mean_colour_of_their_pixels(tmp_path: Path) -> None:
    tiles = SETS["corners on nothing"]
    (grass,) = np.flatnonzero((tiles.places[:, [0, 2, 6, 8]] == 0).all(1))
    opaque = tiles.tiles[grass][tiles.tiles[grass][..., 3] > 0, :3]
    root = ElementTree.parse(save("tiled", tiles, tmp_path)).getroot()
    (colour,) = [bytes.fromhex(each.get("color", "")[1:]) for each in root.iter("wangcolor")]
    np.testing.assert_allclose(list(colour), opaque.mean(0), atol=0.51)


@pytest.mark.slow
@each_set
def test_tiled_draws_the_same_map(tiles: TileSet, tmp_path: Path) -> None:
    picture = tmp_path / "drawn.png"
    sample_map = save("tiled", tiles, tmp_path).with_suffix(".tmx")
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_RUNTIME_DIR": str(tmp_path)}
    subprocess.run(["tmxrasterizer", sample_map, picture], check=True, env=environment, capture_output=True)
    assert (pixels(picture) == sample(tiles)).all()
