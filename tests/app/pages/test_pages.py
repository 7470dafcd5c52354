"""The pages as a user meets them: real clicks, real sprites, real training."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QColor, QDropEvent, QGuiApplication, QImage, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QMenu,
    QPushButton,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from studio.app import dialogs, theme
from studio.app.pages.export_dialog import ExportDialog
from studio.app.pages.generate.page import GeneratePage
from studio.app.pages.train.page import TrainPage
from studio.app.state.session import Session
from studio.app.window import Window
from studio.core import paths
from studio.core.events import Advised, Notice, QualityMeasured
from studio.core.metrics import Quality
from studio.engine.sampling import distil
from studio.engine.sampling.class_choice import read_mixture
from studio.engine.sampling.distil import DistilSettings
from studio.exports.sprites.formats import sprite_exports
from studio.recipes.base import TrainingBudget
from tests.app.conftest import LONG_MS, click, open_sprites, show_alone, start_endless, tiny, wait_for_steps, wait_idle


def choose(box: QComboBox, data: object) -> None:
    box.setCurrentIndex(box.findData(data))
    assert box.currentData() == data


def texts(widget: QWidget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel)]


def set_tiny(window: Window, **changes: float) -> None:
    """Enter settings that train in a second."""
    recipe = window.session.setup.recipe
    assert recipe is not None
    window.session.setup.choose_parent(None)  # the starter is too large for a quick test
    window.session.setup.set_config(tiny(window.session, recipe.name, **changes))


def train_to_the_end(qtbot: QtBot, window: Window) -> None:
    window.show_page("train")
    set_tiny(window)
    click(window.train.controls.start)
    wait_idle(qtbot, window.session)


@pytest.fixture
def train_page(qtbot: QtBot, session: Session, sprite_folder: Path) -> TrainPage:
    """Return the Train page alone, with open sprites."""
    page = show_alone(qtbot, session, TrainPage)
    open_sprites(qtbot, session, sprite_folder)
    qtbot.waitUntil(lambda: page.monitor.plot is not None, timeout=LONG_MS)
    return page


def test_window_follows_the_colour_scheme(qtbot: QtBot, qapp: QApplication, window: Window) -> None:
    picture = window.sprites.drop_zone._arrow
    light = picture.pixmap().toImage()
    assert theme.LIGHT.text in window.styleSheet()
    theme.apply(qapp, "dark")
    assert theme.DARK.text in window.styleSheet() and theme.LIGHT.text not in window.styleSheet()
    qtbot.waitUntil(lambda: picture.pixmap().toImage() != light)


def test_empty_window_shows_hints(qtbot: QtBot, window: Window) -> None:
    assert window.sprites.drop_zone.isVisible()
    window.show_page("train")
    assert not window.train.controls.start.isEnabled()
    assert "open a folder" in window.train.controls.start.toolTip()
    window.show_page("generate")
    assert not window.generate.generate.isEnabled()
    qtbot.waitUntil(lambda: "no model yet" in window.generate.generate.toolTip(), timeout=LONG_MS)
    assert not window.generate.request.quick.isVisibleTo(window.generate)


def test_help_menu_opens_folders(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(
        "studio.app.actions.QDesktopServices.openUrl", lambda url: opened.append(Path(url.toLocalFile()))
    )
    actions = {action.text(): action for menu in window.menuBar().findChildren(QMenu) for action in menu.actions()}
    actions["Show runs folder"].trigger()
    actions["Show logs"].trigger()
    assert opened == [paths.runs(), paths.logs()]
    assert all(path.is_dir() for path in opened)


def test_drop_a_folder_anywhere(qtbot: QtBot, window: Window, sprite_folder: Path) -> None:
    window.show_page("runs")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(sprite_folder))])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    with qtbot.waitSignal(window.session.open_sprites.imported, timeout=LONG_MS):
        window.dropEvent(QDropEvent(QPointF(9, 9), Qt.DropAction.CopyAction, mime, left, none))
    page = window.sprites
    assert window.page() is page
    assert page.grid.visible_count() == 24
    assert window.session.doctor.findings[0].group == "unreadable"


def test_an_image_pasted_anywhere_opens_on_the_sprites_page(qtbot: QtBot, window: Window) -> None:
    window.show_page("lab")
    image = QImage(16, 16, QImage.Format.Format_ARGB32)
    image.fill(QColor(200, 40, 90, 255))
    QGuiApplication.clipboard().setImage(image)
    with qtbot.waitSignal(window.session.open_sprites.imported, timeout=LONG_MS):
        window.menus.paste.trigger()
    assert window.page() is window.sprites and window.sprites.grid.visible_count() == 1
    window.show_page("runs")
    QGuiApplication.clipboard().setText("orc")
    window.runs.filter.setFocus()
    window.menus.paste.trigger()
    assert window.runs.filter.text() == "orc" and window.page() is window.runs
    QTest.keyClick(window.runs.filter, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert window.runs.filter.text() == "orcorc"
    QGuiApplication.clipboard().setImage(image.scaled(8, 8))
    with qtbot.waitSignal(window.session.open_sprites.imported, timeout=LONG_MS):  # a field takes no image
        QTest.keyClick(window.runs.filter, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert window.page() is window.sprites and window.runs.filter.text() == "orcorc"


def test_quality_tabs_beside_the_loss(train_page: TrainPage) -> None:
    monitor = train_page.monitor
    assert monitor.plot is not None
    monitor.plot.append_series("Speed", [10], [300.0])
    quality = Quality(kid=0.25, kid_error=0.01, kid_real=0.0, copies=0.1, copies_real=0.06)
    train_page.session.training.event_received.emit(QualityMeasured(6, quality))
    bar = monitor.plot.findChild(QTabBar)
    assert bar is not None
    assert [bar.tabText(i) for i in range(bar.count())] == ["Loss", "Quality (KID)", "Copies", "Speed"]
    assert monitor.readings.value("Copies") == "10 % (6 % by chance)"


def test_advice_is_shown_and_marked(qtbot: QtBot, opened: Window) -> None:
    train_to_the_end(qtbot, opened)
    page, plot, training = opened.train, opened.train.monitor.plot, opened.session.training
    assert plot is not None
    for advice, said, marked in (
        (Advised(4, "improving", "New sprites come nearer.", 3), "Still improving: new sprites come nearer.", []),
        (Advised(4, "copying", "30 % are copies.", 2), "Starting to copy: 30 % are copies.", [2]),
    ):
        training._receive(advice)
        assert said in page.card.text.text()
        assert [mark.step for mark in plot.marks if mark.kind == "best"] == marked


def test_train_generate_and_save(qtbot: QtBot, opened: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    click(opened.sprites.summary.train)
    assert opened.page() is opened.train
    train_to_the_end(qtbot, opened)
    assert opened.train.monitor.filmstrip.steps()[0] == 0
    assert opened.train.monitor.filmstrip.steps()[-1] == 6
    gif, films = sprite_exports()["gif"], (opened.train.monitor.filmstrip, opened.runs.comparison.filmstrip)
    for name, strip in zip(("train", "runs"), films, strict=True):
        target = tmp_path / name
        monkeypatch.setattr(dialogs, "choose_save_sprites", lambda *args, target=target, **more: (target, gif))
        opened.show_page(name)
        qtbot.waitUntil(strip.save.isEnabled, timeout=LONG_MS)
        with qtbot.waitSignal(opened.session.saving.saved, timeout=LONG_MS):
            click(strip.save)
        with Image.open(target.with_suffix(".gif")) as film:
            assert film.n_frames > 1  # type: ignore[attr-defined]
    opened.show_page("train")
    click(opened.train.steps.generate)
    assert opened.page() is opened.generate
    qtbot.waitUntil(opened.generate.generate.isEnabled, timeout=LONG_MS)
    qtbot.waitUntil(lambda: opened.generate.choice.checkpoints.count() > 1, timeout=LONG_MS)
    opened.generate.generate.setFocus()
    with qtbot.waitSignal(opened.session.inference.generated, timeout=LONG_MS) as made:
        click(opened.generate.generate)
    qtbot.waitUntil(opened.generate.generate.hasFocus, timeout=LONG_MS)  # so that Space generates again
    assert opened.generate.results.grid.visible_count() == len(made.args[0].sprites) == 64
    monkeypatch.setattr(dialogs, "choose_save_folder", lambda *args: tmp_path / "out")
    with qtbot.waitSignal(opened.session.saving.saved, timeout=LONG_MS):
        click(opened.generate.results.buttons.save_files)
    files = sorted((tmp_path / "out").glob("*.png"))
    assert len(files) == 64 and all(file.name.startswith("class") for file in files)
    assert np.asarray(Image.open(files[0])).shape == (8, 8, 4)
    sheet = sprite_exports()["sheet"]
    monkeypatch.setattr(dialogs, "choose_save_sprites", lambda *args, **more: (tmp_path / "sheet.png", sheet))
    with qtbot.waitSignal(opened.session.saving.saved, timeout=LONG_MS):
        QTest.keyClick(opened, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    assert Image.open(tmp_path / "sheet.png").size == (64, 64)
    with qtbot.waitSignal(opened.session.inference.generated, timeout=LONG_MS):
        click(opened.generate.generate)
        opened.generate.choice.models.setCurrentIndex(-1)  # the sprites belong to the requested model
    picked = opened.generate.results.to_save()
    assert picked is not None and all(name.startswith("class") for name in picked.names)


def test_prepare_fast_mode(
    qtbot: QtBot, own_run: Path, opened: Window, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page, quick = opened.generate, opened.generate.request.quick
    opened.runs.model_requested.emit(own_run)
    qtbot.waitUntil(lambda: quick.prepare.isEnabled() and quick.prepare.isVisible(), timeout=LONG_MS)
    assert not quick.box.isEnabled() and "Prepare it once" in quick._about.text()
    asked = page.request.next_settings()
    assert not asked.quick
    monkeypatch.setattr(distil, "DistilSettings", lambda: DistilSettings(count=128))
    monkeypatch.setattr(distil, "_COMPARED", 4)
    monkeypatch.setattr(distil, "_PASSES", 1)
    with qtbot.waitSignal(opened.session.inference.progressed, timeout=LONG_MS):
        click(quick.prepare)
    assert not quick.prepare.isEnabled()
    click(page.cancel)
    qtbot.waitUntil(quick.prepare.isEnabled, timeout=LONG_MS)
    with qtbot.waitSignal(opened.session.inference.distilled, timeout=LONG_MS):
        click(quick.prepare)
    qtbot.waitUntil(lambda: quick.box.isEnabled() and quick.box.isChecked(), timeout=LONG_MS)
    qtbot.waitUntil(lambda: not opened.session.inference.is_busy(), timeout=LONG_MS)
    assert not quick.prepare.isVisible() and "times as many" in quick._about.text()
    form = page.request._form
    assert form is not None and not form._controls["guidance"].isEnabled() and form._controls["count"].isEnabled()
    assert page.request.next_settings().quick
    page.request.lock.setChecked(True)
    page.request.seed.setValue(7)
    with qtbot.waitSignal(opened.session.inference.generated, timeout=LONG_MS) as made:
        click(page.generate)
    quick.box.click()
    assert form._controls["guidance"].isEnabled()
    with qtbot.waitSignal(opened.session.inference.generated, timeout=LONG_MS) as usual:
        click(page.generate)
    assert not np.array_equal(made.args[0].sprites, usual.args[0].sprites)


def test_class_choices_evenly_proportional_or_single(qtbot: QtBot, session: Session) -> None:
    page = show_alone(qtbot, session, GeneratePage)
    request = page.request
    request.show_classes(("swords",), frozenset({"mix"}), 16)
    asked = []
    for place in range(request.classes.count()):
        request.classes.setCurrentIndex(place)
        settings = request.next_settings()
        asked.append((settings.class_name, settings.in_proportion))
    assert asked == [("", False), ("", True), ("swords", False)]


def test_mix_a_class_with_a_comma(qtbot: QtBot, session: Session) -> None:
    page = show_alone(qtbot, session, GeneratePage)
    request = page.request
    request.show_classes(("swords, long", "potions"), frozenset({"mix"}), 16)
    request.classes.setCurrentIndex(request.classes.findData("swords, long"))
    request.mixed_with.setCurrentIndex(request.mixed_with.findData("potions"))
    assert read_mixture(request.next_settings().mix) == [("swords, long", 50), ("potions", 50)]


def test_buttons_and_space_follow_the_training(qtbot: QtBot, opened: Window, sprite_folder: Path) -> None:
    opened.show_page("train")
    set_tiny(opened, steps=1_000_000)
    controls = opened.train.controls
    click(controls.start)
    wait_for_steps(qtbot, opened.session)
    assert not controls.start.isVisible() and "Changes apply to the next run." in texts(controls)
    for key in (False, True):
        for state in ("paused", "training"):
            QTest.keyClick(opened, Qt.Key.Key_Space) if key else click(controls.pause)
            assert opened.session.training.state == state
            assert controls.pause.accessibleName() == ("Resume" if state == "paused" else "Pause")
    held_down = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Space, Qt.KeyboardModifier.NoModifier, " ", True)
    QApplication.sendEvent(opened, held_down)
    assert opened.session.training.state == "training" and opened.train.save.isEnabled()
    click(controls.stop)
    qtbot.waitUntil(controls.start.isVisible, timeout=LONG_MS)
    assert "Will train on discs (24 sprites)" in texts(controls)
    open_sprites(qtbot, opened.session, sprite_folder / "class1")
    assert any(words.startswith("Will train on class1 (") for words in texts(controls))  # beside the ended run


def test_small_window_scrolls(qtbot: QtBot, opened: Window) -> None:
    opened.show_page("train")
    opened.resize(900, 600)
    monitor = opened.train.monitor
    qtbot.waitUntil(lambda: opened.height() == 600 and monitor.plot is not None, timeout=LONG_MS)
    plot, tabs = monitor.splitter.widget(0), monitor.tabs
    assert plot is not None
    qtbot.waitUntil(lambda: tabs.height() >= 200 and plot.height() >= 220, timeout=LONG_MS)
    assert plot.geometry().bottom() < tabs.geometry().top()
    qtbot.waitUntil(lambda: monitor.splitter.geometry().bottom() <= monitor.rect().bottom(), timeout=LONG_MS)


def test_invalid_settings_disable_start(train_page: TrainPage) -> None:
    setup = train_page.setup
    box = setup.forms._forms[setup.recipes.currentData()].findChild(QAbstractSpinBox, "batch_size")
    assert box is not None
    box.selectAll()
    QTest.keyClicks(box, "0")
    assert not train_page.controls.start.isEnabled()
    assert "batch size" in train_page.controls.start.toolTip()


def test_presets_follow_sprites_and_custom_settings(
    qtbot: QtBot, train_page: TrainPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel, setup = train_page.setup, train_page.session.setup
    monkeypatch.setattr("studio.engine.steps.benchmark.training_budget", lambda *_: TrainingBudget(24, 500.0))
    setup._update_presets()

    def shown() -> list[QPushButton]:
        return [button for button in panel.presets.findChildren(QPushButton) if button.isVisible()]

    qtbot.waitUntil(lambda: len(shown()) == 2, timeout=LONG_MS)
    usual, best = shown()
    assert setup.config is not None
    assert setup.preset == "Standard" and setup.config.epochs == 534
    # Small sets are soon memorised: 'Quick' would equal 'Standard'; 'Best' has a wider network.
    assert usual.text() == "Standard\nabout 30 s" and best.text() == "Best\nabout 50 s" and usual.isChecked()
    setup.set_config(setup.config.replace(batch_size=7))
    assert not usual.isChecked() and panel.forms.config().batch_size == 7
    assert "Custom settings." in texts(panel.presets)
    click(usual)
    assert setup.config.epochs == 534 and panel.forms.config() == setup.config and usual.isChecked()


def test_typed_minutes_replace_preset_epochs(train_page: TrainPage, monkeypatch: pytest.MonkeyPatch) -> None:
    form, setup = train_page.setup.forms, train_page.session.setup
    monkeypatch.setattr("studio.engine.steps.benchmark.training_budget", lambda *_: TrainingBudget(24, 500.0))
    setup._update_presets()
    assert setup.config is not None and setup.config.epochs
    setup.edit_config(form.config().replace(minutes=3.0))
    assert (setup.config.minutes, setup.config.epochs) == (3.0, 0) and form.config() == setup.config
    setup.edit_config(form.config().replace(epochs=7))
    setup.edit_config(form.config().replace(batch_size=5))
    assert (setup.config.minutes, setup.config.epochs, setup.config.batch_size) == (3.0, 7, 5)


def test_presets_follow_the_device(train_page: TrainPage, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = train_page.session.setup
    monkeypatch.setattr("studio.engine.steps.benchmark.training_budget", lambda *_: TrainingBudget(100_000, 500.0))
    setup._update_presets()
    assert setup.config is not None and setup.preset == "Standard" and setup.config.minutes == 10.0


def test_classifier_shows_confusion_and_predicts(
    qtbot: QtBot, opened: Window, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.show_page("train")
    choose(opened.train.setup.recipes, "classifier")
    train_to_the_end(qtbot, opened)
    assert opened.train.monitor.tabs.isTabVisible(1)
    click(opened.train.steps.generate)
    qtbot.waitUntil(opened.generate.predict.isVisible)
    chosen = sorted(sprite_folder.glob("class1/*.png"))[:3]
    shutil.copy(chosen[0], sprite_folder / "twin.png")
    chosen.append(sprite_folder / "twin.png")
    shutil.copy(__file__, sprite_folder / "text.png")
    chosen.append(sprite_folder / "text.png")
    monkeypatch.setattr(dialogs, "choose_files", lambda *args: chosen)
    noticed: list[Notice] = []
    opened.session.noticed.connect(noticed.append)
    with qtbot.waitSignal(opened.session.inference.predicted, timeout=LONG_MS) as answered:
        opened.generate.predict.browse.menu().actions()[1].trigger()  # Files…
        assert not opened.generate.predict.browse.isEnabled()  # a single prediction at a time
        assert not opened.generate.predict.open_sprites.isEnabled()
    shown, answer = answered.args
    assert shown.rgba.shape == (4, 8, 8, 4)  # the duplicate has a prediction too
    assert answer.probabilities.shape == (4, 2)
    assert "No prediction for 1 skipped file." in [notice.title for notice in noticed]


@pytest.mark.slow
def test_regression_shows_predicted_and_true(
    qtbot: QtBot, window: Window, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(sprite_folder.glob("class*/0*.png"))
    rows = [f"{path.parent.name}/{path.name},{number}\n" for number, path in enumerate(files)]
    (sprite_folder / "labels.csv").write_text("file,price\n" + "".join(rows))
    open_sprites(qtbot, window.session, sprite_folder)
    assert "with a number (price)" in window.sprites.summary._facts.text()
    window.show_page("train")
    choose(window.train.setup.recipes, "regression")
    train_to_the_end(qtbot, window)
    monitor = window.train.monitor
    assert monitor.tabs.currentIndex() == 2 and not monitor.tabs.isTabVisible(1)
    assert monitor.scatter is not None and monitor.scatter.isVisible() and not monitor.scatter.choice.isVisible()
    assert 1 < int(monitor.scatter.dots.accessibleDescription().split()[0]) < len(files)  # the validation sprites
    assert "price " in monitor.numbers.view.model().index(0, 0).data()
    assert monitor.readings.value("Validation").startswith("R² ")
    click(window.train.steps.generate)
    qtbot.waitUntil(window.generate.predict.isVisible)
    assert not window.generate.request.isVisible()
    with qtbot.waitSignal(window.session.inference.predicted, timeout=LONG_MS):
        click(window.generate.predict.open_sprites)
    assert window.generate.predict.view.view.model().index(3, 0).data().endswith(", true 3")


def test_export_shows_difference_and_example_code(qtbot: QtBot, opened: Window, tmp_path: Path) -> None:
    train_to_the_end(qtbot, opened)
    click(opened.train.steps.export)
    dialog = opened.train.findChild(ExportDialog)
    assert isinstance(dialog, ExportDialog)
    dialog.path.set_text(str(tmp_path / "model.safetensors"))
    QTest.keyClick(dialog.path.line, Qt.Key.Key_Return)  # Enter presses Export, not Browse
    qtbot.waitUntil(dialog.done_button.isVisible, timeout=LONG_MS)
    assert (tmp_path / "model.safetensors").exists()
    assert "outputs of the file and of the model are" in dialog.outcome.text()
    click(dialog.copy)
    assert QApplication.clipboard().text() == dialog.snippet.toPlainText() != ""
    click(dialog.done_button)


def test_list_compare_and_use_runs(qtbot: QtBot, own_run: Path, opened: Window) -> None:
    train_to_the_end(qtbot, opened)
    runs = opened.runs
    opened.show_page("runs")
    qtbot.waitUntil(lambda: runs.table.model().rowCount() == 2, timeout=LONG_MS)
    runs.table.selectAll()
    with qtbot.waitSignals([opened.session.runs.read] * 2, timeout=LONG_MS):
        pass
    assert not runs.actions_row.resume.isEnabled()
    assert runs.actions_row.resume.toolTip() == "Resume: select one run."
    runs.table.selectRow(0)
    assert "is finished" in runs.actions_row.resume.toolTip()
    click(runs.actions_row.use)
    assert opened.page() is opened.generate
    runs.filter.setText("no such run")
    assert runs.table.model().rowCount() == 0


def test_live_model_becomes_its_run(qtbot: QtBot, opened: Window) -> None:
    training, models = start_endless(qtbot, opened.session), opened.generate.choice.models
    assert models.currentData() == "live"
    training.stop()
    qtbot.waitUntil(lambda: models.currentData() == str(training.path), timeout=LONG_MS)


@pytest.mark.slow
def test_measuring_fills_in_the_estimate(qtbot: QtBot, opened: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.steps.benchmark.MIN_S", 0.0)
    devices = opened.session.device_choice
    opened.show_page("train")
    set_tiny(opened)
    with qtbot.waitSignals([opened.session.catalog.measured] * 2, timeout=LONG_MS):
        opened.train.setup.picker.measure_requested.emit()
    assert devices.measurements.speed(devices.device, "auto") > 0
    qtbot.waitUntil(lambda: not opened.session.catalog.is_measuring(), timeout=LONG_MS)
    set_tiny(opened, width=24)
    assert devices.measurements.speed(devices.device, "auto") == 0
