"""The grid of sprites: filter, selection, zoom and drawing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible, QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets.sprites import grid as sprite_grid
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.app.widgets.sprites.painting import shrunk
from studio.core.arrays import Rgba
from tests.app.widgets.tools import NO_KEY, SCHEMES, shown, turn_wheel
from tests.conftest import make_sprites

MILLION = 1_000_000
SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def grid(qtbot: QtBot) -> SpriteGrid:
    made, sprites = SpriteGrid(thumbnail=16), make_sprites()
    made.set_sprites(sprites.rgba, names=sprites.names, labels=sprites.labels, class_names=sprites.class_names)
    return shown(qtbot, made, 300, 200)


@pytest.fixture
def many(qtbot: QtBot) -> SpriteGrid:
    """Return a grid of a million sprites that share pixels."""
    made = SpriteGrid(thumbnail=32)
    made.set_sprites(np.broadcast_to(np.zeros((16, 16, 4), np.uint8), (MILLION, 16, 16, 4)))
    return shown(qtbot, made, 400, 300)


def place_of(grid: SpriteGrid, row: int) -> QRect:
    """Return the position of a row's cell on screen."""
    return grid.view.visualRect(grid.view.model().index(row, 0))


def test_filter_keeps_indices(grid: SpriteGrid, qtbot: QtBot) -> None:
    grid.set_visible([20, 5, 7])
    assert grid.visible_count() == 3
    grid.select([7, 20])
    assert grid.selected() == [7, 20]
    with qtbot.waitSignal(grid.activated) as activated:
        grid.view.activated.emit(grid.view.model().index(0, 0))
    assert activated.args == [20]
    grid.set_visible(None)
    assert grid.visible_count() == 24 and grid.selected() == []


def test_ctrl_wheel_zooms_within_bounds(grid: SpriteGrid) -> None:
    grid.zoom.set(2)
    before = grid.view.cell

    def turn(delta: int, keys: Qt.KeyboardModifier = CTRL) -> float:
        turn_wheel(grid.view.viewport(), QPoint(5, 5), delta, keys)
        return grid.zoom.value

    assert turn(120) == 3 and grid.view.cell.width() > before.width()
    assert turn(-120, NO_KEY) == 3
    assert [turn(40) for _ in range(3)][-1] == 4  # touchpads send small angles
    assert turn(0) == 4
    assert [turn(-120) for _ in range(20)][-1] == 1
    grid.zoom.set(99)
    assert grid.zoom.value == 16


def test_only_visible_cells_are_drawn(
    many: SpriteGrid, qtbot: QtBot, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    monkeypatch.setattr(sprite_grid, "draw_sprite", lambda painter, box, sprite: drawn.append(1))
    view = many.view
    in_view = (view.viewport().width() // view.cell.width()) * (view.viewport().height() // view.cell.height() + 2)
    for go in (view.scrollToTop, view.scrollToBottom, lambda: many.zoom.set(2)):
        drawn.clear()
        go()
        view.viewport().repaint()
        assert 0 < len(drawn) <= in_view
    for scheme in SCHEMES:
        theme.apply(qapp, scheme)
        QApplication.processEvents()
        view.viewport().repaint()
        drawn.clear()
        view.verticalScrollBar().setValue(
            view.verticalScrollBar().value() - 10
        )  # visible pixels are scrolled, not redrawn
        qtbot.waitUntil(lambda: len(drawn) > 0)
        assert len(drawn) <= 2 * (view.viewport().width() // view.cell.width())


def test_keys_zoom_and_activate(grid: SpriteGrid, qtbot: QtBot) -> None:
    grid.activateWindow()
    grid.setFocus()
    qtbot.waitUntil(grid.view.hasFocus)
    qtbot.keyClick(grid.view, Qt.Key.Key_Equal, CTRL)
    qtbot.keyClick(grid.view, Qt.Key.Key_Plus, CTRL)
    assert grid.zoom.value == 4
    qtbot.keyClick(grid.view, Qt.Key.Key_Minus, CTRL)
    assert grid.zoom.value == 3
    grid.view.setCurrentIndex(grid.view.model().index(4, 0))
    with qtbot.waitSignal(grid.activated) as activated:
        qtbot.keyClick(grid.view, Qt.Key.Key_Return)
    assert activated.args == [4]


def test_select_a_million_sprites(many: SpriteGrid, qtbot: QtBot) -> None:
    qtbot.keyClick(many.view, Qt.Key.Key_A, CTRL)
    assert many.view.selectionModel().selection().size() == 1
    assert many.selected_count() == MILLION and many.selected() == list(range(MILLION))
    many.set_visible(np.arange(0, MILLION, 2))
    assert many.selected() == [] and many.selected_count() == 0
    wanted = list(range(0, MILLION, 500))
    with qtbot.waitSignal(many.selection_changed):
        many.select([*wanted, 1, 3])  # both are filtered out
    assert many.selected() == wanted and many.selected_count() == len(wanted)
    many.set_visible(None)
    many.select([MILLION, -1, 7])
    assert many.selected() == [7]
    many.select([])
    assert many.selected() == []


def test_selection_scrolls_and_zoom_keeps_position(many: SpriteGrid, qtbot: QtBot) -> None:
    many.select([700_000])
    area = many.view.viewport().rect()
    qtbot.waitUntil(lambda: area.contains(place_of(many, 700_000).center()))
    many.zoom.set(4)
    qtbot.waitUntil(lambda: area.contains(place_of(many, 700_000).center()))


def test_user_scrolling_replaces_the_top_row(many: SpriteGrid) -> None:
    many.view.show_row(MILLION - 1)
    bar = many.view.verticalScrollBar()
    bar.triggerAction(bar.SliderAction.SliderToMinimum)
    many.view.doItemsLayout()
    assert bar.value() == 0


def test_captions_below_the_sprites(grid: SpriteGrid) -> None:
    without = grid.view.cell
    sprites = make_sprites().rgba
    grid.set_sprites(sprites, captions=[f"sprite {number}" for number in range(len(sprites))])
    assert grid.view.cell.height() == without.height() + grid.view.fontMetrics().height()
    assert grid.view.model().index(2, 0).data() == "sprite 2"


@pytest.mark.parametrize("ratio", [1, 2])
def test_grid_pixels_match_the_sprites(ratio: int) -> None:
    """Runs in a subprocess, since Qt reads the pixel ratio only at its start."""
    code = f"""
import numpy as np
from PySide6.QtWidgets import QApplication
from PySide6.QtGui import QImage
from studio.app.widgets.sprites.grid import SpriteGrid
app = QApplication([])
sprites = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 4), dtype=np.uint8)
sprites[..., 3] = 255
grid = SpriteGrid()
grid.set_sprites(sprites)
grid.zoom.set(3)
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


def test_scroll_to_a_million_sprites(many: SpriteGrid, qtbot: QtBot) -> None:
    view, bar = many.view, many.view.verticalScrollBar()
    across = view.viewport().width() // view.cell.width()
    lines = -(-MILLION // across)
    assert bar.maximum() == lines * view.cell.height() - view.viewport().height()
    for key, row in ((Qt.Key.Key_End, MILLION - 1), (Qt.Key.Key_Home, 0)):
        qtbot.keyClick(view, key)
        assert view.currentIndex().row() == row and many.selected() == [row]
        place = view.visualRect(view.currentIndex())
        assert view.viewport().rect().contains(place) and view.indexAt(place.center()).row() == row
    view.scrollToBottom()
    corner = view.indexAt(QPoint(1, view.viewport().height() - 1)).row()
    assert corner == (lines - 1) * across
    assert view.indexAt(QPoint(view.viewport().width() - 1, 5)).row() == -1  # beyond the last column


def test_keyboard_navigation(many: SpriteGrid, qtbot: QtBot) -> None:
    view = many.view
    across, page = view.viewport().width() // view.cell.width(), view.viewport().height() // view.cell.height() - 1
    last = MILLION - 1
    short = last // across * across - 1  # the last cell of the last full line
    for start, key, expected in (
        (500, Qt.Key.Key_Right, 501), (500, Qt.Key.Key_Left, 499), (across, Qt.Key.Key_Left, across - 1),
        (0, Qt.Key.Key_Left, 0), (last, Qt.Key.Key_Right, last), (500, Qt.Key.Key_Down, 500 + across),
        (500, Qt.Key.Key_Up, 500 - across), (3, Qt.Key.Key_Up, 3), (last, Qt.Key.Key_Down, last),
        (short, Qt.Key.Key_Down, last), (500, Qt.Key.Key_PageDown, 500 + page * across),
        (5000, Qt.Key.Key_PageUp, 5000 - page * across), (3, Qt.Key.Key_PageUp, 3),
        (last, Qt.Key.Key_PageDown, last),
    ):  # fmt: skip
        view.setCurrentIndex(view.model().index(start, 0))
        qtbot.keyClick(view, key)
        assert view.currentIndex().row() == expected, (start, key)
        assert view.viewport().rect().contains(view.visualRect(view.currentIndex()))
    assert short % across == across - 1 and last % across < across - 1
    view.setCurrentIndex(view.model().index(500, 0))
    qtbot.keyClick(view, Qt.Key.Key_Down, SHIFT)
    qtbot.keyClick(view, Qt.Key.Key_Right, SHIFT)
    assert many.selected() == list(range(500, 502 + across))


def test_typing_searches_no_names(many: SpriteGrid, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(sprite_grid.SpriteModel, "data", lambda *args: asked.append(1))
    view = many.view
    view.setCurrentIndex(view.model().index(3, 0))
    qtbot.keyClicks(view, "gem")
    assert len(asked) < 100 and view.currentIndex().row() == 3


def test_ctrl_and_shift_clicks(many: SpriteGrid, qtbot: QtBot) -> None:
    view = many.view

    def click(row: int, keys: Qt.KeyboardModifier) -> None:
        view.scrollTo(view.model().index(row, 0))
        with qtbot.waitSignal(many.selection_changed):
            qtbot.mouseClick(view.viewport(), LEFT, keys, place_of(many, row).center())

    click(5, NO_KEY)
    click(900_000, SHIFT)
    assert view.selectionModel().selection().size() == 1
    assert many.selected_count() == 900_000 - 4 and many.selected()[-1] == 900_000
    click(900_001, CTRL)
    click(900_000, CTRL)
    assert many.selected_count() == 900_000 - 4 and many.selected()[-2:] == [899_999, 900_001]
    click(3, NO_KEY)
    assert many.selected() == [3]


@pytest.mark.parametrize("offset", [0, 123_457])
def test_rubber_band_selection(many: SpriteGrid, qtbot: QtBot, offset: int) -> None:
    view, area = many.view, many.view.viewport()
    view.verticalScrollBar().setValue(offset)
    start, end = QPoint(area.width() - 2, 3), QPoint(60, 150)  # from the gap beside the last column
    qtbot.mousePress(area, LEFT, NO_KEY, start)
    for place in (start - QPoint(30, -30), QPoint(10, 250), end):
        qtbot.mouseMove(area, place)
    bare = area.grab().toImage()
    qtbot.mouseRelease(area, LEFT, NO_KEY, end)
    across = [*range(end.x(), start.x(), 4), start.x()]  # every cell is wider, and higher
    down = [*range(start.y(), end.y(), 4), end.y()]
    touched = {view.indexAt(QPoint(x, y)).row() for x in across for y in down}
    assert many.selected() == sorted(touched - {-1})
    assert len(many.selected()) > 20
    gap = QPoint(view.cell.width() * (area.width() // view.cell.width()) + 1, 40)
    assert area.grab().toImage().pixelColor(gap) != bare.pixelColor(gap)  # the rubber band is gone


def test_selection_is_drawn(grid: SpriteGrid) -> None:
    view = grid.view
    grid.select([0, 2, 3, 9, 20])
    image, accent = view.viewport().grab().toImage(), QColor(theme.colours().accent)
    seen = [row for row in range(24) if view.viewport().rect().contains(place_of(grid, row))]
    drawn_so = [row for row in seen if image.pixelColor(place_of(grid, row).topLeft() + QPoint(2, 2)) == accent]
    assert drawn_so == [row for row in seen if row in (0, 2, 3, 9, 20)]
    assert len(seen) > 10


def test_zoom_and_resize_back_restore_the_position(many: SpriteGrid) -> None:
    view, bar = many.view, many.view.verticalScrollBar()
    bar.setValue(3_000_011)
    for zoom in (8, 1, 2):
        many.zoom.set(zoom)
    assert bar.value() == 3_000_011
    top = view.indexAt(QPoint(1, 1)).row()
    for width in (777, 201, 400):
        many.resize(width, 300)
        first = view.indexAt(QPoint(1, 1)).row()
        assert first <= top < first + view.viewport().width() // view.cell.width()
    assert bar.value() == 3_000_011
    bar.setValue(3_000_012)
    many.zoom.set(3)
    many.set_visible([1, 2, 3])
    assert bar.value() == 0 and view.indexAt(QPoint(1, 1)).row() == 0


def test_largest_grid_fits_qt_integers(qtbot: QtBot) -> None:
    grid = SpriteGrid(thumbnail=2048)
    qtbot.addWidget(grid)
    grid.resize(500, 400)
    view, bar = grid.view, grid.view.verticalScrollBar()
    for count in (MILLION, 2 * MILLION):
        grid.set_sprites(np.broadcast_to(np.zeros((2048, 2048, 4), np.uint8), (count, 2048, 2048, 4)))
        view.scrollToBottom()
        assert bar.value() == bar.maximum() > 2_000_000_000
        if count == MILLION:
            assert view.indexAt(QPoint(5, view.viewport().height() - 1)).row() == count - 1
        view.setCurrentIndex(view.model().index(0, 0))
        view.scrollTo(view.model().index(count - 1, 0))
        assert place_of(grid, 0).bottom() < 0
        assert not view.viewport().grab().isNull()
        assert view.horizontalScrollBar().maximum() == view.cell.width() - view.viewport().width()


def test_memory_mapped_sprites(qtbot: QtBot, tmp_path: Path) -> None:
    sprites = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 4), dtype=np.uint8)
    sprites[..., 3] = 255
    path = tmp_path / "sprites.bin"
    path.write_bytes(b"header" + sprites.tobytes())
    mapped = np.memmap(path, np.uint8, "r", 6, sprites.shape)
    grids = []
    for rgba in (sprites, mapped):
        grid = SpriteGrid()
        qtbot.addWidget(grid)
        grid.set_sprites(rgba)
        grid.resize(200, 200)
        grids.append(grid.view.viewport().grab().toImage())
        assert np.shares_memory(grid.model.rgba, rgba)
    assert grids[0] == grids[1]


def test_accessible_names_and_tooltips(grid: SpriteGrid, many: SpriteGrid) -> None:
    list_of = QAccessible.queryAccessibleInterface
    assert list_of(many.view).childCount() == MILLION
    found = list_of(grid.view)
    assert found.role() == QAccessible.Role.List and found.childCount() == 24
    child = found.child(13)
    assert child.role() == QAccessible.Role.ListItem
    assert child.text(QAccessible.Text.Name) == "class1/001.png – class1"
    assert grid.view.model().index(13, 0).data(Qt.ItemDataRole.ToolTipRole) == "class1/001.png – class1"
    assert child.rect().size() == grid.view.cell


def test_recolouring_keeps_selection_and_position(many: SpriteGrid) -> None:
    many.select([700_000])
    place = many.view.verticalScrollBar().value()
    before = many.view.viewport().grab().toImage()
    many.replace_pixels(np.broadcast_to(np.full((16, 16, 4), 255, np.uint8), (MILLION, 16, 16, 4)))
    assert many.selected() == [700_000] and many.view.verticalScrollBar().value() == place
    assert many.view.viewport().grab().toImage() != before


def test_thumbnails_of_large_sprites_are_shrunk(qtbot: QtBot) -> None:
    grid = SpriteGrid(thumbnail=64)
    grid.set_sprites(np.zeros((20, 256, 256, 4), np.uint8))
    shown(qtbot, grid, 400, 300)
    assert grid.zoom.value == 1 / 4 and grid.view.cells().across >= 5
    grid.zoom.zoom_in()
    assert grid.zoom.value == 1 / 2
    grid.set_sprites(np.zeros((20, 32, 32, 4), np.uint8))
    assert grid.zoom.value == 4  # as large as before
    for _ in range(9):
        grid.zoom.zoom_out()
    assert grid.zoom.value == 1 / 2


def test_shrunk_thumbnails_follow_the_pixels(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def noting(sprite: Rgba, divisor: int) -> Rgba:
        sizes.append(divisor)
        return shrunk(sprite, divisor)

    monkeypatch.setattr(sprite_grid, "shrunk", noting)
    grid, white = SpriteGrid(thumbnail=64), np.full((2, 256, 256, 4), 255, np.uint8)
    grid.set_sprites(white)
    shown(qtbot, grid, 200, 120)
    grid.view.viewport().grab()
    grid.view.viewport().grab()
    assert sizes == [4, 4]  # once for each sprite
    grid.replace_pixels(white // np.array([255, 255, 255, 1], np.uint8))
    centre = place_of(grid, 0).center() * grid.devicePixelRatioF()
    assert grid.view.viewport().grab().toImage().pixelColor(centre) == QColor(1, 1, 1)


def test_next_sprite_after_the_selection(grid: SpriteGrid) -> None:
    assert grid.after_selection() == []
    grid.set_visible([4, 5, 6, 7])
    grid.select([5, 6])
    assert grid.after_selection() == [7]
    grid.select([6, 7])
    assert grid.after_selection() == [5]
    grid.select([4, 5, 6, 7])
    assert grid.after_selection() == []
