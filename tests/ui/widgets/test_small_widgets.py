"""Filmstrip, sheet, swatches, readings, drop zone, predictions."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QAccessible, QColor, QDragEnterEvent, QDropEvent, QHelpEvent
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QSlider, QToolTip
from pytestqt.qtbot import QtBot

from studio.app.pages.train.monitor import Readings
from studio.app.widgets import factory
from studio.app.widgets.drop_zone import DropZone
from studio.app.widgets.layout import Disclosure
from studio.app.widgets.sprites import filmstrip
from studio.app.widgets.sprites.filmstrip import Filmstrip, SpriteSheetView
from studio.app.widgets.sprites.predictions import PredictionsView
from studio.app.widgets.swatches import Swatches
from tests.conftest import make_sprites

SPRITES = make_sprites().rgba


@pytest.fixture
def strip(qtbot: QtBot) -> Filmstrip:
    made = Filmstrip()
    qtbot.addWidget(made)
    for step in (0, 100, 250):
        made.add(step, SPRITES[step // 100 : step // 100 + 4])
    return made


def test_the_filmstrip_follows_new_samples_until_it_is_dragged(strip: Filmstrip, qtbot: QtBot) -> None:
    assert strip.is_live() and strip.shown_step() == 250
    slider = strip.findChild(QSlider)
    assert slider is not None
    with qtbot.waitSignal(strip.step_shown) as shown:
        slider.setValue(0)
    assert shown.args == [0] and not strip.is_live()
    strip.add(300, SPRITES[:4])
    assert strip.shown_step() == 0
    button = strip.findChild(QPushButton)
    assert button is not None
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert strip.is_live() and strip.shown_step() == 300


def test_hovering_a_step_shows_what_there_was(strip: Filmstrip) -> None:
    for step, expected in ((0, 0), (99, 0), (100, 100), (249, 100), (9999, 250)):
        strip.show_step(step)
        assert strip.shown_step() == expected
        found = strip.sprites_at(step)
        assert found is not None and np.array_equal(found, SPRITES[expected // 100 : expected // 100 + 4])


@pytest.mark.parametrize("dragged_to", [0, 100, None])
def test_after_a_hover_there_is_what_was_there_before(strip: Filmstrip, dragged_to: int | None) -> None:
    if dragged_to is not None:
        strip.show_step(dragged_to)
    before, was_live = strip.shown_step(), strip.is_live()
    strip.peek(100)
    strip.peek(0)
    assert strip.shown_step() == 0
    strip.end_peek()
    assert (strip.shown_step(), strip.is_live()) == (before, was_live)


def test_what_is_on_show_is_never_what_a_resume_has_taken_away(strip: Filmstrip) -> None:
    strip.show_step(100)
    strip.add(50, SPRITES[9:13])
    assert strip.steps() == [0, 50] and not strip.is_live()
    assert strip.shown_step() == 50 and np.array_equal(strip.view._rgba, SPRITES[9:13])


def test_samples_that_a_resume_draws_anew_take_the_place_of_the_old(strip: Filmstrip) -> None:
    strip.add(100, SPRITES[:4])
    assert strip.steps() == [0, 100]
    strip.clear()
    assert strip.steps() == [] and strip.shown_step() == -1 and strip.sprites_at(5) is None


def test_a_film_too_long_for_its_room_loses_frames_between_the_first_and_the_last(
    strip: Filmstrip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filmstrip, "_ROOM_BYTES", 6 * SPRITES[:4].nbytes)
    strip.show_step(100)
    for step in range(300, 3000, 100):
        strip.add(step, SPRITES[:4])
        steps = strip.steps()
        assert steps[0] == 0 and steps[-1] == step and len(steps) <= 6 and steps == sorted(set(steps))
        assert not strip.is_live() and strip.shown_step() <= 100
    strip.go_live()
    assert strip.shown_step() == 2900


@pytest.mark.parametrize(("width", "height"), [(600, 200), (200, 600), (80, 60), (1600, 900)])
def test_the_sheet_shows_all_sprites_apart_and_inside(qtbot: QtBot, width: int, height: int) -> None:
    sheet = SpriteSheetView()
    qtbot.addWidget(sheet)
    sheet.set_sprites(SPRITES[:16], [str(number) for number in range(16)])
    sheet.resize(width, height)
    boxes = sheet._boxes()
    assert len(boxes) == 16 and len({box.width() for box in boxes}) == 1
    assert not any(a.intersects(b) for i, a in enumerate(boxes) for b in boxes[:i])
    if width * height > 80 * 60:
        assert all(sheet.rect().contains(box) for box in boxes)
    assert not sheet.grab().isNull()


def test_the_sheet_leaves_no_row_half_empty_where_it_need_not(qtbot: QtBot) -> None:
    sheet = SpriteSheetView()
    qtbot.addWidget(sheet)
    sheet.set_sprites(SPRITES[:16])
    sheet.resize(200, 66)  # at their largest there is room for 3 rows of 6 and for 2 of 8
    rows = {box.y() for box in sheet._boxes()}
    assert len(rows) == 2 and sheet._boxes()[0].width() == 16
    assert sheet.accessibleDescription() == "16 sprites"


def test_a_caption_that_is_cut_is_told_as_a_tool_tip(qtbot: QtBot) -> None:
    sheet = SpriteSheetView()
    qtbot.addWidget(sheet)
    sheet.resize(200, 100)
    sheet.set_sprites(SPRITES[:2], ["weapons/a very long sword", "gem"])
    sheet.show()
    place = sheet._boxes()[0].center()
    QApplication.sendEvent(sheet, QHelpEvent(QEvent.Type.ToolTip, place, sheet.mapToGlobal(place)))
    qtbot.waitUntil(QToolTip.isVisible)
    assert QToolTip.text() == "weapons/a very long sword"
    QToolTip.hideText()


def test_swatches_tell_their_colour_and_are_chosen_by_mouse_and_keys(qtbot: QtBot) -> None:
    swatches = Swatches(choosable=True)
    qtbot.addWidget(swatches)
    swatches.set_palette(np.array([[255, 0, 16, 255], [1, 2, 3, 255], [9, 9, 9, 255]], np.uint8), ["5 pixels", "", ""])
    model = swatches.model()
    texts = [model.index(row, 0).data(Qt.ItemDataRole.ToolTipRole) for row in range(2)]
    assert texts == ["#ff0010 – 5 pixels", "#010203"]
    assert QAccessible.queryAccessibleInterface(swatches).child(0).text(QAccessible.Text.Name) == texts[0]
    assert swatches.heightForWidth(16) == 3 * swatches.heightForWidth(100)
    swatches.resize(32, 32)
    swatches.show()
    assert swatches.viewport().size() == swatches.size() and swatches.verticalScrollBar().maximum() == 0
    image = swatches.viewport().grab().toImage()
    for row, colour in enumerate(("#ff0010", "#010203", "#090909")):
        place = swatches.visualRect(model.index(row, 0)).topLeft() + QPoint(7, 7)
        assert image.pixelColor(place) == QColor(colour)
        with qtbot.waitSignal(swatches.colour_pressed) as pressed:
            qtbot.mouseClick(swatches.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert pressed.args == [row]
    swatches.setCurrentIndex(model.index(0, 0))
    qtbot.keyClick(swatches, Qt.Key.Key_Right)
    for key in (Qt.Key.Key_Space, Qt.Key.Key_Return):
        with qtbot.waitSignal(swatches.colour_pressed) as pressed:
            qtbot.keyClick(swatches, key)
        assert pressed.args == [1]
    swatches.mark(2)
    assert swatches.viewport().grab().toImage() != image


def test_readings_keep_their_width(qtbot: QtBot) -> None:
    readings = Readings()
    qtbot.addWidget(readings)
    readings.set_reading("Step", "1,234,567")
    wide = readings.minimumSizeHint().width()
    readings.set_reading("Step", "1")
    assert readings.minimumSizeHint().width() == wide and readings.value("Step") == "1"
    readings.clear()
    assert readings.value("Step") == "–"


def test_folders_and_archives_can_be_dropped(qtbot: QtBot, tmp_path: Path) -> None:
    zone = DropZone()
    qtbot.addWidget(zone)
    mime = QMimeData()
    paths = [str(tmp_path), str(tmp_path / "pack.zip")]
    mime.setUrls([*map(QUrl.fromLocalFile, paths), QUrl("https://example.org/x.png")])
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    with qtbot.waitSignal(zone.paths_dropped) as dropped:
        zone.dropEvent(event)
    assert dropped.args == [paths]


def test_recent_folders_are_offered(qtbot: QtBot) -> None:
    zone = DropZone()
    qtbot.addWidget(zone)
    zone.set_recent(["/art/potions", "/art/swords"])
    zone.set_recent(["/art/gems", "/art/swords"])
    buttons = [each for each in zone.findChildren(QPushButton) if each.property("path") and each.isVisibleTo(zone)]
    assert [button.property("path") for button in buttons] == ["/art/gems", "/art/swords"]
    with qtbot.waitSignal(zone.recent_chosen) as chosen:
        qtbot.mouseClick(buttons[1], Qt.MouseButton.LeftButton)
    assert chosen.args == ["/art/swords"]


def test_a_recent_folder_may_have_any_name_and_length(qtbot: QtBot) -> None:
    zone = DropZone()
    qtbot.addWidget(zone)
    before = zone.minimumSizeHint().width()
    path = "/home/me/R&D/" + "far/" * 100 + "gems"
    zone.set_recent(["/home/me/R&D", path])
    buttons = {button.property("path"): button for button in zone.findChildren(QPushButton)}
    assert buttons["/home/me/R&D"].text().startswith("R&&D") and path in buttons[path].toolTip()
    assert zone.minimumSizeHint().width() <= max(before, 480)


def test_a_drag_is_welcome_when_it_brings_files(qtbot: QtBot, tmp_path: Path) -> None:
    zone = DropZone()
    qtbot.addWidget(zone)

    def drag(url: QUrl) -> bool:
        mime = QMimeData()
        mime.setUrls([url])
        keys = (Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
        event = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, mime, *keys)
        event.ignore()
        zone.dragEnterEvent(event)
        return event.isAccepted()

    assert drag(QUrl.fromLocalFile(str(tmp_path))) and not drag(QUrl("https://example.org/x.png"))


def test_the_keyboard_reaches_all_ways_on(qtbot: QtBot) -> None:
    zone = DropZone()
    qtbot.addWidget(zone)
    zone.set_recent(["/art/gems"])
    zone.show()
    qtbot.waitExposed(zone)
    buttons = zone.findChildren(QPushButton)
    assert len(buttons) == 3
    for button, said in zip(buttons, (zone.browse_requested, zone.demo_requested, zone.recent_chosen), strict=True):
        assert button.focusPolicy() & Qt.FocusPolicy.TabFocus and button.accessibleName() and button.toolTip()
        with qtbot.waitSignal(said):
            qtbot.keyClick(button, Qt.Key.Key_Space)


def test_texts_from_files_are_no_markup(qtbot: QtBot) -> None:
    label = factory.heading("<b>bold</b>")
    qtbot.addWidget(label)
    assert label.textFormat() == Qt.TextFormat.PlainText


def test_the_most_probable_classes_come_first(qtbot: QtBot) -> None:
    view = PredictionsView()
    qtbot.addWidget(view)
    probabilities = np.array([[0.1, 0.7, 0.2], [1.0, 0.0, 0.0]], np.float32)
    view.set_classes(SPRITES[:2], probabilities, ["gem", "sword", "potion"])
    assert view.view.model().index(0, 0).data() == "sword 70 %, potion 20 %, gem 10 %"
    view.resize(400, 300)
    assert not view.grab().isNull()


def test_numbers_stand_beside_the_true_ones(qtbot: QtBot) -> None:
    view = PredictionsView()
    qtbot.addWidget(view)
    numbers = np.array([[0.5, 1200], [0.25, 1200]], np.float32)
    view.set_numbers(SPRITES[:2], numbers, ["visible", "price"], np.array([[0.75, np.nan], [np.nan, 1]], np.float32))
    assert view.view.model().index(0, 0).data() == "visible 0.5, true 0.75, price 1,200"
    assert view.view.model().index(1, 0).data() == "visible 0.25, price 1,200, true 1"
    view.resize(400, 300)
    assert not view.grab().isNull()
    view.set_numbers(SPRITES[:0], numbers[:0], ["visible", "price"], numbers[:0])
    assert view.view.model().rowCount() == 0


def test_a_section_folds(qtbot: QtBot) -> None:
    content = QLabel("inside")
    section = Disclosure("Advanced", content)
    qtbot.addWidget(section)
    section.show()
    assert not content.isVisible()
    with qtbot.waitSignal(section.toggled) as toggled:
        section.set_open(True)
    assert toggled.args == [True] and content.isVisible() and section.is_open()


def test_setting_texts_keeps_the_count_of_none(qtbot: QtBot) -> None:
    """PySide6 6.12.0 loses a reference to None with every such call on Python 3.11, and dies in the end."""
    label = QLabel()
    qtbot.addWidget(label)
    label.setText("first")
    before = sys.getrefcount(None)
    for number in range(500):
        label.setText(str(number))
    assert abs(sys.getrefcount(None) - before) < 100
