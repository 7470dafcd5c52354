"""The session's choices for the next training: used by all computing jobs, and restored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton, QRadioButton
from pytestqt.qtbot import QtBot

from studio.app.background import model_jobs
from studio.app.pages.export_dialog import ExportDialog
from studio.app.pages.train.page import TrainPage
from studio.app.pages.train.setup import PresetButtons, RecipeOffer
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.app.widgets import factory
from studio.app.window import Window
from studio.core.config import TrainingConfig
from studio.core.events import Events
from studio.engine.devices.types import STARTER, Device
from studio.engine.quality import outliers
from studio.engine.runs.folder import Ancestor, RunDir
from studio.engine.training.parents import load_parent
from studio.recipes.base import Preset
from studio.recipes.sets import Sets
from tests.app.conftest import LONG_MS, click, cpu_of, open_sprites, show_alone, start_tiny
from tests.conftest import make_sprites, with_sets


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> dict[str, Device]:
    """Record the device of each job by kind; the jobs do nothing."""
    devices: dict[str, Device] = {}

    def noted(name: str) -> Callable[..., Events]:
        def job(*given: object) -> Events:
            devices[name] = next(value for value in given if isinstance(value, Device))
            yield from ()

        return job

    for module, name in ((outliers, "find_outliers"), (model_jobs, "generate"), (model_jobs, "with_model")):
        monkeypatch.setattr(module, name, noted(name))
    return devices


def test_an_offered_recipe_is_chosen_by_its_button(qtbot: QtBot) -> None:
    offer = RecipeOffer()
    qtbot.addWidget(offer)
    offer.show_offer(Sets(), with_sets(make_sprites()))
    assert offer.text.text() == "These sprites are 12 characters: the recipe Sets draws missing views."
    with qtbot.waitSignal(offer.chosen) as chosen:
        click(offer.button)
    assert chosen.args == ["sets"] and not offer.isHidden()
    offer.show_offer(None, None)
    assert offer.isHidden()


def add_device(session: Session) -> Device:
    """Add a device that is faster than the CPU."""
    cpu = cpu_of(session)
    other = replace(cpu, id="other", name="Another", steps_per_s=cpu.steps_per_s / 2)
    session.catalog.devices, session.catalog.fastest = (cpu, other), cpu.id
    session.catalog.devices_found.emit()
    return other


def test_chosen_device_is_used_everywhere(
    qtbot: QtBot, window: Window, sprite_folder: Path, taken: dict[str, Device]
) -> None:
    session, picker = window.session, window.train.setup.picker
    other = add_device(session)
    window.show_page("train")
    click(next(radio for radio in picker.findChildren(QRadioButton) if radio.accessibleName() == "Another"))
    assert session.device_choice.device == other and window.status._device.text() == "Another"
    assert window.menus.undo.text() == "Undo choose Another"
    window.menus.undo.trigger()
    assert session.device_choice.device != other and picker.selected() == "cpu"
    window.menus.redo.trigger()
    assert session.device_choice.device == other
    window.open_paths([sprite_folder])
    qtbot.waitUntil(lambda: "find_outliers" in taken, timeout=LONG_MS)
    start_tiny(session, steps=3)  # on the CPU, to get a model
    qtbot.waitUntil(lambda: not session.training.is_busy() and bool(session.runs.runs), timeout=LONG_MS)
    window.show_page("generate")
    qtbot.waitUntil(window.generate.generate.isEnabled, timeout=LONG_MS)
    with qtbot.waitSignals([session.inference.busy_changed] * 2, timeout=LONG_MS):
        click(window.generate.generate)
    window.show_page("runs")
    with qtbot.waitSignals([session.inference.busy_changed] * 2, timeout=LONG_MS):
        click(window.runs.actions_row.export)
        dialog = window.runs.findChild(ExportDialog)
        assert isinstance(dialog, ExportDialog)
        click(dialog.start)
    assert taken == dict.fromkeys(("find_outliers", "generate", "with_model"), other)


def test_missing_device_falls_back_to_the_fastest(qtbot: QtBot, window: Window) -> None:
    session, cpu = window.session, cpu_of(window.session)
    session.device_choice.choose(add_device(session).id)
    assert window.train.setup.picker.selected() == "other"
    session.catalog.devices = (cpu,)
    session.catalog.devices_found.emit()
    assert session.device_choice.device == cpu
    assert window.train.setup.picker.selected() == "cpu" and window.status._device.text() == cpu.name


def test_choices_are_restored(qtbot: QtBot, ready: Session) -> None:
    setup, other = ready.setup, add_device(ready)
    ready.device_choice.choose(other.id)
    setup.choose_recipe("classifier")
    assert setup.config is not None
    config = setup.config.replace(minutes=7.5, batch_size=33)
    setup.set_config(config)
    assert setup.preset == ""
    setup.choose_recipe("generator")
    assert setup.config != config
    setup.choose_recipe("classifier")
    assert setup.config == config
    setup.store()
    again = Session(Settings())
    again.open()
    qtbot.waitUntil(lambda: again.setup.config is not None and again.device_choice.device is not None, timeout=LONG_MS)
    assert again.device_choice.device != other  # missing
    add_device(again)
    assert again.setup.recipe is not None and again.setup.recipe.name == "classifier"
    assert again.setup.config == config and again.device_choice.device == other
    assert again.close()


def test_invalid_settings_keep_the_last_valid_ones(qtbot: QtBot, ready: Session, sprite_folder: Path) -> None:
    setup = ready.setup
    assert setup.problem() == "Open a folder of sprites first."
    open_sprites(qtbot, ready, sprite_folder)
    assert setup.problem() == ""
    before = setup.config
    assert before is not None
    setup.set_invalid("Batch size must be at least 1, not 0.")
    setup.start()
    assert not ready.training.is_busy() and setup.config == before
    assert setup.problem() == setup.invalid() == "Batch size must be at least 1, not 0."
    setup.set_config(before)
    assert setup.problem() == ""


def test_train_from_the_chosen_parent(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    page = show_alone(qtbot, session, TrainPage)
    box = page.setup.parents
    setup = session.setup
    open_sprites(qtbot, session, sprite_folder)
    assert [box.itemText(place) for place in range(box.count())] == ["From scratch", "Bundled starter model"]
    assert setup.preset == "Standard"
    said = page.setup._parent_summary
    assert box.currentText() == "Bundled starter model" and "fewer copies" in said.text()
    width = page.setup.forms._forms["generator"]._controls["width"]
    assert not width.isEnabled()  # fixed by the starter
    setup.choose_parent(None)
    assert width.isEnabled()
    assert "your 24 sprites" in said.text() and setup.preset == "Standard"
    start_tiny(session, steps=2)
    qtbot.waitUntil(lambda: not session.training.is_busy() and box.count() == 3, timeout=LONG_MS)
    run = session.training.path
    assert run is not None and box.itemText(2) == run.name
    setup.choose_preset("Standard")
    box.setCurrentIndex(1)
    assert setup.config is not None and str(box.currentData()) == "starter" and setup.config.to_json()["width"] == 32
    assert setup.preset == "Standard" and setup.config.learning_rate == 1e-3
    box.setCurrentIndex(2)
    assert str(box.currentData()) == str(run) and setup.config.to_json()["width"] == 16
    setup.set_config(setup.config.replace(steps=1, batch_size=4))
    setup.start()
    qtbot.waitUntil(lambda: not session.training.is_busy() and box.count() == 4, timeout=LONG_MS)
    assert session.training.path is not None
    (parent,) = RunDir(session.training.path).record().ancestors
    assert (parent.title, parent.step) == (run.name, 2)
    again = Session(Settings())  # restores the starter, chosen before the run
    again.open()
    qtbot.waitUntil(lambda: again.setup.config is not None, timeout=LONG_MS)
    recipe, config = again.setup.recipe, again.setup.config
    assert recipe is not None and str(again.setup.parents.source_for(recipe)) == "starter"
    assert config is not None and config.to_json()["width"] == 32
    assert again.close()
    session.runs.runs = ()  # both are deleted
    session.runs.listed.emit()
    assert box.currentText() == "Bundled starter model"
    setup.choose_recipe("classifier")
    assert [box.itemText(place) for place in range(box.count())] == ["From scratch"]


def test_small_sets_start_from_the_starter(qtbot: QtBot, ready: Session, sprite_folder: Path) -> None:
    """Custom settings keep their values, except those fixed by the weights."""
    setup = ready.setup
    recipe, config = setup.recipe, setup.config
    assert recipe is not None and recipe.name == "generator" and config is not None
    setup.edit_config(config.replace(width=16, weight_decay=0.5))
    assert setup.parents.source_for(recipe) is None and setup.preset == ""
    open_sprites(qtbot, ready, sprite_folder)
    assert setup.parents.source_for(recipe) == STARTER and setup.config is not None
    own = setup.config.to_json()
    assert (own["width"], own["learning_rate"], own["weight_decay"]) == (32, 1e-3, 0.5)
    setup.store()
    again = Session(Settings())
    again.open()
    qtbot.waitUntil(lambda: again.setup.config is not None, timeout=LONG_MS)
    assert (
        again.setup.parents.source_for(recipe) is None and again.setup.config is not None
    )  # until a small set is open
    own = again.setup.config.to_json()
    assert (own["learning_rate"], own["weight_decay"]) == (config.learning_rate, 0.5)
    assert again.close()
    setup.choose_parent(None)
    setup.store()
    again = Session(Settings())
    again.open()
    qtbot.waitUntil(lambda: again.setup.config is not None, timeout=LONG_MS)
    open_sprites(qtbot, again, sprite_folder)
    assert again.setup.parents.source_for(recipe) is None
    assert again.close()


def test_preset_of_small_sets_is_restored(qtbot: QtBot, ready: Session, sprite_folder: Path) -> None:
    open_sprites(qtbot, ready, sprite_folder)
    ready.setup.choose_preset("Standard")
    assert ready.setup.recipe is not None and ready.setup.parents.source_for(ready.setup.recipe) == STARTER
    ready.setup.store()
    again = Session(Settings())
    again.open()
    qtbot.waitUntil(lambda: again.setup.config is not None and again.device_choice.device is not None, timeout=LONG_MS)
    assert again.setup.preset == "Standard"
    assert again.close()


def test_preset_survives_viewing_another_recipe(qtbot: QtBot, ready: Session, sprite_folder: Path) -> None:
    setup = ready.setup
    setup.choose_preset("Quick")
    setup.choose_recipe("classifier")
    open_sprites(qtbot, ready, sprite_folder)
    setup.choose_recipe("generator")
    assert setup.preset == "Standard"  # for small sets all presets are equal: only the middle preset is offered
    assert setup.config is not None and setup.config.learning_rate == 1e-3


def test_resumed_run_shows_its_parent(qtbot: QtBot, own_run: Path, ready: Session, sprite_folder: Path) -> None:
    setup, record = ready.setup, RunDir(own_run).record()
    recipe = ready.catalog.recipes["generator"]
    starter = replace(record, ancestors=(Ancestor(STARTER, 5, "tiles", "0", "1"),))
    setup.show_run(starter)
    assert setup.parents.source_for(recipe) == STARTER and setup.config is not None
    assert setup.config.to_json() == record.chosen_config  # the recipe's own, not the starter's
    setup.show_run(record)
    assert setup.parents.source_for(recipe) is None
    open_sprites(qtbot, ready, sprite_folder)
    assert setup.parents.source_for(recipe) == STARTER
    setup.choose_parent(None)
    setup.show_run(starter)
    setup.choose_parent(None)
    assert setup.parents.source_for(recipe) is None


def test_resumed_run_keeps_choices_for_other_sprites(
    qtbot: QtBot, own_run: Path, ready: Session, sprite_folder: Path
) -> None:
    setup, record = ready.setup, RunDir(own_run).record()
    setup.choose_preset("Standard")
    setup.show_run(record)
    setup.show_run(record)
    assert setup.config is not None and setup.config.to_json() == record.chosen_config and setup.preset == ""
    assert setup.shows_run
    setup.store()
    assert ready.settings.text("generator preset") == "Standard"
    open_sprites(qtbot, ready, sprite_folder)
    assert setup.preset == "Standard"
    setup.show_run(record)
    changed = setup.config.replace(steps=7)
    setup.edit_config(changed)  # custom settings from now on
    open_sprites(qtbot, ready, sprite_folder)
    assert setup.config.steps == 7 and setup.preset == "" and not setup.shows_run


def test_run_settings_include_the_parent(qtbot: QtBot, own_run: Path, ready: Session, sprite_folder: Path) -> None:
    setup, record = ready.setup, RunDir(own_run).record()
    recipe = ready.catalog.recipes["generator"]
    setup.choose_preset("Standard")
    setup.use_settings(own_run, record)
    open_sprites(qtbot, ready, sprite_folder)  # a small set, which would start from the starter
    assert setup.config is not None and setup.config.to_json() == record.chosen_config != record.config
    assert setup.parents.source_for(recipe) is None and setup.preset == ""
    setup.store()
    again = Session(Settings())
    again.open()
    qtbot.waitUntil(lambda: again.setup.config is not None, timeout=LONG_MS)
    open_sprites(qtbot, again, sprite_folder)
    assert again.setup.parents.source_for(recipe) == STARTER
    assert again.close()
    setup.use_settings(own_run, replace(record, ancestors=(Ancestor(STARTER, 5, "tiles", "0", "1"),)))
    assert setup.parents.source_for(recipe) == STARTER
    own = setup.config.to_json()
    assert own["width"] == load_parent(STARTER, recipe).settings["width"] != record.config["width"]
    assert own["batch_size"] == record.config["batch_size"]


def test_long_preset_lengths_stay_inside_the_column(qtbot: QtBot) -> None:
    presets = PresetButtons()
    lengths = {"Quick": 570.0, "Standard": 7800.0, "Best": 29400.0}
    offered = [(Preset(title, "", {}, about_s), TrainingConfig()) for title, about_s in lengths.items()]
    presets.show_presets(offered, "Standard", "")
    area = factory.scroll_area(factory.panel(factory.column(presets, 1)))
    qtbot.addWidget(area)
    area.resize(248, 300)  # the narrowest column
    area.show()
    buttons = list[QPushButton](presets.findChildren(QPushButton))
    assert buttons[0].text() == "Quick\nabout 9 min 30 s"
    assert all(button.visibleRegion().boundingRect() == button.rect() for button in buttons)


def test_preset_buttons_stay_in_a_row_when_a_scroll_bar_narrows_the_column(qtbot: QtBot) -> None:
    presets = PresetButtons()
    qtbot.addWidget(presets)
    offered = [(Preset(title, "", {}, 60.0), TrainingConfig()) for title in ("Quick", "Standard", "Best")]
    presets.show_presets(offered, "Standard", "")
    presets.resize(400, 200)
    presets.show()
    buttons = list[QPushButton](presets.findChildren(QPushButton))
    assert {button.width() for button in buttons} == {(400 + 8) // 3 - 8} and len(
        {button.y() for button in buttons}
    ) == 1
    assert presets.heightForWidth(388) == presets.heightForWidth(400)  # else the scroll bar comes and goes for ever


def test_narrowest_column_shows_whole_settings_beside_the_scroll_bar(qtbot: QtBot, session: Session) -> None:
    page = show_alone(qtbot, session, TrainPage)
    page._splitter.setSizes([0, 2000])
    content = page.setup.parentWidget()
    viewport = content.parentWidget() if content is not None else None
    assert content is not None and viewport is not None
    page.setup.settings.set_open(True)
    qtbot.waitUntil(lambda: content.height() > viewport.height(), timeout=LONG_MS)
    assert content.width() == viewport.width()
