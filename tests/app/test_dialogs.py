"""File dialogs: suffixes, and questions before replacing files. And the
export dialog: it begins when it can, shows its own result only, and gives up what it leaves.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QFileDialog,
    QLabel,
    QLineEdit,
    QMessageBox,
    QRadioButton,
    QSpinBox,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.background.model_jobs import SavedModel, SpriteSelection
from studio.app.pages.base import Page
from studio.app.pages.export_dialog import ExportDialog
from studio.app.pages.runs.actions import RunActions
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.app.status_bar import StatusBar
from studio.app.widgets.config_form import ConfigForm
from studio.app.window import Window
from studio.core.errors import ExportError
from studio.core.events import Events, Exported, Progress
from studio.engine.runs.listing import summarise
from studio.exports.safetensors import Safetensors
from studio.exports.sprites.formats import sprite_exports
from tests.app.conftest import LONG_MS, click, cpu_of, endless, start_tiny, wait_idle
from tests.app.widgets.tools import colours_in
from tests.exports.tools import Rounded, RoundedConfig

_PNG, _CSV = "PNG image (*.png)", "CSV table (*.csv)"


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


def reply(monkeypatch: pytest.MonkeyPatch, button: str) -> list[str]:
    """What the user says to the studio's own question; the list tells what was asked."""
    asked: list[str] = []

    def question(parent: QWidget, title: str, words: str, *buttons: object) -> QMessageBox.StandardButton:
        asked.append(words)
        return QMessageBox.StandardButton[button]

    monkeypatch.setattr(QMessageBox, "question", question)
    return asked


def answer(monkeypatch: pytest.MonkeyPatch, path: Path, kind: str) -> None:
    """What the user types into the system's dialog."""
    monkeypatch.setattr(dialogs, "run_save_dialog", lambda *args, **more: (path, kind))


def test_dialogs_that_open_sprites_list_pictures_first(parent: QWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[str] = []

    def choose(window: QWidget, title: str, folder: str, kinds: str) -> tuple[list[str], str]:
        offered.extend(kinds.split(";;"))
        return [], ""

    monkeypatch.setattr(QFileDialog, "getOpenFileNames", choose)
    assert dialogs.choose_files(parent, Settings(), "Open sprites") == []
    assert offered[0].startswith("Images (") and "*.png" in offered[0] and "*.aseprite" in offered[0]
    assert offered[1:] == ["All files (*)"]


@pytest.mark.parametrize(
    ("typed", "kind", "expected"),
    [
        ("loss", _PNG, None),  # no question was asked, so the existing file must stay
        ("loss.png", _PNG, "loss.png"),  # the dialog has asked
        ("loss.PNG", _CSV, "loss.PNG"),
        ("loss.csv", _PNG, "loss.csv"),
        ("loss", _CSV, "loss.csv"),
        ("hero 1.5", _PNG, "hero 1.5.png"),
        ("loss.txt", "", "loss.txt.png"),
    ],
)
def test_a_file_name_gets_the_suffix_of_the_filter(
    parent: QWidget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, kind: str, expected: str | None
) -> None:
    (tmp_path / "loss.png").write_text("old")
    answer(monkeypatch, tmp_path / typed, kind)
    reply(monkeypatch, "No")
    chosen = dialogs.choose_save_file(parent, Settings(), "Save", "plot.png", f"{_PNG};;{_CSV}")
    assert chosen == (tmp_path / expected if expected else None)
    free = dialogs.choose_save_file(parent, Settings(), "Save", "plot.png", f"{_PNG};;{_CSV}", replaces=False)
    assert free is not None and not free.exists()


def test_the_suffix_is_added_before_the_overwrite_check(parent: QWidget, tmp_path: Path) -> None:
    dialog = dialogs.SaveDialog(parent, "Save", tmp_path / "plot.csv", f"{_PNG};;{_CSV}", _CSV)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    line = dialog.findChild(QLineEdit)
    assert line is not None and line.text() == "plot.csv"
    line.setText("loss")
    assert dialog.selectedFiles() == [str(tmp_path / "loss.csv")]
    dialog.selectNameFilter(_PNG)
    dialog.filterSelected.emit(_PNG)
    assert dialog.selectedFiles() == [str(tmp_path / "loss.png")]


def test_replacing_companion_files_is_confirmed(
    parent: QWidget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = sprite_exports()["sheet"]
    (tmp_path / "orcs.json").write_text("of the game")
    answer(monkeypatch, tmp_path / "orcs.png", f"{sheet.title} (*.png)")
    asked = reply(monkeypatch, "No")
    assert (
        dialogs.choose_save_sprites(parent, Settings(), "Save", "orcs") is None
        and "orcs.json already exists" in asked[0]
    )
    reply(monkeypatch, "Yes")
    assert dialogs.choose_save_sprites(parent, Settings(), "Save", "orcs") == (tmp_path / "orcs.png", sheet)
    (tmp_path / "orcs.png").write_text("old")  # the dialog has asked about the pair
    asked = reply(monkeypatch, "No")
    assert (
        dialogs.choose_save_sprites(parent, Settings(), "Save", "orcs") == (tmp_path / "orcs.png", sheet) and not asked
    )


def test_a_confirmed_sheet_is_replaced_with_its_companion(qtbot: QtBot, session: Session, tmp_path: Path) -> None:
    picked = SpriteSelection(np.full((2, 8, 8, 4), 255, np.uint8), ["a", "b"], {})
    (tmp_path / "orcs.png").write_text("old")
    (tmp_path / "orcs.json").write_text("old")
    with qtbot.waitSignal(session.saving.saved, timeout=LONG_MS):
        session.saving.save_sprites(tmp_path / "orcs.png", sprite_exports()["sheet"], picked, 2)
    with Image.open(tmp_path / "orcs.png") as sheet:
        assert sheet.size == (16, 8)
    assert len(json.loads((tmp_path / "orcs.json").read_text())["frames"]) == 2
    with qtbot.waitSignal(session.saving.saved, timeout=LONG_MS):
        session.saving.save_file(tmp_path / "orcs.png", picked)
    with Image.open(tmp_path / "orcs.png") as sprite:
        assert sprite.size == (8, 8)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("typed", "chosen", "expected", "name"),
    [
        ("new", "gif", "gif", "new.gif"),
        ("new.gif", "sheet", "gif", "new.gif"),
        ("new.png", "indexed_sheet", "indexed_sheet", "new.png"),
        ("new.png", "gif", "sheet", "new.png"),
        ("sword 1.5", "apng", "apng", "sword 1.5.apng"),
        ("new.tres", "sheet", "godot", "new.tres"),
    ],
)
def test_the_typed_suffix_or_the_filter_decides_the_format(
    parent: QWidget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, chosen: str, expected: str, name: str
) -> None:
    form = sprite_exports()[chosen]
    answer(monkeypatch, tmp_path / typed, f"{form.title} (*{form.suffix})")
    found = dialogs.choose_save_sprites(parent, Settings(), "Save", "a/b")
    assert found == (tmp_path / name, sprite_exports()[expected])


def test_tile_sets_have_formats_of_their_own(parent: QWidget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, proposals = Settings(), list[str]()

    def dialog(parent: QWidget, title: str, start: Path, kinds: str, proposed: str) -> tuple[Path, str]:
        proposals.append(proposed or kinds.partition(";;")[0])
        return tmp_path / "set.tres", proposals[-1]

    monkeypatch.setattr(dialogs, "run_save_dialog", dialog)
    for is_tile_set, name in ((True, "godot_tiles"), (False, "godot"), (True, "godot_tiles")):
        chosen = dialogs.choose_save_sprites(parent, settings, "Save", "set", is_tile_set=is_tile_set)
        assert chosen == (tmp_path / "set.tres", sprite_exports()[name])
    assert [kind.partition(" (")[0] for kind in proposals] == ["Tiled tileset", "Sheet", "Godot tile set"]


def test_the_last_format_is_proposed_again(parent: QWidget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, forms = Settings(), sprite_exports()
    shown: list[tuple[str, str]] = []

    def dialog(parent: QWidget, title: str, start: Path, kinds: str, proposed: str) -> tuple[Path, str]:
        shown.append((start.name, proposed))
        return tmp_path / start.name, kinds.split(";;")[1]

    monkeypatch.setattr(dialogs, "run_save_dialog", dialog)
    kind = {name: f"{form.title} (*{form.suffix})" for name, form in forms.items()}
    dialogs.choose_save_sprites(parent, settings, "Save", "turn 1.gif")
    dialogs.choose_save_sprites(parent, settings, "Save", "orcs 1.5")
    settings.set_text("last_animation_format", "apng")
    dialogs.choose_save_sprites(parent, settings, "Save", "turn.gif", plays=True)
    dialogs.choose_save_sprites(parent, settings, "Save", "orcs 1.5")
    second = list(forms)[1]
    assert shown == [
        ("turn-1.gif", kind["gif"]), ("orcs-1.5", ""), ("turn.apng", kind["apng"]), ("orcs-1.5", kind[second]),
    ]  # fmt: skip


def test_fault_13_the_proposed_name_stays_in_the_folder(
    parent: QWidget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed: list[Path] = []

    def take(parent: QWidget, title: str, start: Path, *rest: object, **more: object) -> tuple[None, str]:
        proposed.append(start)
        return None, ""

    monkeypatch.setattr(dialogs, "run_save_dialog", take)
    settings = Settings()
    settings.set_text("last_save_folder", str(tmp_path))
    for name in ("../../x.gpl", "/etc/x.png", "swords/long 1.5.png", "model"):
        assert dialogs.choose_save_file(parent, settings, "Save", name, _PNG) is None
    assert proposed == [tmp_path / name for name in ("_.._x.gpl", "_etc_x.png", "swords_long-1.5.png", "model")]


def test_every_kind_of_palette_is_offered_once(parent: QWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(dialogs, "choose_save_file", lambda *args: asked.append(args[-1]))
    dialogs.choose_save_palette(parent, Settings(), "discs.gpl")
    kinds = asked[0].split(";;")
    assert kinds[0] == "GIMP palette (*.gpl)" and len(kinds) == len({kind.partition("*")[2] for kind in kinds}) == 7


def test_a_saved_plot_replaces_the_old_file_and_is_announced(
    qtbot: QtBot, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from studio.app.widgets.plot.loss_plot import LossPlot

    page, plot = Page(session), LossPlot()
    for widget in (page, plot):
        qtbot.addWidget(widget)
    plot.append([0, 1], [2.0, 1.0])
    (tmp_path / "loss.csv").write_text("old")
    answer(monkeypatch, tmp_path / "loss", _CSV)
    reply(monkeypatch, "Yes")
    with qtbot.waitSignal(session.noticed) as said:
        page.save_plot(plot, "loss.png")
    assert (tmp_path / "loss.csv").read_text().startswith("step,loss")
    assert said.args[0].title == "Saved as loss.csv."


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Exports run until they are cancelled; the list has the names of their runs."""
    closed: list[str] = []

    def export(shelf: object, source: SavedModel, *rest: object) -> Events:
        try:
            yield from endless()
        finally:
            closed.append(source.path.name)

    monkeypatch.setattr("studio.app.background.model_jobs.with_model", export)
    return closed


def dialog(session: Session, parent: QWidget, name: str, recipe: str = "generator") -> ExportDialog:
    made = ExportDialog(session, SavedModel(Path(name), "best"), name, recipe, cpu_of(session), parent)
    made.open()
    return made


def test_closing_the_dialog_cancels_the_export_and_the_next_waits(
    qtbot: QtBot, ready: Session, parent: QWidget, given_up: list[str]
) -> None:
    first = dialog(ready, parent, "first")
    with qtbot.waitSignal(ready.inference.progressed, timeout=LONG_MS):
        click(first.start)
    assert first.stop.isVisible()
    QTest.keyClick(first.stop, Qt.Key.Key_Return)
    assert first.isVisible()
    click(first.stop)
    second = dialog(ready, parent, "second")
    assert not second.start.isEnabled() and "is busy" in second.start.toolTip()
    ready.inference.exported.emit(Exported((Path("first.onnx"),), 0.0, {"Python": "load()"}, 9))  # a late result
    assert second.start.isVisible() and not second.outcome.text()
    qtbot.waitUntil(second.start.isEnabled, timeout=LONG_MS)
    assert given_up == ["first"]
    assert second.start.toolTip().startswith("Write the file")
    second.path.set_text("")
    assert not second.start.isEnabled()
    ready.inference.cancel()


def test_a_wrong_path_and_a_failed_export_leave_the_dialog_open_with_the_reason(
    qtbot: QtBot, ready: Session, parent: QWidget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def export(*given: object) -> Events:
        yield Progress(1, 3, "reading the file back")
        raise ExportError("The file differs from the model.", "Export as another format.")

    monkeypatch.setattr("studio.app.background.model_jobs.with_model", export)
    (tmp_path / "file").write_text("")
    shown = dialog(ready, parent, "run")
    shown.path.set_text(str(tmp_path / "file" / "model.onnx"))
    click(shown.start)
    assert shown.isVisible() and shown.start.isVisible() and not ready.inference.is_busy()
    assert shown.path.line.property("invalid") is True and shown.path_reason.isVisible()
    assert "not a folder" in shown.path_reason.text()
    shown.path.set_text(str(tmp_path / "model.onnx"))
    assert not shown.path_reason.isVisible() and shown.path.line.property("invalid") is False
    with qtbot.waitSignal(ready.inference.failed, timeout=LONG_MS):
        click(shown.start)
    qtbot.waitUntil(shown.start.isEnabled, timeout=LONG_MS)
    assert shown.isVisible() and shown.start.isVisible()
    assert shown.failure.text() == "The file differs from the model. Export as another format."
    shown.path.set_text(str(tmp_path / "other.onnx"))
    assert not shown.failure.isVisible()


def test_the_status_bar_shows_a_cancelled_export_until_it_ends(
    qtbot: QtBot, ready: Session, parent: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = threading.Event()

    def export(*given: object) -> Events:
        yield Progress(1, 3, "reading the file back")
        assert checked.wait(LONG_MS / 1000)
        yield Progress(2, 3, "comparing")

    monkeypatch.setattr("studio.app.background.model_jobs.with_model", export)
    bar = StatusBar(ready)
    qtbot.addWidget(bar)
    shown = dialog(ready, parent, "run")
    with qtbot.waitSignal(ready.inference.progressed, timeout=LONG_MS):
        click(shown.start)
    QTest.keyClick(shown, Qt.Key.Key_Escape)
    assert not shown.isVisible() and ready.inference.is_busy()
    qtbot.waitUntil(lambda: bar._text.text() == "Cancelling: Exporting…", timeout=LONG_MS)
    checked.set()
    qtbot.waitUntil(lambda: bar._text.text() == "Ready", timeout=LONG_MS)


def test_the_chosen_format_shows_its_settings_and_others_say_why_not(
    qtbot: QtBot, ready: Session, parent: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(ready.inference, "export", lambda *given: asked.append(given[2:]))
    ready.catalog.exports = {"safetensors": Safetensors(), "rounded": Rounded()}
    shown = dialog(ready, parent, "run", "classifier")
    radios = {radio.text(): radio for radio in shown.formats.findChildren(QRadioButton)}
    (form,) = shown.formats.findChildren(ConfigForm)
    assert form.findChild(QSpinBox, "seed") is None  # says nothing to a classifier
    assert not form.isVisible() and shown.height() <= 600
    radios["Rounded weights"].click()
    assert form.isVisible() and shown.path.text().endswith("run.rounded") and shown.height() <= 600
    decimals = form.findChild(QSpinBox, "decimals")
    assert decimals is not None
    decimals.setValue(3)
    click(shown.start)
    assert asked == [("rounded", Path(shown.path.text()), RoundedConfig(decimals=3))]
    shown._on_exported(Exported((Path("a.rounded"),), 0.0123, {"Python": "import", "C": "#include"}, 3 << 20))
    assert "the same (within 1.2 %)" in shown.outcome.text() and "3 MB" in shown.outcome.text()
    assert shown.snippet.toPlainText() == "import"
    shown.language.setCurrentText("C")
    assert shown.snippet.toPlainText() == "#include"


def test_an_unavailable_format_shows_the_reason(qtbot: QtBot, ready: Session, parent: QWidget) -> None:
    ready.catalog.exports = {"rounded": Rounded()}
    shown = dialog(ready, parent, "run", "regression")
    assert not shown.formats.findChildren(QRadioButton)[0].isEnabled()
    assert any("not round" in label.text() for label in shown.formats.findChildren(QLabel))
    assert not shown.start.isEnabled() and "no format supports" in shown.start.toolTip()


def test_a_run_can_be_exported_once_the_formats_are_known(qtbot: QtBot, ready: Session) -> None:
    start_tiny(ready, steps=3)
    wait_idle(qtbot, ready)
    assert ready.training.path is not None
    known, ready.catalog.exports = ready.catalog.exports, {}  # devices may be found first
    actions = RunActions(ready)
    qtbot.addWidget(actions)
    actions.set_runs([summarise(ready.training.path)])
    assert actions.use.isEnabled()
    assert not actions.export.isEnabled() and "loading" in actions.export.toolTip()
    assert not actions.export_model()
    ready.catalog.exports = known
    ready.catalog.ready.emit()
    assert actions.export.isEnabled()


def test_arrows_of_qts_file_dialog_are_grey(qtbot: QtBot, window: Window) -> None:
    made = QFileDialog(window)
    made.setOption(QFileDialog.Option.DontUseNativeDialog)
    qtbot.addWidget(made)
    for name in ("backButton", "forwardButton", "toParentButton"):
        arrow = made.findChild(QToolButton, name)
        assert arrow is not None and "#848b96" in colours_in(arrow.icon().pixmap(16).toImage())
