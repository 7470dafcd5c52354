"""The random map of a tile set: a small picture, another map, and a large view of the whole picture."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from studio.app.pages.generate.tile_map import TileMap
from studio.app.widgets.sprites.large_view import LargeView
from studio.data.tiles.layout import TileSetSpec
from tests.app.conftest import click
from tests.app.widgets.tools import shown


def test_the_map_is_laid_out_anew_and_shown_large(qtbot: QtBot) -> None:
    spec = TileSetSpec("dual-grid", ("grass", "sand", "transparent"))
    tiles = np.random.default_rng(0).integers(0, 256, (spec.tile_count, 8, 8, 4), np.uint8)
    tile_map = shown(qtbot, TileMap(128), 200, 200)
    tile_map.show_tile_set(spec.tile_set(tiles))
    first = tile_map.picture.rgba
    assert first.shape == (16 * 8, 24 * 8, 4)
    QTest.mouseDClick(tile_map.picture, Qt.MouseButton.LeftButton)
    view = tile_map.findChild(LargeView)
    assert view is not None and (view.windowTitle(), view.about.text()) == ("Map", "24 × 16 cells · 192 × 128 pixels")
    assert view.previous.isHidden() and view.next.isHidden()
    (again,) = view.buttons
    click(again)
    assert tile_map.picture.rgba.shape == first.shape and not np.array_equal(tile_map.picture.rgba, first)
