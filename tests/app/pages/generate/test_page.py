"""The Generate page with saved models: model choice, requests, tab order, file names."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.pages.generate import saving
from studio.app.pages.generate.batches import origin_of
from studio.app.pages.generate.page import GeneratePage
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.app.widgets.factory import ProgressBar
from studio.app.widgets.sprites.large_view import LargeView
from studio.app.widgets.tab_order import tab_stops
from studio.core import paths
from studio.core.events import Notice, Progress
from studio.data.pixels.editing import NamedSprite
from tests.app.conftest import LONG_MS, click, show_alone
from tests.app.widgets.tools import turn_wheel


@pytest.fixture
def page(qtbot: QtBot, trained_run: Path, session: Session) -> GeneratePage:
    """Return the page alone with two models; the second was used last."""
    for name in ("tiles", "monsters"):
        shutil.copytree(trained_run, paths.runs() / name)
    made = show_alone(qtbot, session, GeneratePage)
    made.choice._before = str(paths.runs() / "monsters")
    made.session.runs.list_runs()
    qtbot.waitUntil(made.generate.isEnabled, timeout=LONG_MS)
    qtbot.waitUntil(lambda: made.choice.checkpoints.count() > 1, timeout=LONG_MS)
    return made


def choose(qtbot: QtBot, page: GeneratePage, name: str) -> None:
    models = page.choice.models
    models.setCurrentIndex(models.findData(str(paths.runs() / name)))
    models.activated.emit(models.currentIndex())
    qtbot.waitUntil(lambda: page.choice.checkpoints.count() > 1, timeout=LONG_MS)


def test_page_says_loading_before_models_are_listed(qtbot: QtBot, session: Session) -> None:
    page = GeneratePage(session)
    qtbot.addWidget(page)
    assert page._reason.text() == "Loading models…" and not page.generate.isEnabled()
    session.open()
    qtbot.waitUntil(lambda: page._reason.text().startswith("No model yet."), timeout=LONG_MS)


def test_a_changed_setting_keeps_the_progress(page: GeneratePage, monkeypatch: pytest.MonkeyPatch) -> None:
    bar, inference = page.findChild(ProgressBar), page.session.inference
    assert bar is not None
    monkeypatch.setattr(inference, "is_busy", lambda: True)
    inference.busy_changed.emit()
    assert bar.isVisible() and bar.maximum() == 0
    inference.progressed.emit(Progress(1, 4, "sprites drawn"))
    page.request.edited.emit()
    assert (bar.value(), bar.maximum()) == (1, 4)
    monkeypatch.setattr(inference, "is_busy", lambda: False)
    inference.busy_changed.emit()
    assert not bar.isVisible()


def test_last_used_model_is_restored(qtbot: QtBot, page: GeneratePage) -> None:
    assert page.choice.run() == paths.runs() / "monsters"
    choose(qtbot, page, "tiles")
    page.save_state()
    assert Settings().text("generate_model") == str(paths.runs() / "tiles")


def test_each_model_keeps_its_checkpoint_and_guarantees(qtbot: QtBot, page: GeneratePage) -> None:
    form, checkpoints = page.request._form, page.choice.checkpoints
    assert form is not None and form._advanced is not None
    form._controls["seamless"].setCurrentText("both")  # type: ignore[attr-defined]
    form._controls["count"].setValue(7)  # type: ignore[attr-defined]
    about = form._advanced._about
    assert about.text() == "On: seamless both" and about.isVisible()
    checkpoints.setCurrentIndex(1)
    checkpoints.activated.emit(1)
    choose(qtbot, page, "tiles")
    asked = page.request.next_settings()
    assert asked.seamless == "none" and asked.count == 7 and not about.isVisible()
    assert checkpoints.currentData() == "best"
    choose(qtbot, page, "monsters")
    assert page.request.next_settings().seamless == "both" and checkpoints.currentData() == "last"
    form._advanced.set_open(True)
    assert not about.isVisible()


def test_invalid_setting_shows_an_error_at_field_and_buttons(qtbot: QtBot, page: GeneratePage) -> None:
    told: list[Notice] = []
    page.session.noticed.connect(told.append)
    form = page.request._form
    assert form is not None
    form._controls["outline"].setText("banana")  # type: ignore[attr-defined]
    words = "Outline: 'banana' is not a colour."
    assert (
        not page.generate.isEnabled()
        and page.generate.toolTip() == f"Generate: {words}"
        and page._reason.text() == words
    )
    assert form._reasons["outline"].text() == words
    page.drawing.draw_like()  # as by a key or a button
    assert [notice.title for notice in told] == [words]
    form._controls["outline"].setText("none")  # type: ignore[attr-defined]
    assert page.generate.isEnabled() and page._reason.isHidden()


def test_tab_order_is_top_to_bottom(qtbot: QtBot, page: GeneratePage) -> None:
    page.request.classes.setCurrentIndex(page.request.classes.findData("class1"))
    form = page.request._form
    assert form is not None and form._advanced is not None
    form._advanced.set_open(True)
    left = page._splitter.widget(0)
    assert left is not None
    visited = list(tab_stops(left))
    names = [stop.accessibleName() for stop in visited]
    assert names[:4] == ["Model", "Checkpoint", "Tile set", "Class"] and names[-1] == "Generate" and "Outline" in names

    def is_in_order(stop: QWidget, following: QWidget) -> bool:
        before, after = (each.mapTo(page, QPoint(0, each.height() // 2)) for each in (stop, following))
        is_beside = abs(before.y() - after.y()) < 8
        return after.x() > before.x() if is_beside else after.y() > before.y()

    def misplaced() -> list[str]:
        return [stop.accessibleName() for stop, following in pairwise(visited) if not is_in_order(stop, following)]

    qtbot.waitUntil(lambda: misplaced() == [])  # once the opened settings are laid out


def test_typed_seed_is_kept(page: GeneratePage) -> None:
    request = page.request
    assert request.next_settings().seed != request.next_settings().seed
    assert not request.lock.isChecked()
    request.seed.setValue(77)
    assert request.lock.isChecked() and request.next_settings().seed == request.next_settings().seed == 77


def test_settings_that_the_model_can_not_use_say_why(page: GeneratePage) -> None:
    request = page.request
    request.show_classes(("only",), frozenset({"seamless"}), 16)
    assert not request.classes.isEnabled() and "single class" in request.classes.toolTip()
    mirror, seamless = (request._form._controls[name] for name in ("mirror", "seamless"))  # type: ignore[union-attr]
    assert not mirror.isEnabled() and "symmetric" in mirror.toolTip() and seamless.isEnabled()
    page._refresh()
    assert request.classes.isEnabled() and mirror.isEnabled()


def test_choices_of_classes_come_back_with_the_model(page: GeneratePage) -> None:
    request, abilities = page.request, frozenset({"map", "mix"})
    several = (("grass", "sand", "water"), abilities, 16)
    boxes = [*request.tiles.terrains, request.classes, request.mixed_with]

    def shown() -> list[str]:
        return [box.currentText() for box in boxes]

    request.show_classes(*several)
    usual = ["grass", "sand", "None", "None", "All classes, evenly", "None"]
    assert shown() == usual
    request.show_classes(("rock",), abilities, 16)
    assert shown() == ["rock", "Transparent", "None", "None", "All classes, evenly", "None"]
    request.show_classes(*several)
    assert shown() == usual
    chosen = ["grass", "water", "None", "Transparent", "sand", "water"]
    for box, text in zip(boxes, chosen, strict=True):
        box.setCurrentText(text)
    assert shown() == chosen
    request.show_classes(("rock",), abilities, 16)
    request.show_classes(*several)
    assert shown() == chosen


def test_attributes_have_a_box_each(page: GeneratePage) -> None:
    choice = page.request.attributes
    assert choice.isHidden() and page.request.next_settings().attributes == ""
    choice.show_attributes({"element": ("fire", "ice"), "kind": ("shield", "sword, long")})
    assert not choice.isHidden() and [box.itemText(0) for box in choice.boxes.values()] == ["Any", "Any"]
    choice.boxes["kind"].setCurrentIndex(2)
    assert page.request.next_settings().attributes == '"kind=sword, long"'
    choice.boxes["element"].setCurrentIndex(1)
    choice.show_attributes({"element": ("fire",), "colour": ("red",)})
    assert choice.chosen() == {"element": "fire"}  # the choice stays where the next model has it
    page._refresh()
    assert choice.isHidden() and page.request.next_settings().attributes == ""


def test_wheel_over_the_form_changes_no_value(qtbot: QtBot, page: GeneratePage) -> None:
    seed, classes = page.request.seed, page.request.classes
    page.editing.open_sprite(NamedSprite(np.zeros((8, 8, 4), np.uint8), "blank"))
    page.editing.close_editor.setFocus()
    click(page.editing.close_editor)
    assert not seed.hasFocus()
    before = seed.value(), classes.currentIndex()
    for control in (seed, classes):
        turn_wheel(control, QPoint(5, 5), -120)
    assert (seed.value(), classes.currentIndex()) == before


def test_save_a_single_sprite_under_its_name(
    qtbot: QtBot, page: GeneratePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with qtbot.waitSignal(page.session.inference.generated, timeout=LONG_MS):
        click(page.generate)
    buttons = page.results.buttons
    assert buttons.save_files.toolTip() == "Save 64 PNG files, one for each sprite."
    place = page.results.grid.geometry(), [button.geometry() for button in (buttons.save_files, buttons.keep)]
    with qtbot.waitSignal(page.session.inference.neighbours_found, timeout=LONG_MS):
        page.results.grid.select([3])
    assert page.neighbours.tiled.isVisible() and page.results.grid.geometry() == place[0]  # no sprite has moved
    assert [button.geometry() for button in (buttons.save_files, buttons.keep)] == place[1]
    assert buttons.save_files.toolTip() == "Save 1 PNG file, one for each selected sprite."
    assert buttons.save_sheet.toolTip().startswith("Save 1 selected sprite as one file: ")
    asked: list[str] = []

    def name(parent: QWidget, settings: Settings, title: str, proposed: str, kinds: str) -> Path:
        asked.append(proposed)
        return tmp_path / "mine.png"

    monkeypatch.setattr(dialogs, "choose_save_file", name)
    (tmp_path / "mine.png").write_text("old")
    with qtbot.waitSignal(page.session.saving.saved, timeout=LONG_MS) as saved:
        click(page.results.buttons.save_files)
    assert asked == [f"{page.results.content.sprite(3).name}.png"] and saved.args[0] == [tmp_path / "mine.png"]
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")
    shown: list[list[Path]] = []
    monkeypatch.setattr(saving, "show_in_folder", shown.append)
    in_folder = next(action for action in page.results.grid.menu.actions() if action.text() == "Show in folder")
    in_folder.trigger()
    page.results.grid.select([4])
    assert shown == [[tmp_path / "mine.png"]] and not in_folder.isEnabled() and "Save" in in_folder.toolTip()


def test_keys_and_menu_of_the_results_in_the_large_view(qtbot: QtBot, page: GeneratePage) -> None:
    with qtbot.waitSignal(page.session.inference.generated, timeout=LONG_MS):
        click(page.generate)
    results, menu = page.results, page.results.grid.menu
    actions = {action.text(): action for action in menu.actions()}
    assert not actions["Reject"].isEnabled() and actions["Reject"].toolTip() == results.buttons.reject.toolTip()
    results.grid.go_to(3)
    results.grid.activated.emit(3)
    view = page.findChild(LargeView)
    assert view is not None and results.content.sprite(3).name in view.name.text()
    qtbot.waitUntil(view.isActiveWindow)
    QTest.keyClick(view, Qt.Key.Key_K)
    assert results.grid.selected() == [4] and len(page.session.kept_sprites.of_size(8)) == 1
    QTest.keyClick(view, Qt.Key.Key_X)
    assert results.grid.selected() == [5] and "5 of 63" in view.about.text()
    assert [button.text() for button in view.buttons] == ["Keep", "Reject", "Edit"]
    QTest.keyClick(view, Qt.Key.Key_E)
    assert not view.isVisible() and page.editing.is_open()
    assert page.editing.sprite().name == results.content.sprite(5).name


def test_tool_keys_work_on_the_whole_page_while_the_editor_is_open(qtbot: QtBot, page: GeneratePage) -> None:
    with qtbot.waitSignal(page.session.inference.generated, timeout=LONG_MS):
        click(page.generate)
    results, editor, tool = page.results, page.editing.editor, page.editing.editor.tools.tool
    results.grid.setFocus()
    QTest.keyClick(results.grid.view, Qt.Key.Key_M)  # the editor is closed
    assert tool() == "pencil"
    results.grid.go_to(3)
    QTest.keyClick(results.grid.view, Qt.Key.Key_E)
    assert page.focusWidget() is editor.canvas
    assert not page.request.isVisible() and page.editing.show_form.isVisible()  # the editor needs the form's room
    page.editing.show_form.click()
    assert page.request.isVisible()
    for widget, key, expected in (
        (editor.canvas, Qt.Key.Key_E, "eraser"),
        (results.grid.view, Qt.Key.Key_M, "rectangle"),
        (page.request.classes, Qt.Key.Key_G, "bucket"),
    ):
        widget.setFocus()
        QTest.keyClick(widget, key)
        assert tool() == expected
    results.grid.go_to(4)
    results.grid.setFocus()
    QTest.keyClick(results.grid.view, Qt.Key.Key_E)  # in the list, E edits
    assert tool() == "bucket" and page.editing.sprite().name == results.content.sprite(4).name


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["orc_warrior.png"], "orc_warrior"),
        (["orc.v2"], "orc.v2"),
        (["orc-616621725-0007"], "orc"),  # generated here
        (["orc 616621725 0007"], "orc"),  # generated by version 0.1
        (["orc-0007-0003", "ogre.png"], "orc to ogre"),
        (["orc", "ogre", "elf"], "orc and 2 others"),
    ],
)
def test_sprites_are_named_after_their_origin(names: list[str], expected: str) -> None:
    assert origin_of([NamedSprite(np.zeros((1, 1, 4), np.uint8), name) for name in names]) == expected


def test_results_are_at_the_editors_side_where_there_is_room(qtbot: QtBot, page: GeneratePage) -> None:
    page.editing.open_sprite(NamedSprite(np.zeros((8, 8, 4), np.uint8), "blank"))
    editing, results, view = page.editing, page.results, page._drawn.parentWidget()
    assert view is not None
    with qtbot.waitSignal(page.session.inference.generated, timeout=LONG_MS):
        click(page.generate)
    for width, height, is_beside in ((1184, 740, True), (704, 540, False), (2464, 1380, True)):
        page.resize(width, height)
        qtbot.waitUntil(lambda: page._drawn.width() == view.width())  # nothing to scroll sideways
        assert (results.x() > editing.geometry().right()) == is_beside, width
        assert results.grid.height() >= 3 * results.grid.view.cell.height()
        assert results.buttons.height() == results.buttons.sizeHint().height()
