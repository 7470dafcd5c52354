"""The grid of sprites: filters, selection, zoom, and what it draws."""

from __future__ import annotations

import os
import subprocess
import sys

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


@pytest.fixture
def many(qtbot: QtBot) -> SpriteGrid:
    made = SpriteGrid()
    qtbot.addWidget(made)
    made.set_sprites(np.zeros((100_000, 16, 16, 4), np.uint8))
    made.resize(400, 300)
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
    for _ in range(3):  # a touchpad sends small turns
        turn(40, Qt.KeyboardModifier.ControlModifier)
    assert grid.zoom() == 4
    turn(0, Qt.KeyboardModifier.ControlModifier)
    assert grid.zoom() == 4
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


def test_keys_zoom_and_open(grid: SpriteGrid, qtbot: QtBot) -> None:
    grid.activateWindow()
    grid.setFocus()
    qtbot.waitUntil(grid.view.hasFocus)
    qtbot.keyClick(grid.view, Qt.Key.Key_Equal, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(grid.view, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    assert grid.zoom() == 4
    qtbot.keyClick(grid.view, Qt.Key.Key_Minus, Qt.KeyboardModifier.ControlModifier)
    assert grid.zoom() == 3
    grid.view.setCurrentIndex(grid.view.model().index(4, 0))
    with qtbot.waitSignal(grid.activated) as activated:
        qtbot.keyClick(grid.view, Qt.Key.Key_Return)
    assert activated.args == [4]


def test_a_hundred_thousand_are_selected_and_told_at_once(many: SpriteGrid, qtbot: QtBot) -> None:
    qtbot.keyClick(many.view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert many.view.selectionModel().selection().size() == 1
    assert many.selected() == list(range(100_000))
    many.set_visible(np.arange(0, 100_000, 2))
    assert many.selected() == []
    wanted = list(range(0, 100_000, 8))
    with qtbot.waitSignal(many.selection_changed):
        many.select([*wanted, 1, 3])  # those two are not visible
    assert many.selected() == wanted
    many.select([])
    assert many.selected() == []


def test_what_is_selected_is_scrolled_to(many: SpriteGrid, qtbot: QtBot) -> None:
    many.select([70_000])
    row = many.view.model().index(70_000, 0)
    qtbot.waitUntil(lambda: many.view.viewport().rect().contains(many.view.visualRect(row).center()))


def test_a_zoom_keeps_the_sprites_at_the_top(many: SpriteGrid, qtbot: QtBot) -> None:
    many.select([70_000])
    row = many.view.model().index(70_000, 0)
    qtbot.waitUntil(lambda: many.view.viewport().rect().contains(many.view.visualRect(row).center()))
    many.set_zoom(4)
    qtbot.waitUntil(lambda: many.view.viewport().rect().contains(many.view.visualRect(row).center()))


def test_scrolling_puts_an_end_to_a_wish_for_a_row(many: SpriteGrid) -> None:
    many.view.show_row(99_999)
    bar = many.view.verticalScrollBar()
    bar.triggerAction(bar.SliderAction.SliderToMinimum)
    many.view.doItemsLayout()
    assert bar.value() == 0


def test_captions_stand_under_the_sprites(grid: SpriteGrid) -> None:
    without = grid.view.gridSize()
    sprites = make_sprites().rgba
    grid.set_sprites(sprites, captions=[f"sprite {number}" for number in range(len(sprites))])
    assert grid.view.gridSize().height() == without.height() + grid.view.fontMetrics().height()
    assert grid.view.model().index(2, 0).data() == "sprite 2"


@pytest.mark.parametrize("ratio", [1, 2])
def test_the_grid_is_exact_to_the_pixel(ratio: int) -> None:
    """In a process of its own: the ratio of an offscreen screen is set when Qt starts."""
    code = f"""
import numpy as np
from PySide6.QtWidgets import QApplication
from PySide6.QtGui import QImage
from studio.app.widgets.sprite_grid import SpriteGrid
app = QApplication([])
sprites = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 4), dtype=np.uint8)
sprites[..., 3] = 255
grid = SpriteGrid()
grid.set_sprites(sprites)
grid.set_zoom(3)
grid.resize(300, 120)
grid.show()
app.processEvents()
image = grid.view.viewport().grab().toImage().convertToFormat(QImage.Format.Format_RGBA8888)
assert image.devicePixelRatio() == {ratio}
pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine() // 4, 4)
for row, sprite in enumerate(sprites):
    area, side = grid.view.visualRect(grid.view.model().index(row, 0)), 48 * {ratio}
    left, top = (area.x() + (area.width() - 48) // 2) * {ratio}, (area.y() + 4) * {ratio}
    drawn = pixels[top : top + side, left : left + side]
    assert np.array_equal(drawn, sprite.repeat(3 * {ratio}, 0).repeat(3 * {ratio}, 1)), row
"""
    environment = {**os.environ, "QT_SCALE_FACTOR": str(ratio)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
