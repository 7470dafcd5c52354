"""Shows every dialog of the program, with the texts that need the most room."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog

import studio.app
from studio.app import dialogs, theme
from studio.app.background.model_jobs import SavedModel, SpriteSelection
from studio.app.check_dialog import BuildDialog, CheckDialog
from studio.app.guide_window import GuideWindow
from studio.app.notice_panel import MessageHistory
from studio.app.pages.export_dialog import ExportDialog
from studio.app.pages.generate.given_tiles import GivenTilesDialog
from studio.app.pages.recolour_dialog import RecolourDialog
from studio.app.pages.runs.free_dialog import FreeSpaceDialog
from studio.app.pages.sprites.attribute_dialogs import RenameDialog, ValueDialog
from studio.app.pages.sprites.class_menu import ClassDialog
from studio.app.settings_dialog import SettingsDialog
from studio.app.widgets.sprites.large_view import LargeView
from studio.app.window import Window
from studio.core import paths
from studio.core.events import Check, Exported, Verified
from studio.data.colour.ramps import find_ramps
from studio.data.tiles.layout import TileSetSpec
from studio.engine.check.findings import BuildChosen, CheckDone, Finding
from studio.engine.runs.maintenance.disk_use import CLEANUP_KINDS, Removable, SpaceFound
from tests.app.conftest import click, endless

_LONG = Path("/home/somebody/Pictures/a rather long name of a folder for sprites/and another/model.safetensors")


def dialog_classes() -> set[type[QDialog]]:
    """Return the program's dialogs, except those of the system."""
    for module in pkgutil.walk_packages(studio.app.__path__, "studio.app."):
        importlib.import_module(module.name)
    known, found = [QDialog], set[type[QDialog]]()
    while known:
        for kind in known.pop().__subclasses__():
            known.append(kind)
            if kind.__module__.startswith("studio.") and not issubclass(kind, QFileDialog):
                found.add(kind)
    return {kind for kind in found if not kind.__subclasses__()}


def every_dialog(window: Window) -> Iterator[tuple[str, QDialog]]:
    """Show one dialog after the other, some at several stages, and name the stage. The window has open sprites."""
    session, app = window.session, QApplication.instance()
    assert isinstance(app, QApplication)
    for made in (
        GuideWindow(window), SettingsDialog(session, theme.apply(app, window_scheme()), window),
        FreeSpaceDialog(session, session.runs.runs[:1], window), MessageHistory(window.notices.history, window),
        ClassDialog(window, ["item/sword"], 1_234), RecolourDialog(window, session, _some_sprites(window)),
        ValueDialog(window, {"element": ["fire"]}, 1_234), RenameDialog(window, "element", "fire", ["element"]),
        GivenTilesDialog(window, session, TileSetSpec("corner", ("item/sword", "b", "c", "transparent")), 16),
    ):  # fmt: skip
        made.open()
        yield "", made
        yield from _more_stages(made)
        _delete(made)
    yield from _checks(window)
    yield from _exports(window)
    yield from _verifies(window)
    grid = window.sprites.grid
    window.show_page("sprites")
    grid.go_to_row(0)
    grid.open_large()
    view = window.findChild(LargeView)
    assert view is not None
    yield "", view
    _delete(view)


def _some_sprites(window: Window) -> SpriteSelection:
    sprites = window.session.open_sprites.sprites
    assert sprites is not None
    return SpriteSelection(sprites.rgba[:20], sprites.names[:20], {})


def window_scheme() -> theme.Scheme:
    """Return the scheme that is shown."""
    return "dark" if theme.colours().dark else "light"


def _more_stages(dialog: QDialog) -> Iterator[tuple[str, QDialog]]:
    match dialog:
        case SettingsDialog():
            dialog.runs_error.show_reason(f"{_LONG} can't be written: the disk is read-only.")
            yield "error", dialog
            dialog.show_keys()
            yield "keys", dialog
        case FreeSpaceDialog():
            items = [Removable(kind.name, None, _LONG, 12_345_678_901) for kind in CLEANUP_KINDS]
            dialog._on_found(SpaceFound(tuple(items), (_LONG,)))
            yield "found", dialog
        case ClassDialog():
            dialog.field.setText("a/" * 9)
            click(dialog.move_button)
            yield "error", dialog
        case RecolourDialog():
            others = find_ramps(np.random.default_rng(0).integers(0, 256, (64, 3), np.uint8))
            dialog._on_ramps_found(dialog._chosen.sprites, others, others)
            yield "found", dialog


def _checks(window: Window) -> Iterator[tuple[str, QDialog]]:
    with patch("studio.app.check_dialog.check_system", endless):
        dialog = CheckDialog(window.session.job_queue, window)
    dialog.open()
    yield "busy", dialog
    problem = Finding("x", "Graphics card", "problem", f"{_LONG} is not used. " * 3, f"See {_LONG}. " * 4)
    good, done = Finding("packages", "Packages", "good", "All fit."), CheckDone(True, 4, 0)
    for event in (good, BuildChosen("cu126", "cpu"), *(4 * [problem]), done):
        dialog._on_event(event)
    yield "found", dialog
    builds = BuildDialog(BuildChosen("cu126", "cpu"), dialog)
    builds.open()
    yield "", builds
    _delete(builds)
    _delete(dialog)


def _exports(window: Window) -> Iterator[tuple[str, QDialog]]:
    session, model = window.session, SavedModel(paths.runs() / "run", "best")
    dialog = ExportDialog(session, model, _LONG.stem * 3, "generator", session.catalog.devices[0], window)
    dialog.open()
    yield "", dialog
    dialog.path.set_text(str(Path(__file__) / _LONG.name))
    click(dialog.start)
    yield "error", dialog
    dialog.path.set_text(str(paths.runs() / "model.safetensors"))
    with patch.object(session.inference, "export"):
        click(dialog.start)
    yield "writing", dialog
    session.inference.exported.emit(
        Exported((_LONG,), 1e-7, {"Python": "import torch\n" * 40}, 12_345_678, (_LONG, _LONG))
    )
    yield "done", dialog
    _delete(dialog)


def _verifies(window: Window) -> Iterator[tuple[str, QDialog]]:
    inference = window.session.inference
    with patch.object(inference, "verify"):
        dialog = dialogs.VerifyDialog(window.session, _LONG, window)
    dialog.open()
    yield "busy", dialog
    checks = [Check(f"The run {_LONG.stem!r} is in the studio's folder. " * times, True) for times in (1, 3)]
    inference.verified.emit(Verified(_LONG, tuple(checks)))
    yield "done", dialog
    _delete(dialog)


def _delete(dialog: QDialog) -> None:
    dialog.reject()
    QCoreApplication.sendPostedEvents(dialog, QEvent.Type.DeferredDelete)
