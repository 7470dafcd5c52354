"""LDtk projects: ldtkpy reads them, and the rules alone choose the studio's tiles in the sample level."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ldtkpy import api as ldtkpy  # type: ignore[import-untyped]
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.tiles.tile_set import TileSet
from tests.data.making import imported
from tests.exports.sprites.tile_sets import SETS, SIZE, cut, sample, save

each_set = pytest.mark.parametrize("tiles", SETS.values(), ids=SETS.keys())
NOTHING = -1_000_001


def loaded(main: Path) -> ldtkpy.LdtkJSON:
    return ldtkpy.LdtkJSON.from_dict(json.loads(main.read_text()))


def paste(canvas: Rgba, tile: Rgba, x: int, y: int) -> None:
    canvas[y : y + SIZE, x : x + SIZE] = tile


def fits(rule: ldtkpy.AutoLayerRuleDefinition, values: NDArray[np.int64], x: int, y: int) -> bool:
    """Whether a rule applies to a cell, whatever its chance."""
    for place, wanted in enumerate(rule.pattern):
        row, column = y + place // 3 - 1, x + place % 3 - 1
        inside = 0 <= row < len(values) and 0 <= column < values.shape[1]
        value = int(values[row, column]) if inside else rule.out_of_bounds_value
        if wanted and (value is None or value != (0 if wanted == NOTHING else wanted)):
            return False
    return True


@each_set
def test_the_level_and_the_rules_draw_the_same_map(tiles: TileSet, tmp_path: Path) -> None:
    project = loaded(save("ldtk", tiles, tmp_path))
    (level,), (layer,), (sheet,) = project.levels, project.defs.layers, project.defs.tilesets
    assert [value.identifier for value in layer.int_grid_values] == [name for name in tiles.terrains if name]
    (instance,), (group,) = level.layer_instances, layer.auto_rule_groups
    values = np.array(instance.int_grid_csv).reshape(instance.c_hei, instance.c_wid)
    cells = cut(tmp_path / sheet.rel_path, sheet.tile_grid_size, sheet.c_wid)
    stored = np.zeros((level.px_hei, level.px_wid, 4), np.uint8)
    by_rule = {rule.uid: rule for rule in group.rules}
    chosen = dict[tuple[int, int], int]()
    for tile in instance.auto_layer_tiles:
        assert tile.src == [tile.t % sheet.c_wid * SIZE, tile.t // sheet.c_wid * SIZE]
        assert by_rule[tile.d[0]].tile_ids == [tile.t]
        paste(stored, cells[tile.t], *tile.px)
        chosen[divmod(tile.d[1], instance.c_wid)] = tile.t
    ours = sample(tiles)
    start = SIZE // 2 if tiles.kind in ("corner", "dual-grid") else 0
    assert (stored[start : start + len(ours), start : start + ours.shape[1]] == ours).all()
    for (y, x), value in np.ndenumerate(values):
        fitting = [
            rule.tile_ids[0]
            for rule in group.rules
            if value in rule.pattern or 0 in rule.pattern
            if fits(rule, values, x, y)
        ]
        assert chosen.get((y, x)) in (fitting or [None])
        assert len(fitting) <= (3 if tiles is SETS["variants"] else 1)


@each_set
def test_the_import_names_the_terrains_of_each_tile(tiles: TileSet, tmp_path: Path) -> None:
    """The classes are those that the import reads from the terrains of Tiled, where Tiled has terrains."""
    save("ldtk", tiles, tmp_path / "ldtk")
    save("tiled", tiles, tmp_path / "tiled")
    ours, theirs = ({
        name.rpartition("tile ")[2]: sprites.class_names[label]
        for name, label in zip(sprites.names, sprites.labels.tolist(), strict=True)
    } for sprites in (imported(tmp_path / folder).sprites for folder in ("ldtk", "tiled")))  # fmt: skip
    assert len(ours) == len(theirs) == int(tiles.tiles[..., 3].any((1, 2)).sum()) and "art" not in ours.values()
    known = {number: name for number, name in theirs.items() if name != "art"}
    assert known.items() <= ours.items() and len(known) >= len(ours) - 1
    names = [name for name in tiles.terrains if name]
    assert {part for name in ours.values() for part in name.split(" + ")} == {*names}


def test_the_enum_of_the_tags_is_defined(tmp_path: Path) -> None:
    definitions = loaded(save("ldtk", SETS["corners of three"], tmp_path)).defs
    (enum,), (sheet,) = definitions.enums, definitions.tilesets
    assert sheet.tags_source_enum_uid == enum.uid and enum.uid not in {definitions.layers[0].uid, sheet.uid}
    assert [value.id for value in enum.values] == [tag.enum_value_id for tag in sheet.enum_tags]


def test_variants_have_chances(tmp_path: Path) -> None:
    rules = loaded(save("ldtk", SETS["variants"], tmp_path)).defs.layers[0].auto_rule_groups[0].rules
    assert [rule.chance for rule in rules[:3]] == pytest.approx([1 / 6, 2 / 5, 1], abs=1e-5)
    assert json.loads((tmp_path / "art.ldtk").read_text())["defs"]["layers"][0]["autoRuleGroups"][0]["rules"][0][
        "tileRectsIds"
    ] == [[0]]
