"""Slicing sheets: the preview, its handles and numbers, the proposal above the grid, and undo."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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

from studio.app.pages.sprites.page import SpritesPage
from studio.app.pages.sprites.slice_texts import describe_proposal, describe_skipped_images
from studio.app.pages.sprites.slice_view import SliceView
from studio.app.widgets.sheet.canvas import Kind, moved
from studio.app.widgets.sheet.overlay import SheetPart, draw_boxes, draw_cells
from studio.data.import_result import DetectedSheet, SheetSummary
from studio.data.options import ImportOptions, SheetGrid
from studio.data.sheets.cells import GridCells
from studio.data.sprites import Sprites
from tests.app.conftest import click, endless, sprites_of
from tests.data.composing import animated, demo_sprites, laid, trimmed
from tests.data.making import Pixels, frame, png_of, sheets_recognised_once, sprite, write, write_sheet, zipped
from tests.data.sheets.test_grids import drawn

RED, GREEN = (200, 0, 0, 255), (0, 160, 0, 255)
_SLICED = "6 images sliced into 42 sprites in 6 classes, by sheet. Skipped: 1 larger than 24 × 24 pixels."
_ROOM = 700  # pixels for a page in a window of 800


def sheet_of(seed: int, columns: int, rows: int, grid: SheetGrid, empty: int = 0) -> Pixels:
    """Return a sheet of distinct sprites with a margin; the last `empty` cells are empty."""
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


def seen(qtbot: QtBot, page: SpritesPage) -> SliceView:
    """Return the view once the sheet is read."""
    view = page.cutting
    qtbot.waitUntil(lambda: view.is_open and view._reader.sheet is not None)
    assert view.isVisible() and view.canvas.isVisible()
    return view


def opened(qtbot: QtBot, page: SpritesPage, folder: Path) -> SliceView:
    """Open a folder's first sheet by the button beside the settings."""
    load(qtbot, page, folder)
    page.summary.preview_slicing.click()
    return seen(qtbot, page)


def opened_by_name(qtbot: QtBot, page: SpritesPage, rgba: Pixels, folder: Path) -> SliceView:
    """Open a skipped sheet from the list of files."""
    write(folder / "s.png", rgba)
    write(folder / "one.png", sprite(1, 16))
    load(qtbot, page, folder)
    page.doctor.files.slice_requested.emit("s.png")
    return seen(qtbot, page)


def cut(qtbot: QtBot, page: SpritesPage) -> Sprites:
    """Slice as previewed, and return the open sprites."""
    with qtbot.waitSignal(page.session.open_sprites.imported):
        click(page.cutting.slice_button)
    assert page.grid.isVisible() and not page.cutting.isVisible()
    return sprites_of(page.session)


def numbers(view: SliceView, *names: str) -> list[int]:
    return [view.form.boxes[name].value() for name in names or ("tile", "tile_height", "margin", "spacing")]


def colour_at(image: QImage, place: QPoint) -> tuple[int, int, int, int]:
    return QColor(image.pixel(place)).getRgb()  # type: ignore[return-value]


@pytest.fixture(autouse=True, scope="module")
def _equal_sheets_recognised_once() -> Iterator[None]:
    """Each test opens its sheets and slices them, and most tests write the same sheets."""
    with sheets_recognised_once():
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write two sheets with equal grids and empty cells, and eight sprites."""
    where = tmp_path / "set"
    for number in range(8):
        write(where / "one" / f"{number}.png", sprite(100 + number, 16))
    write(where / "a.png", sheet_of(0, 8, 4, SheetGrid(16, 16, 2, 2, 1), empty=3))
    write(where / "b.png", sheet_of(1, 6, 6, SheetGrid(16, 16, 2, 2, 1)))
    return where


def test_detected_sheet_is_sliced_as_drawn(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    load(qtbot, page, folder)
    page.tabs.setCurrentIndex(1)
    files = page.doctor.files
    assert files.isVisible() and "Looks like a sheet (2)" in page.doctor.groups.currentItem().text()
    files.activated.emit(files.model().index(0, 0))
    view = seen(qtbot, page)
    assert view.count.text() == "29 sprites, 3 empty cells skipped"
    assert "detected grid" in view.hint.text() and "8 other images stay whole" in view.hint.text()
    assert numbers(view) == [16, 16, 2, 1]
    sprites = cut(qtbot, page)
    assert len(sprites) == 29 + 36 + 8 and sprites.size == 16
    assert sprites.class_names == ("a", "b", "one")
    assert (sprites.rgba[:8].transpose(1, 0, 2, 3) == first_row(folder / "a.png")).all()
    page.doctor.files.slice_requested.emit("b.png")
    assert seen(qtbot, page).previous.isEnabled() and view.form.automatic.isChecked()
    qtbot.keyClick(view.form.boxes["tile"], Qt.Key.Key_Escape)
    assert page.grid.isVisible() and not view.is_open


def first_row(path: Path) -> Pixels:
    """Return uint8 [16, 8, 16, 4], the first eight tiles, with a margin of two and a spacing of one."""
    rgba = np.array(Image.open(path))
    return np.stack([rgba[2:18, left : left + 16] for left in range(2, 2 + 8 * 17, 17)], axis=1)


def test_next_sheet_uses_the_shared_numbers(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    view = opened(qtbot, page, folder)
    view.form.automatic.click()
    view.form.boxes["spacing"].setValue(2)
    first = view._reader.sheet
    qtbot.keyClick(view.canvas, Qt.Key.Key_PageDown, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: view._reader.sheet not in (None, first))
    assert view._which.text() == "Sheet 2 of 2" and not view.next.isEnabled()
    assert view.form.boxes["spacing"].value() == 2 and view.canvas._cells is not None
    assert view.canvas._cells.grid == SheetGrid(16, 16, 2, 2, 2) and "all 2 sheets" in view.hint.text()
    click(view.previous)
    qtbot.waitUntil(lambda: view._reader.sheet is not None)
    assert view._which.text() == "Sheet 1 of 2"


def test_clear_cells_on_screen_match_the_sprites(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    rgba = np.full((4 * 20, 6 * 20, 4), RED, np.uint8)
    rgba[20:40, 40:80] = 0
    rgba[60:80, 100:120] = 0
    rgba[61, 118] = GREEN
    write(tmp_path / "s.png", rgba)
    write(tmp_path / "one.png", sprite(1, 16))
    load(qtbot, page, tmp_path)
    open_sprites = page.session.open_sprites
    open_sprites.opened = replace(open_sprites.opened, options=ImportOptions(size=16, sheets="grid", tile=20))
    page.doctor.files.slice_requested.emit("s.png")
    view = seen(qtbot, page)
    shot = view.canvas.viewport().grab().toImage()
    clear = set()
    for row, column in np.ndindex(4, 6):
        inside = view.canvas.point(20 * column + 18.5, 20 * row + 1.5) * shot.devicePixelRatio()
        if colour_at(shot, inside) in (RED, GREEN):
            clear.add(f"s.png#r{row + 1} c{column + 1}")
    assert view.count.text() == f"{len(clear)} sprites, 2 empty cells skipped" and len(clear) == 22
    cut(qtbot, page)
    result = page.session.open_sprites.result
    assert result is not None
    assert clear == {name for name in (*result.sprites.names, *(q.name for q in result.quarantine)) if "#" in name}


def test_dragging_a_handle_changes_the_numbers(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    view = opened(qtbot, page, folder)
    canvas, zoom = view.canvas, view.canvas.zoom()
    steps: list[tuple[Kind, int, int, list[int]]] = [
        ("tile", 3, 2, [19, 18, 2, 1]),
        ("spacing", 2, 0, [19, 18, 2, 3]),
        ("margin", -1, -1, [19, 18, 1, 3]),
        ("spacing", -40, 0, [19, 18, 1, 0]),
    ]
    for kind, across, down, expected in steps:
        drag(canvas.handles[kind], QPoint(across, down) * zoom)
        assert numbers(view) == expected
        width, height, margin, spacing = expected
        assert canvas._cells is not None and canvas._cells.grid == SheetGrid(width, height, margin, margin, spacing)
    assert not view.form.automatic.isChecked()
    assert canvas.handles["tile"].geometry().center() == canvas.point(1 + 19, 1 + 18)
    assert view.options().tile == 0 and view.options().sheet_grids == "a.png=19x18+1+1"
    view.form.alone.click()  # the numbers stay and apply to all sheets
    assert view.options().tile == 19 and view.options().size == 24 and not view.options().sheet_grids
    view.form.automatic.click()
    assert view.options().tile == 0 and numbers(view, "tile", "spacing") == [16, 1]


def drag(handle: QWidget, by: QPoint) -> None:
    start = handle.rect().center()
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=start)
    to = handle.mapToGlobal(start) + by
    QTest.mouseMove(handle, handle.mapFromGlobal(to))
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=handle.mapFromGlobal(to))


def test_arrow_keys_move_handles_and_scroll(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    view = opened(qtbot, page, folder)
    canvas = view.canvas
    assert canvas.hasFocus()
    view.form.automatic.setChecked(False)
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
    assert numbers(view) == [17, 24, 2, 0] and numbers(view, "margin_top") == [3]
    assert (view.options().margin, view.options().margin_top) == (2, 3)
    qtbot.keyClick(canvas.handles["margin"], Qt.Key.Key_Up)
    assert view.options().margin_top == -1  # equal to the left margin
    for _ in range(3):
        qtbot.keyClick(canvas, Qt.Key.Key_Plus)
    bar = canvas.verticalScrollBar()
    bar.setValue(bar.maximum())
    assert not canvas.viewport().rect().contains(tile.geometry().center())
    canvas.handles["margin"].setFocus()
    tile.setFocus()
    assert canvas.viewport().rect().contains(tile.geometry().center())


def test_handles_stay_within_the_limits() -> None:
    grid = SheetGrid(16, 12, 4, 4, 1)
    assert moved(grid, "tile", -99, 999) == SheetGrid(1, 256, 4, 4, 1)
    assert moved(grid, "margin", 1, -9) == SheetGrid(16, 12, 5, 0, 1)
    assert moved(grid, "spacing", -5, 7) == SheetGrid(16, 12, 4, 4, 0)


def test_irregular_sheets_have_boxes_and_row_classes(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    rgba = np.zeros((90, 90, 4), np.uint8)
    rgba[5:25, 5:25], rgba[8:20, 40:60], rgba[50:70, 20:45] = RED, GREEN, RED
    rgba[5:25, 28:30] = GREEN  # two pixels from the first sprite
    view = opened_by_name(qtbot, page, rgba, tmp_path)
    view.form.packed.click()
    qtbot.waitUntil(lambda: view.count.text() == "4 sprites")
    assert view.canvas._boxes is not None and view.canvas._boxes[1].tolist() == [28, 5, 30, 25]
    assert not any(handle.isVisible() for handle in view.canvas.handles.values())
    view.form.boxes["gap"].setValue(3)
    qtbot.waitUntil(lambda: view.count.text() == "3 sprites")
    view.form.classes.setCurrentIndex(2)
    shot = view.canvas.viewport().grab().toImage()
    assert colour_at(shot, view.canvas.point(30.5, 55.5) * shot.devicePixelRatio()) == RED
    sprites = cut(qtbot, page)
    assert sprites.size == 32
    assert sorted(sprites.class_names) == sorted(["s row 1", "s row 2", tmp_path.name])


def cancel(qtbot: QtBot, page: SpritesPage) -> None:
    """Cancel the running job, as the status bar does."""
    job_queue = page.session.job_queue
    with qtbot.waitSignal(job_queue.progressed):
        pass
    job_queue.cancel(job_queue.running()[-1])
    qtbot.waitUntil(lambda: not job_queue.running())


def test_cancelled_reading_can_be_repeated(
    qtbot: QtBot, page: SpritesPage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(qtbot, page, folder)
    qtbot.waitUntil(lambda: not page.session.job_queue.running())
    view = page.cutting
    with monkeypatch.context() as patch:
        patch.setattr("studio.data.importing.sheet_preview.load_sheet_preview", endless)
        page.summary.preview_slicing.click()
        assert view.problem.text().startswith("Reading")
        cancel(qtbot, page)
    assert view.problem.text().startswith("Opening was cancelled.") and not view.slice_button.isEnabled()
    click(view.back)
    page.summary.preview_slicing.click()
    seen(qtbot, page)
    with monkeypatch.context() as patch:
        patch.setattr("studio.data.importing.sheet_preview.find_packed", endless)
        view.form.packed.click()
        assert view.count.text() == "Detecting sprites…"
        cancel(qtbot, page)
    assert view.count.text().startswith("Search cancelled") and not view.slice_button.isEnabled()
    view.form.classes.setCurrentIndex(2)
    qtbot.waitUntil(view.slice_button.isEnabled)


def test_folder_of_sheets_opens_the_view(qtbot: QtBot, page: SpritesPage, folder: Path, tmp_path: Path) -> None:
    load(qtbot, page, folder)
    before = page.session.open_sprites.sprites
    big = sheet_of(2, 18, 10, SheetGrid(32, 32), empty=4)
    archive = zipped(tmp_path / "big.zip", {"in/big.png": png_of(big)})
    load(qtbot, page, archive)
    view = seen(qtbot, page)
    assert "too large for sprites" in view._reason.text() and page.session.open_sprites.sprites is before
    click(view.back)
    assert page.grid.isVisible() and page.session.open_sprites.sprites is before
    load(qtbot, page, archive)
    seen(qtbot, page)
    assert len(cut(qtbot, page)) == 176 and page.session.open_sprites.paths == (archive,)


def test_missing_sheet_is_reported(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    load(qtbot, page, folder)
    (folder / "a.png").unlink()
    page.summary.preview_slicing.click()
    view = page.cutting
    qtbot.waitUntil(lambda: "'a.png' was moved or deleted" in view.problem.text())
    assert view.problem.isVisible() and not view.slice_button.isEnabled()
    click(view.next)
    qtbot.waitUntil(lambda: view._reader.sheet is not None)
    assert view.canvas.isVisible() and view.slice_button.isEnabled()


def test_failed_slicing_keeps_the_numbers(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    view = opened(qtbot, page, folder)
    view.form.boxes["tile"].setValue(17)
    for path in sorted(folder.rglob("*.png")):
        path.unlink()
    with qtbot.waitSignal(page.session.open_sprites.ended):
        click(view.slice_button)
    assert view.isVisible() and view.form.boxes["tile"].value() == 17


def test_sheets_that_stay_whole_are_reported(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    view = opened_by_name(qtbot, page, np.full((160, 160, 4), 255, np.uint8), tmp_path)
    assert view.count.text().startswith("No grid detected") and not view.slice_button.isEnabled()
    view.form.boxes["tile"].setValue(100)
    view.form.boxes["tile_height"].setValue(100)
    assert view.count.text().startswith("Fewer than two")
    view.form.packed.click()
    qtbot.waitUntil(lambda: view.count.text().startswith("No transparent gaps"))
    assert view.slice_button.toolTip().lower() == f"slice: {view.count.text()}".lower()


def test_pixels_outside_cells_are_reported(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    view = opened_by_name(qtbot, page, sheet_of(4, 6, 6, SheetGrid(16, 16, spacing=1)), tmp_path)
    assert view.count.text() == "36 sprites"
    view.form.boxes["spacing"].setValue(0)
    assert view.count.text() == "36 sprites; 5 px at the right and 5 px at the bottom left over: spacing 1 would fit"
    assert view.count.minimumSizeHint().width() <= 400  # the sentence wraps


def test_undescribed_tiles_are_sliced(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    write_sheet(tmp_path / "tiles.png", sheet_of(5, 4, 4, SheetGrid(16, 16)), [frame("coin", 16, 0, 16, 16)])
    view = opened(qtbot, page, tmp_path)
    assert view.count.text() == "15 sprites, 1 empty cell skipped"
    assert len(cut(qtbot, page).names) == 16


def test_selected_sprite_can_be_sliced(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    for seed, name in ((0, "s"), (4, "t")):  # four sprites each: too few to detect a sheet
        rows = [np.concatenate([sprite(seed + 2 * row, 16), sprite(seed + 2 * row + 1, 16)], 1) for row in (0, 1)]
        write(tmp_path / f"{name}.png", np.concatenate(rows))
    load(qtbot, page, tmp_path)
    assert page.proposal.isHidden()
    assert not page.summary.preview_slicing.isEnabled() and "Select a sprite" in page.summary.preview_slicing.toolTip()
    page.grid.select([1])
    page.summary.preview_slicing.click()
    view = seen(qtbot, page)
    assert view._title.text() == "t.png" and view.options().size == 0
    assert len(cut(qtbot, page)) == 8


def test_only_the_visible_part_is_drawn(
    qtbot: QtBot, page: SpritesPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rgba = np.zeros((512, 1024, 4), np.uint8)
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


def test_zoom_keeps_the_pixel_under_the_mouse(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    write(tmp_path / "s.png", sheet_of(3, 40, 40, SheetGrid(16, 16), empty=1500))
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
def test_veil_covers_pixels_outside_cells(qapp: QApplication, left: int, top: int) -> None:
    """With 2-pixel lines at zoom 3, from any corner. The veil is detected by its effect on red."""
    cells = GridCells(SheetGrid(8, 8), np.array([0, 8, 16]), np.array([0, 8, 16]), np.eye(3, dtype=bool))
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
                    assert (colour_at(image, place) == RED) is (row == column), (row, column, y, x)


@pytest.fixture(scope="module")
def strips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write five strips of six frames on 192-pixel pages, a strip larger than any canvas, and two whole sprites."""
    where, rng = tmp_path_factory.mktemp("game") / "set", np.random.default_rng(0)
    drawn = [trimmed(rgba) for rgba in demo_sprites()[::560]]
    for number, one in enumerate(drawn[:5]):
        cells = animated(one, 6, 24, 24, rng)
        write(where / f"strip{number}.png", laid(cells, SheetGrid(24, 24), 6, 192))
    write(where / "strip5.png", laid(animated(drawn[5], 12, 24, 24, rng), SheetGrid(24, 24), 12))
    write(where / "whole.png", sprite(1, 24))
    write(where / "wide.png", sprite(2, 64, 24))
    return where


def test_slice_all_and_undo(qtbot: QtBot, page: SpritesPage, strips: Path) -> None:
    load(qtbot, page, strips)
    line, open_sprites = page.proposal, page.session.open_sprites
    assert line.isVisible() and page.tabs.isVisible() and QApplication.activeModalWidget() is None
    assert line.text.text() == (
        "6 images look like sheets. Slice them into up to 42 sprites of 24 × 24 pixels in 6 classes? "
        "1 image of 64 × 24 pixels will be skipped: larger than 24 × 24."
    )
    assert sprites_of(page.session).size == 192 and len(sprites_of(page.session)) == 7
    with qtbot.waitSignal(open_sprites.imported):
        click(line.slice_button)
    assert sprites_of(page.session).size == 24 and not line.slice_button.isVisible()
    assert line.text.text() == _SLICED and not line.larger.isVisible()
    assert {"whole.png"} == {name for name in sprites_of(page.session).names if "#" not in name}
    with qtbot.waitSignal(open_sprites.imported):
        click(line.undo)
    assert sprites_of(page.session).size == 192 and line.slice_button.isVisible() and not line.undo.isVisible()
    click(line.close_line)
    assert not line.isVisible() and page.tabs.isVisible()


def test_skipped_cells_offer_a_larger_canvas(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> None:
    where, rng = tmp_path / "set", np.random.default_rng(0)
    small = [trimmed(rgba)[:15, :15] for rgba in demo_sprites()[::400][:7]]
    for number, one in enumerate(small):
        cells = animated(one, 8, 16, 16, rng)
        write(where / f"strip{number}.png", laid([*cells, cells[0]], SheetGrid(16, 16), 9))
    large = [np.pad(sprite(seed, 36), ((2, 2), (2, 2), (0, 0))) for seed in range(4)]
    write(where / "boss.png", laid(large, SheetGrid(40, 40), 4))
    write(where / "cover.png", np.pad(sprite(9, 300), ((10, 10), (10, 10), (0, 0))))  # larger than all canvases
    load(qtbot, page, where)
    line, open_sprites = page.proposal, page.session.open_sprites
    with qtbot.waitSignal(open_sprites.imported):
        click(line.slice_button)
    kept = len(sprites_of(page.session))
    assert line.text.text() == (
        f"8 images sliced into {kept} sprites in 7 classes, by sheet. "
        f"Skipped: {63 - kept} duplicates, 4 larger than 16 × 16 pixels, 1 possible sheet."
    )
    assert line.larger.text() == "Set canvas to 48 x 48"
    assert page.minimumSizeHint().width() <= _ROOM
    with qtbot.waitSignal(open_sprites.imported):
        click(line.larger)
    assert len(sprites_of(page.session)) == kept + 4 and sprites_of(page.session).size == 48


def test_doctor_fix_slices_the_same(qtbot: QtBot, page: SpritesPage, strips: Path) -> None:
    load(qtbot, page, strips)
    line, open_sprites, doctor = page.proposal, page.session.open_sprites, page.session.doctor
    fixes = [fix for found in doctor.findings for fix in found.fixes if "sheets" in fix.changes]
    with qtbot.waitSignal(open_sprites.ended):
        doctor.apply(fixes[0])
    assert line.text.text() == _SLICED and line.undo.isVisible()
    by_doctor = open_sprites.opened
    open_sprites.history.undo()
    line.slice_button.click()
    latest = open_sprites.history.latest
    assert open_sprites.latest.options == by_doctor.options
    assert latest is not None and latest.title == "slice into sprites"
    qtbot.waitUntil(lambda: not open_sprites.is_busy())
    open_sprites.change_options(open_sprites.options.replace(class_levels=1))
    chosen = open_sprites.latest
    line.undo.click()
    assert open_sprites.latest is chosen
    qtbot.waitUntil(lambda: not open_sprites.is_busy())
    assert open_sprites.opened is chosen and not line.isVisible()


def test_preview_before_slicing(qtbot: QtBot, page: SpritesPage, strips: Path) -> None:
    load(qtbot, page, strips)
    click(page.proposal.preview_slicing)
    view = seen(qtbot, page)
    assert view._which.text() == "Sheet 1 of 6" and view.count.text() == "6 sprites, 2 empty cells skipped"
    assert view.form.automatic.isChecked() and numbers(view, "tile") == [24]
    assert "detected grid" in view.hint.text() and "up to 42 sprites in 6 classes." in view.hint.text()
    assert view.form.classes.currentText() == "A class per sheet (6)"
    assert "1 other image stays whole. 1 image of 64 × 24 pixels will be skipped: larger" in view.hint.text()
    sprites = cut(qtbot, page)
    assert sprites.size == 24 and "strip5.png#r1 c12" in sprites.names


def test_folders_are_classes_and_hidden_ones_are_named(
    qtbot: QtBot, page: SpritesPage, strips: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(strips, tmp_path / "set")
    rng, drawings = np.random.default_rng(1), [trimmed(rgba) for rgba in demo_sprites()[::560]]
    cells = [cell for one in drawings[:5] for cell in animated(one, 12, 24, 24, rng)]
    write(folder / "page" / "all.png", laid(cells, SheetGrid(24, 24), 12))
    for number in range(4):
        write(folder / f"one{number}.png", sprite(10 + number, 24))
    load(qtbot, page, folder)
    line = page.proposal
    assert "in 2 classes? page appears only after slicing. 1 image" in line.text.text()
    click(line.preview_slicing)
    form = seen(qtbot, page).form
    assert [form.classes.itemText(index) for index in range(3)] == [
        "A class per folder (2)", "A class per sheet (7)", "A class per row",
    ]  # fmt: skip
    assert form.classes.currentIndex() == 0 and form.options().sheet_classes == "auto"
    form.classes.setCurrentIndex(1)
    assert form.options().sheet_classes == "sheet" and "in 7 classes" in page.cutting.hint.text()
    form.classes.setCurrentIndex(0)
    assert cut(qtbot, page).class_names == ("page", "set") and "in 2 classes, by folder" in line.text.text()


def test_doctor_opens_the_preview(qtbot: QtBot, page: SpritesPage, strips: Path) -> None:
    load(qtbot, page, strips)
    page.tabs.setCurrentIndex(1)
    doctor = page.doctor
    words = [doctor.groups.item(row).text() for row in range(doctor.groups.count())]
    assert "Looks like a sheet (1)" in words and "Looks like a sheet (5)" in words
    doctor.groups.setCurrentRow(words.index("Looks like a sheet (5)"))
    doctor.grid.select([3])
    click(doctor.preview_slicing)
    assert seen(qtbot, page)._title.text() == "strip3.png"


def test_possible_single_sprite_stays_whole(qtbot: QtBot, page: SpritesPage, strips: Path) -> None:
    load(qtbot, page, strips)
    page.doctor.files.slice_requested.emit("wide.png")
    view = seen(qtbot, page)
    assert not view.slice_button.isEnabled() and "whole" in view.count.text()
    view.form.boxes["tile"].setValue(32)
    assert view.slice_button.isEnabled() and view.options().tile == 0 and view.options().sheet_grids == "wide.png=32x16"
    view.form.boxes["tile_height"].setValue(24)
    cut(qtbot, page)
    result = page.session.open_sprites.result
    assert result is not None and "whole.png" in result.sprites.names
    words = {item.name: item.reason for item in result.note_groups["cut sheet"]}
    assert words["wide.png"] == "sliced into 2 tiles of 32 x 24 pixels" and "24 x 24" in words["strip5.png"]


def test_own_grid_of_a_single_sheet(qtbot: QtBot, page: SpritesPage, strips: Path) -> None:
    load(qtbot, page, strips)
    click(page.proposal.preview_slicing)
    view = seen(qtbot, page)
    assert page.minimumSizeHint().width() <= _ROOM
    view.form.boxes["tile"].setValue(12)
    assert view.form.alone.isChecked() and view.form.own_grid() == SheetGrid(12, 24)
    assert "to this sheet only" in view.hint.text() and not view.form.packed.isEnabled()
    click(view.next)
    assert view._title.text() == "strip0.png" and "strip1.png" in view.count.text()  # until the next sheet is read
    assert not view.slice_button.isEnabled() and view.canvas._cells is None
    qtbot.waitUntil(lambda: view._reader.sheet is not None)
    assert view._title.text() == "strip1.png" and numbers(view, "tile") == [24] and view.form.automatic.isChecked()
    sprites = cut(qtbot, page)
    assert {"strip0.png#r1 c12", "strip1.png#r1 c6"} <= set(sprites.names) and "strip1.png#r1 c7" not in sprites.names
    page.doctor.files.slice_requested.emit("strip0.png")
    view = seen(qtbot, page)
    assert view.form.alone.isChecked() and numbers(view, "tile") == [12]
    view.form.automatic.click()
    assert numbers(view, "tile") == [24] and not view.options().sheet_grids and not view.form.alone.isChecked()
    view.form.automatic.click()  # by shared numbers
    view.form.alone.click()
    view.form.boxes["tile"].setValue(8)
    view.form.alone.click()  # shares the other sheets' numbers again
    assert numbers(view, "tile") == [24] and view.options().tile == 24 and not view.options().sheet_grids


def test_proposal_text_for_one_and_mixed_sizes() -> None:
    one = [DetectedSheet("a.png", SheetGrid(16, 24), 8)]
    assert describe_proposal(one) == ("1 image looks like a sheet. Slice it into up to 8 sprites of 16 × 24 pixels?")
    several = [*one, DetectedSheet("b.png", SheetGrid(12, 15), 1_200)]
    assert describe_proposal(several).endswith("Slice them into up to 1,208 sprites of about 12 × 15 pixels?")
    assert describe_proposal(several, 2).endswith("of about 12 × 15 pixels in 2 classes?")
    skipped = SheetSummary(canvas=24, skipped=((64, 24, 2), (24, 30, 1)))
    assert describe_skipped_images(skipped, ImportOptions()) == "3 images will be skipped: larger than 24 × 24 pixels."
    exact = ImportOptions(other_sizes="leave out")
    assert describe_skipped_images(skipped, exact) == "3 images will be skipped: not 24 × 24 pixels."
