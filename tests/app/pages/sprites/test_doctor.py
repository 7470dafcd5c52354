"""The doctor on the Sprites page: findings, fixes and undo."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem
from pytestqt.qtbot import QtBot

from studio.app.pages.sprites.doctor import DoctorView, FileTable
from studio.app.pages.sprites.page import SpritesPage
from studio.app.state.session import Session
from studio.app.window import Window
from studio.data.doctor.findings import SpritesChecked
from studio.data.doctor.neighbours import SpriteNeighbours
from studio.data.files.source_files import ImportIssue
from tests.app.conftest import LONG_MS, click, show_alone, sprites_of


@pytest.fixture
def looked_over(qtbot: QtBot, session: Session, sprite_folder: Path) -> SpritesPage:
    """Return the Sprites page alone with checked sprites: a sprite with soft alpha, and a mirrored duplicate."""
    return open_and_check(qtbot, show_alone(qtbot, session, SpritesPage), sprite_folder)


@pytest.fixture
def in_window(qtbot: QtBot, window: Window, sprite_folder: Path) -> Window:
    """Return the window with the same sprites."""
    open_and_check(qtbot, window.sprites, sprite_folder)
    return window


def open_and_check(qtbot: QtBot, page: SpritesPage, folder: Path) -> SpritesPage:
    source = sorted((folder / "class0").glob("*[0-9].png"))[0]
    pixels = np.asarray(Image.open(source)).copy()
    Image.fromarray(pixels[:, ::-1]).save(folder / "class1" / "turned.png")
    pixels[4, 4, 3] = 90
    Image.fromarray(pixels).save(folder / "class1" / "soft.png")
    page.session.open_sprites.open_paths([folder])
    wait_for_the_doctor(qtbot, page)
    page.tabs.setCurrentIndex(1)
    return page


def wait_for_the_doctor(qtbot: QtBot, page: SpritesPage) -> None:
    opened, doctor = page.session.open_sprites, page.session.doctor
    qtbot.waitUntil(lambda: bool(opened.result) and not opened.is_busy() and not doctor.is_checking, timeout=LONG_MS)


def choose(page: SpritesPage, group: str) -> DoctorView:
    """Choose a finding and return the view."""
    view = page.doctor
    view.groups.setCurrentRow(groups(page)[group])
    return view


def groups(page: SpritesPage) -> dict[str, int]:
    listed = page.doctor.groups
    return {listed.item(row).text().partition(" (")[0]: row for row in range(listed.count())}


def test_findings_are_listed_with_fixes(looked_over: SpritesPage) -> None:
    assert looked_over.tabs.tabText(1).startswith("Doctor (")
    assert {"Skipped", "Unreadable", "Worth a look", "Similar", "Semi-transparent"} <= groups(looked_over).keys()
    view = choose(looked_over, "Unreadable")
    assert view.files.isVisible() and view.files.model().rowCount() == 1 and not view.fixes[0].isVisible()
    choose(looked_over, "Semi-transparent")
    assert view.grid.isVisible() and view.grid.visible_count() == 1
    assert view.fixes[0].text() == "Remove semi-transparency" and view.preview.threshold.isVisible()
    choose(looked_over, "Similar")  # beside their twins
    finding = next(each for each in looked_over.session.doctor.findings if each.group == "similar")
    assert view.grid.visible_count() == 2 * len(finding.items) and not view.preview.isVisible()


def test_nothing_overlaps_in_a_low_window(qtbot: QtBot, looked_over: SpritesPage) -> None:
    looked_over.resize(700, 320)
    view = choose(looked_over, "Semi-transparent")
    pages = view.grid.parentWidget()
    assert pages is not None
    qtbot.waitUntil(lambda: view.undo.geometry().bottom() < view.preview.y())
    assert view.preview.geometry().bottom() < pages.y() and pages.height() >= 160


@pytest.mark.parametrize(("width", "is_narrow"), [(1180, False), (820, True)])
def test_findings_are_above_their_files_in_a_narrow_window(
    qtbot: QtBot, looked_over: SpritesPage, width: int, is_narrow: bool
) -> None:
    looked_over.resize(width, 600)
    view = choose(looked_over, "Unreadable")
    qtbot.waitUntil(lambda: (view.files.mapTo(view, QPoint()).y() > view.groups.geometry().bottom()) == is_narrow)
    assert view.files.width() > 300


def test_alpha_threshold_preview_fix_and_undo(qtbot: QtBot, in_window: Window) -> None:
    page = in_window.sprites
    view, open_sprites = choose(page, "Semi-transparent"), page.session.open_sprites
    before = sprites_of(page.session).fingerprint
    view.preview.in_grid.setChecked(True)
    with qtbot.waitSignal(page.session.doctor.previewed, timeout=LONG_MS):
        view.preview.threshold.slider.setValue(100)
    assert set(np.unique(view.grid.model.rgba[..., 3])) == {0, 255}
    assert view.preview.pair.accessibleDescription() == "1 → 0 semi-transparent"
    assert sprites_of(page.session).fingerprint == before
    view.preview.in_grid.setChecked(False)
    assert 90 in view.grid.model.rgba[..., 3]
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        click(view.fixes[0])
    assert open_sprites.options.alpha_threshold == 100
    assert 90 not in sprites_of(page.session).rgba[..., 3]
    wait_for_the_doctor(qtbot, page)
    assert "Edited here" in groups(page) and "Semi-transparent" not in groups(page)
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        click(view.undo)
    assert sprites_of(page.session).fingerprint == before
    again = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        QTest.keyClick(in_window, Qt.Key.Key_Z, again)
    assert open_sprites.options.alpha_threshold == 100 and open_sprites.history.next is None


def test_magenta_fix_and_undo(qtbot: QtBot, looked_over: SpritesPage, sprite_folder: Path) -> None:
    for path in sorted((sprite_folder / "class0").glob("*.png"))[:2]:
        pixels = np.asarray(Image.open(path).convert("RGBA")).copy()
        pixels[pixels[..., 3] == 0] = (255, 0, 255, 255)
        pixels[0] = (255, 0, 255, 255)
        Image.fromarray(pixels).save(path)
    opened = looked_over.session.open_sprites
    looked_over.session.open_sprites.open_paths([sprite_folder])
    wait_for_the_doctor(qtbot, looked_over)
    with qtbot.waitSignal(looked_over.session.doctor.previewed, timeout=LONG_MS):
        view = choose(looked_over, "Magenta background")
    assert view.preview.pair.isVisible() and not view.preview.threshold.isVisible()
    assert view.preview.pair.accessibleDescription().startswith("8 × 8 → ")
    assert view.fixes[0].text() == "Make magenta transparent" and view.grid.visible_count() == 2
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        click(view.fixes[0])
    wait_for_the_doctor(qtbot, looked_over)
    assert opened.options.changed() == {"clear_magenta": True} and "Magenta background" not in groups(looked_over)
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        click(view.undo)
    wait_for_the_doctor(qtbot, looked_over)
    assert opened.options.changed() == {} and "Magenta background" in groups(looked_over)


def test_later_findings_keep_the_selection(looked_over: SpritesPage) -> None:
    view, sprites = choose(looked_over, "Similar"), sprites_of(looked_over.session)
    assert not view.exclude.isEnabled() and view.exclude.toolTip() == "Exclude selected: select some sprites first."
    view.grid.select([1])
    assert view.exclude.isEnabled() and "selected sprites" in view.exclude.toolTip()
    odd = ImportIssue(sprites.names[0], "odd", "outlier")
    wrong = ImportIssue(sprites.names[0], "class0, looks like class1", "wrong class", twin=sprites.names[-1])
    neighbours = SpriteNeighbours(np.zeros((0, 10), np.int64), np.zeros(0, np.float32))
    looked_over.session.doctor.add(SpritesChecked(sprites, (odd, wrong), 1, neighbours=neighbours))
    assert "Outlier" in groups(looked_over) and "Similar" in view.groups.currentItem().text()
    assert view.grid.selected() == [1]
    model = choose(looked_over, "Wrong class").grid.view.model()
    assert [model.index(row, 0).data() for row in range(2)] == ["class1", wrong.reason]
    assert model.index(1, 0).data(Qt.ItemDataRole.ToolTipRole) == f"{wrong.name} – {wrong.reason}"


def test_files_have_the_width_and_keep_the_end_of_their_paths(qtbot: QtBot) -> None:
    path, table, option = f"{'monsters/' * 8}green/orc.png#r1 c4", FileTable(), QStyleOptionViewItem()
    qtbot.addWidget(table)
    table.show_items([ImportIssue(path, "excluded by name", "chosen")] * 300)
    elider = table.itemDelegate()
    assert isinstance(elider, QStyledItemDelegate)
    file, problem = table.model().index(0, 0), table.model().index(0, 1)
    for width in (900, 300):
        table.resize(width, 200)
        table.show()
        elider.initStyleOption(option, file)
        metrics, file_width = table.fontMetrics(), table.columnWidth(0)
        fits = metrics.horizontalAdvance(path) < file_width
        assert fits == (width == 900) and file_width > table.columnWidth(1) > 0
        assert metrics.elidedText(path, option.textElideMode, file_width).endswith("orc.png#r1 c4")
        assert file.data(Qt.ItemDataRole.ToolTipRole) == path
        assert metrics.horizontalAdvance(problem.data()) < table.columnWidth(1) or width == 300


def test_fix_selects_the_next_finding(qtbot: QtBot, looked_over: SpritesPage, tmp_path: Path) -> None:
    view, before = choose(looked_over, "Semi-transparent"), groups(looked_over)
    row = before["Semi-transparent"]
    assert row > 1
    with qtbot.waitSignal(looked_over.session.open_sprites.imported, timeout=LONG_MS):
        click(view.fixes[0])
    wait_for_the_doctor(qtbot, looked_over)
    assert "Semi-transparent" not in groups(looked_over)
    assert abs(view.groups.currentRow() - row) <= 1 and looked_over.tabs.currentIndex() == 1
    choose(looked_over, "Similar")
    similar = looked_over.doctor._finding
    looked_over.session.doctor._on_imported()  # duplicates are found last
    wait_for_the_doctor(qtbot, looked_over)
    assert similar is not None and view.groups.currentItem().text().startswith("Similar")
    other = tmp_path / "other"
    other.mkdir()
    Image.fromarray(np.full((8, 8, 4), 255, np.uint8)).save(other / "one.png")
    looked_over.session.open_sprites.open_paths([other])
    wait_for_the_doctor(qtbot, looked_over)
    qtbot.waitUntil(lambda: len(sprites_of(looked_over.session)) == 1, timeout=LONG_MS)
    assert looked_over.tabs.currentIndex() == 0


def test_delete_key_excludes_selected_sprites(qtbot: QtBot, in_window: Window) -> None:
    page, imported = in_window.sprites, in_window.session.open_sprites.imported
    page.tabs.setCurrentIndex(0)
    names = sprites_of(page.session).names
    assert not page.selection.exclude.isVisible()
    page.grid.select([1, 3])
    assert page.selection.exclude.isVisible()
    page.grid.view.setFocus()
    with qtbot.waitSignal(imported, timeout=LONG_MS):
        QTest.keyClick(page.grid.view, Qt.Key.Key_Delete)
    assert sprites_of(page.session).names == (names[0], names[2], *names[4:])
    with qtbot.waitSignal(imported, timeout=LONG_MS):
        QTest.keyClick(in_window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert sprites_of(page.session).names == names


def test_one_of_the_excluded_sprites_comes_back(qtbot: QtBot, looked_over: SpritesPage) -> None:
    session, names = looked_over.session, sprites_of(looked_over.session).names
    with qtbot.waitSignal(session.open_sprites.imported, timeout=LONG_MS):
        session.doctor.exclude(list(names[:3]))
    view = choose(looked_over, "Excluded")
    assert view.include.isVisible() and not view.include.isEnabled() and view.fixes[0].text() == "Include them"
    view.files.selectRow(1)
    with qtbot.waitSignal(session.open_sprites.imported, timeout=LONG_MS):
        click(view.include)
    assert sprites_of(session).names == (names[1], *names[3:])
    latest = session.open_sprites.history.latest
    assert latest is not None and latest.title == "include 1 sprite"
    choose(looked_over, "Unreadable")
    assert not view.include.isVisible()


def test_failed_exclusion_changes_nothing(qtbot: QtBot, looked_over: SpritesPage) -> None:
    """Excluding all sprites fails; open sprites and undo history stay."""
    open_sprites = looked_over.session.open_sprites
    result, opened = open_sprites.result, open_sprites.opened
    with qtbot.waitSignal(looked_over.session.job_queue.failed, timeout=LONG_MS):
        looked_over.session.doctor.exclude(["unknown.png"])
        open_sprites.change_options(open_sprites.options.replace(leave_out="*"))
    qtbot.waitUntil(lambda: not open_sprites.is_busy(), timeout=LONG_MS)
    assert open_sprites.result is result and open_sprites.opened == opened
    assert looked_over.doctor.isVisible()


def test_splits_become_classes_and_splits_again(
    qtbot: QtBot, window: Window, sprite_folder: Path, tmp_path: Path
) -> None:
    for place, path in enumerate(sorted(sprite_folder.glob("class*/*.png"))[:6]):
        copy = tmp_path / "set" / ("train", "val", "test")[place % 3] / "cat" / f"{place}.png"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    window.open_paths([tmp_path / "set"])
    wait_for_the_doctor(qtbot, window.sprites)
    assert sprites_of(window.session).class_names == ("cat",) and sprites_of(window.session).is_test.sum() == 2
    window.sprites.tabs.setCurrentIndex(1)
    view, open_sprites = choose(window.sprites, "Split folders"), window.session.open_sprites
    assert view._title.text() == "Split folders: 1 entry" and view.fixes[0].text() == "Use them as classes"
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        click(view.fixes[0])
    assert sprites_of(window.session).class_names == ("test/cat", "train/cat", "val/cat")
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        click(view.undo)
    assert sprites_of(window.session).class_names == ("cat",)
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        click(window.notices._act)
    assert sprites_of(window.session).class_names == ("test/cat", "train/cat", "val/cat")
