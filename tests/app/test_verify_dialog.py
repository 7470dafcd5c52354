"""Provenance: the licence, the generation details in saved images, and the verify dialog."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from studio.app.background.model_jobs import SavedModel
from studio.app.dialogs import VerifyDialog
from studio.app.state.sprites.rights import load_rights
from studio.app.window import Window
from studio.core.errors import BadInputError
from studio.core.events import Verified
from studio.data.rights import Rights
from studio.engine.sampling.settings import GenerateSettings
from studio.exports import png
from tests.app.conftest import LONG_MS, click, cpu_of, open_sprites, wait_idle


def verified(
    qtbot: QtBot, window: Window, path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[VerifyDialog, Verified]:
    """Verify a file with the menu's action and return the dialog."""
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *args: (str(path), ""))
    with qtbot.waitSignal(window.session.inference.verified, timeout=LONG_MS) as signal:
        window.menus.verify.trigger()
    dialog = window.findChildren(VerifyDialog)[-1]
    assert signal.args
    return dialog, signal.args[0]


def save_new(qtbot: QtBot, window: Window, run: Path, folder: Path) -> Path:
    """A new sprite of a run, saved from the Generate page."""
    inference = window.session.inference
    with qtbot.waitSignal(inference.generated, timeout=LONG_MS):
        inference.generate(SavedModel(run, "last"), cpu_of(window.session), GenerateSettings(count=2))
    picked = window.generate.results.to_save()
    assert picked is not None
    with qtbot.waitSignal(window.session.saving.saved, timeout=LONG_MS) as saved:
        window.session.saving.save_files(folder, picked)
    assert saved.args
    return Path(saved.args[0][0])


def test_a_saved_sprite_is_verified_and_a_change_is_detected(
    qtbot: QtBot, own_run: Path, window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.show_page("generate")
    path = save_new(qtbot, window, own_run, tmp_path)
    dialog, found = verified(qtbot, window, path, monkeypatch)
    assert [check.holds for check in found.checks] == [True] * 4  # the run is found in the studio's folder
    assert dialog.verdict.text() == f"{path.name} is unchanged" and dialog.checks.rowCount() >= 4
    click(dialog.close_button)
    path.write_bytes(path.read_bytes() + b"\0")
    dialog, found = verified(qtbot, window, path, monkeypatch)
    assert dialog.verdict.text() == f"{path.name} has changed" and not found.holds
    click(dialog.close_button)


def test_an_unverifiable_file_shows_an_error(
    qtbot: QtBot, window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *args: (str(tmp_path / "notes.txt"), ""))
    with qtbot.waitSignal(window.session.failed, timeout=LONG_MS) as failed:
        window.menus.verify.trigger()
    assert failed.args and "contain no provenance" in failed.args[0].title
    qtbot.waitUntil(lambda: not any(dialog.isVisible() for dialog in window.findChildren(VerifyDialog)))


def test_generation_details_can_be_omitted(qtbot: QtBot, own_run: Path, window: Window, tmp_path: Path) -> None:
    window.show_page("generate")
    window.session.settings.set_saves_details(False)
    path = save_new(qtbot, window, own_run, tmp_path)
    with pytest.raises(BadInputError, match="does not say"):
        png.read_provenance(path)


def test_a_kept_sprite_still_knows_its_model(qtbot: QtBot, own_run: Path, window: Window, tmp_path: Path) -> None:
    window.show_page("generate")
    path = save_new(qtbot, window, own_run, tmp_path)
    results = window.generate.results
    results.grid.select([1])
    click(results.buttons.keep)
    results.kept_tab.click()
    picked = results.to_save()
    assert picked is not None
    with qtbot.waitSignal(window.session.saving.saved, timeout=LONG_MS) as saved:
        window.session.saving.save_files(tmp_path, picked)
    assert saved.args and png.read_provenance(saved.args[0][0]) == png.read_provenance(path)


def test_rights_are_remembered_with_the_files_and_kept_with_the_run(
    qtbot: QtBot, opened: Window, sprite_folder: Path, tmp_path: Path
) -> None:
    session, form = opened.session, opened.sprites.summary.rights
    form.set_config(Rights("CC BY 4.0", "me"))
    form.changed.emit()
    (tmp_path / "others").mkdir()
    png.save_files(tmp_path / "others", session.open_sprites.result.sprites.rgba[:9])  # type: ignore[union-attr]
    open_sprites(qtbot, session, tmp_path / "others")
    assert form.config() == load_rights(session.settings, session.open_sprites.paths, {}) == Rights()
    open_sprites(qtbot, session, sprite_folder)
    assert form.config() == Rights("CC BY 4.0", "me")
    session.setup.choose_parent(None)
    assert session.setup.config is not None
    session.setup.set_config(session.setup.config.replace(steps=2, width=16, batch_size=4))
    session.setup.start()
    wait_idle(qtbot, session)
    assert session.training.path is not None
    origin = json.loads((session.training.path / "run.json").read_text())["data_origin"]
    assert (origin["licence"], origin["credits"]) == ("CC BY 4.0", "me")
