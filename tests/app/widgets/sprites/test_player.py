"""Playing frames: loop, speed, onion skin, and the keys of the slider."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from studio.app.widgets.sprites.filmstrip import Filmstrip
from studio.app.widgets.sprites.player import Player
from studio.core.arrays import Rgba
from studio.core.events import SamplesReady
from tests.app.conftest import click
from tests.app.widgets.tools import shown


@pytest.fixture
def frames() -> Rgba:
    """Return three frames, each with another opaque column."""
    made = np.zeros((3, 4, 4, 4), np.uint8)
    for index in range(3):
        made[index, :, index] = [250, 10, 10, 255]
    return made


@pytest.fixture
def player(qtbot: QtBot, frames: Rgba) -> Player:
    made = shown(qtbot, Player(), 160, 240)
    made.playback.speed.setValue(50)
    made.show_frames(frames)
    return made


def test_frames_play_in_a_loop_until_paused(qtbot: QtBot, player: Player, frames: Rgba) -> None:
    seen = [player.frame()]  # a busy machine may have played frames since the fixture
    player.slider.valueChanged.connect(seen.append)
    qtbot.waitUntil(lambda: len(seen) > 4)
    assert [(frame - seen[0]) % 3 for frame in seen[:5]] == [0, 1, 2, 0, 1]
    assert player.playback.is_playing() and player.playback.play.accessibleName() == "Pause"
    click(player.playback.play)
    frame = player.frame()
    QTest.keyClick(player.slider, Qt.Key.Key_Home)
    QTest.keyClick(player.slider, Qt.Key.Key_Right)
    assert not player.playback.is_playing() and player.frame() == 1 and frame in range(3)
    player.show_frames(frames.copy())  # the same film
    assert player.frame() == 1 and not player.playback.is_playing()


def test_speed_sets_the_duration_of_frames(player: Player) -> None:
    assert player.playback.duration_ms() == 20
    player.playback.speed.setValue(8)
    assert player.playback.duration_ms() == 125


def test_hidden_film_rests(qtbot: QtBot, player: Player) -> None:
    player.hide()
    assert not player.playback._timer.isActive()
    player.show()
    assert player.playback._timer.isActive()


def test_onion_skin_shows_the_neighbouring_frames(player: Player) -> None:
    player.playback.pause()
    player.slider.setValue(1)

    def reds() -> list[int]:
        image, ratio = player.view.grab().toImage(), player.view.devicePixelRatioF()
        middle, half = player.view.rect().center(), min(player.view.width(), player.view.height()) // 4 * 2
        xs = [middle.x() - half + half // 2 * index + half // 4 for index in range(4)]
        colours = (image.pixelColor(int(x * ratio), int(middle.y() * ratio)) for x in xs)
        return [colour.red() - colour.green() for colour in colours]

    plain = reds()
    assert plain[1] > 200 and max(plain[0], plain[2], plain[3]) < 20
    player.onion.click()
    before, current, after, other = reds()
    assert current == plain[1] and 200 > before > after > 20 > other


def test_a_single_frame_does_not_play(player: Player, frames: Rgba) -> None:
    player.show_frames(frames[:1])
    assert not player.playback.is_playing() and player.frame() == 0
    assert not player.playback.play.isEnabled() and player.playback.play.toolTip() == "Play: too few frames to play."


def test_timelapse_plays_in_its_filmstrip(qtbot: QtBot, frames: Rgba) -> None:
    strip = shown(qtbot, Filmstrip(), 500, 300)
    assert not strip.playback.play.isEnabled()
    for index in range(3):
        strip.add(SamplesReady(10 * index, frames[index : index + 1]))
    strip.playback.speed.setValue(50)
    seen: list[int] = []
    strip._slider.valueChanged.connect(lambda: seen.append(strip.shown_step()))
    click(strip.playback.play)
    qtbot.waitUntil(lambda: len(seen) > 2)
    assert set(seen[:3]) == {0, 10, 20}
    strip.clear()
    assert not strip.playback.is_playing()
