from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app.widgets import painting, sprite_grid
from studio.app.widgets.sprite_grid import SpriteGrid
from studio.core.events import Rgba
from tests.conftest import make_sprites


@pytest.fixture
def grid(qtbot: QtBot) -> SpriteGrid:
    made = SpriteGrid()
    qtbot.addWidget(made)
    sprites = make_sprites()
    classes = [sprites.class_names[label] for label in sprites.labels]
    made.set_sprites(sprites.rgba, names=sprites.names, classes=classes)
    made.resize(300, 200)
    made.show()
    qtbot.waitExposed(made)
    return made


def test_sprites_say_their_name_and_class(grid: SpriteGrid) -> None:
    index = grid.view.model().index(13, 0)
    assert index.data(Qt.ItemDataRole.ToolTipRole) == "class1/001.png – class1"


def test_a_filter_leaves_indices_as_they_were(grid: SpriteGrid, qtbot: QtBot) -> None:
    grid.set_visible([20, 5, 7])
    assert grid.visible_count() == 3
    grid.select([7, 20])
    assert grid.selected() == [7, 20]
    with qtbot.waitSignal(grid.activated) as activated:
        grid.view.activated.emit(grid.view.model().index(0, 0))
    assert activated.args == [20]
    grid.set_visible(None)
    assert grid.visible_count() == 24 and grid.selected() == []


def test_a_click_selects(grid: SpriteGrid, qtbot: QtBot) -> None:
    place = grid.view.visualRect(grid.view.model().index(2, 0)).center()
    with qtbot.waitSignal(grid.selection_changed):
        qtbot.mouseClick(grid.view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert grid.selected() == [2]


def test_the_wheel_zooms_with_ctrl_and_within_bounds(grid: SpriteGrid) -> None:
    grid.set_zoom(2)
    before = grid.view.gridSize()

    def turn(delta: int, keys: Qt.KeyboardModifier) -> None:
        event = QWheelEvent(
            QPointF(5, 5), QPointF(5, 5), QPoint(), QPoint(0, delta), Qt.MouseButton.NoButton, keys,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(grid.view.viewport(), event)

    turn(120, Qt.KeyboardModifier.ControlModifier)
    assert grid.zoom() == 3 and grid.view.gridSize().width() > before.width()
    turn(-120, Qt.KeyboardModifier.NoModifier)
    assert grid.zoom() == 3
    for _ in range(20):
        turn(-120, Qt.KeyboardModifier.ControlModifier)
    assert grid.zoom() == 1
    grid.set_zoom(99)
    assert grid.zoom() == 8


def test_only_what_is_seen_is_drawn(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    real = painting.draw_sprite

    def count(painter: object, box: object, sprite: Rgba) -> None:
        drawn.append(sprite)
        real(painter, box, sprite)  # type: ignore[arg-type]

    monkeypatch.setattr(sprite_grid, "draw_sprite", count)
    grid = SpriteGrid()
    qtbot.addWidget(grid)
    grid.set_sprites(np.zeros((100_000, 16, 16, 4), np.uint8))
    grid.resize(400, 300)
    grid.show()
    qtbot.waitUntil(lambda: bool(drawn))
    assert 0 < len(drawn) < 2_000
