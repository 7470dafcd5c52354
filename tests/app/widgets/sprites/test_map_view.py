"""The sprite map widget: positions, zoom, keys and pixels."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from studio.app.pages.lab.map_page import colour_groups
from studio.app.widgets.sprites.map_view import MapView
from studio.engine.quality.embedding_map import marker_spacing
from tests.app.widgets.tools import drawn_sprites, sprite_position
from tests.conftest import make_sprites

SPRITES = make_sprites(per_class=100)
POSITIONS = np.random.default_rng(0).random((200, 2)).astype(np.float32)


@pytest.fixture
def view(qtbot: QtBot) -> MapView:
    """Return a map of two hundred 8x8 sprites at random positions."""
    made = MapView()
    qtbot.addWidget(made)
    made.resize(500, 400)
    made.show()
    made.set_map(SPRITES.rgba, SPRITES.names, POSITIONS, marker_spacing(POSITIONS), SPRITES.labels)
    return made


def _pixels(view: MapView) -> np.ndarray:
    """Return the widget's pixels, uint8 [H, W, 4] in device pixels."""
    image = view.grab().toImage().convertToFormat(QImage.Format.Format_RGBA8888)
    return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)


def test_sprites_do_not_overlap_at_any_zoom(view: MapView) -> None:
    before: set[int] = set()
    inner = np.flatnonzero(np.abs(POSITIONS - 0.5).max(1) < 0.1)  # always in view
    few = np.isin(inner, drawn_sprites(view)).sum()
    for _ in range(4):
        here = drawn_sprites(view)
        points = np.array([(sprite_position(view, i).x(), sprite_position(view, i).y()) for i in here.tolist()])
        apart = np.abs(points[:, None] - points).max(2) + 1e6 * np.eye(len(points))
        assert apart.min() >= view.camera.side() / view.camera.ratio()
        places = {i: sprite_position(view, i) for i in before}
        seen = {i for i, place in places.items() if 40 < place.x() < 460 and 40 < place.y() < 360}
        assert seen <= set(here.tolist())  # sprites drawn before zooming in stay
        before = set(here.tolist())
        view.camera.zoom(1.5)
    view.camera.zoom(1 / 1.5)
    assert np.isin(inner, drawn_sprites(view)).sum() > few
    view.camera.zoom(1e9)
    assert view.camera.scale == 400 * view.camera.whole


def test_whole_device_pixels(view: MapView) -> None:
    for index in drawn_sprites(view)[:5].tolist():
        factor, side, ratio = view.camera.factor(), view.camera.side(), view.camera.ratio()
        middle = sprite_position(view, index)
        x, y = (round(value * ratio) - side // 2 for value in (middle.x(), middle.y()))
        shown = _pixels(view)[y : y + side, x : x + side]
        wanted = SPRITES.rgba[index].repeat(factor, 0).repeat(factor, 1)
        opaque = wanted[..., 3] == 255
        assert np.array_equal(shown[opaque], wanted[opaque])


def test_wheel_zooms_and_drag_pans(qtbot: QtBot, view: MapView) -> None:
    index = int(drawn_sprites(view)[0])
    at = sprite_position(view, index)
    view.camera.zoom(2.0, at)
    assert (sprite_position(view, index) - at).manhattanLength() < 1
    start, moved = QPoint(250, 200), QPoint(30, -20)
    chosen: list[int] = []
    view.chosen.connect(chosen.append)
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(view, start + moved / 2)
    QTest.mouseMove(view, start + moved)
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=start + moved)
    assert (sprite_position(view, index) - at - QPointF(moved)).manhattanLength() < 2 and not chosen
    QTest.mouseDClick(view, Qt.MouseButton.LeftButton, pos=start)
    assert len(drawn_sprites(view)) > 10 and view.camera.scale == view.camera.whole


def test_map_by_keyboard(qtbot: QtBot, view: MapView) -> None:
    QTest.keyClick(view, Qt.Key.Key_Plus)
    larger = view.camera.scale
    assert larger > view.camera.whole
    before = sprite_position(view, 0)
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert sprite_position(view, 0).x() == pytest.approx(before.x() - 64) and sprite_position(view, 0).y() == before.y()
    with qtbot.waitSignal(view.chosen) as chosen:
        QTest.keyClick(view, Qt.Key.Key_Return)
    (index,) = chosen.args
    assert max(abs(sprite_position(view, index).x() - 250), abs(sprite_position(view, index).y() - 200)) < 60
    with qtbot.waitSignal(view.end_chosen):
        QTest.keyClick(view, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClick(view, Qt.Key.Key_Minus)
    QTest.keyClick(view, Qt.Key.Key_Home)
    assert view.camera.scale == view.camera.whole
    view.resize(700, 600)
    assert view.camera.scale == view.camera.whole > larger / 1.25


def test_marked_sprites_are_always_drawn(view: MapView) -> None:
    hidden = int(next(i for i in range(200) if i not in set(drawn_sprites(view).tolist())))
    before = _pixels(view).copy()
    view.select(hidden)
    chosen = _pixels(view).copy()
    assert (before != chosen).any(-1).sum() > view.camera.side() ** 2 / 2
    view.mark({hidden: "A"})
    assert (chosen != _pixels(view)).any()


def test_empty_map(qtbot: QtBot) -> None:
    made = MapView()
    qtbot.addWidget(made)
    made.show()
    QTest.keyClick(made, Qt.Key.Key_Return)
    assert made.camera.at(QPointF(5, 5)) == -1


def test_colour_groups_by_class_or_folder() -> None:
    groups, names = colour_groups(("sword", "potion", "none of these"), np.array([0, 1, 1]))
    assert names == ["potion", "sword"] and groups.tolist() == [1, 0, 0]
    many = tuple(f"{folder}/{number}" for folder in ("item", "mon") for number in range(9))
    groups, names = colour_groups(many, np.arange(18))
    assert names == ["item", "mon"] and groups.tolist() == [0] * 9 + [1] * 9
    flat = tuple(f"class{number:02d}" for number in range(12))
    labels = np.repeat(np.arange(12), np.arange(12, 0, -1))
    groups, names = colour_groups(flat, labels)
    assert names == list(flat[:8]) and (groups[labels >= 8] == -1).all() and groups[0] == 0
