"""The sprite map on the Lab page, from choosing a run to the latent walk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from studio.app.pages.lab.map_page import MapPage
from studio.app.pages.lab.page import LabPage
from studio.app.state.session import Session
from studio.core import paths
from studio.core.events import Events
from studio.engine.control.control import Control
from studio.engine.devices.types import CodesDecoded
from studio.engine.models.loading import load_model
from studio.engine.quality import embedding_map
from studio.engine.quality.embedding_map import decode
from studio.engine.training.loop import train_new
from studio.recipes.autoencoder import Autoencoder
from studio.recipes.classifier import Classifier
from tests.app.conftest import LONG_MS, click, endless, show_alone
from tests.app.widgets.tools import drawn_sprites, sprite_position
from tests.conftest import make_sprites
from tests.engine.tools import CPU

ShownSprites = Callable[[str], MapPage]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an autoencoder and a newer classifier, trained once."""
    folder = tmp_path_factory.mktemp("map")
    for recipe, name in ((Autoencoder(), "codes"), (Classifier(), "classes")):
        config = recipe.small.replace(steps=2, batch_size=8, precision="fp32", holdout=0.2, sample_every_s=1e3)
        list(train_new(folder / name, make_sprites(), recipe, config, CPU, Control()))
    return folder


@pytest.fixture
def runs(trained: Path) -> None:
    """Copy the trained runs to the runs folder. Request this fixture before the session opens."""
    shutil.copytree(trained, paths.runs())


@pytest.fixture
def lab(qtbot: QtBot, runs: None, session: Session) -> LabPage:
    """Return the Lab page alone."""
    return show_alone(qtbot, session, LabPage)


@pytest.fixture
def page(qtbot: QtBot, lab: LabPage) -> MapPage:
    """Return the map page with the runs listed."""
    lab.tabs.setCurrentWidget(lab.map)
    qtbot.waitUntil(lab.map.show_map.isEnabled, timeout=LONG_MS)
    return lab.map


def _show(qtbot: QtBot, page: MapPage, run: str = "codes") -> None:
    page.choice.choose(paths.runs() / run)
    with qtbot.waitSignal(page._map.made, timeout=LONG_MS):
        click(page.show_map)
    qtbot.waitUntil(page.show_map.isVisible, timeout=LONG_MS)


def _walks(page: MapPage) -> bool:
    return page.walk.slider.isVisible()


def test_clicking_a_sprite_shows_its_neighbours(qtbot: QtBot, page: MapPage) -> None:
    assert page.choice.models.itemText(0) == "codes"  # first, although the classifier is newer
    assert not page.view.isVisible()
    _show(qtbot, page)
    shown = page._map.shown
    assert shown is not None and page.view.isVisible() and "24 sprites" in page._summary.text()
    index = int(drawn_sprites(page.view)[3])
    QTest.mouseClick(page.view, Qt.MouseButton.LeftButton, pos=sprite_position(page.view, index).toPoint())
    assert page.name.text() == shown.sprites.names[index] and page.large.isVisible()
    assert shown.sprites.class_names[shown.sprites.labels[index]] in page.about.text()
    assert shown.sprites.names[index] in page.view.accessibleDescription()
    near = [button for button in page.neighbours._buttons if button.isVisible()]
    assert [button.accessibleName() for button in near] == [shown.sprites.names[i] for i in shown.neighbours[index, :6]]
    click(near[2])
    assert page.name.text() == shown.sprites.names[shown.neighbours[index, 2]]
    click(page.odd._buttons[0])
    assert page.name.text() == shown.sprites.names[shown.odd[0]]
    middle = sprite_position(page.view, int(shown.odd[0]))
    assert abs(middle.x() - page.view.width() / 2) < 1 and abs(middle.y() - page.view.height() / 2) < 1


def test_latent_walk_from_a_to_b(qtbot: QtBot, page: MapPage) -> None:
    _show(qtbot, page)
    shown = page._map.shown
    assert shown is not None and not _walks(page)
    drawn = drawn_sprites(page.view)
    first, last = int(drawn[0]), int(drawn[-1])
    for index, modifiers in ((first, Qt.KeyboardModifier.NoModifier), (last, Qt.KeyboardModifier.ShiftModifier)):
        page.view.show_sprite(index)
        QTest.mouseClick(page.view, Qt.MouseButton.LeftButton, modifiers, sprite_position(page.view, index).toPoint())
    assert page.walk.ends == (first, last) and _walks(page)
    qtbot.waitUntil(lambda: page._map._decoding is None, timeout=LONG_MS)
    model = load_model(paths.runs() / "codes", "best", CPU)
    for value, index in ((100, last), (0, first)):
        with qtbot.waitSignal(page._map.decoded, timeout=LONG_MS) as decoded:
            page.walk.slider.setValue(value)
        assert np.array_equal(page.walk.drawn._sprite, decoded.args[0])
        (alone,) = decode(model, shown.features[[index]])
        assert isinstance(alone, CodesDecoded) and np.array_equal(decoded.args[0], alone.sprites[0])
    page.select(first)
    assert not _walks(page)


def test_only_the_newest_decode_request_waits(qtbot: QtBot, page: MapPage, monkeypatch: pytest.MonkeyPatch) -> None:
    _show(qtbot, page)
    asked: list[float] = []

    def noted(model: object, codes: np.ndarray) -> Events:
        asked.append(float(codes[0, 0]))
        yield CodesDecoded(np.zeros((1, 8, 8, 4), np.uint8))

    monkeypatch.setattr(embedding_map, "decode", noted)
    for value in range(20):
        page._map.decode(np.full(8, value, np.float32))
    qtbot.waitUntil(lambda: page._map._decoding is None, timeout=LONG_MS)
    assert asked == [0, 19]


def test_code_of_another_model_is_not_decoded(qtbot: QtBot, page: MapPage) -> None:
    _show(qtbot, page)
    queue = page._session.job_queue
    page._map._decoding = queue.start("files", "Drawing for ever", endless(), page._map._on_decode_event)
    page._map.decode(np.zeros(8, np.float32))
    _show(qtbot, page, "classes")
    qtbot.waitUntil(lambda: not queue.running(), timeout=LONG_MS)
    _show(qtbot, page)
    with qtbot.waitSignal(page._map.decoded, timeout=LONG_MS):
        page._map.decode(np.zeros(8, np.float32))


def test_model_without_decoder_shows_a_hint(qtbot: QtBot, page: MapPage) -> None:
    _show(qtbot, page, "classes")
    page.select(0)
    page.end_walk(1)
    assert not _walks(page) and "Autoencoder" in page.walk._hint.text() and page.walk.ends is None


def test_cancel_making_the_map(qtbot: QtBot, page: MapPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_map, "make_map", endless)
    click(page.show_map)
    assert page.cancel.isVisible() and not page.show_map.isVisible()
    click(page.cancel)
    qtbot.waitUntil(page.show_map.isVisible, timeout=LONG_MS)
    assert page._map.shown is None


def test_page_without_runs(qtbot: QtBot, session: Session, tmp_path: Path) -> None:
    lab = show_alone(qtbot, session, LabPage)
    page = lab.map
    assert not page.show_map.isEnabled() and "Autoencoder" in page.show_map.toolTip()
