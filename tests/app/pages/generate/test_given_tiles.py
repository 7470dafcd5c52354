"""The dialog for given tiles: images go into places, contradictions are told, and the set is kept for drawing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.pages.generate.given_tiles import GivenTilesDialog
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.app.window import Window
from studio.core import paths
from studio.core.arrays import Rgba
from studio.data.tiles.given_file import given_from_bytes
from studio.data.tiles.layout import TileSetSpec
from tests.app.conftest import LONG_MS, click

_SPEC = TileSetSpec("corner", ("land/grass", "water"))
_SIZE = 16
_GRASS, _WATER = (40, 150, 50, 255), (40, 70, 200, 255)


def _tile(colour: tuple[int, int, int, int]) -> Rgba:
    return np.full((_SIZE, _SIZE, 4), colour, np.uint8)


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def dialog(parent: QWidget, session: Session) -> GivenTilesDialog:
    made = GivenTilesDialog(parent, session, _SPEC, _SIZE)
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    made.open()
    return made


def test_tiles_are_pasted_opened_cleared_and_kept(
    qtbot: QtBot, session: Session, dialog: GivenTilesDialog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corners = _SPEC.layout(_SIZE).corners
    (grass,), (water,) = (np.flatnonzero((corners == terrain).all(1)).tolist() for terrain in (0, 1))
    dialog.table.select([grass])
    image = QImage(_tile(_GRASS).tobytes(), _SIZE, _SIZE, QImage.Format.Format_RGBA8888)
    QGuiApplication.clipboard().setImage(image)
    QTest.keyClick(dialog.table, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert (dialog.tiles[grass] == _GRASS).all() and "1 of 16 tiles given." in dialog._hint.text()
    path = tmp_path / "water.png"
    Image.fromarray(_tile(_WATER)).save(path)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    assert dialog.take(data, water) and not dialog.use.isEnabled()
    qtbot.waitUntil(lambda: bool(dialog.tiles[water].any()), timeout=LONG_MS)
    mixed = int(np.flatnonzero(corners.sum(1) == 1)[0])
    monkeypatch.setattr(dialogs, "choose_files", lambda *_: [path])
    dialog.table.select([mixed])
    QTest.keyClick(dialog.table, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(dialog.tiles[mixed].any()) and dialog.use.isEnabled(), timeout=LONG_MS)
    click(dialog.use)
    assert dialog.isVisible() and "shows water" in dialog.error.text()
    dialog.table.select([mixed])
    QTest.keyClick(dialog.table, Qt.Key.Key_Delete)
    assert not dialog.tiles[mixed].any() and not dialog.error.isVisible()
    click(dialog.use)
    kept = session.given_tiles.of(_SPEC, _SIZE)
    assert not dialog.isVisible() and kept is not None and np.flatnonzero(kept[..., 3].any((1, 2))).size == 2
    assert session.given_tiles.of(TileSetSpec("corner", ("a", "b")), _SIZE) is None


def test_the_largest_set_fits_a_small_window(parent: QWidget, session: Session) -> None:
    parent.resize(790, 550)
    made = GivenTilesDialog(parent, session, TileSetSpec("corner", ("a", "b", "c", "d")), _SIZE)
    made.open()
    bottom = made.use.mapTo(made, made.use.rect().bottomLeft()).y()
    assert made.height() <= 550 and bottom < made.height() and made.table.height() > 250
    made.close()


def test_images_that_fit_no_place_are_refused(dialog: GivenTilesDialog) -> None:
    dialog.take(_image_data(5, 7), 0)
    assert "5 x 7 pixels" in dialog.error.text() and not dialog.tiles.any()
    dialog.take(_image_data(64, 64), 0)
    assert "given" in dialog._hint.text() and dialog.tiles.all()
    assert not dialog.take(QMimeData(), 0)


def test_given_tiles_survive_a_restart(qtbot: QtBot) -> None:
    first, given = Session(Settings()), np.zeros((16, _SIZE, _SIZE, 4), np.uint8)
    first.given_tiles.give(TileSetSpec("corner", ("unused", "water")), given + 1)
    given[[2, 5]] = _tile(_GRASS)
    first.given_tiles.give(_SPEC, given)
    second = Session(Settings())  # an open window keeps its own tiles
    first.given_tiles.store()
    second.given_tiles.store()
    assert second.given_tiles.of(_SPEC, _SIZE) is None and first.close() and second.close()
    third = Session(Settings())
    np.testing.assert_array_equal(third.given_tiles.of(_SPEC, _SIZE), given)
    np.testing.assert_array_equal(third.given_tiles.of(replace(_SPEC, kind="dual-grid"), _SIZE), given)
    assert third.given_tiles.of(_SPEC, 8) is third.given_tiles.of(replace(_SPEC, kind="blob"), _SIZE) is None
    third.given_tiles.give(_SPEC, given * 0)
    third.given_tiles.give(TileSetSpec("corner", ("unused", "water")), given * 0)
    third.given_tiles.store()
    assert third.close() and not (paths.home() / "given-tiles.npz").exists()


def test_damaged_given_tiles_are_forgotten(qtbot: QtBot) -> None:
    path = paths.home() / "given-tiles.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PK damaged")
    session, given = Session(Settings()), np.zeros((16, _SIZE, _SIZE, 4), np.uint8)
    assert session.given_tiles.of(_SPEC, _SIZE) is None
    given[3] = _tile(_WATER)
    session.given_tiles.give(_SPEC, given)
    session.given_tiles.store()
    assert session.close()
    assert [*given_from_bytes(path.read_bytes())] == [(_SPEC, _SIZE)]


def test_given_tiles_stay_when_the_number_of_variants_changes(session: Session) -> None:
    twice, given = replace(_SPEC, variants=2), np.zeros((32, _SIZE, _SIZE, 4), np.uint8)
    given[[3, 20]] = _tile(_GRASS)
    session.given_tiles.give(twice, given)
    np.testing.assert_array_equal(session.given_tiles.of(_SPEC, _SIZE), given[:16])
    session.given_tiles.give(_SPEC, given[:16] * 0)
    assert session.given_tiles.of(_SPEC, _SIZE) is None
    given[3] = 0
    np.testing.assert_array_equal(session.given_tiles.of(twice, _SIZE), given)
    more = session.given_tiles.of(replace(_SPEC, variants=3), _SIZE)
    assert more is not None and len(more) == 48 and np.array_equal(more[:32], given) and not more[32:].any()


def test_the_page_stores_given_tiles(window: Window) -> None:
    given = np.zeros((16, _SIZE, _SIZE, 4), np.uint8)
    given[3] = _tile(_WATER)
    window.session.given_tiles.give(_SPEC, given)
    window.generate.save_state()
    assert (paths.home() / "given-tiles.npz").is_file()


def _image_data(width: int, height: int) -> QMimeData:
    image = QImage(width, height, QImage.Format.Format_RGBA8888)
    image.fill(Qt.GlobalColor.white)
    data = QMimeData()
    data.setImageData(image)
    return data
