"""The main window: its size, messages bound to a state, and requests between pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.guide_window import GuideWindow
from studio.app.notice_panel import NoticeLabel
from studio.app.pages.export_dialog import ExportDialog
from studio.app.state.settings import Settings
from studio.app.window import Window
from studio.core import paths
from studio.core.errors import DeviceFullError, TrainingError
from studio.core.events import Blocked, Events, JobFailed, Notice
from studio.data.pixels.editing import NamedSprite
from studio.engine.runs.folder import RunDir
from tests.app.conftest import LONG_MS, click, open_sprites, start_tiny


@pytest.fixture
def settled(qtbot: QtBot, window: Window) -> Iterator[Window]:
    """The window, whose jobs end before it closes."""
    yield window
    qtbot.waitUntil(lambda: not window.session.job_queue.running(), timeout=LONG_MS)


def titles(window: Window) -> list[str]:
    return [card.texts[0] for card in window.notices.cards()]


def test_the_window_fits_its_screen_at_the_first_start_and_when_its_size_comes_back(
    qtbot: QtBot, qapp: QApplication, window: Window
) -> None:
    room = window.screen().availableGeometry()
    assert room.contains(window.frameGeometry())
    before = window.size()
    larger = QWidget()
    qtbot.addWidget(larger)
    larger.setGeometry(300, 300, room.width() + 200, room.height() + 100)
    Settings().set_layout("window", larger.saveGeometry())
    window.session.settings.sync()
    again = Window(window.session, theme.apply(qapp, "light"))
    qtbot.addWidget(again)
    assert room.contains(again.frameGeometry()) and again.width() >= before.width()


def test_a_message_leaves_with_its_state(qtbot: QtBot, window: Window) -> None:
    window.menus.export.trigger()
    assert titles(window) == ["No model to export yet."]
    window.notices.remove_outdated()
    assert titles(window) == ["No model to export yet."]
    window.session.training.has_checkpoint = True
    qtbot.waitUntil(lambda: titles(window) == [], timeout=LONG_MS)  # by itself
    window.menus.save.trigger()
    assert titles(window) == ["No samples to save yet."]
    window.show_page("lab")
    window.notices.remove_outdated()
    assert titles(window) == []


def test_a_dialog_of_a_page_not_yet_shown_belongs_to_the_window(qtbot: QtBot, own_run: Path, settled: Window) -> None:
    settled.show_page("lab")
    qtbot.waitUntil(settled.runs.actions_row.export.isEnabled, timeout=LONG_MS)
    settled.menus.export.trigger()
    dialog = settled.findChild(ExportDialog)
    assert dialog is not None and dialog.isVisible()
    dialog.close()


def test_the_warning_about_a_folder_leaves_when_another_folder_is_opened(
    qtbot: QtBot, window: Window, sprite_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.data.importing.importing._IMBALANCE", 3)
    small = tmp_path / "small"
    for name, count in (("many", 8), ("few", 1)):
        (small / name).mkdir(parents=True)
        for source in sorted((sprite_folder / "class1").glob("*.png"))[:count]:
            shutil.copy(source, small / name / f"{name} {source.name}")
    open_sprites(qtbot, window.session, small)
    warned = titles(window)
    assert len(warned) == 1
    open_sprites(qtbot, window.session, sprite_folder)
    assert not set(warned) & set(titles(window))


def test_the_messages_of_a_training_leave_when_the_user_starts_another_and_not_when_the_queue_does(
    qtbot: QtBot, opened: Window, own_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: object) -> Events:
        yield Notice("warning", "Odd.")
        raise TrainingError(f"Failed {len(titles(opened))}.")

    for name in ("train", "resume"):
        monkeypatch.setattr(f"studio.app.background.jobs.{name}", fails)
    training, session = opened.session.training, opened.session

    def ended() -> list[str]:
        qtbot.waitUntil(lambda: not training.is_busy() and not session.job_queue.running(), timeout=LONG_MS)
        return titles(opened)

    start_tiny(session, steps=1)
    assert ended() == ["Odd.", "Failed 0."]
    session.queue.due.emit(own_run)
    assert "Failed 0." in ended() and len(titles(opened)) > 2
    start_tiny(session, steps=1)
    assert ended() == ["Odd.", "Failed 0."]


def test_a_run_that_failed_before_it_began_gives_the_train_page_no_title(opened: Window, settled: Window) -> None:
    training = opened.session.training
    training.title, training.failure = "discs generator", JobFailed("The folder can't be written.")
    training.state_changed.emit()
    assert opened.train._title.text() == "Train on discs"


def test_the_long_name_of_a_folder_widens_neither_the_sprites_page_nor_the_train_page(
    qtbot: QtBot, opened: Window, sprite_folder: Path
) -> None:
    pages = (opened.sprites.summary, opened.train)
    opened.show_page("train")  # the window's style makes a page wider when it is first shown
    widths = [page.minimumSizeHint().width() for page in pages]
    long_named = sprite_folder.rename(sprite_folder.with_name("folder_of_sprites_" * 8))
    open_sprites(qtbot, opened.session, long_named)
    opened.show_page("train")
    opened.show_page("sprites")
    qtbot.waitUntil(lambda: "\u2026" in opened.sprites.summary._title.text(), timeout=LONG_MS)
    assert [page.minimumSizeHint().width() for page in pages] == widths
    assert opened.sprites.summary._title.toolTip() == long_named.name
    assert opened.train._title.toolTip() == f"Train on {long_named.name}"


@pytest.mark.parametrize("words", ["No images found in 'palettes'.", "'train' and 'test' are splits of a data set."])
def test_a_title_with_enough_room_is_shown_whole(qtbot: QtBot, words: str) -> None:
    line = NoticeLabel()
    qtbot.addWidget(line)
    line.set_message(words, "")
    line.resize(2000, line.sizeHint().height())
    shown = QFontMetrics(line._bold()).elidedText(words, Qt.TextElideMode.ElideMiddle, line.title_px())
    assert shown == words


def test_the_title_of_the_train_page_is_whole_in_a_narrow_window(qtbot: QtBot, opened: Window) -> None:
    opened.resize(opened.minimumSizeHint())
    opened.show_page("train")
    qtbot.waitUntil(opened.train._title.isVisible, timeout=LONG_MS)
    qtbot.waitUntil(lambda: opened.train._title.text() == "Train on discs", timeout=LONG_MS)


def test_a_blocked_training_offers_to_retry_and_shows_its_cause_in_a_narrow_window(
    settled: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(settled.session.training, "resume", lambda: asked.append("again"))
    monkeypatch.setattr(settled.session.training, "stop_without_saving", lambda: asked.append("end"))
    settled.resize(760, 560)
    halt = Blocked("error", f"Can't write to /home/user/{'long name/' * 8}run.", "No space left on device. Waits.")
    for words in ("Try again", "End without saving"):
        settled.messages.show_notice(halt)
        buttons = [each for each in settled.notices.findChildren(QPushButton) if each.isVisible()]
        button = next(each for each in buttons if each.text() == words)
        line = settled.notices.findChild(NoticeLabel)
        assert isinstance(line, NoticeLabel)
        cause_px = QFontMetrics(line.font()).horizontalAdvance("No space left")
        assert line.width() - line.title_px() > cause_px
        click(button)
    assert asked == ["again", "end"] and titles(settled) == []


def test_generate_on_the_train_page_opens_the_run_on_show(
    qtbot: QtBot, trained_run: Path, own_run: Path, settled: Window
) -> None:
    other = shutil.copytree(trained_run, paths.runs() / "another")
    settled.session.runs.list_runs()
    choice, training = settled.generate.choice, settled.session.training
    qtbot.waitUntil(lambda: choice.models.count() == 2, timeout=LONG_MS)
    settled.runs.model_requested.emit(other)
    assert choice.run() == other
    training.path, training.has_checkpoint = own_run, True
    training.record = RunDir(own_run).record()
    training.state_changed.emit()
    settled.show_page("train")
    assert settled.train.steps.generate.text().strip() == "Generate"
    click(settled.train.steps.generate)
    assert settled.page() is settled.generate and choice.run() == own_run


def test_a_page_shown_by_another_way_takes_the_focus_from_the_navigation(window: Window) -> None:
    window.show_page("runs")
    button = next(found for found in window.rail.findChildren(QAbstractButton) if found.isChecked())
    button.setFocus()
    window.show_page("runs")
    assert button.hasFocus()
    window.show_page("train")
    assert window.page().isAncestorOf(window.focusWidget())


def test_f6_moves_between_the_parts_of_the_window(window: Window) -> None:
    window.show_page("generate")
    visited = list[QWidget]()
    while (focused := window.focusWidget()) not in visited:
        visited.append(focused)
        QTest.keyClick(focused, Qt.Key.Key_F6)
    assert focused is visited[1]  # the first is the page
    form, results = window.generate.choice, window.generate.results
    assert any(map(window.rail.isAncestorOf, visited)) and any(map(results.isAncestorOf, visited))
    assert len(visited) == len({form.parent()} | set(visited)) - 1
    QTest.keyClick(focused, Qt.Key.Key_F6, Qt.KeyboardModifier.ShiftModifier)
    assert window.focusWidget() is visited[-1]


def test_disabled_menu_entries_have_a_reason(window: Window) -> None:
    menus = window.menus
    for action in (menus.undo, menus.redo, menus.pause, menus.stop, menus.checkpoint):
        assert not action.isEnabled() and action.toolTip().endswith(".")
    assert menus.start.isEnabled()


def test_unavailable_keys_show_a_reason(window: Window) -> None:
    window.show_page("runs")
    window.runs.actions_row.trash_by_key()
    assert titles(window) == ["Move to trash: select a run."]
    QGuiApplication.clipboard().setText("no image")
    QTest.keyClick(window.runs.table, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert titles(window)[-1] == "The clipboard has no image or file."


def test_a_sprite_that_the_chosen_model_cannot_edit_is_reported(window: Window) -> None:
    window.session.runs.are_known = True
    window.session.editing.open(NamedSprite(np.zeros((8, 8, 4), np.uint8), "orc"))
    assert titles(window) == ["orc stays in the editor. This model can't edit sprites."]
    window.session.editing.close()
    window.notices.remove_outdated()
    assert titles(window) == []


def test_a_run_whose_folder_is_gone_offers_no_model(qtbot: QtBot, own_run: Path, settled: Window) -> None:
    training = settled.session.training
    training.path, training.has_checkpoint, training.record = own_run, True, RunDir(own_run).record()
    shutil.rmtree(own_run)
    training.state_changed.emit()
    assert not settled.train.steps.generate.isEnabled() and "moved or deleted" in settled.train.steps.generate.toolTip()


def test_the_train_page_offers_to_predict_with_a_classifier(qtbot: QtBot, own_run: Path, settled: Window) -> None:
    training = settled.session.training
    record = RunDir(own_run).record()
    training.path, training.has_checkpoint = own_run, True
    training.record = type(record)(**{**vars(record), "recipe": "classifier"})
    training.state_changed.emit()
    assert settled.train.steps.generate.text().strip() == "Predict…"
    training.record = replace(training.record, recipe="sets")
    training.state_changed.emit()
    assert settled.train.steps.generate.text().strip() == "Draw the rest…" and settled.train.steps.generate.isEnabled()


def test_f1_and_the_button_of_an_error_open_the_guide_at_their_topic(qtbot: QtBot, window: Window) -> None:
    window.show_page("runs")
    window.activateWindow()
    qtbot.keyClick(window, Qt.Key.Key_F1)
    guides = window.findChildren(GuideWindow)
    assert [guide.view.source().path() for guide in guides] == ["runs.md"] and guides[0].isVisible()
    window.session.show_error(DeviceFullError("The GPU is out of memory.", "Close other programs."))
    card = window.notices.shown()
    assert card is not None and card.button == "Guide"
    card.click()
    assert guides == window.findChildren(GuideWindow)
    assert guides[0].view.source().toString() == "troubleshooting.md#out-of-memory"
    guides[0].close()
