"""The editor: strokes by mouse and keys, selecting and painting, undo in a window with its own undo."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from studio.app.widgets.editor.editor import SpriteEditor
from studio.app.widgets.editor.previews import tiled
from studio.core.arrays import Rgba
from studio.data.colour.palette import to_oklab
from studio.data.pixels.editing import (
    EditedSprite,
    EditHistory,
    Point,
    SavedEdit,
    flood_fill_mask,
    line_mask,
    rectangle_mask,
    same_colour_mask,
)
from tests.app.widgets.tools import NO_KEY, shown, turn_wheel
from tests.conftest import make_sprites

SIZE = 16
LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton
CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)


@pytest.fixture
def sprite() -> Rgba:
    return np.asarray(make_sprites(1, size=SIZE).rgba[0])


@pytest.fixture
def editor(qtbot: QtBot, sprite: Rgba) -> SpriteEditor:
    made = SpriteEditor()
    made.set_history(EditHistory(SavedEdit(EditedSprite.of(sprite), "sprite")))
    shown(qtbot, made, 640, 400)
    made.canvas.setFocus()
    return made


def stroke(editor: SpriteEditor, *places: Point, button: Qt.MouseButton = LEFT) -> None:
    """Press at the first pixel, move through the others, and release at the last."""
    points = [editor.canvas.point(place) for place in places]
    QTest.mousePress(editor.canvas, button, NO_KEY, points[0])
    for point in points[1:]:
        QTest.mouseMove(editor.canvas, point)
    QTest.mouseRelease(editor.canvas, button, NO_KEY, points[-1])


def hidden(editor: SpriteEditor) -> np.ndarray:
    return ~editor.edit().keep


@pytest.mark.parametrize("zoom", [None, 3, 9])
def test_tools_select_pixels(editor: SpriteEditor, sprite: Rgba, qtbot: QtBot, zoom: int | None) -> None:
    if zoom is not None:
        editor.canvas._zoom_to(zoom, editor.canvas.rect().center())
        assert editor.canvas.zoom() == zoom
    with qtbot.waitSignal(editor.changed):
        stroke(editor, (2, 3), (9, 3), (9, 7))
    expected = line_mask((2, 3), (9, 3), SIZE) | line_mask((9, 3), (9, 7), SIZE)
    np.testing.assert_array_equal(hidden(editor), expected)
    stroke(editor, (5, 3), (5, 3), button=RIGHT)  # stays again
    expected[3, 5] = False
    np.testing.assert_array_equal(hidden(editor), expected)
    QTest.keyClick(editor.canvas, Qt.Key.Key_M)
    stroke(editor, (12, 14), (10, 9), (8, 11))
    expected |= rectangle_mask((12, 14), (8, 11), SIZE)
    np.testing.assert_array_equal(hidden(editor), expected)
    for key, covered in (
        (Qt.Key.Key_G, flood_fill_mask(sprite, (8, 8))),
        (Qt.Key.Key_W, same_colour_mask(sprite, (0, 0))),
    ):
        QTest.keyClick(editor.canvas, key)
        place = (8, 8) if key == Qt.Key.Key_G else (0, 0)
        stroke(editor, place)
        expected |= covered
        np.testing.assert_array_equal(hidden(editor), expected)
    np.testing.assert_array_equal(editor.edit().sprite, sprite)


def test_eraser_and_line(editor: SpriteEditor, sprite: Rgba) -> None:
    QTest.keyClick(editor.canvas, Qt.Key.Key_L)
    stroke(editor, (2, 3), (9, 9), (12, 5))
    np.testing.assert_array_equal(hidden(editor), line_mask((2, 3), (12, 5), SIZE))  # straight, whatever the way
    QTest.keyClick(editor.canvas, Qt.Key.Key_E)
    stroke(editor, (2, 3), (12, 3))
    assert not hidden(editor)[3].any() and hidden(editor)[5, 12]
    QTest.keyClick(editor.canvas, Qt.Key.Key_Q)
    stroke(editor, (6, 8), (9, 8))
    assert not editor.edit().sprite[8, 6:10].any() and hidden(editor)[5, 12]


@pytest.mark.parametrize("selects", [False, True])
def test_move_takes_the_selection_or_all_pixels(editor: SpriteEditor, sprite: Rgba, selects: bool) -> None:
    where = rectangle_mask((4, 4), (9, 9), SIZE) if selects else np.ones((SIZE, SIZE), bool)
    if selects:
        editor.replace(editor.edit().with_keep(where, stays=False))
    before = editor.edit()
    QTest.keyClick(editor.canvas, Qt.Key.Key_V)
    stroke(editor, (5, 5), (6, 9), (8, 4))
    lifted = np.where(where[..., None], sprite, 0)[1:, :-3]
    is_opaque = lifted[..., 3] > 0
    np.testing.assert_array_equal(editor.edit().sprite[:-1, 3:][is_opaque], lifted[is_opaque])
    np.testing.assert_array_equal(hidden(editor), rectangle_mask((7, 3), (12, 8), SIZE) & selects)
    editor._history.undo()
    editor.refresh()
    assert editor.edit() is before


def test_lines_and_moves_by_keyboard(editor: SpriteEditor, sprite: Rgba) -> None:
    right, down, enter = Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Return
    for key in (Qt.Key.Key_L, right, enter, right, down, enter):
        QTest.keyClick(editor.canvas, key)
    np.testing.assert_array_equal(hidden(editor), line_mask((1, 0), (2, 1), SIZE))
    editor.deselect.click()
    for key in (Qt.Key.Key_V, enter, right, right, enter):
        QTest.keyClick(editor.canvas, key)
    np.testing.assert_array_equal(editor.edit().sprite[:, 2:], sprite[:, :-2])
    assert not editor.edit().sprite[:, :2].any()


def test_wide_brush_and_strokes_outside(editor: SpriteEditor) -> None:
    for _ in range(3):
        QTest.keyClick(editor.canvas, Qt.Key.Key_BracketRight)
    assert editor.tools.brush.value() == 4
    stroke(editor, (0, 0), (-3, 0))
    np.testing.assert_array_equal(hidden(editor), line_mask((0, 0), (-3, 0), SIZE, 4))
    before = editor.edit()
    QTest.mouseClick(editor.canvas, LEFT, NO_KEY, QPoint(1, 1))
    assert editor.edit() is before


def test_select_all_deselect_and_invert(editor: SpriteEditor) -> None:
    editor.select_all.click()
    assert hidden(editor).all()
    stroke(editor, (4, 4), button=RIGHT)
    QTest.keyClick(editor.canvas, Qt.Key.Key_I, CTRL | SHIFT)
    assert np.argwhere(hidden(editor)).tolist() == [[4, 4]]
    editor.deselect.click()
    assert not hidden(editor).any()


def test_paint_erase_and_pick_colours(editor: SpriteEditor, sprite: Rgba) -> None:
    editor.swatches.set_palette_of_model(np.array([[10, 200, 30], [0, 0, 255]], np.uint8))
    QTest.keyClick(editor.canvas, Qt.Key.Key_Q)
    assert editor.swatches.isVisible() and not editor.invert.isVisible()
    green = next(i for i, colour in enumerate(editor.swatches.offered()) if colour.tolist() == [10, 200, 30, 255])
    editor.swatches.colour_pressed.emit(green)
    stroke(editor, (0, 0), (15, 0))
    assert (editor.edit().sprite[0] == [10, 200, 30, 255]).all() and editor.edit().keep.all()
    stroke(editor, (3, 0), (4, 0), button=RIGHT)
    assert (editor.edit().sprite[0, 3:5] == 0).all()
    QTest.mouseClick(editor.canvas, LEFT, ALT, editor.canvas.point((8, 8)))
    stroke(editor, (0, 15), (0, 15))
    np.testing.assert_array_equal(editor.edit().sprite[15, 0], sprite[8, 8])
    QTest.keyClick(editor.canvas, Qt.Key.Key_I)
    stroke(editor, (0, 0))
    assert editor.swatches.colour.tolist() == [10, 200, 30, 255]
    np.testing.assert_array_equal(editor.edit().sprite[1:15], sprite[1:15])


def test_edit_by_keyboard_only(editor: SpriteEditor) -> None:
    canvas = editor.canvas
    for _ in range(3):
        QTest.keyClick(canvas, Qt.Key.Key_Right)
    QTest.keyClick(canvas, Qt.Key.Key_Down, SHIFT)
    QTest.keyClick(canvas, Qt.Key.Key_Return)
    assert np.argwhere(hidden(editor)).tolist() == [[8, 3]]
    zoom = canvas.zoom()
    QTest.keyClick(canvas, Qt.Key.Key_Plus)
    assert canvas.zoom() > zoom
    QTest.keyClick(canvas, Qt.Key.Key_Minus)
    QTest.keyClick(canvas, Qt.Key.Key_Minus)
    assert canvas.zoom() < zoom
    QTest.keyClick(canvas, Qt.Key.Key_0)
    assert canvas.zoom() == zoom


def test_wheel_zooms_and_middle_button_pans(editor: SpriteEditor) -> None:
    canvas = editor.canvas
    point = canvas.point((12, 5))
    turn_wheel(canvas, point, 120)
    turn_wheel(canvas, point, 240)
    assert canvas.place(point) == (12, 5)
    QTest.mousePress(canvas, Qt.MouseButton.MiddleButton, NO_KEY, point)
    QTest.mouseMove(canvas, point + QPoint(30, -20))
    QTest.mouseRelease(canvas, Qt.MouseButton.MiddleButton, NO_KEY, point + QPoint(30, -20))
    assert canvas.place(point + QPoint(30, -20)) == (12, 5) and not hidden(editor).any()
    for _ in range(40):
        turn_wheel(canvas, point, -120)
    assert canvas.zoom() == 1


@pytest.fixture
def window(qtbot: QtBot, editor: SpriteEditor) -> tuple[QMainWindow, list[str]]:
    """Return a window with its own Undo, and a list of its undone steps."""
    made, undone = QMainWindow(), list[str]()
    for keys, name in (("Ctrl+Z", "undo"), ("Ctrl+Shift+Z", "redo")):
        action = QAction(name, made)
        action.setShortcut(keys)
        action.triggered.connect(lambda _=False, name=name: undone.append(name))
        made.menuBar().addAction(action)
    made.setCentralWidget(editor)
    shown(qtbot, made, 800, 500)
    made.activateWindow()
    return made, undone


def test_editor_requests_undo_before_the_window(editor: SpriteEditor, window: tuple[QMainWindow, list[str]]) -> None:
    _, undone = window
    requested: list[str] = []
    editor.undo_requested.connect(lambda: requested.append("undo"))
    editor.redo_requested.connect(lambda: requested.append("redo"))
    editor.canvas.setFocus()
    editor.show_undo("", "")
    assert not editor.undo.isEnabled() and not editor.redo.isEnabled()
    QTest.keyClick(editor.canvas, Qt.Key.Key_Z, CTRL)
    editor.show_undo("edit gem", "open gem")
    assert editor.undo.toolTip() == "Undo edit gem. (Ctrl+Z)"
    QTest.keyClick(editor.canvas, Qt.Key.Key_Z, CTRL)
    QTest.keyClick(editor.canvas, Qt.Key.Key_Z, CTRL | SHIFT)
    editor.undo.click()
    QTest.keyClick(editor.tools.buttons["eraser"], Qt.Key.Key_Z, CTRL)
    QTest.keyClick(editor.canvas, Qt.Key.Key_Y, CTRL)
    assert requested == ["undo", "redo", "undo", "undo", "redo"] and undone == []


def test_opening_sprites_can_be_undone(editor: SpriteEditor, sprite: Rgba) -> None:
    stroke(editor, (2, 2))
    other = editor.edit().paint(~editor.edit().keep, np.array([1, 2, 3, 255], np.uint8))
    editor.replace(other)
    assert editor.edit() is other
    editor._history.undo()
    editor.refresh()
    np.testing.assert_array_equal(editor.edit().sprite, sprite)
    marked = editor.edit()
    history, large = editor._history, make_sprites(1, size=24).rgba[0]
    history.open(SavedEdit(EditedSprite(large, rectangle_mask((0, 0), (5, 5), 24)), "large"))
    editor.refresh()
    assert editor.edit().keep.sum() == 36
    stroke(editor, (23, 23), button=RIGHT)
    assert editor.edit().keep[23, 23]
    for _ in range(2):
        editor._history.undo()
    editor.refresh()
    assert editor.edit() is marked and [2, 2] in np.argwhere(hidden(editor)).tolist()
    own = {colour.tobytes() for colour in sprite[sprite[..., 3] == 255]}
    assert {
        colour.tobytes() for colour in editor.swatches.offered()[: len(own)]
    } == own  # the sprite's colours are back


def test_swatches_show_sprite_then_model_colours(editor: SpriteEditor, sprite: Rgba) -> None:
    """Swatches sample all hues of a large sorted palette."""
    hues = np.array([[*colorsys.hsv_to_rgb(turn / 600, 1, 1)] for turn in range(600)])
    palette = (hues * 255).round().astype(np.uint8)
    editor.swatches.set_palette_of_model(palette)
    own = {colour.tobytes() for colour in sprite[sprite[..., 3] == 255]}
    offered = editor.swatches.offered()
    assert {colour.tobytes() for colour in offered[: len(own)]} == own
    others = to_oklab(offered[len(own) :, :3])
    assert len(own) + 60 < len(offered) < len(own) + 70
    gaps = np.linalg.norm(to_oklab(palette)[:, None] - others, axis=2).min(1)
    assert gaps.max() < 0.04  # white and black are 1 apart


def test_zoom_buttons(editor: SpriteEditor) -> None:
    zoom = editor.canvas.zoom()
    larger, smaller, fit = editor.zooms
    larger.click()
    assert editor.canvas.zoom() > zoom
    smaller.click()
    smaller.click()
    assert editor.canvas.zoom() < zoom
    fit.click()
    assert editor.canvas.zoom() == zoom


@pytest.mark.parametrize(("size", "side"), [(8, 48), (16, 96), (32, 96), (48, 96), (52, 104), (64, 104), (100, 104)])
def test_preview_tiles_are_not_cropped(qtbot: QtBot, size: int, side: int) -> None:
    """A coloured border is visible in each tile, including the end of the last tile."""
    made = tiled()
    qtbot.addWidget(made)
    rgba = np.full((size, size, 4), 255, np.uint8)
    rgba[:, 0] = rgba[:, -1] = [255, 0, 0, 255]
    made.show_sprite(rgba)
    assert made.width() == made.height() == side
    image = made.grab().toImage()
    assert image.pixelColor(0, side // 2).red() == 255 == image.pixelColor(image.width() - 2, side // 2).red()
    reds = [image.pixelColor(x, image.height() // 2).green() == 0 for x in range(image.width())]
    starts = sum(one and not before for before, one in zip([False, *reds], reds, strict=False))
    assert starts == (3 + 1 if 3 * size <= 104 else 2 + 1)  # neighbouring tiles share a border


def test_selected_pixels_are_hatched(editor: SpriteEditor, sprite: Rgba) -> None:
    """Selecting a pixel changes its whole appearance; other pixels stay."""
    ratio = editor.canvas.devicePixelRatioF()

    def seen(place: Point) -> list[int]:
        colour = editor.canvas.grab().toImage().pixelColor(editor.canvas.point(place) * ratio)
        return [colour.red(), colour.green(), colour.blue()]

    y, x = np.argwhere(sprite[..., 3] == 255)[10]
    place = (int(x), int(y))
    assert seen(place) == sprite[y, x, :3].tolist()
    stroke(editor, place)
    editor.canvas._set_cursor(None)
    assert seen(place) != sprite[y, x, :3].tolist()
