"""Palettes in the window: of sprites, from files, and for generated sprites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.pages.generate.colour_panel import ColourPanel
from studio.app.pages.generate.page import GeneratePage
from studio.app.pages.model_choice import ModelChoice
from studio.app.pages.sprites.page import SpritesPage
from studio.app.pages.sprites.palette_view import PaletteView
from studio.app.state.session import Session
from studio.core.arrays import Rgba
from studio.core.events import JobFailed
from studio.data.colour.colour_counts import count_colours
from studio.data.colour.palette import Palette
from studio.data.colour.pixel_art import measure_style
from studio.data.palettes.files import load_palette, save_palette
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.sampling.settings import GenerateSettings
from tests.app.conftest import LONG_MS, click, endless, sprites_of
from tests.conftest import make_sprites
from tests.engine.tools import CPU, train_generator
from tests.exports.tools import CLASS_NAMES, small_model

LEFT, NO_KEY = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
WARM = Palette(np.array([[190, 74, 47, 255], [20, 20, 30, 255], [240, 220, 180, 255]], np.uint8), "Warm")


@pytest.fixture
def page(qtbot: QtBot, page: SpritesPage, sprite_folder: Path) -> SpritesPage:
    """The Sprites page alone, with sprites and their colours."""
    page.resize(1100, 1200)
    with qtbot.waitSignal(page.session.open_sprites.colours_counted, timeout=LONG_MS):
        page.session.open_sprites.open_paths([sprite_folder])
    return page


@pytest.fixture
def panel(qtbot: QtBot, session: Session) -> ColourPanel:
    """The colours of new sprites, without the rest of the Generate page."""
    made = ColourPanel(session, ModelChoice(session))
    qtbot.addWidget(made)
    return made


def press(view: PaletteView, number: int) -> str:
    """Click a swatch; returns its hex code."""
    index = view.swatches.model().index(number, 0)
    QTest.mouseClick(view.swatches.viewport(), LEFT, NO_KEY, view.swatches.visualRect(index).center())
    return str(index.data()).split(" ", 1)[0]


def test_a_palette_file_that_cannot_be_read_is_reported_at_its_field(page: SpritesPage) -> None:
    summary, open_sprites = page.summary, page.session.open_sprites
    field, failed = summary.form.findChild(QLineEdit, "palette"), list[JobFailed]()
    assert field is not None
    page.session.failed.connect(failed.append)
    field.setText("no such file.gpl")
    page.changed_settings.apply.click()
    assert "no such file.gpl" in field.toolTip() and field.property("invalid")
    assert not field.isHidden() and field.isVisibleTo(summary.form)  # the folded Advanced settings were opened
    assert not open_sprites.is_busy() and not failed
    field.setText("")
    assert not field.property("invalid")


def users(rgba: Rgba, code: str) -> int:
    colour = [*bytes.fromhex(code[1:]), 255]
    return int((rgba == colour).all(-1).any((1, 2)).sum())


def test_a_colour_shows_the_sprites_that_use_it(qtbot: QtBot, page: SpritesPage) -> None:
    view, sprites = page.summary.palette_view, sprites_of(page.session)
    total = count_colours(sprites.rgba).total
    assert view._title.text() == f"Colours ({total})" and view.swatches.model().rowCount() == total
    number = 5
    code = press(view, number)
    qtbot.waitUntil(lambda: page.grid.visible_count() < 24, timeout=LONG_MS)
    expected = users(sprites.rgba, code)
    assert page.grid.visible_count() == expected and page.tabs.tabText(0) == f"Sprites ({expected})"
    assert view._status.text().endswith(f"{code}.") and view.show_all.isVisible()
    assert view.swatches._marked == number
    tip = view.swatches.model().index(number, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert tip.endswith(f" in {expected} sprite{'s' if expected > 1 else ''}")
    QTest.keyClick(page.summary.classes, Qt.Key.Key_Down)  # both filters together
    assert page.grid.visible_count() == users(sprites.rgba[sprites.labels == 0], code)
    QTest.keyClick(page.summary.classes, Qt.Key.Key_Up)
    press(view, number)
    assert page.grid.visible_count() == 24 and view.swatches._marked == -1 and not view.show_all.isVisible()
    assert page.summary.classes.topLevelItemCount() == 3
    QTest.keyClick(page.summary.classes, Qt.Key.Key_Down)
    assert page.grid.visible_count() == 12


def test_the_colour_filter_can_be_cleared(qtbot: QtBot, page: SpritesPage) -> None:
    page.activateWindow()
    for key in (True, False):
        press(page.summary.palette_view, 5)
        qtbot.waitUntil(lambda: page.grid.visible_count() < 24, timeout=LONG_MS)
        page.grid.setFocus()
        qtbot.waitUntil(page.grid.view.hasFocus)
        if key:
            QTest.keyClick(page.grid.view, Qt.Key.Key_Escape)
        else:
            click(page.summary.palette_view.show_all)
        assert page.grid.visible_count() == 24 and page.tabs.tabText(0) == "Sprites"


def test_a_cancelled_search_clears_the_colour(qtbot: QtBot, page: SpritesPage, monkeypatch: pytest.MonkeyPatch) -> None:
    view, job_queue = page.summary.palette_view, page.session.job_queue
    with monkeypatch.context() as patch:
        patch.setattr("studio.app.state.sprites.palettes.find_sprites_with_colour", endless)
        press(view, 3)
        press(view, 5)  # the previous search ends silently
        with qtbot.waitSignal(job_queue.progressed):
            pass
        assert view._status.text().startswith("Searching for #") and view.swatches._marked == 5
        job_queue.cancel(job_queue.running()[-1])  # as the status bar does
        qtbot.waitUntil(lambda: not job_queue.running())
    assert not view._status.isVisible() and view.swatches._marked == -1
    press(view, 5)
    qtbot.waitUntil(lambda: page.grid.visible_count() < 24, timeout=LONG_MS)


def test_other_sprites_forget_the_colour(qtbot: QtBot, page: SpritesPage, sprite_folder: Path) -> None:
    view = page.summary.palette_view
    press(view, 3)
    with qtbot.waitSignal(page.session.open_sprites.colours_counted, timeout=LONG_MS):
        page.session.open_sprites.open_paths([sprite_folder / "class1"])
    assert page.grid.visible_count() == 12 and view.swatches._marked == -1
    assert not view._status.isVisible()


def test_colours_are_laid_out_by_hue_or_by_use(page: SpritesPage) -> None:
    view, used = page.summary.palette_view, count_colours(sprites_of(page.session).rgba).colours
    by_use = ["#" + bytes(colour[:3]).hex() for colour in used.tolist()]
    click(view.copy)
    by_hue = QApplication.clipboard().text().split()
    assert sorted(by_hue) == sorted(by_use) and by_hue != by_use
    code = press(view, 4)
    view.order.setCurrentIndex(view.order.findData("use"))
    click(view.copy)
    assert QApplication.clipboard().text().split() == by_use
    assert view.swatches._marked == by_use.index(code)
    page.save_state()
    assert page.session.settings.text("palette_order") == "use"


def test_the_palette_is_saved_as_what_its_name_says(
    qtbot: QtBot, page: SpritesPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, session = page.summary.palette_view, page.session
    for suffix in (".gpl", ".hex", ".pal", ".json", ".png", ".act"):
        path = tmp_path / f"discs{suffix}"
        monkeypatch.setattr(dialogs, "choose_save_palette", lambda *args, path=path: path)
        with qtbot.waitSignal(session.noticed, timeout=LONG_MS) as said:
            click(view.save)
        assert said.args[0].title == f"Saved as {path.name}."
        assert np.array_equal(load_palette(path).colours, view._palette())
    monkeypatch.setattr(dialogs, "choose_save_palette", lambda *args: tmp_path / "discs.doc")
    with qtbot.waitSignal(session.failed, timeout=LONG_MS) as said:
        click(view.save)
    assert "'discs.doc'" in said.args[0].title and ".gpl" in said.args[0].hint
    assert not list(tmp_path.glob("discs.doc*"))


def test_a_palette_can_be_dropped_and_comes_back(
    qtbot: QtBot, session: Session, panel: ColourPanel, tmp_path: Path
) -> None:
    assert panel.choice().true_pixels and panel.choice().palette is None
    assert not panel.dither.isEnabled() and "palette file" in panel.dither.toolTip()
    assert not drop(panel, tmp_path)  # a folder is not a palette
    path = save_palette(tmp_path / "warm.hex", WARM)
    with qtbot.waitSignal(panel.changed, timeout=LONG_MS):
        drop(panel, path)
    found = panel.choice()
    assert found.palette is not None and np.array_equal(found.palette.colours, WARM.colours)
    assert panel.box.currentText() == "warm" and panel.swatches.model().rowCount() == 3
    assert found.dither == "none" and panel.dither.isEnabled()
    history = session.generate_history
    assert history.latest is not None and history.latest.title == "change colours"
    history.undo()
    assert panel.choice().palette is None and panel.box.currentText() == "Training palette"
    history.redo()
    assert panel.choice().palette is not None and panel.box.currentText() == "warm"
    panel.dither.setChecked(True)
    assert panel.choice().dither == "bayer 4x4"
    panel.save_state()
    history.clear()
    later = ColourPanel(session, ModelChoice(session))
    qtbot.addWidget(later)
    with qtbot.waitSignal(later.changed, timeout=LONG_MS):
        later.restore(true_pixels=True)
    again = later.choice()
    assert again.palette is not None and again.palette.name == "warm" and again.dither == "bayer 4x4"
    assert len(history.steps()[0]) == 1  # of the earlier panel, which has seen the file too


def drop(panel: ColourPanel, path: Path) -> bool:
    """Drag a file to a widget and drop it if the widget accepts it."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    entering = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, mime, LEFT, NO_KEY)
    panel.dragEnterEvent(entering)
    if entering.isAccepted():
        panel.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, mime, LEFT, NO_KEY))
    return entering.isAccepted()


def test_a_broken_palette_shows_an_error_and_the_choice_stays(
    qtbot: QtBot, session: Session, panel: ColourPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bad.gpl"
    path.write_text("GIMP Palette\nName: Bad\n#\n10 20 30\n10 twenty 30\n")
    monkeypatch.setattr(dialogs, "choose_palette", lambda *args: path)
    with qtbot.waitSignal(session.job_queue.failed, timeout=LONG_MS) as said:
        choose(panel, "open")
    failure = said.args[0]
    assert isinstance(failure, JobFailed) and "line 5 of bad.gpl" in failure.title
    assert failure.hint and not failure.details
    assert panel.box.currentData() == "own" and panel.choice().palette is None


def test_new_sprites_come_in_the_chosen_colours(qtbot: QtBot, session: Session, tmp_path: Path) -> None:
    """Sprites are generated once, recoloured for each choice, and saved in the last colours."""
    page, models = GeneratePage(session), session.inference
    qtbot.addWidget(page)
    panel, data = page.request.colours, make_sprites(classes=len(CLASS_NAMES))
    model = small_model(catalog.recipe("generator"))
    model.style = measure_style(data)
    settings = GenerateSettings(count=8, steps=2)

    def generate() -> None:
        models.generate(Control(live=model), CPU, settings, panel.choice())

    def results(change: Callable[[], object]) -> tuple[Rgba, str]:
        with qtbot.waitSignal(models.generated, timeout=LONG_MS) as made:
            change()
        return made.args[0].sprites, page.results._facts.text()

    own, _ = results(generate)
    assert colours_in(own) <= colours_in(data.rgba)
    page.results.grid.select([3, 5])
    warm, facts = results(lambda: drop(panel, save_palette(tmp_path / "warm.gpl", WARM)))
    assert colours_in(warm) <= colours_in(WARM.colours[None]) and facts.endswith(", palette Warm")
    assert np.array_equal(warm[..., 3], own[..., 3])
    assert page.results.grid.selected() == [3, 5]
    mixed, _ = results(lambda: panel.dither.setChecked(True))
    assert colours_in(mixed) <= colours_in(WARM.colours[None])
    picked = page.results.to_save()
    assert picked is not None and picked.about["Palette"] == "Warm"
    assert np.array_equal(picked.sprites, mixed[[3, 5]])
    drawn, facts = results(lambda: choose(panel, "drawn"))
    assert "palette" not in facts and panel.swatches.model().rowCount() == 0
    assert len(colours_in(drawn)) > len(colours_in(own))
    again, _ = results(lambda: choose(panel, "own"))
    assert np.array_equal(again, own)


def choose(panel: ColourPanel, kind: str) -> None:
    panel.box.activated.emit(panel.box.findData(kind))


def colours_in(rgba: Rgba) -> set[tuple[int, ...]]:
    return {tuple(colour) for colour in rgba[rgba[..., 3] > 0][:, :3].tolist()}


def test_the_colours_of_a_run_are_shown(qtbot: QtBot, panel: ColourPanel, run_path: Path) -> None:
    art = make_sprites()
    list(train_generator(run_path, art, steps=1, holdout=0.0))
    swatches = panel.swatches.model()
    panel._models.models.addItem("trial", str(run_path))  # like after a listing
    qtbot.waitUntil(lambda: swatches.rowCount() > 0, timeout=LONG_MS)
    shown = {str(swatches.index(row, 0).data()) for row in range(swatches.rowCount())}
    assert shown == {"#" + bytes(colour).hex() for colour in measure_style(art).palette.tolist()}
    assert panel._about.text() == f"{len(shown)} colours"
    choose(panel, "drawn")
    assert not panel.choice().true_pixels and swatches.rowCount() == 0
