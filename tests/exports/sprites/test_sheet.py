"""The JSON beside the sheet of a tile set: the files alone are enough to choose the tiles of a map."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from studio.data.tiles.tile_set import TileSet
from studio.exports.sprites.tile_sheet import TileSheet
from tests.exports.sprites.tile_sets import SETS, as_sprites, joined, pixels, sample, save


@pytest.mark.parametrize("tiles", SETS.values(), ids=SETS.keys())
def test_the_json_alone_chooses_the_same_tiles(tiles: TileSet, tmp_path: Path) -> None:
    main = save("sheet", tiles, tmp_path)
    sheet, about = pixels(main), json.loads(main.with_suffix(".json").read_text())
    told = about["meta"]["tileSet"]
    assert told["terrains"] == list(tiles.terrains) and told["kind"] == tiles.kind
    boxes = [frame["frame"] for frame in about["frames"]]
    cells = np.array([sheet[box["y"] : box["y"] + box["h"], box["x"] : box["x"] + box["w"]] for box in boxes])
    terrain_map, ours = TileSheet.of(as_sprites(tiles)).sample()
    by_corners = told["kind"] in ("corner", "dual-grid")
    around = terrain_map if by_corners else np.pad(terrain_map, 1, mode="edge")
    shape = (2, 2) if by_corners else (3, 3)
    seen = np.lib.stride_tricks.sliding_window_view(around, shape).reshape(*ours.shape, -1)
    places = np.array(told["places"])[:, [0, 2, 6, 8] if by_corners else slice(None)]
    fits = ((places == seen[:, :, None]) | (places == -1)).all(-1)  # [H, W, N]
    totals = np.where(fits, np.array(told["weights"]), 0).sum(-1)
    np.testing.assert_allclose(totals, 1, atol=1e-5)  # the weights of all fitting tiles
    if tiles is SETS["variants"]:
        assert fits[np.arange(len(ours))[:, None], np.arange(ours.shape[1]), ours].all()
    else:
        assert (joined(cells[fits.argmax(-1)]) == sample(tiles)).all()
