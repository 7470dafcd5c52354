"""Filmstrip, sprite sheet, swatches, readings, drop zone, predictions, layouts and labels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QAccessible, QColor, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QSlider, QStyleOptionComboBox, QWidget
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.pages.train.monitor import Readings
from studio.app.widgets import factory
from studio.app.widgets.combo_box import ComboBox
from studio.app.widgets.drop_zone import DropZone
from studio.app.widgets.factory import ElidedLabel
from studio.app.widgets.layout import Collapsible, FlowLayout, SteadyWidth
from studio.app.widgets.sprites import filmstrip
from studio.app.widgets.sprites.filmstrip import Filmstrip
from studio.app.widgets.sprites.predictions import PredictionsView
from studio.app.widgets.sprites.sheet_view import SpriteSheetView
from studio.app.widgets.swatches import Swatches
from studio.core.events import SamplesReady
from tests.app.conftest import click
from tests.app.widgets.tools import NO_KEY, child, shown, tip_at
from tests.conftest import make_sprites

SPRITES = make_sprites().rgba


@pytest.fixture
def strip(qtbot: QtBot) -> Filmstrip:
    made = Filmstrip()
    qtbot.addWidget(made)
    for step in (0, 100, 250):
        made.add(SamplesReady(step, SPRITES[step // 100 : step // 100 + 4]))
    return made


@pytest.fixture
def sheet(qtbot: QtBot) -> SpriteSheetView:
    made = SpriteSheetView()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def zone(qtbot: QtBot) -> DropZone:
    made = DropZone()
    qtbot.addWidget(made)
    return made


def test_filmstrip_follows_until_dragged(strip: Filmstrip, qtbot: QtBot) -> None:
    assert strip.is_live() and strip.shown_step() == 250
    child(strip, QSlider).setValue(0)
    assert strip.shown_step() == 0 and not strip.is_live()
    strip.add(SamplesReady(300, SPRITES[:4]))
    assert strip.shown_step() == 0
    click(child(strip, QPushButton))
    assert strip.is_live() and strip.shown_step() == 300


def test_samples_show_whole_class_names(sheet: SpriteSheetView) -> None:
    sheet.resize(600, 120)
    pictures = []
    for names in (("swords", "maces") * 2, ("items/swords", "maces") * 2):
        sheet.set_sprites(SPRITES[:4], names)
        pictures.append(sheet.grab().toImage())
    assert pictures[0] != pictures[1]


def test_peek_shows_earlier_samples(strip: Filmstrip) -> None:
    for step, expected in ((0, 0), (99, 0), (100, 100), (249, 100), (9999, 250)):
        strip.show_step(step)
        assert strip.shown_step() == expected
        found = strip.sprites_at(step)
        assert found is not None and np.array_equal(found, SPRITES[expected // 100 : expected // 100 + 4])


@pytest.mark.parametrize("dragged_to", [0, 100, None])
def test_end_peek_restores_the_step(strip: Filmstrip, dragged_to: int | None) -> None:
    if dragged_to is not None:
        strip.show_step(dragged_to)
    before, was_live = strip.shown_step(), strip.is_live()
    strip.peek(100)
    strip.peek(0)
    assert strip.shown_step() == 0
    strip.end_peek()
    assert (strip.shown_step(), strip.is_live()) == (before, was_live)


def test_resumed_samples_replace_later_ones(strip: Filmstrip) -> None:
    strip.show_step(100)
    strip.add(SamplesReady(50, SPRITES[9:13]))
    assert strip.steps() == [0, 50] and not strip.is_live()
    assert strip.shown_step() == 50 and np.array_equal(strip.view._shown.rgba, SPRITES[9:13])
    strip.add(SamplesReady(50, SPRITES[:4]))
    assert strip.steps() == [0, 50] and np.array_equal(strip.view._shown.rgba, SPRITES[:4])
    strip.clear()
    assert strip.steps() == [] and strip.shown_step() == -1 and strip.sprites_at(5) is None


def test_long_film_is_thinned(strip: Filmstrip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filmstrip, "_ROOM_BYTES", 6 * SPRITES[:4].nbytes)
    strip.show_step(100)
    for step in range(300, 3000, 100):
        strip.add(SamplesReady(step, SPRITES[:4]))
        steps = strip.steps()
        assert steps[0] == 0 and steps[-1] == step and len(steps) <= 6 and steps == sorted(set(steps))
        assert not strip.is_live() and strip.shown_step() <= 100
    strip.go_live()
    assert strip.shown_step() == 2900


@pytest.mark.parametrize(("width", "height"), [(600, 200), (200, 600), (80, 60), (1600, 900)])
def test_sheet_shows_all_sprites_inside(sheet: SpriteSheetView, width: int, height: int) -> None:
    sheet.set_sprites(SPRITES[:16], [str(number) for number in range(16)])
    sheet.resize(width, height)
    boxes = sheet.places().boxes
    assert len(boxes) == 16 and len({box.width() for box in boxes}) == 1
    assert not any(a.intersects(b) for i, a in enumerate(boxes) for b in boxes[:i])
    if width * height > 80 * 60:
        assert all(sheet.rect().contains(box) for box in boxes)
    assert not sheet.grab().isNull()


def test_sheet_avoids_half_empty_rows(sheet: SpriteSheetView) -> None:
    sheet.set_sprites(SPRITES[:16])
    sheet.resize(200, 66)  # the largest size fits 3 rows of 6 and 2 rows of 8
    rows = {box.y() for box in sheet.places().boxes}
    assert len(rows) == 2 and sheet.places().boxes[0].width() == 16
    assert sheet.accessibleDescription() == "16 sprites"


def test_elided_caption_has_a_tooltip(sheet: SpriteSheetView, qtbot: QtBot) -> None:
    sheet.set_sprites(SPRITES[:2], ["weapons/a very long sword", "gem"])
    shown(qtbot, sheet, 200, 100)
    assert tip_at(qtbot, sheet, sheet.places().boxes[0].center()) == "weapons/a very long sword"


def test_unreadable_captions_are_tooltips_alone(sheet: SpriteSheetView, qtbot: QtBot) -> None:
    names = [f"dungeon/gateways/{number}" for number in range(16)]
    sheet.set_sprites(SPRITES[:16], names)
    shown(qtbot, sheet, 120, 80)
    assert sheet.places().caption == 0 and sheet.rect().contains(sheet.places().boxes[-1])
    assert tip_at(qtbot, sheet, sheet.places().boxes[3].center()) == names[3]
    sheet.resize(900, 300)
    assert sheet.places().caption > 0


def test_swatches_by_mouse_and_keys(qtbot: QtBot) -> None:
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


def test_readings_never_shrink(qtbot: QtBot) -> None:
    readings = Readings()
    qtbot.addWidget(readings)
    readings.set_reading("Step", "1,234,567")
    wide = readings.minimumSizeHint().width()
    readings.set_reading("Step", "1")
    assert readings.minimumSizeHint().width() == wide and readings.value("Step") == "1"
    readings.clear()
    assert readings.value("Step") == "–"


def test_drop_local_files(zone: DropZone, qtbot: QtBot, tmp_path: Path) -> None:
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    elsewhere, mime = QUrl("https://example.org/x.png"), QMimeData()
    paths = [tmp_path, tmp_path / "pack.zip"]
    for urls, welcome in (([elsewhere], False), ([elsewhere, *map(QUrl.fromLocalFile, map(str, paths))], True)):
        mime.setUrls(urls)
        drag = QDragEnterEvent(QPoint(5, 5), copy, mime, left, NO_KEY)
        drag.ignore()
        zone.dragEnterEvent(drag)
        assert drag.isAccepted() == welcome
    with qtbot.waitSignal(zone.paths_chosen) as dropped:
        zone.dropEvent(QDropEvent(QPointF(5, 5), copy, mime, left, NO_KEY))
    assert dropped.args == [paths]


def test_recent_folders(zone: DropZone, qtbot: QtBot) -> None:
    zone.set_recent(["/art/potions", "/art/swords"])
    zone.set_recent(["/art/gems", "/art/swords"])
    buttons = [each for each in zone.findChildren(QPushButton) if each.property("path") and each.isVisibleTo(zone)]
    assert [button.property("path") for button in buttons] == ["/art/gems", "/art/swords"]
    with qtbot.waitSignal(zone.paths_chosen) as chosen:
        click(buttons[1])
    assert chosen.args == [[Path("/art/swords")]]


def test_recent_folders_with_odd_names(zone: DropZone) -> None:
    before = zone.minimumSizeHint().width()
    path = "/home/me/R&D/" + "far/" * 100 + "gems"
    zone.set_recent(["/home/me/R&D", path])
    buttons = {button.property("path"): button for button in zone.findChildren(QPushButton)}
    assert buttons["/home/me/R&D"].text().startswith("R&&D") and path in buttons[path].toolTip()
    assert zone.minimumSizeHint().width() <= max(before, 480)


def test_drop_zone_by_keyboard(zone: DropZone, qtbot: QtBot) -> None:
    zone.set_recent(["/art/gems"])
    shown(qtbot, zone, 500, 400)
    ways = (zone.browse_requested, zone.demo_requested, zone.paths_chosen)
    for button, said in zip(zone.findChildren(QPushButton), ways, strict=True):
        assert button.focusPolicy() & Qt.FocusPolicy.TabFocus and button.accessibleName() and button.toolTip()
        with qtbot.waitSignal(said):
            qtbot.keyClick(button, Qt.Key.Key_Space)


def test_file_texts_are_plain(qtbot: QtBot) -> None:
    label = factory.heading("<b>bold</b>")
    qtbot.addWidget(label)
    assert label.textFormat() == Qt.TextFormat.PlainText


def test_predictions_are_sorted_and_show_true_numbers(qtbot: QtBot) -> None:
    predictions = shown(qtbot, PredictionsView(), 400, 300)
    model = predictions.view.model()

    def said() -> list[str]:
        assert not predictions.grab().isNull()
        return [model.index(row, 0).data() for row in range(model.rowCount())]

    probabilities = np.array([[0.1, 0.7, 0.2], [1.0, 0.0, 0.0]], np.float32)
    predictions.set_classes(SPRITES[:2], probabilities, ["gem", "sword", "potion"])
    assert said() == ["sword 70 %, potion 20 %, gem 10 %", "gem 100 %, sword 0 %, potion 0 %"]
    numbers = np.array([[0.5, 1200], [0.25, 1200]], np.float32)
    true = np.array([[0.75, np.nan], [np.nan, 1]], np.float32)
    predictions.set_numbers(SPRITES[:2], numbers, ["visible", "price"], true)
    assert said() == ["visible 0.5, true 0.75, price 1,200", "visible 0.25, price 1,200, true 1"]
    predictions.set_numbers(SPRITES[:0], numbers[:0], ["visible", "price"], numbers[:0])
    assert said() == []


def test_collapsible_section(qtbot: QtBot) -> None:
    content = QLabel("inside")
    section = Collapsible("Advanced", content)
    qtbot.addWidget(section)
    section.show()
    assert not content.isVisible()
    with qtbot.waitSignal(section.toggled) as toggled:
        section.set_open(True)
    assert toggled.args == [True] and content.isVisible() and section.is_open()


def test_zero_counts_keep_their_text(qtbot: QtBot) -> None:
    """PySide6 6.12.0 on Python 3.11 loses a reference to None in each call and finally crashes."""
    label = QLabel()
    qtbot.addWidget(label)
    label.setText("first")
    before = sys.getrefcount(None)
    for number in range(500):
        label.setText(str(number))
    assert abs(sys.getrefcount(None) - before) < 100


def test_hidden_items_take_no_room(qtbot: QtBot) -> None:
    host, flow = QWidget(), FlowLayout(8, 4)
    qtbot.addWidget(host)
    buttons = [QPushButton(text) for text in ("one", "two", "three")]
    for button in buttons:
        flow.addWidget(button)
    host.setLayout(flow)
    buttons[1].hide()
    host.resize(400, 100)
    host.show()
    assert buttons[2].x() == buttons[0].geometry().right() + 1 + 8
    assert flow.sizeHint().width() == buttons[0].sizeHint().width() + 8 + buttons[2].sizeHint().width()
    host.resize(flow.minimumSize().width(), 100)
    assert buttons[2].x() == buttons[0].x() and buttons[2].y() == buttons[0].geometry().bottom() + 1 + 4


def test_low_items_are_centred_beside_high_items(qtbot: QtBot) -> None:
    low, high = QPushButton("low"), QPushButton("high")
    high.setMinimumHeight(60)
    host = factory.panel(FlowLayout(8, 4, low, high))
    qtbot.addWidget(host)
    for width in (400, 100):
        host.resize(width, 200)
        host.show()
        beside = low.y() < high.geometry().bottom() and high.x() > low.x()
        assert beside == (width == 400)
        assert abs(low.geometry().center().y() - high.geometry().center().y()) <= 1 or not beside
        assert host.rect().contains(low.geometry()) and host.rect().contains(high.geometry())


def test_combo_box_elides_a_long_text(qtbot: QtBot) -> None:
    box = ComboBox()
    box.addItems(["short", "2026-11-28 22:31, generator, item"])
    shown(qtbot, box, 160, 30)
    texts = []
    for index in range(2):
        box.setCurrentIndex(index)
        option = QStyleOptionComboBox()
        box.initStyleOption(option)
        texts.append(option.currentText)
    assert texts[0] == "short" and texts[1].startswith("2026") and texts[1].endswith("…")
    assert box.currentText().endswith("item")


def test_elided_label_moves_no_neighbour(qtbot: QtBot) -> None:
    label, window = ElidedLabel(), QWidget()
    window.setLayout(factory.row(factory.button("Cancel", "End it."), label))
    qtbot.addWidget(window)
    window.resize(400, 40)
    window.show()
    words = "300,000 of 300,000 sprites kept for the next time, and more words than there is room for"
    label.show_text("1 file")
    before = label.geometry(), window.minimumSizeHint()
    label.show_text(words)
    qtbot.wait(0)
    assert (label.geometry(), window.minimumSizeHint()) == before
    assert label.text().endswith("…") and words.startswith(label.text()[:-1])
    assert label.toolTip() == words
    window.resize(1600, 40)
    qtbot.waitUntil(lambda: label.text() == words)
    assert not label.toolTip()


def test_scroll_area_height_without_wrapping_text(qtbot: QtBot) -> None:
    label, box = factory.text("A few words."), QWidget()
    box.setFixedHeight(50)
    content = factory.panel(factory.column(label, box))
    area = shown(qtbot, factory.scroll_area(content), 200, 100)
    qtbot.waitUntil(lambda: content.minimumHeight() > 50)
    label.hide()
    box.setFixedHeight(400)
    qtbot.waitUntil(lambda: content.height() >= 400)
    assert area.height() == 100


def test_disabled_button_shows_the_reason_until_enabled(qtbot: QtBot) -> None:
    button = factory.button("Start", "Start the training.")
    qtbot.addWidget(button)
    factory.set_enabled(button, "Open sprites first.")
    assert not button.isEnabled() and button.toolTip() == "Start: open sprites first."
    factory.set_enabled(button, "")
    assert button.isEnabled() and button.toolTip() == "Start the training."
    factory.set_enabled(button, "Open sprites first.", "Resume the training.")
    factory.set_enabled(button, "")
    assert button.toolTip() == "Resume the training."
    for reason in ("PyTorch is loading.", "Batch size: 0 is too small.", "'0' is too small."):
        factory.set_enabled(button, reason)
        assert button.toolTip() == f"Start: {reason}"


def test_a_steady_button_keeps_its_width(qtbot: QtBot, qapp: QApplication) -> None:
    button = factory.button("Stop", "Stop the training.", "stop", "primary")
    SteadyWidth(button, "Stop", "Saving the run…")
    row = shown(qtbot, factory.panel(factory.row(button, 1)), 400, 60)
    row.setStyleSheet(theme.apply(qapp, "light").stylesheet())
    qapp.processEvents()
    width = button.width()
    factory.set_button_text(button, "Saving the run…")
    qapp.processEvents()
    assert button.width() == width >= button.sizeHint().width()
