"""The doctor in the window: findings, fixes, and taking them back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from studio.app.window import Window
from studio.data.doctor.findings import Examined
from studio.data.source_files import Quarantined
from tests.ui.conftest import LONG_MS, click


@pytest.fixture
def looked_over(qtbot: QtBot, window: Window, sprite_folder: Path) -> Window:
    """The window with the sprites open, one of them soft and one a mirror image, and looked over."""
    source = sorted((sprite_folder / "class0").glob("*[0-9].png"))[0]
    pixels = np.asarray(Image.open(source)).copy()
    Image.fromarray(pixels[:, ::-1]).save(sprite_folder / "class1" / "turned.png")
    pixels[4, 4, 3] = 90
    Image.fromarray(pixels).save(sprite_folder / "class1" / "soft.png")
    window.open_paths([sprite_folder])
    wait_for_the_doctor(qtbot, window)
    window.sprites.tabs.setCurrentIndex(1)
    return window


def wait_for_the_doctor(qtbot: QtBot, window: Window) -> None:
    session = window.session
    qtbot.waitUntil(
        lambda: (
            session.open_sprites.result is not None
            and not session.open_sprites.is_busy()
            and not session.doctor.is_looking
        ),
        timeout=LONG_MS,
    )


def groups(window: Window) -> dict[str, int]:
    listed = window.sprites.doctor.groups
    return {listed.item(row).text().partition(" (")[0]: row for row in range(listed.count())}


def test_the_findings_are_listed_with_what_to_do(qtbot: QtBot, looked_over: Window) -> None:
    view = looked_over.sprites.doctor
    assert looked_over.sprites.tabs.tabText(1).startswith("Doctor (")
    assert {"Left out", "Unreadable", "Kept, but worth a look", "Similar", "Soft alpha"} <= groups(looked_over).keys()
    view.groups.setCurrentRow(groups(looked_over)["Unreadable"])
    assert view.files.isVisible() and view.files.model().rowCount() == 1 and not view.fixes[0].isVisible()
    view.groups.setCurrentRow(groups(looked_over)["Soft alpha"])
    assert view.grid.isVisible() and view.grid.visible_count() == 1
    assert view.fixes[0].text() == "Make them solid or clear" and view.threshold.isVisible()


def test_similar_sprites_stand_beside_what_they_are_like(looked_over: Window) -> None:
    view = looked_over.sprites.doctor
    view.groups.setCurrentRow(groups(looked_over)["Similar"])
    finding = next(each for each in looked_over.session.doctor.findings if each.group == "similar")
    assert view.grid.visible_count() == 2 * len(finding.items)
    assert not view.threshold.isVisible()


def test_a_threshold_is_previewed_and_used_and_taken_back(qtbot: QtBot, looked_over: Window) -> None:
    view, open_sprites = looked_over.sprites.doctor, looked_over.session.open_sprites
    assert open_sprites.sprites is not None
    before = open_sprites.sprites.fingerprint
    view.groups.setCurrentRow(groups(looked_over)["Soft alpha"])
    view.threshold.slider.setValue(100)
    assert view.threshold.preview.isChecked()
    shown = view.grid._model.rgba
    assert set(np.unique(shown[..., 3])) == {0, 255} and open_sprites.sprites.fingerprint == before
    view.threshold.preview.setChecked(False)
    assert 90 in view.grid._model.rgba[..., 3]
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        click(view.fixes[0])
    assert open_sprites.options.alpha_threshold == 100 and 90 not in open_sprites.sprites.rgba[..., 3]
    wait_for_the_doctor(qtbot, looked_over)
    assert "Mended" in groups(looked_over) and "Soft alpha" not in groups(looked_over)
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        click(view.undo)
    assert open_sprites.sprites.fingerprint == before
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        QTest.keyClick(
            looked_over, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        )
    assert open_sprites.options.alpha_threshold == 100 and not open_sprites.opened.future


def test_what_is_found_later_leaves_the_chosen_group_alone(looked_over: Window) -> None:
    view, session = looked_over.sprites.doctor, looked_over.session
    assert session.open_sprites.sprites is not None
    view.groups.setCurrentRow(groups(looked_over)["Similar"])
    assert not view.leave_out.isEnabled() and view.leave_out.toolTip() == "Select sprites first."
    view.grid.select([1])
    assert view.leave_out.isEnabled() and "selected below" in view.leave_out.toolTip()
    odd = Quarantined(session.open_sprites.sprites.names[0], "odd", "outlier")
    session.doctor.add(Examined(session.open_sprites.sprites, (odd,), 1))
    assert "Outlier" in groups(looked_over) and "Similar" in view.groups.currentItem().text()
    assert view.grid.selected() == [1]


def test_chosen_sprites_are_left_out_by_a_key(qtbot: QtBot, looked_over: Window) -> None:
    page, open_sprites = looked_over.sprites, looked_over.session.open_sprites
    page.tabs.setCurrentIndex(0)
    assert open_sprites.sprites is not None and not page.selection.leave_out.isVisible()
    names, count = open_sprites.sprites.names, len(open_sprites.sprites)
    page.grid.select([1, 3])
    assert page.selection.leave_out.isVisible()
    page.grid.view.setFocus()
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        QTest.keyClick(page.grid.view, Qt.Key.Key_Delete)
    assert len(open_sprites.sprites) == count - 2
    assert not {names[1], names[3]} & set(open_sprites.sprites.names)
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        QTest.keyClick(looked_over, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert open_sprites.sprites.names == names


def test_a_choice_that_fails_changes_nothing(qtbot: QtBot, looked_over: Window) -> None:
    """Leaving everything out is refused: what was open stays, and so does what can be undone."""
    open_sprites = looked_over.session.open_sprites
    result, opened = open_sprites.result, open_sprites.opened
    with qtbot.waitSignal(looked_over.session.job_queue.failed, timeout=LONG_MS):
        looked_over.session.doctor.leave_out(["unknown.png"])
        open_sprites.change_options(open_sprites.options.replace(leave_out="*"))
    qtbot.waitUntil(lambda: not open_sprites.is_busy(), timeout=LONG_MS)
    assert open_sprites.result is result and open_sprites.opened == opened
    assert looked_over.sprites.doctor.isVisible()
