"""The Generate page with a model of sets: give, draw, lock, redraw, correct, carry over, undo and save."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.pages.generate.page import GeneratePage
from studio.app.state.models.characters import CharacterDrafts
from studio.app.state.session import Session
from studio.app.state.undo import UndoHistory
from studio.core import paths
from studio.data.pixels.editing import EditedSprite
from studio.data.sets.drafts import GIVEN, CellRef
from studio.engine.sampling.settings import CompleteSettings
from studio.exports.sprites.formats import sprite_exports
from studio.recipes.sets import Sets
from tests.app.conftest import LONG_MS, click, show_alone
from tests.conftest import make_sprites, with_sets
from tests.engine.tools import CPU, kept_run

CELLS = ("down/stand", "down/step", "up/stand", "up/step")


def train(path: Path, sprites: object, **changes: object) -> object:
    from studio.engine.control.control import Control
    from studio.engine.training.loop import train_new

    return train_new(path, sprites, Sets(), Sets.small.replace(**changes), CPU, Control())  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def set_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a small model of sets with two views and two frames, trained once."""
    small = {"steps": 2, "precision": "fp32", "lr_warmup_steps": 0, "sample_every_s": 1e3, "shift_px": 0}
    return kept_run(tmp_path_factory, with_sets(make_sprites(18), CELLS), train, **small)  # type: ignore[arg-type]


@pytest.fixture
def page(qtbot: QtBot, set_run: Path, session: Session) -> GeneratePage:
    shutil.copytree(set_run, paths.runs() / "heroes")
    session.settings.set_values("complete", CompleteSettings(count=2, rounds=1).to_json())
    made = show_alone(qtbot, session, GeneratePage)
    qtbot.waitUntil(made.generate.isEnabled, timeout=LONG_MS)
    return made


def drawn(qtbot: QtBot, page: GeneratePage, start: object) -> None:
    """Call `start` and wait for its characters."""
    with qtbot.waitSignal(page.session.inference.completed, timeout=LONG_MS):
        start()  # type: ignore[operator]


def press(widget: QWidget, key: Qt.Key) -> None:
    QTest.keyClick(widget, key)


def test_from_a_dropped_view_to_a_saved_character(
    qtbot: QtBot, page: GeneratePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    characters, history = page.session.characters, page.session.generate_history
    table = page.sets.view.candidates.table
    assert page.generate.accessibleName() == "New characters" and page.topic == "sets"
    sheet = np.zeros((16, 16, 4), np.uint8)
    sheet[2:7, 2:7] = (200, 10, 10, 255)
    Image.fromarray(sheet).save(tmp_path / "hero.png")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "hero.png"))])
    with qtbot.waitSignal(characters.placed, timeout=LONG_MS):
        assert page.take(data)
    assert characters.draft.given.tolist() == [True, False, False, False]
    assert page.generate.accessibleName() == "Draw the rest"

    drawn(qtbot, page, partial(click, page.generate))
    first, second = characters.draft.candidates
    assert np.array_equal(first.cells[0], sheet[:8, :8]) and first.given.tolist() == [True, False, False, False]
    table.setFocus()
    table.select([1])
    press(table, Qt.Key.Key_K)
    assert characters.draft.candidates[0].locked.tolist() == [True, True, False, False]
    drawn(qtbot, page, page.sets.view.candidates.buttons.redraw_rest.click)
    redrawn = characters.draft.candidates[0]
    assert np.array_equal(redrawn.cells[:2], first.cells[:2]) and not np.array_equal(redrawn.cells, first.cells)
    table.select([4 + 3])
    drawn(qtbot, page, partial(press, table, Qt.Key.Key_R))
    assert np.array_equal(characters.draft.candidates[1].cells[:3], second.cells[:3])
    titles = []
    while history.latest is not None:
        titles.append(history.latest.title)
        history.undo()
    assert titles == ["redraw 1 cell", "redraw 2 cells", "lock 1 cell", "draw 2 characters", "fill down/stand"]
    assert not characters.draft.candidates and not characters.draft.given.any()
    while history.next is not None:
        history.redo()
    assert np.array_equal(characters.draft.candidates[0].cells, redrawn.cells)

    page.save_state()
    other, again = (CharacterDrafts(page.session.job_queue, UndoHistory()) for _ in range(2))
    other.show_kind(CELLS, 8)  # of a second window
    assert not other.draft.given.any()
    other.give({3: sheet[:8, :8]}, "fill")
    other.store()
    characters.release()
    again.show_kind(CELLS, 8)
    assert again.draft.given.tolist() == [True, False, False, False]
    assert np.array_equal(again.draft.candidates[0].cells, redrawn.cells)

    form = sprite_exports()["sheet"]
    monkeypatch.setattr(dialogs, "choose_save_sprites", lambda *asked: (tmp_path / "out.png", form))
    table.select([0])
    with qtbot.waitSignal(page.session.saving.saved, timeout=LONG_MS) as saved:
        assert page.save_samples()
    assert np.array_equal(np.asarray(Image.open(saved.args[0][0]).convert("RGBA"))[:8, :8], redrawn.cells[0])
    assert '"up"' in (tmp_path / "out.json").read_text()


def test_a_correction_is_carried_over(qtbot: QtBot, page: GeneratePage) -> None:
    characters, view = page.session.characters, page.sets.view
    drawn(qtbot, page, partial(click, page.generate))  # nothing given: new characters
    before = characters.draft.candidates[0]
    assert not before.locked.any() and not view.candidates.buttons.carry_over.isEnabled()
    view.candidates.table.select([2])
    press(view.candidates.table, Qt.Key.Key_Return)
    editor = page.sets.editing.editor
    assert editor.isVisible() and characters.edited == CellRef(before.key, 2)
    sprite = editor.edit().sprite.copy()
    sprite[3:5, 3:5] = (0, 0, 255, 255)
    editor.replace(EditedSprite(sprite, editor.edit().keep))
    painted = characters.draft.candidates[0]
    assert painted.locked.tolist() == [False, False, True, False] and page.session.generate_history.latest is not None
    drawn(qtbot, page, partial(click, page.sets.editing.carry_over))
    carried = characters.draft.candidates[0]
    assert np.array_equal(carried.cells[2], sprite) and not carried.painted.any()
    page.session.generate_history.undo()
    page.session.generate_history.undo()
    assert np.array_equal(editor.edit().sprite, before.cells[2])
    click(page.sets.editing.close_editor)
    assert not editor.isVisible()
    view.candidates.table.select([2])
    click(view.candidates.buttons.use)
    assert characters.draft.given.tolist() == [False, False, True, False]
    view.candidates.buttons.reject.click()
    assert len(characters.draft.candidates) == 1


def test_given_cells_say_what_is_wrong_and_lose_nothing(qtbot: QtBot, page: GeneratePage, tmp_path: Path) -> None:
    characters, given = page.session.characters, page.sets.view.given
    with qtbot.waitSignal(page.session.inference.example_found, timeout=LONG_MS):
        click(given.example)
    assert characters.draft.given.tolist() == [True, False, False, False]
    data, image = QMimeData(), QImage(30, 20, QImage.Format.Format_RGBA8888)
    image.fill(Qt.GlobalColor.red)
    data.setImageData(image)
    assert page.take(data)
    assert given.error.isVisible() and given.error.text().startswith("The pasted image has 30 x 20 pixels.")
    assert characters.draft.given.tolist() == [True, False, False, False]
    many = np.random.default_rng(0).integers(0, 255, (8, 8, 4), np.uint8)
    many[..., 3] = 255
    characters.give({1: many}, "fill")
    assert not given.error.isVisible()
    assert not page.generate.isEnabled() and "the model takes 15" in page.generate.toolTip()
    colours = [Image.new("RGBA", (8, 8), (level, 0, 0, 255)) for level in (50, 100, 150)]
    colours[0].save(tmp_path / "walk.gif", save_all=True, append_images=colours[1:], disposal=2)
    with qtbot.waitSignal(characters.frames_placed, timeout=LONG_MS) as told:
        characters.read_files([tmp_path / "walk.gif"], 2)  # of the view from this cell on
    assert told.args == ["walk.gif: 2 of 3 frames fill up/stand to up/step."]
    assert characters.draft.given.all() and page.session.generate_history.latest.title == "fill 2 cells"  # type: ignore[union-attr]
    page.session.generate_history.undo()
    given.table.setFocus()
    given.table.select([1])
    press(given.table, Qt.Key.Key_Delete)
    assert page.generate.isEnabled() and characters.draft.given.tolist() == [True, False, False, False]
    press(given.table, Qt.Key.Key_Return)
    assert characters.edited == CellRef(GIVEN, 1) and not page.sets.editing.carry_over.isVisible()
