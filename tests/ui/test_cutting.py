"""Cutting sheets by looking: what is drawn is what is cut, and handles and numbers are the same thing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from studio.app.pages.sprites.cut_view import CutView
from studio.app.pages.sprites.page import SpritesPage
from studio.app.widgets.sheet.canvas import Kind, moved
from studio.app.widgets.sheet.overlay import SheetPart, draw_boxes, draw_cells
from studio.data.options import Grid, ImportOptions
from studio.data.sheets.cells import GridCells
from tests.data.making import Pixels, png_of, sprite, write, zipped
from tests.data.sheets.test_grids import drawn
from tests.ui.conftest import click, endless

RED, GREEN = (200, 0, 0, 255), (0, 160, 0, 255)


def sheet_of(seed: int, columns: int, rows: int, grid: Grid, empty: int = 0) -> Pixels:
    """Sprites unlike each other, the last ones left out, with a margin on all sides."""
    rng = np.random.default_rng(seed)
    across, down = grid.tile_width + grid.spacing, grid.tile_height + grid.spacing
    height, width = 2 * grid.top + rows * down - grid.spacing, 2 * grid.left + columns * across - grid.spacing
    rgba = np.zeros((height, width, 4), np.uint8)
    for number in range(rows * columns - empty):
        y, x = grid.top + number // columns * down, grid.left + number % columns * across
        rgba[y : y + grid.tile_height, x : x + grid.tile_width] = drawn(rng, grid.tile_width, grid.tile_height)
    return rgba


def load(qtbot: QtBot, page: SpritesPage, *paths: Path) -> None:
    with qtbot.waitSignal(page.session.open_sprites.ended):
        page.session.open_sprites.open_paths(paths)


def seen(qtbot: QtBot, page: SpritesPage) -> CutView:
    """The view, with the sheet read."""
    view = page.cutting
    qtbot.waitUntil(lambda: view.is_open and view._reader.sheet is not None)
    assert view.isVisible() and view.canvas.isVisible()
    return view


def opened(qtbot: QtBot, page: SpritesPage, folder: Path) -> CutView:
    """The first sheet of a folder, by the button beside the settings."""
    load(qtbot, page, folder)
    page.summary.see_cells.click()
    return seen(qtbot, page)


def cut(qtbot: QtBot, page: SpritesPage) -> None:
    with qtbot.waitSignal(page.session.open_sprites.imported):
        click(page.cutting.cut)
    assert page.grid.isVisible() and not page.cutting.isVisible()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sheets of one grid, with empty cells, beside eight sprites."""
    where = tmp_path / "set"
    for number in range(8):
        write(where / "one" / f"{number}.png", sprite(100 + number, 16))
    write(where / "a.png", sheet_of(0, 8, 4, Grid(16, 16, 2, 2, 1), empty=3))
    write(where / "b.png", sheet_of(1, 6, 6, Grid(16, 16, 2, 2, 1)))
    return where


def test_a_sheet_that_was_found_opens_and_is_cut_as_it_is_drawn(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    load(qtbot, page, folder)
    page.tabs.setCurrentIndex(1)
    files = page.doctor.files
    assert files.isVisible() and "Looks like a sheet (2)" in page.doctor.groups.currentItem().text()
    files.activated.emit(files.model().index(0, 0))
    view = seen(qtbot, page)
    assert view.count.text() == "29 sprites, 3 empty cells left out"
    assert "own grid" in view.hint.text() and "8 other sprites stay whole" in view.hint.text()
    assert [view.form.boxes[name].value() for name in ("tile", "tile_height", "margin", "spacing")] == [16, 16, 2, 1]
    cut(qtbot, page)
    sprites = page.session.open_sprites.sprites
    assert sprites is not None and len(sprites) == 29 + 36 + 8 and sprites.size == 16
    assert sprites.class_names == ("a", "b", "one")
    assert (sprites.rgba[:8].transpose(1, 0, 2, 3) == first_row(folder / "a.png")).all()
    page.doctor.files.cut_wanted.emit("b.png")
    assert seen(qtbot, page).before.isEnabled() and view.form.automatic.isChecked()
    qtbot.keyClick(view.form.boxes["tile"], Qt.Key.Key_Escape)
    assert page.grid.isVisible() and not view.is_open


def first_row(path: Path) -> Pixels:
    """uint8 [16, 8, 16, 4]: its first eight tiles of 16 x 16, each two from the edge or one from the last."""
    rgba = np.array(Image.open(path))
    return np.stack([rgba[2:18, left : left + 16] for left in range(2, 2 + 8 * 17, 17)], axis=1)


def test_the_next_sheet_shows_how_the_numbers_fit_it(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    view = opened(qtbot, page, folder)
    view.form.boxes["spacing"].setValue(2)
    first = view._reader.sheet
    qtbot.keyClick(view.canvas, Qt.Key.Key_PageDown, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: view._reader.sheet not in (None, first))
    assert view._which.text() == "Sheet 2 of 2" and not view.after.isEnabled()
    assert view.form.boxes["spacing"].value() == 2 and view.canvas._cells is not None
    assert view.canvas._cells.grid == Grid(16, 16, 2, 2, 2) and "all 2 sheets" in view.hint.text()
    click(view.before)
    qtbot.waitUntil(lambda: view._reader.sheet is not None)
    assert view._which.text() == "Sheet 1 of 2"


def test_what_is_clear_on_the_screen_is_what_is_cut(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    rgba = np.zeros((4 * 20, 6 * 20, 4), np.uint8)
    rgba[:] = RED
    rgba[20:40, 40:80] = 0
    rgba[65, 100] = RED
    rgba[60:80, 100:120] = 0
    rgba[61, 118] = GREEN
    write(tmp_path / "s.png", rgba)
    write(tmp_path / "one.png", sprite(1, 16))
    load(qtbot, page, tmp_path)
    open_sprites = page.session.open_sprites
    open_sprites.opened = replace(open_sprites.opened, options=ImportOptions(size=16, sheets="grid", tile=20))
    page.doctor.files.cut_wanted.emit("s.png")
    view = seen(qtbot, page)
    shot = view.canvas.viewport().grab().toImage()
    clear = set()
    for row, column in np.ndindex(4, 6):
        inside = view.canvas.point(20 * column + 18.5, 20 * row + 1.5) * shot.devicePixelRatio()
        if QColor(shot.pixel(inside)).getRgb() in (RED, GREEN):
            clear.add(f"s.png#r{row + 1} c{column + 1}")
    assert view.count.text() == f"{len(clear)} sprites, 2 empty cells left out" and len(clear) == 22
    cut(qtbot, page)
    result = page.session.open_sprites.result
    assert result is not None
    assert clear == {name for name in (*result.sprites.names, *(q.name for q in result.quarantine)) if "#" in name}


def test_a_handle_that_is_dragged_changes_numbers_and_cells(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    view = opened(qtbot, page, folder)
    canvas, boxes = view.canvas, view.form.boxes
    zoom = canvas.zoom()
    steps: list[tuple[Kind, QPoint, tuple[int, int, int, int]]] = [
        ("tile", QPoint(3 * zoom, 2 * zoom), (19, 18, 2, 1)),
        ("spacing", QPoint(2 * zoom, 0), (19, 18, 2, 3)),
        ("margin", QPoint(-zoom, -zoom), (19, 18, 1, 3)),
        ("spacing", QPoint(-40 * zoom, 0), (19, 18, 1, 0)),
    ]
    for kind, by, expected in steps:
        drag(canvas.handles[kind], by)
        assert tuple(boxes[name].value() for name in ("tile", "tile_height", "margin", "spacing")) == expected
        assert canvas._cells is not None
        assert canvas._cells.grid == Grid(*expected[:2], expected[2], expected[2], expected[3])
    assert not view.form.automatic.isChecked()
    assert canvas.handles["tile"].geometry().center() == canvas.point(1 + 19, 1 + 18)
    assert view.options().tile == 19 and view.options().size == 24
    view.form.automatic.click()
    assert view.options().tile == 0 and boxes["tile"].value() == 16 and boxes["spacing"].value() == 1


def drag(handle: QWidget, by: QPoint) -> None:
    start = handle.rect().center()
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=start)
    to = handle.mapToGlobal(start) + by
    QTest.mouseMove(handle, handle.mapFromGlobal(to))
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=handle.mapFromGlobal(to))


def test_handles_move_by_keys_alone_and_come_into_sight(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    view = opened(qtbot, page, folder)
    canvas, boxes = view.canvas, view.form.boxes
    assert canvas.hasFocus()
    focused: list[QWidget] = [canvas]
    for _ in range(3):
        QTest.keyClick(focused[-1], Qt.Key.Key_Tab)
        focused.append(QApplication.focusWidget() or canvas)
    assert focused[1:] == list(canvas.handles.values())
    assert all(handle.accessibleName() and handle.toolTip() for handle in focused)
    tile = canvas.handles["tile"]
    qtbot.keyClick(tile, Qt.Key.Key_Right)
    qtbot.keyClick(tile, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(canvas.handles["spacing"], Qt.Key.Key_Left)
    qtbot.keyClick(canvas.handles["margin"], Qt.Key.Key_Down)
    numbers = ("tile", "tile_height", "margin", "margin_top", "spacing")
    assert [boxes[name].value() for name in numbers] == [17, 24, 2, 3, 0]
    assert (view.options().margin, view.options().margin_top) == (2, 3)
    qtbot.keyClick(canvas.handles["margin"], Qt.Key.Key_Up)
    assert view.options().margin_top == -1  # the same as on its left
    for _ in range(3):
        qtbot.keyClick(canvas, Qt.Key.Key_Plus)
    bar = canvas.verticalScrollBar()
    bar.setValue(bar.maximum())
    assert not canvas.viewport().rect().contains(tile.geometry().center())
    canvas.handles["margin"].setFocus()
    tile.setFocus()
    assert canvas.viewport().rect().contains(tile.geometry().center())


def test_grids_stay_within_what_can_be_set() -> None:
    grid = Grid(16, 12, 4, 4, 1)
    assert moved(grid, "tile", -99, 999) == Grid(1, 256, 4, 4, 1)
    assert moved(grid, "margin", 1, -9) == Grid(16, 12, 5, 0, 1)
    assert moved(grid, "spacing", -5, 7) == Grid(16, 12, 4, 4, 0)


def test_packed_sprites_have_boxes_and_rows_can_be_classes(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    rgba = np.zeros((90, 90, 4), np.uint8)
    rgba[5:25, 5:25], rgba[8:20, 40:60], rgba[50:70, 20:45] = RED, GREEN, RED
    rgba[5:25, 28:30] = GREEN  # two pixels from the first sprite
    write(tmp_path / "s.png", rgba)
    write(tmp_path / "one.png", sprite(1, 16))
    load(qtbot, page, tmp_path)
    page.doctor.files.cut_wanted.emit("s.png")
    view = seen(qtbot, page)
    view.form.packed.click()
    qtbot.waitUntil(lambda: view.count.text() == "4 sprites")
    assert view.canvas._boxes is not None and view.canvas._boxes[1].tolist() == [28, 5, 30, 25]
    assert not any(handle.isVisible() for handle in view.canvas.handles.values())
    view.form.boxes["gap"].setValue(3)
    qtbot.waitUntil(lambda: view.count.text() == "3 sprites")
    view.form.classes.setCurrentIndex(1)
    shot = view.canvas.viewport().grab().toImage()
    point = view.canvas.point(30.5, 55.5) * shot.devicePixelRatio()
    assert QColor(shot.pixel(point)).getRgb() == RED
    cut(qtbot, page)
    sprites = page.session.open_sprites.sprites
    assert sprites is not None and sprites.size == 32
    assert sorted(sprites.class_names) == sorted(["s row 1", "s row 2", tmp_path.name])


def cancel(qtbot: QtBot, page: SpritesPage) -> None:
    """End what is under way, as the status bar does."""
    job_queue = page.session.job_queue
    with qtbot.waitSignal(job_queue.progressed):
        pass
    job_queue.cancel(job_queue.running()[-1])
    qtbot.waitUntil(lambda: not job_queue.running())


def test_what_is_cancelled_says_so_and_can_be_asked_again(
    qtbot: QtBot, page: SpritesPage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(qtbot, page, folder)
    qtbot.waitUntil(lambda: not page.session.job_queue.running())
    view = page.cutting
    with monkeypatch.context() as patch:
        patch.setattr("studio.app.background.sprite_jobs.look_at_sheet", endless)
        page.summary.see_cells.click()
        assert view.problem.text().startswith("Reading")
        cancel(qtbot, page)
    assert view.problem.text().startswith("Opening the sheet was cancelled.") and not view.cut.isEnabled()
    click(view.back)
    page.summary.see_cells.click()
    seen(qtbot, page)
    with monkeypatch.context() as patch:
        patch.setattr("studio.app.background.sprite_jobs.find_packed", endless)
        view.form.packed.click()
        assert view.count.text() == "Looking for the sprites…"
        cancel(qtbot, page)
    assert view.count.text().startswith("Looking for the sprites was cancelled") and not view.cut.isEnabled()
    view.form.classes.setCurrentIndex(1)
    qtbot.waitUntil(view.cut.isEnabled)


def test_sheets_alone_open_by_themselves_and_what_was_open_stays(
    qtbot: QtBot, page: SpritesPage, folder: Path, tmp_path: Path
) -> None:
    load(qtbot, page, folder)
    before = page.session.open_sprites.sprites
    big = sheet_of(2, 18, 10, Grid(32, 32), empty=4)
    archive = zipped(tmp_path / "big.zip", {"in/big.png": png_of(big)})
    load(qtbot, page, archive)
    view = seen(qtbot, page)
    assert "too large for single sprites" in view._reason.text() and page.session.open_sprites.sprites is before
    click(view.back)
    assert page.grid.isVisible() and page.session.open_sprites.sprites is before
    load(qtbot, page, archive)
    seen(qtbot, page)
    cut(qtbot, page)
    sprites = page.session.open_sprites.sprites
    assert sprites is not None and len(sprites) == 176 and page.session.open_sprites.paths == (archive,)


def test_a_sheet_that_has_gone_says_so(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    load(qtbot, page, folder)
    (folder / "a.png").unlink()
    page.summary.see_cells.click()
    view = page.cutting
    qtbot.waitUntil(lambda: "'a.png' has gone" in view.problem.text())
    assert view.problem.isVisible() and not view.cut.isEnabled()
    click(view.after)
    qtbot.waitUntil(lambda: view._reader.sheet is not None)
    assert view.canvas.isVisible() and view.cut.isEnabled()


def test_a_cut_that_fails_comes_back_with_its_numbers(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    view = opened(qtbot, page, folder)
    view.form.boxes["tile"].setValue(17)
    for path in sorted(folder.rglob("*.png")):
        path.unlink()
    with qtbot.waitSignal(page.session.open_sprites.ended):
        click(view.cut)
    assert view.isVisible() and view.form.boxes["tile"].value() == 17


def test_what_would_stay_whole_is_said(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    write(tmp_path / "s.png", np.full((160, 160, 4), 255, np.uint8))
    write(tmp_path / "one.png", sprite(1, 16))
    load(qtbot, page, tmp_path)
    page.doctor.files.cut_wanted.emit("s.png")
    view = seen(qtbot, page)
    assert view.count.text().startswith("No grid is seen") and not view.cut.isEnabled()
    view.form.boxes["tile"].setValue(100)
    view.form.boxes["tile_height"].setValue(100)
    assert view.count.text().startswith("Fewer than two")
    view.form.packed.click()
    qtbot.waitUntil(lambda: view.count.text().startswith("Nothing parts"))
    assert view.cut.toolTip() == view.count.text()


def test_a_small_sheet_among_the_sprites_can_be_chosen(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    for seed, name in ((0, "s"), (4, "t")):  # of four sprites each: too little to say that they are sheets
        rows = [np.concatenate([sprite(seed + 2 * row, 16), sprite(seed + 2 * row + 1, 16)], 1) for row in (0, 1)]
        write(tmp_path / f"{name}.png", np.concatenate(rows))
    load(qtbot, page, tmp_path)
    assert page.proposal.isHidden()
    assert not page.summary.see_cells.isEnabled() and "select one" in page.summary.see_cells.toolTip()
    page.grid.select([1])
    page.summary.see_cells.click()
    view = seen(qtbot, page)
    assert view._title.text() == "t.png" and view.options().size == 0
    cut(qtbot, page)
    assert page.session.open_sprites.sprites is not None and len(page.session.open_sprites.sprites) == 8


def test_only_the_visible_part_of_a_large_sheet_is_drawn(
    qtbot: QtBot, page: SpritesPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rgba = np.zeros((1024, 2048, 4), np.uint8)
    rgba[::16, ::16] = RED
    write(tmp_path / "s.png", rgba)
    load(qtbot, page, tmp_path)
    view = seen(qtbot, page)
    view.form.boxes["tile"].setValue(8)
    parts = []
    monkeypatch.setattr(view.canvas, "paint_over", lambda painter, place, part: parts.append(part))
    view.canvas.set_zoom(4)
    view.canvas.viewport().grab()
    size = view.canvas.viewport().size()
    assert parts and all(isinstance(part, SheetPart) for part in parts)
    assert all(part.box.width() <= size.width() and part.box.height() <= size.height() for part in parts)


def test_zooming_keeps_what_is_under_the_mouse(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    write(tmp_path / "s.png", sheet_of(3, 40, 40, Grid(16, 16), empty=1500))
    load(qtbot, page, tmp_path)
    canvas = seen(qtbot, page).canvas
    assert canvas.zoom() == 2 and canvas.viewport().rect().contains(canvas.handles["margin"].geometry())
    canvas.set_zoom(4)
    about = QPoint(300, 200)
    canvas.scroll_by(QPoint(700, 500))
    before = canvas.point(0, 0)
    canvas.step_zoom(1, about)
    assert canvas.zoom() == 6
    moved_to = canvas.point((about - before).x() / 4, (about - before).y() / 4)
    assert (moved_to - about).manhattanLength() <= 2


@pytest.mark.parametrize(("left", "top"), [(0, 0), (37, 22), (25, 25), (24, 60)])
def test_only_what_is_in_a_box_or_a_filled_cell_is_clear(qapp: QApplication, left: int, top: int) -> None:
    """At two device pixels a line and three a pixel, from any corner: the veil is told from what it does to red."""
    cells = GridCells(Grid(8, 8), np.array([0, 8, 16]), np.array([0, 8, 16]), np.eye(3, dtype=bool))
    boxes = np.array([[8 * n, 8 * n, 8 * n + 8, 8 * n + 8] for n in range(3)])
    part = SheetPart(QRect(left, top, 74 - left, 74 - top), 3, 2)
    for packed in (False, True):
        image = QImage(part.box.size(), QImage.Format.Format_RGB32)
        image.fill(QColor(*RED))
        painter = QPainter(image)
        if packed:
            draw_boxes(painter, image.rect(), part, boxes)
        else:
            draw_cells(painter, image.rect(), part, cells)
        painter.end()
        for row, column in np.ndindex(3, 3):
            for y, x in np.ndindex(5, 5):
                place = QPoint(24 * column + 4 + 4 * x - left, 24 * row + 4 + 4 * y - top)
                if image.rect().contains(place):
                    assert (QColor(image.pixel(place)).getRgb() == RED) is (row == column), (row, column, y, x)
