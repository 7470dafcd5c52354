"""The layout of every page, from small to large windows: no cut-off text, no overlaps, nothing out of view."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QSplitter,
    QTabBar,
    QTabWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.background.job_events import OnlySheets
from studio.app.widgets import factory
from studio.app.widgets.factory import ElidedLabel
from studio.app.widgets.layout import Collapsible
from studio.app.widgets.tab_order import laid_out
from studio.app.widgets.wrapping import ScrollArea
from studio.app.window import Window
from studio.core import paths
from studio.data.files.source_files import ImportIssue
from studio.data.import_result import NO_SHEETS
from studio.data.pixels.editing import NamedSprite
from tests.app.conftest import LONG_MS, click, open_sprites, sprites_of
from tests.app.every_dialog import every_dialog
from tests.app.widgets.tools import shown
from tests.conftest import make_sprites

_RUN = Path(__file__).parents[1] / "older_run" / "run"
_SIZES = [(800, 600), (1280, 800), (2560, 1440)]
_LAYOUT_ROUNDS = 4  # until wrapped texts, scroll areas and their pages agree on their sizes
_TRIES = 3  # a job that has just ended may have changed a text whose layout is still to come
_SLACK = 1  # pixel, for corners of tab bars, which Qt places over their edge
_NARROW, _MOST_LINES = 70, 3  # a label of fewer pixels with more lines looks squeezed
_WIDEST_BUTTON = 320  # pixels, as wide as a side panel; a wider button with a short text looks like a bar
_ELIDES = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon


def problems(window: QWidget) -> list[str]:
    """Name the visible widgets that are cut off, overlap others or lie out of view."""
    found: list[str] = []
    for widget in [window, *window.findChildren(QWidget)]:
        if widget.isVisible() and not (widget is not window and widget.isWindow()):
            if is_cut_off(widget):
                found.append(f"{named(widget)} is cut off")
            elif leaves_its_parent(widget):
                found.append(f"{named(widget)} is out of view")
            if is_stretched(widget):
                found.append(f"{named(widget)} is {widget.width()} pixels wide")
            found += [f"{named(one)} overlaps {named(other)}" for one, other in overlapping(widget)]
    return found


def named(widget: QWidget) -> str:
    """Return a widget's type, text and the types of its parents."""
    text = str(widget.property("text") or widget.accessibleName())[:40]
    parents, parent = [], widget.parentWidget()
    while parent is not None and not isinstance(parent, Window):
        if type(parent).__module__.startswith("studio."):
            parents.append(type(parent).__name__)
        parent = parent.parentWidget()
    return " in ".join([f"{type(widget).__name__} '{text}'", *parents[:2]])


def is_cut_off(widget: QWidget) -> bool:
    """Return whether a widget has less room than its text needs. Widgets that elide their text pass."""
    width, hint, is_cut = widget.width(), widget.sizeHint(), False
    match widget:
        case ElidedLabel():
            pass
        case QLabel() if widget.wordWrap():
            needed = widget.heightForWidth(width)
            is_squeezed = width < _NARROW and needed > _MOST_LINES * widget.fontMetrics().lineSpacing()
            is_cut = bool(widget.text()) and (needed > widget.height() or is_squeezed)
        case QLabel():
            is_cut = bool(widget.text()) and (hint.width() > width or hint.height() > widget.height())
        case QAbstractButton():
            is_cut = bool(widget.text()) and hint.width() > width
        case QTabBar() if isinstance(widget.parent(), QTabWidget):  # others scroll
            is_cut = sum(widget.tabRect(index).width() for index in range(widget.count())) > width
        case QComboBox():
            is_cut = widget.sizeAdjustPolicy() != _ELIDES and hint.width() > width
        case QAbstractSpinBox():
            is_cut = not _fits(widget.lineEdit(), widget.text())
        case QLineEdit():
            is_cut = not widget.text() and not _fits(widget, widget.placeholderText())
    return is_cut


def _fits(field: QLineEdit, text: str) -> bool:
    margins = field.textMargins()
    return field.fontMetrics().horizontalAdvance(text) <= field.width() - margins.left() - margins.right()


def is_stretched(widget: QWidget) -> bool:
    """Return whether a push button is much wider than its text."""
    return isinstance(widget, QPushButton) and widget.width() > max(widget.sizeHint().width(), _WIDEST_BUTTON)


def leaves_its_parent(widget: QWidget) -> bool:
    """Return whether a part of a widget can't be seen, not even by scrolling."""
    parent = widget.parentWidget()
    if parent is None or widget.isWindow():
        return False
    area = parent.parentWidget()
    if isinstance(area, QAbstractScrollArea) and area.viewport() is parent:
        is_fixed = area.horizontalScrollBarPolicy() == Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        return is_fixed and isinstance(area, ScrollArea) and widget.width() > parent.width()
    room = parent.rect().adjusted(-_SLACK, -_SLACK, _SLACK, _SLACK)
    return not widget.size().isEmpty() and not room.contains(widget.geometry())


def overlapping(widget: QWidget) -> Iterator[tuple[QWidget, QWidget]]:
    """Return the pairs of widgets in a widget's layout that lie over one another."""
    layout = widget.layout()
    if isinstance(widget, QSplitter):
        parts: Iterable[QWidget | None] = [widget.widget(index) for index in range(widget.count())]
    else:
        parts = laid_out(layout) if layout is not None else []
    shown = [part for part in parts if part is not None and part.isVisible()]
    for one, other in itertools.combinations(shown, 2):
        if QRect.intersects(one.geometry(), other.geometry()):
            yield one, other


def views(window: Window) -> Iterator[str]:
    """Show every page, with every tab, and name it."""
    for name, page in window.pages.items():
        window.show_page(name)
        tabs = next((tabs for tabs in page.findChildren(QTabWidget) if tabs.isVisible()), None)
        if tabs is None:
            yield name
            continue
        for index in filter(tabs.isTabVisible, range(tabs.count())):
            tabs.setCurrentIndex(index)
            yield f"{name} ({tabs.tabText(index)})"


def open_sections(page: QWidget) -> list[Collapsible]:
    """Open the collapsed sections of the shown page, and return them."""
    closed = [section for section in page.findChildren(Collapsible) if section.isVisible() and not section.is_open()]
    for section in closed:
        section.set_open(True)
    return closed


def broken(window: Window, sizes: Iterable[tuple[int, int]]) -> list[str]:
    """Return what is wrong with the pages at each size, and with their sections open at the first size."""
    found: list[str] = []
    for view in views(window):
        found += [f"{view}, {problem}" for size in sizes for problem in broken_at(window, size)]
        if sections := open_sections(window.page()):
            found += [f"{view} open, {problem}" for problem in broken_at(window, next(iter(sizes)))]
        for section in sections:
            section.set_open(False)
    return found


def broken_at(window: Window, size: tuple[int, int]) -> list[str]:
    """Return what is wrong with the shown page at a size."""
    window.resize(*size)
    found = settled_problems(window)
    taken = window.size().toTuple()
    found += [] if taken == size else [f"the window takes {taken}"]
    return [f"{size[0]} x {size[1]}: {problem}" for problem in found]


def settled_problems(window: QWidget) -> list[str]:
    """Return what is wrong with a window once its layouts agree."""
    found: list[str] = []
    for _ in range(_TRIES):
        for _ in range(_LAYOUT_ROUNDS):
            QApplication.processEvents()
        window.grab()
        if not (found := problems(window)):
            break
    return found


def broken_dialogs(window: Window) -> list[str]:
    """Return what is wrong with the dialogs over a small window."""
    found: list[str] = []
    window.resize(*_SIZES[0])
    for stage, dialog in every_dialog(window):
        shown = [*settled_problems(dialog), *([] if fits(dialog) else [f"takes {dialog.size().toTuple()}"])]
        found += [f"{type(dialog).__name__} {stage}: {problem}" for problem in shown]
    return found


def fits(dialog: QDialog) -> bool:
    """Return whether a dialog and its title bar fit into the smallest screen."""
    return dialog.width() <= _SIZES[0][0] and dialog.height() <= _SIZES[0][1]


def broken_slicing(qtbot: QtBot, window: Window, folder: Path, sizes: Iterable[tuple[int, int]]) -> list[str]:
    """Return what is wrong with the slicing view at each size."""
    window.show_page("sprites")
    names = [f"view {number} of a hero with a rather long name.png" for number in range(2_000)]
    sheets = [ImportIssue(name, "too large", "wrong size") for name in names]
    write_sheet(folder / names[0])
    window.session.open_sprites.only_sheets.emit(OnlySheets((folder,), tuple(sheets), NO_SHEETS))
    view = window.sprites.cutting
    qtbot.waitUntil(view.canvas.isVisible, timeout=LONG_MS)
    found = [f"slicing, {problem}" for size in sizes for problem in broken_at(window, size)]
    view.form.packed.click()
    found += [f"slicing by gaps, {problem}" for problem in broken_at(window, _SIZES[0])]
    view.closed.emit()
    return found


def write_sheet(path: Path) -> None:
    """Write a sheet of 4 x 4 discs."""
    Image.fromarray(np.tile(make_sprites().rgba[0], (4, 4, 1))).save(path)


def fill(qtbot: QtBot, window: Window, sprite_folder: Path) -> None:
    """Open sprites, generate sprites with an earlier run, and choose the run and the sprites."""
    session, page = window.session, window.generate
    open_sprites(qtbot, session, sprite_folder)
    window.sprites.grid.view.selectAll()
    window.show_page("runs")
    qtbot.waitUntil(lambda: window.runs.table.model().rowCount() == 1, timeout=LONG_MS)
    window.runs.table.selectRow(0)
    page.show_run(paths.runs() / "older")
    with qtbot.waitSignal(session.inference.generated, timeout=LONG_MS):
        click(page.generate)
    qtbot.waitUntil(lambda: not session.job_queue.running(), timeout=LONG_MS)


def broken_editor(window: Window, sizes: Iterable[tuple[int, int]]) -> list[str]:
    """Return what is wrong with the editor on the Generate page at each size."""
    window.show_page("generate")
    sprites = sprites_of(window.session)
    window.session.editing.open(NamedSprite(sprites.rgba[0].copy(), sprites.names[0], sprites.class_names[0]))
    return [f"editor, {problem}" for size in sizes for problem in broken_at(window, size)]


@pytest.fixture
def window_with_run(request: pytest.FixtureRequest) -> Window:
    """The window with a run of an earlier version in the runs folder."""
    shutil.copytree(_RUN, paths.runs() / "older")
    window: Window = request.getfixturevalue("window")
    return window


def test_the_checks_find_faults(qtbot: QtBot) -> None:
    page, cut, wrapped = QWidget(), factory.text("Cut off", wrap=False), factory.text("Cut off below " * 9)
    button, outside, hidden = factory.button("Save all", "Save."), QLabel("Outside", page), factory.text("Hidden")
    elided = ElidedLabel()
    elided.show_text("Elided on purpose")
    page.setLayout(factory.column(cut, wrapped, button, hidden, elided))
    hidden.hide()
    shown(qtbot, page, 300, 300)
    assert problems(page) == []
    cut.setFixedWidth(20)
    wrapped.setFixedHeight(10)
    outside.move(280, 290)
    button.setGeometry(cut.geometry())
    hidden.setFixedSize(1, 1)
    elided.setFixedWidth(10)
    found = problems(page)
    for fault in ("'Cut off' is cut off", "'Cut off below", "'Outside' is out of view", "overlaps"):
        assert any(fault in problem for problem in found), (fault, found)
    assert not any("Elided" in problem or "Hidden" in problem for problem in found)


def test_no_text_is_cut_off_and_nothing_overlaps(
    qtbot: QtBot, window_with_run: Window, sprite_folder: Path, tmp_path: Path
) -> None:
    window = window_with_run
    found = [f"empty {problem}" for problem in broken(window, _SIZES[:1])]
    fill(qtbot, window, sprite_folder)
    found += broken(window, _SIZES[:2]) + broken_editor(window, _SIZES[:1]) + broken_dialogs(window)
    found += broken_slicing(qtbot, window, tmp_path, _SIZES[:1])
    window.session.editing.close()
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_text_is_cut_off_in_any_window(
    qtbot: QtBot, qapp: QApplication, window_with_run: Window, sprite_folder: Path, tmp_path: Path, scheme: theme.Scheme
) -> None:
    window = window_with_run
    theme.apply(qapp, scheme)
    found = [f"empty {problem}" for problem in broken(window, _SIZES)]
    fill(qtbot, window, sprite_folder)
    found += broken(window, _SIZES) + broken_editor(window, _SIZES) + broken_dialogs(window)
    found += broken_slicing(qtbot, window, tmp_path, _SIZES)
    window.session.editing.close()
    assert found == []


@pytest.mark.slow
def test_no_text_is_cut_off_at_200_percent() -> None:
    chosen = [__file__, "-m", "slow", "-k", "in_any_window", "-n", "0", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen],
        env={**os.environ, "QT_SCALE_FACTOR": "2"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
