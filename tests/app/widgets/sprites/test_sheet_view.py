"""The view of a few sprites: the current sprite, its menu, and the large view."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app.widgets.sprites.large_view import LargeView
from studio.app.widgets.sprites.sheet_view import SpriteSheetView, show_samples
from studio.core.events import SamplesReady
from tests.app.widgets.tools import shown
from tests.conftest import make_sprites

KEY, LEFT, NO_KEY = Qt.Key, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
SPRITES = make_sprites().rgba


@pytest.fixture
def sheet(qtbot: QtBot) -> SpriteSheetView:
    """Return a shown view of two rows of four sprites."""
    made = SpriteSheetView()
    made.set_sprites(SPRITES[:8], [f"class {number}" for number in range(8)])
    made.menu.add("Copy", "Copy.", made.update)
    return shown(qtbot, made, 400, 240)


def place(sheet: SpriteSheetView, number: int) -> QPoint:
    return sheet.places().boxes[number].center()


def test_keys_choose_and_show_a_sprite(qtbot: QtBot, sheet: SpriteSheetView) -> None:
    sheet.setFocus()
    qtbot.waitUntil(sheet.hasFocus)
    columns = len({box.x() for box in sheet.places().boxes})
    rows = []
    for key in (KEY.Key_Right, KEY.Key_Down, KEY.Key_Left, KEY.Key_Up, KEY.Key_Up):
        QTest.keyClick(sheet, key)
        rows.append(sheet.current_row())
    assert rows == [1, 1 + columns, columns, 0, 0]
    assert sheet.accessibleDescription() == "class 0, 1 of 8"
    QTest.keyClick(sheet, KEY.Key_Return)
    view = sheet.findChild(LargeView)
    assert view is not None and view.name.text() == "class 0"
    view.go_on()
    assert sheet.current_row() == 1
    sheet.set_sprites(SPRITES[8:16], ["later"] * 8)  # a training draws new samples meanwhile
    assert view.name.text() == "later" and sheet.current_row() == 1


def test_large_sprites_shrink_until_all_fit(sheet: SpriteSheetView) -> None:
    sheet.set_sprites(np.full((16, 96, 96, 4), 200, np.uint8), ["class"] * 16)
    boxes = sheet.places().boxes
    assert all(sheet.rect().contains(box) for box in boxes) and boxes[0].width() >= 48


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (16, {(480, 100): (32, False), (780, 150): (48, True), (1400, 260): (96, True)}),
        (24, {(480, 100): (24, True), (780, 150): (48, True), (1400, 260): (96, True)}),
        (32, {(480, 100): (32, False), (780, 150): (64, False), (1400, 260): (96, True)}),
        (64, {(600, 150): (64, False), (600, 165): (64, False), (600, 240): (64, True)}),
    ],
)
def test_captions_give_way_to_much_larger_sprites(
    sheet: SpriteSheetView, size: int, expected: dict[tuple[int, int], tuple[int, bool]]
) -> None:
    sheet.set_sprites(np.full((16, size, size, 4), 200, np.uint8), ["class"] * 16)
    found = {}
    for area in expected:
        sheet.resize(*area)
        places = sheet.places()
        found[area] = places.boxes[0].height() - places.caption, places.caption > 0
        assert all(sheet.rect().contains(box) for box in places.boxes)
    assert found == expected


def test_pairs_show_the_original_on_the_left(sheet: SpriteSheetView) -> None:
    original, made = (np.full((2, 8, 8, 4), colour, np.uint8) for colour in ((200, 0, 0, 255), (0, 0, 200, 255)))
    sheet.set_sprites(made, ["a", "b"], original)
    shown, ratio = sheet.grab().toImage(), sheet.devicePixelRatioF()
    for number in range(2):
        box = sheet.places().boxes[number]
        for x, colour in ((box.center().x() - 20, (200, 0, 0, 255)), (box.center().x() + 20, (0, 0, 200, 255))):
            assert shown.pixelColor(QPoint(x, box.y() + 20) * ratio).getRgb() == colour
    assert sheet.shown_sprite(0).about == "Reconstruction" and (sheet.shown_sprite(0).rgba == made[0]).all()
    assert "Left: original" in sheet.accessibleDescription()


@pytest.mark.parametrize(("width", "height"), [(400, 240), (900, 160), (150, 90)])
def test_sets_are_rows_of_given_true_and_drawn_cells(sheet: SpriteSheetView, width: int, height: int) -> None:
    true, drawn = (np.full((6, 8, 8, 4), colour, np.uint8) for colour in ((200, 0, 0, 255), (0, 0, 200, 255)))
    sheet.resize(width, height)
    show_samples(
        sheet, SamplesReady(9, drawn, ("front", "back", "side") * 2, originals=true, given=(True, False, False))
    )
    places = sheet.places()
    assert [text for _, text in places.titles][:3] == ["Given", "True", "Drawn"]
    assert sheet.visible_count() == len(places.boxes) == 2 * 5
    assert all(sheet.rect().contains(box) for box in places.boxes)
    assert all(first.right() < second.left() for first, second in zip(places.boxes[:4], places.boxes[1:5], strict=True))
    found = [sheet.shown_sprite(row) for row in range(5)]
    assert [each.name for each in found] == ["front", "back", "side", "back", "side"]
    assert [each.about for each in found] == ["Given", "True", "True", "Drawn", "Drawn"]
    assert [int(each.rgba[0, 0, 2]) for each in found] == [0, 0, 0, 200, 200]
    sheet.go_to_row(8)
    assert sheet.accessibleDescription() == "back, drawn, 9 of 10"
    assert not sheet.grab().isNull()


def test_double_click_shows_a_sprite(sheet: SpriteSheetView) -> None:
    QTest.mouseDClick(sheet, LEFT, NO_KEY, QPoint(1, 1))
    assert sheet.findChild(LargeView) is None
    QTest.mouseClick(sheet, LEFT, NO_KEY, place(sheet, 5))
    QTest.mouseDClick(sheet, LEFT, NO_KEY, place(sheet, 5))
    view = sheet.findChild(LargeView)
    assert view is not None and view.name.text() == "class 5"


def test_menu_by_mouse_and_keys(qtbot: QtBot, sheet: SpriteSheetView) -> None:
    QTest.mouseClick(sheet, Qt.MouseButton.RightButton, NO_KEY, place(sheet, 2))
    at = place(sheet, 2)
    QApplication.sendEvent(sheet, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, sheet.mapToGlobal(at)))
    assert sheet.menu.isVisible() and sheet.current_row() == 2
    sheet.menu.close()
    sheet.setFocus()
    qtbot.waitUntil(sheet.hasFocus)
    QTest.keyClick(sheet, KEY.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    assert sheet.menu.isVisible()
    sheet.menu.close()


def test_current_sprite_stays_within_fewer_sprites(sheet: SpriteSheetView) -> None:
    sheet.go_to_row(7)
    sheet.set_sprites(SPRITES[:2])
    assert sheet.current_row() == 1
    sheet.set_sprites(SPRITES[:0])
    assert sheet.current_row() == -1 and sheet.focusPolicy() == Qt.FocusPolicy.NoFocus
    sheet.open_menu()
    sheet.open_large()
    assert not sheet.menu.isVisible() and sheet.findChild(LargeView) is None
