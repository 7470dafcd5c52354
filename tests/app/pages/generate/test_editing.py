"""The editor on the Generate page, with a trained model."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QDrag, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages.drag_and_drop import mime_data
from studio.app.pages.generate.page import GeneratePage
from studio.app.state.models.kept_sprites import KeptSprites
from studio.app.state.session import Session
from studio.app.window import Window
from studio.core import paths
from studio.core.events import SpritesGenerated
from studio.data.pixels.editing import NamedSprite, SavedEdit, rectangle_mask
from studio.data.tiles.layout import TileSetSpec
from studio.engine.sampling.settings import GenerateSettings
from studio.exports.sprites.base import SpriteExport
from studio.exports.sprites.formats import sprite_exports
from tests.app.conftest import LONG_MS, click, open_sprites, show_alone, sprites_of

SIZE = 8


@pytest.fixture
def page(qtbot: QtBot, own_run: Path, session: Session, sprite_folder: Path) -> GeneratePage:
    """Return the Generate page alone, with a trained model and 64 generated sprites."""
    page = show_alone(qtbot, session, GeneratePage)
    open_sprites(qtbot, session, sprite_folder)
    return with_sprites(qtbot, page)


@pytest.fixture
def in_window(qtbot: QtBot, own_run: Path, opened: Window) -> Window:
    """Return the window, which shows the Generate page with a trained model and 64 generated sprites."""
    opened.show_page("generate")
    with_sprites(qtbot, opened.generate)
    return opened


def with_sprites(qtbot: QtBot, page: GeneratePage) -> GeneratePage:
    """Generate 64 sprites with the trained model; return the page."""
    qtbot.waitUntil(page.generate.isEnabled, timeout=LONG_MS)
    qtbot.waitUntil(lambda: page.choice.checkpoints.count() > 1, timeout=LONG_MS)
    set_steps(page, 1)
    drawn(qtbot, page, page.generate.click)
    return page


def set_steps(page: GeneratePage, steps: int) -> None:
    """Set the number of solver steps: 1 is fast, and few tests look at the sprites' quality."""
    box = page.request.findChild(QSpinBox, "steps")
    assert box is not None
    box.setValue(steps)


def drawn(qtbot: QtBot, page: GeneratePage, ask: object) -> SpritesGenerated:
    """Trigger a drawing request and return the result."""
    with qtbot.waitSignal(page.session.inference.generated, timeout=LONG_MS) as made:
        ask()  # type: ignore[operator]
    qtbot.waitUntil(lambda: not page.session.inference.is_busy(), timeout=LONG_MS)
    found = made.args[0]
    assert isinstance(found, SpritesGenerated)
    return found


def test_vary_inpaint_and_continue_from_a_candidate(qtbot: QtBot, page: GeneratePage) -> None:
    editing, results = page.editing, page.results
    assert not editing.isVisibleTo(page) and not results.buttons.edit.isEnabled()
    results.grid.select([5])
    click(results.buttons.edit)
    sprite, name, class_name, _ = results.content.sprite(5)
    assert editing.isVisible() and editing.sprite()[1:3] == (name, class_name)
    np.testing.assert_array_equal(editing.sprite()[0], sprite)
    editing.options.strength.setValue(0)
    same = drawn(qtbot, page, editing.draw.click)
    assert len(same.sprites) == 16 and (same.sprites == sprite).all()
    label = sprites_of(page.session).class_names.index(class_name)
    assert set(same.labels.tolist()) == {label}  # the sprite's class, since no class is chosen
    editing.options.strength.setValue(70)
    varied = drawn(qtbot, page, editing.draw.click)
    assert not (varied.sprites == sprite).all()
    editor = editing.editor
    editor.replace(editor.edit().with_keep(rectangle_mask((0, 0), (7, 3), SIZE), stays=False))
    assert "Redraw selection" in editing.draw.text() and editing._about.text().startswith("Redraw the selected pixels")
    assert editing.options.strength.value() == 100
    filled = drawn(qtbot, page, editing.draw.click)
    assert (filled.sprites[:, 4:] == sprite[4:]).all() and (filled.sprites[:, :4] != sprite[:4]).any()
    results.grid.activated.emit(3)
    np.testing.assert_array_equal(editing.sprite()[0], filled.sprites[3])
    assert not editor.edit().keep[:4].any()  # the selection stays for the next request
    editor.undo.click()
    np.testing.assert_array_equal(editing.sprite()[0], sprite)
    editor.select_all.click()
    assert "Redraw all" in editing.draw.text() and editing.request().keep is None  # no unselected pixels remain
    assert not (drawn(qtbot, page, editing.draw.click).sprites == sprite).all()
    editor.deselect.click()
    assert editing.options.strength.value() == 70 and "No selection" in editing._about.text()


def test_tween_and_similar_sprites(
    qtbot: QtBot, page: GeneratePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = page.results
    assert not results.buttons.between.isEnabled() and not results.buttons.like.isEnabled()
    results.grid.select([4, 9])
    ends = [results.content.sprite(number)[0] for number in (4, 9)]
    four = results.buttons.frame_counts.actions()[2]
    made = drawn(qtbot, page, four.trigger)
    player = page.neighbours.player
    assert len(made.sprites) == 6 and player.isVisible() and player.playback.is_playing()
    player.playback.speed.setValue(20)
    np.testing.assert_array_equal(made.sprites[[0, -1]], ends)
    gif = sprite_exports()["gif"]
    asked: list[str] = []

    def name(*args: str, is_tile_set: bool) -> tuple[Path, SpriteExport]:
        asked.append(args[-1])
        return tmp_path / "film", gif

    monkeypatch.setattr(dialogs, "choose_save_sprites", name)
    results.grid.select([])
    assert results.buttons.save_sheet.toolTip().startswith("Save 6 frames as one file: ")
    with qtbot.waitSignal(page.session.saving.saved, timeout=LONG_MS):
        click(results.buttons.save_sheet)
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 6 and film.info["duration"] == 50  # type: ignore[attr-defined]
    assert asked[0].endswith(".gif") and "-to-" in asked[0]
    results.grid.select([0, 2, 5])
    assert len(drawn(qtbot, page, results.buttons.like.click).sprites) == 16
    results.grid.select([1])
    assert not results.buttons.between.isEnabled()
    click(results.buttons.edit)
    results.grid.select([7])
    other = results.content.sprite(7)[0]
    made = drawn(qtbot, page, four.trigger)  # from the edited sprite
    np.testing.assert_array_equal(made.sprites[-1], other)


def test_nearest_training_sprites_are_shown(qtbot: QtBot, page: GeneratePage) -> None:
    neighbours, data = page.neighbours, sprites_of(page.session)
    assert not neighbours.tiled.isVisible()
    page.editing.open_sprite(NamedSprite(data.rgba[4].copy(), "one of the data", data.class_names[data.labels[4]]))
    page.editing.options.strength.setValue(0)
    drawn(qtbot, page, page.editing.draw.click)
    with qtbot.waitSignal(page.session.inference.neighbours_found, timeout=LONG_MS) as found:
        page.results.grid.select([2])
    assert neighbours.previews[0].isVisible() and len(found.args[0].sprites) == 3 == len(found.args[0].names)
    assert not neighbours.tiled.isVisible()  # the editor shows tiles
    learnt = data.names[4] in found.args[0].names  # unless in the validation set
    assert neighbours.verdict.text().startswith("A copy" if learnt else "Not a copy")
    if learnt:
        assert found.args[0].names[0] == data.names[4] == neighbours.previews[0].toolTip()
    page.session.editing.close()
    assert neighbours.tiled.isVisible()
    page.results.grid.select([2, 3])
    assert not neighbours.tiled.isVisible() and not neighbours.previews[0].isVisible()


def test_keep_reject_and_reroll(qtbot: QtBot, page: GeneratePage) -> None:
    results = page.results
    view, first = results.grid.view, results.content.sprite(3)[0].copy()
    view.setFocus()
    results.grid.select([3, 6])
    QTest.keyClick(view, Qt.Key.Key_K)
    assert results.grid.selected() == [7] and results.grid.model.marked >= {3, 6}
    results.grid.select([3])
    QTest.keyClick(view, Qt.Key.Key_K)  # without duplicates
    assert results.kept_tab.text() == "Kept (2)" and results.grid.selected() == [4]
    results.grid.select([0, 1, 2])
    QTest.keyClick(view, Qt.Key.Key_X)
    assert results.grid.visible_count() == 61 and results.grid.selected() == [3]
    assert results._title._whole == "64 sprites, 3 rejected"
    results.grid.select([])
    picked = results.to_save()
    assert picked is not None and len(picked.sprites) == 61
    page.request.classes.setFocus()  # a list box leaves the keys of commands to the page
    rolled = drawn(qtbot, page, lambda: QTest.keyClick(page.request.classes, Qt.Key.Key_R))
    assert len(rolled.sprites) == 64 == results.grid.visible_count() and rolled.seed == page.request.seed.value()
    click(results.kept_tab)
    assert results.grid.visible_count() == 2 and not results.buttons.keep.isEnabled()
    np.testing.assert_array_equal(results.content.sprite(0)[0], first)
    results.grid.select([0])
    click(results.buttons.edit)
    np.testing.assert_array_equal(page.editing.sprite()[0], first)
    page.save_state()
    later = KeptSprites()
    assert [kept.name for kept in later.of_size(SIZE)] == [results.content.sprite(0)[1], results.content.sprite(1)[1]]
    assert later.of_size(16) == []
    results.grid.select([0])
    click(results.buttons.reject)
    assert results.grid.visible_count() == 1 and results.kept_tab.text() == "Kept (1)"
    results.grid.select([0])
    QTest.keyClick(view, Qt.Key.Key_X)
    assert results.to_save() is None and not results.grid.isVisible()
    assert "press K" in results._empty.text() and not page.neighbours.tiled.isVisible()
    page.save_state()
    assert KeptSprites().of_size(SIZE) == []


def test_undo_restores_rejected_sprites(qtbot: QtBot, in_window: Window) -> None:
    opened, page = in_window, in_window.generate
    """Several undo levels for new and kept sprites, by menu and key."""
    results, undo = page.results, opened.menus.undo
    view = results.grid.view
    view.setFocus()
    assert not undo.isEnabled()
    results.grid.select([1, 2])
    QTest.keyClick(view, Qt.Key.Key_X)
    QTest.keyClick(view, Qt.Key.Key_X)  # the next one
    results.grid.select([8, 9, 10])
    click(results.buttons.keep)
    assert view.hasFocus() and results.grid.selected() == [11]
    click(results.kept_tab)
    names = [results.content.sprite(number).name for number in range(3)]
    results.grid.select([1])
    click(results.buttons.reject)
    assert results.grid.visible_count() == 2 and results.grid.selected() == [1]
    assert undo.text() == "Undo reject 1 sprite"
    click(results.new_tab)
    undo.trigger()
    assert results.kept_tab.isChecked() and [results.content.sprite(number).name for number in range(3)] == names
    assert results.grid.selected() == [1]
    assert undo.text() == "Undo keep 3 sprites"
    QTest.keyClick(view, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert results.content.kept.of_size(SIZE) == []
    undo.trigger()
    assert results.new_tab.isChecked() and results.grid.selected() == [3]
    assert undo.text() == "Undo reject 2 sprites"
    opened.show_page("runs")
    assert undo.text() == "Undo"
    opened.show_page("generate")
    undo.trigger()
    assert results.grid.visible_count() == 64 and not undo.isEnabled()
    for _ in range(4):
        opened.menus.redo.trigger()
    kept = results.content.kept.of_size(SIZE)
    assert [each.name for each in kept] == [names[0], names[2]] and opened.menus.redo.text() == "Redo"
    assert results.content.history.current is not None and results.content.history.current.rejected == {1, 2, 3}


def test_back_shows_the_previous_batch(qtbot: QtBot, page: GeneratePage, monkeypatch: pytest.MonkeyPatch) -> None:
    results, first = page.results, page.results.result()
    assert first is not None and not results.back.isEnabled() and not results.forward.isEnabled()
    results.grid.select([0])
    results.buttons.reject.click()
    second = drawn(qtbot, page, page.generate.click)
    click(results.back)
    np.testing.assert_array_equal(results.content.sprite(5)[0], first.sprites[5])
    assert results.grid.visible_count() == 63 and not results.back.isEnabled()
    colours = page.request.colours
    colours.box.setCurrentIndex(colours.box.findData("drawn"))
    changed = drawn(qtbot, page, lambda: colours._on_kind_activated(colours.box.findData("drawn")))
    assert changed.seed == first.seed != second.seed  # the shown sprites are recoloured
    np.testing.assert_array_equal(results.content.sprite(5)[0], changed.sprites[5])
    click(results.forward)
    np.testing.assert_array_equal(results.content.sprite(5)[0], second.sprites[5])
    monkeypatch.setattr("studio.app.background.model_jobs.MOST_RECENT", 2)
    click(results.back)
    drawn(qtbot, page, page.generate.click)
    click(results.back)
    assert results.result() is not None and results.result().seed == second.seed  # type: ignore[union-attr]
    assert not results.back.isEnabled()


def test_copy_and_drag_sprites(qtbot: QtBot, page: GeneratePage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pasted sprite keeps its alpha. A press on the selection drags all, or selects a single sprite."""
    results, view = page.results, page.results.grid.view
    assert not results.buttons.copy.isEnabled()
    results.grid.select([4])
    click(results.buttons.copy)
    data = QGuiApplication.clipboard().mimeData()
    sprite, name, *_ = results.content.sprite(4)
    (path,) = [Path(url.toLocalFile()) for url in data.urls()]
    assert path.stem == name
    for pasted in (Image.open(path), Image.open(io.BytesIO(data.data("image/png").data()))):
        np.testing.assert_array_equal(np.asarray(pasted), sprite)
    assert page.take(QGuiApplication.clipboard().mimeData())  # the sprite's file is readable
    qtbot.waitUntil(page.editing.is_open, timeout=LONG_MS)
    np.testing.assert_array_equal(page.editing.sprite()[0], sprite)
    dragged: list[QMimeData] = []
    monkeypatch.setattr(QDrag, "exec", lambda drag, action: dragged.append(drag.mimeData()))
    view.scrollTo(view.model().index(1, 0))
    qtbot.waitUntil(lambda: results.x() > page.editing.geometry().right())  # the opened editor makes room
    paths = [view.visualRect(view.model().index(row, 0)).center() for row in (1, 2, 5)]
    results.grid.select([1, 2])
    QTest.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=paths[0])
    QTest.mouseMove(view.viewport(), paths[2])
    assert [len(data.urls()) for data in dragged] == [2] and results.grid.selected() == [1, 2]
    QTest.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=paths[2])
    assert results.grid.selected() == [1, 2]
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=paths[1])
    assert results.grid.selected() == [2] and len(dragged) == 1
    QTest.mousePress(
        view.viewport(), Qt.MouseButton.LeftButton, pos=paths[2]
    )  # a drag from outside draws the rubber band
    QTest.mouseMove(view.viewport(), paths[1])
    QTest.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=paths[1])
    assert len(dragged) == 1 and len(results.grid.selected()) > 1
    results.grid.select(list(range(64)))
    carried = mime_data(SpriteSelection(sprite[None].repeat(65, 0), [name] * 65, {}), page.session.drag_files)
    (sheet,) = [Path(url.toLocalFile()) for url in carried.urls()]
    assert Image.open(sheet).size == (8 * SIZE, 9 * SIZE)


def test_best_of_ranks_by_kept_sprites(qtbot: QtBot, page: GeneratePage) -> None:
    form = page.request._form
    assert form is not None
    form.set_config(GenerateSettings(count=12, best_of=3))
    with qtbot.waitSignal(page.session.noticed) as said:
        page.generate.click()
    assert "you have 0" in said.args[0].title
    page.results.grid.select([3, 6, 9])
    click(page.results.buttons.keep)
    made = drawn(qtbot, page, page.generate.click)
    assert len(made.sprites) == 12 and page.results._title._whole == "Best 12 of 36 new sprites"


def test_mix_two_classes(qtbot: QtBot, page: GeneratePage) -> None:
    request = page.request
    assert not request.mixed_with.isEnabled() and "choose a class first" in request.mixed_with.toolTip()
    request.classes.setCurrentIndex(request.classes.findData("class1"))
    assert request.mixed_with.isEnabled() and not request._share_box.isVisible()
    request.mixed_with.setCurrentIndex(request.mixed_with.findData("class0"))
    request.share.setValue(30)
    assert "70 % class1, 30 % class0" in request._share_label.text()
    page.choice.changed.emit()  # as when the runs are listed again
    assert request.next_settings().mix == "class1:70,class0:30"
    assert set(drawn(qtbot, page, page.generate.click).labels.tolist()) == {1}
    assert request.mixed_with.findData("class1") < 0  # with itself there is nothing to mix


def test_open_images_from_file_clipboard_and_drop(
    qtbot: QtBot, page: GeneratePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editing = page.editing
    sprite = sprites_of(page.session).rgba[0]
    Image.fromarray(sprite).save(tmp_path / "fits.png")
    Image.fromarray(sprite[:6, :5]).save(tmp_path / "small.png")
    monkeypatch.setattr(dialogs, "choose_files", lambda *args: [tmp_path / "fits.png"])
    with qtbot.waitSignal(page.session.editing.changed, timeout=LONG_MS):
        click(page.results.buttons.open)
    np.testing.assert_array_equal(editing.sprite()[0], sprite)
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path / "small.png"))])
    with qtbot.waitSignal(page.session.editing.read, timeout=LONG_MS):
        assert page.take(mime)
    question = editing.question
    assert question.isVisible() and "5 x 6 pixels; this model needs 8 x 8" in question.text.text()
    assert not editing.editor.isVisible() and not editing.close_editor.isVisible()  # the open sprite is hidden
    np.testing.assert_array_equal(question.preview._sprite[1:7, 1:6], sprite[:6, :5])
    click(question.cancel)
    assert not question.isVisible() and editing.editor.isVisible() and editing.sprite()[1] == "fits.png"
    editing.open_sprite(NamedSprite(sprite[:6, :5], "small"))
    click(question.fit)
    assert editing.sprite()[1] == "small" and (editing.sprite()[0][1:7, 1:6] == sprite[:6, :5]).all()
    mime.setUrls([])
    mime.setText("no picture")
    assert not page.take(mime)
    pixels = np.ascontiguousarray(sprites_of(page.session).rgba[20])
    QGuiApplication.clipboard().setImage(QImage(pixels.data, SIZE, SIZE, QImage.Format.Format_RGBA8888).copy())
    assert page.take(QGuiApplication.clipboard().mimeData())
    np.testing.assert_array_equal(editing.sprite()[0], pixels)
    click(editing.copy)
    assert QGuiApplication.clipboard().image().size().toTuple() == (SIZE, SIZE)
    monkeypatch.setattr(dialogs, "choose_save_file", lambda *args: tmp_path / "out.png")
    with qtbot.waitSignal(page.session.saving.saved, timeout=LONG_MS):
        click(editing.save)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "out.png")), pixels)
    assert not page.session.editing._is_unsaved()


def test_edited_sprite_survives_closing(qtbot: QtBot, in_window: Window) -> None:
    opened, page = in_window, in_window.generate
    opened.show_page("sprites")
    opened.sprites.grid.select([3])
    click(opened.sprites.selection.edit)
    assert opened.page() is page and page.editing.isVisible()
    data = sprites_of(opened.session)
    assert page.editing.sprite()[1:3] == (data.names[3], data.class_names[data.labels[3]])
    editor = page.editing.editor
    editor.replace(editor.edit().with_keep(rectangle_mask((1, 1), (4, 2), SIZE), stays=False))
    opened.show_page("train")
    page.save_state()
    stored = SavedEdit.from_json((paths.home() / "edit.json").read_bytes())
    assert stored.edit.equals(editor.edit()) and stored.name == data.names[3]
    click(page.editing.close_editor)
    assert not page.editing.isVisibleTo(page)
    page.save_state()
    assert not (paths.home() / "edit.json").exists()


def test_wrong_size_sprite_is_resized_first(qtbot: QtBot, page: GeneratePage, monkeypatch: pytest.MonkeyPatch) -> None:
    page.editing.open_sprite(NamedSprite(sprites_of(page.session).rgba[0], "one"))
    page.session.editing.open(NamedSprite(np.zeros((16, 16, 4), np.uint8), "larger"))
    page.results.grid.select([2])
    with qtbot.waitSignal(page.session.noticed) as said:
        page.results.buttons.frame_counts.actions()[0].trigger()
    assert "differ in size" in said.args[0].title
    page.results.buttons.edit.click()  # not a candidate of the larger sprite, so it replaces the sprite
    assert page.editing.sprite()[0].shape == (SIZE, SIZE, 4)
    editing, record = page.editing, page.choice.record()
    assert record is not None
    editing.editor.invert.click()
    sizes = [16]
    monkeypatch.setattr(page.choice, "record", lambda: dataclasses.replace(record, size=sizes[-1]))
    page._refresh()
    question = editing.question
    assert not editing.editor.isVisible() and "8 x 8 pixels; the model draws 16 x 16" in editing.draw.toolTip()
    assert question.isVisible() and "this model needs 16 x 16" in question.text.text()
    assert not question.cancel.isVisible() and editing.close_editor.isVisible()
    editing.close_editor.click()
    assert not editing.isVisible()
    page.session.generate_history.undo()
    assert question.isVisible()  # while the size differs
    sizes.append(SIZE)
    page._refresh()
    assert not question.isVisible() and not editing.editor.edit().keep.any()  # nothing is lost
    sizes.append(16)
    page._refresh()
    question.fit.click()
    assert editing.sprite()[0].shape == (16, 16, 4) and editing.draw.isEnabled()
    page.session.generate_history.undo()
    assert question.isVisible() and len(editing.sprite()[0]) == SIZE


def test_waiting_image_opens_once_its_model_is_chosen(page: GeneratePage, monkeypatch: pytest.MonkeyPatch) -> None:
    editing, record = page.editing, page.choice.record()
    assert record is not None
    editing.open_sprite(NamedSprite(np.full((16, 16, 4), 255, np.uint8), "large"))
    assert editing.isVisible() and editing.is_asking() and not editing.is_open()
    monkeypatch.setattr(page.choice, "record", lambda: dataclasses.replace(record, size=16))
    page._refresh()
    assert not editing.is_asking() and editing.sprite().name == "large" and editing.editor.isVisible()


def test_undo_restores_edits_after_opening_and_closing(qtbot: QtBot, in_window: Window) -> None:
    opened, page = in_window, in_window.generate
    editing, editor, notices, undo = page.editing, page.editing.editor, opened.notices, opened.menus.undo
    data, colour = sprites_of(page.session).rgba, np.array([200, 30, 30, 255], np.uint8)
    editing.open_sprite(NamedSprite(data[0].copy(), "first"))
    editing.open_sprite(NamedSprite(data[1].copy(), "second"))
    editor.replace(editor.edit().with_keep(rectangle_mask((0, 0), (3, 3), SIZE), stays=False))
    editing.open_sprite(NamedSprite(data[1].copy(), "second"))
    assert not notices.cards()  # the sprites have at most a selection
    editor.replace(editor.edit().paint(rectangle_mask((2, 1), (5, 6), SIZE), colour))
    work = editor.edit()
    assert undo.text() == "Undo edit second"
    editing.open_sprite(NamedSprite(data[2].copy(), "third"))
    assert [card.texts[0] for card in notices.cards()] == ["Closed second without saving."]
    assert undo.text() == "Undo open third"
    click(notices.cards()[0]._act)
    qtbot.waitUntil(lambda: editing._title.text() == "second")  # once the editor is laid out
    assert editing.sprite().name == "second" and editor.edit().equals(work)
    assert not notices.cards()
    editing.close_editor.click()
    assert not editing.isVisible() and undo.text() == "Undo close second"
    click(page.results.buttons.new_sprite)  # the new sprite comes after the closed sprite
    assert not notices.cards()  # the offer is gone: Undo would revert another step
    undo.trigger()
    assert not editing.is_open() and undo.text() == "Undo close second"
    undo.trigger()
    assert editing.sprite().name == "second" and editor.edit().equals(work)
    for _ in range(2):
        opened.menus.redo.trigger()
    assert editing.sprite().name == "sketch"
    for _ in range(2):
        undo.trigger()
    editing.close_editor.click()
    assert page.session.generate_history.next is None
    assert not editing.is_open()
    undo.trigger()
    page.session.editing.mark_saved()
    editing.close_editor.click()
    assert not notices.cards()


def test_undo_key_belongs_to_the_editor_except_in_text_fields(qtbot: QtBot, in_window: Window) -> None:
    opened, page = in_window, in_window.generate
    editing, editor, undo = page.editing, page.editing.editor, opened.menus.undo
    control = Qt.KeyboardModifier.ControlModifier
    opened.activateWindow()
    editing.open_sprite(NamedSprite(sprites_of(page.session).rgba[0].copy(), "first"))
    editor.select_all.click()
    for widget in (editing.options.strength, page.results.grid.view, page.choice.checkpoints, editor.canvas):
        widget.setFocus()
        QTest.keyClick(widget, Qt.Key.Key_Z, control)
        assert editor.edit().keep.all() and undo.text() == "Undo open first", widget
        QTest.keyClick(widget, Qt.Key.Key_Y, control)
        assert not editor.edit().keep.any() and undo.text() == "Undo edit first", widget
    field = page.request.seed.lineEdit()
    field.setFocus()
    field.setText("12")
    QTest.keyClick(field, Qt.Key.Key_Backspace)
    QTest.keyClick(field, Qt.Key.Key_Z, control)
    assert field.text() == "12" and not editor.edit().keep.any()
    opened.show_page("sprites")
    assert not undo.isEnabled()
    data = sprites_of(page.session)
    with qtbot.waitSignal(page.session.open_sprites.imported, timeout=LONG_MS):
        page.session.doctor.exclude([data.names[0]])
    assert undo.text() == "Undo exclude 1 sprite"
    opened.show_page("generate")
    undo.trigger()
    assert editor.edit().keep.all()
    for _ in range(2):
        undo.trigger()  # an extra Undo keeps the open sprites
    assert not editing.is_open() and not undo.isEnabled()
    opened.show_page("sprites")
    assert undo.isEnabled() and len(sprites_of(page.session).names) == len(data.names) - 1


def test_sketch_starts_empty_and_keeps_its_shape(qtbot: QtBot, in_window: Window) -> None:
    page = in_window.generate
    editing, editor = page.editing, page.editing.editor
    click(page.results.buttons.new_sprite)
    assert editing.isVisible() and not editing.sprite()[0].any() and editor.tools.layer() == "paint"
    assert not editing.draw.isEnabled() and "The sprite is empty" in editing._about.text()
    click(editing.options.shape)
    assert not editing.draw.isEnabled() and "no shape" in editing.draw.toolTip()
    editor.replace(editor.edit().paint(rectangle_mask((2, 1), (5, 6), SIZE), np.array([200, 30, 30, 255], np.uint8)))
    editing.options.strength.setValue(90)
    assert "the shape stays" in editing._about.text()
    made = drawn(qtbot, page, editing.draw.click)
    assert (made.sprites[..., 3] == editing.sprite()[0][..., 3]).all() and len(made.sprites) == 16
    titles = [label.text() for label in page.results.badges.labels]
    assert "Silhouette OK" in titles and not any("of 16" in title for title in titles)
    click(editing.options.shape)
    drawn(qtbot, page, editing.draw.click)
    assert "No semi-transparency" in [label.text() for label in page.results.badges.labels]


def test_undo_reverts_the_last_action_first(qtbot: QtBot, page: GeneratePage) -> None:
    editing, results = page.editing, page.results
    editing.open_sprite(NamedSprite(sprites_of(page.session).rgba[0].copy(), "first"))
    drawn(qtbot, page, editing.draw.click)
    results.grid.select([0, 1])
    click(results.buttons.reject)
    editing.editor.select_all.click()
    assert results.grid.visible_count() == 14 and not editing.editor.edit().keep.any()
    page.history.undo()
    assert results.grid.visible_count() == 14 and editing.editor.edit().keep.all()
    page.history.undo()
    assert results.grid.visible_count() == 16


def test_draw_a_tile_set(qtbot: QtBot, page: GeneratePage) -> None:
    request, panel = page.request, page.neighbours
    tiles, count = request.tiles, request._form._controls["count"]  # type: ignore[union-attr]
    assert tiles.isVisible() and not tiles.terrains[0].isVisible() and request.classes.isVisible()
    tiles.kinds.setCurrentIndex(tiles.kinds.findData("blob"))
    assert not request.classes.isVisible() and [box.isVisible() for box in tiles.terrains] == [True, True, False, False]
    assert not count.isEnabled() and "has 48 tiles" in count.toolTip()
    tiles.terrains[1].setCurrentIndex(tiles.terrains[1].findData(tiles.terrains[0].currentData()))
    assert "must differ" in page.drawing.problem() and not page.generate.isEnabled()
    tiles.terrains[1].setCurrentIndex(tiles.terrains[1].findData("transparent"))
    assert not page.drawing.problem() and page.generate.isEnabled()
    made = drawn(qtbot, page, page.generate.click)
    assert len(made.sprites) == 48 and "Tiles fit together" in [label.text() for label in page.results.badges.labels]
    assert panel.map.isVisible() and not panel.tiled.isVisible()
    to_save = page.results.to_save()
    assert to_save is not None and to_save.tile_set is not None
    before = panel.map.picture.rgba
    assert before.shape == (16 * SIZE, 24 * SIZE, 4)
    click(panel.map.new_map)
    assert (panel.map.picture.rgba != before).any()
    whole = page.results.to_save()
    assert whole is not None and whole.tile_set is not None and whole.tile_set.terrains == ("class0", "")
    page.results.grid.select([0])
    one = page.results.to_save()
    assert one is not None and one.tile_set is None
    assert panel.tiled.isVisible() and not panel.map.isVisible()
    chosen = page.results.to_save()
    assert chosen is not None and chosen.tile_set is None
    request.save_state()
    stored = GenerateSettings.from_json(page.session.settings.values("generate"))
    assert (stored.tiles, stored.terrains) == ("blob", "class0,transparent")
    tiles.kinds.setCurrentIndex(tiles.kinds.findData("corner"))
    tiles.variants.setValue(2)
    spec = TileSetSpec("corner", ("class0", "transparent"), 2)
    (whole_tile, _) = np.flatnonzero((spec.layout(SIZE).corners == 0).all(1))
    given = np.zeros((32, SIZE, SIZE, 4), np.uint8)
    given[whole_tile] = (10, 200, 30, 255)
    page.session.given_tiles.give(spec, given)
    assert "32 tiles" in count.toolTip() and tiles._given_text.text() == "1 of 32 tiles given."
    made = drawn(qtbot, page, page.generate.click)
    assert len(made.sprites) == 32 and (made.sprites[whole_tile] == given[whole_tile]).all()
    tiles.kinds.setCurrentIndex(0)
    assert count.isEnabled() and request.classes.isVisible() and request.next_settings().tiles == "none"
