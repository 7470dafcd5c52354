"""Find the runs, devices, models and sprites that a command line names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.cli.flags import setting_flags, typed_settings
from studio.cli.reporting import Reporter, run_job
from studio.core import paths
from studio.core.errors import UsageError
from studio.core.events import Notice
from studio.core.formatting import number
from studio.core.names import existing_path, nfc
from studio.data.import_result import SpritesImported
from studio.data.options import ImportOptions
from studio.engine.devices.types import Device
from studio.engine.runs.listing import remembered_runs, run_folders, runs_by_name
from studio.engine.runs.notes import display_name

if TYPE_CHECKING:
    from studio.engine.models.model import TrainedModel


def find_run(name: str) -> Path:
    """Return a run's folder by path, folder name or user's name. Raises UsageError if unknown or ambiguous."""
    typed = existing_path(name)
    if typed.name == "run.json":
        typed = typed.parent
    if (typed / "run.json").is_file():
        return typed
    wanted, runs = nfc(str(typed)), run_folders(remembered_runs())
    named = [path for path in runs if nfc(path.name) == wanted]
    named = named or [path for path in runs if nfc(display_name(path)) == wanted]
    if len(named) == 1:
        return named[0]
    if named:
        folders = ", ".join(str(path) for path in named)
        raise UsageError(f"{len(named)} runs are called {name!r}.", f"Give one by its folder: {folders}.")
    if typed.exists():
        raise UsageError(f"{name} is not a run.", "A run is a folder with a run.json in it; 'studio runs' lists all.")
    raise UsageError(f"There is no run {name!r}.", "'studio runs' lists all; a run can also be given by its folder.")


def find_runs(names: Sequence[str]) -> dict[str, Path]:
    """Return the folders of runs by display name. Raises UsageError."""
    return runs_by_name(map(find_run, names))


def find_device(args: argparse.Namespace, *, probe: bool = False) -> Device:
    """Return the device of --device; 'auto' chooses the fastest. probe: also measure it, unless it was measured.

    Raises UsageError for an unknown device, DeviceError for a device that does not work.
    """
    from studio.engine.devices import detection

    return detection.find_device(args.device, probe=probe)


def load_model(path: Path, args: argparse.Namespace, device: Device, reporter: Reporter) -> TrainedModel:
    """Load the model of a run from the checkpoint of --checkpoint. Raises RunError, UsageError, DeviceError."""
    from studio.engine.models import loading

    model = loading.load_model(path, args.checkpoint, device)
    for notice in model.notices:
        reporter.show(notice)
    return model


def read_sprites(args: argparse.Namespace, paths: Sequence[Path], reporter: Reporter) -> SpritesImported:
    """Import sprites with the import flags of the command line. Raises BadInputError, UsageError.

    Says which flags the window's import settings for these paths would take, where the settings differ.
    """
    options = import_options(args)
    if options.tile and options.sheets == "as they are":
        title = f"--tile {options.tile} has no effect: sheets are sliced only with --sheets."
        reporter.show(Notice("warning", title, "Add --sheets grid."))
    found = run_import(paths, options, reporter)
    _show_window_settings(paths, options, reporter)
    return found


def _show_window_settings(sources: Sequence[Path], options: ImportOptions, reporter: Reporter) -> None:
    from studio.data.importing.stored_options import StoredOptionsError, read_options

    try:
        stored = read_options(sources)
    except StoredOptionsError as error:
        reporter.show(Notice("warning", f"{error.title} The window opens the sprites without them.", error.hint))
        return
    if stored.changed() and stored != options:
        title = "The window opens these sprites with other import settings."
        reporter.show(Notice("info", title, f"To use them here: {setting_flags(stored.changed())}"))


def import_options(args: argparse.Namespace) -> ImportOptions:
    """Return the import options from the command line. Raises UsageError."""
    return ImportOptions(**typed_settings(args, ImportOptions))  # type: ignore[arg-type]


def print_excluded(found: SpritesImported, reporter: Reporter) -> None:
    """Print how many files an import excluded, and how many edits took effect or found no sprite, if any."""
    if moved := found.note_groups.get("moved", ()):
        reporter.print(f"Moved to another class: {number(len(moved))}. 'studio inspect' lists the sprites.")
    if recoloured := found.note_groups.get("recoloured", ()):
        reporter.print(f"Recoloured by you: {number(len(recoloured))}. 'studio inspect' lists the sprites.")
    lost = found.note_groups.get("lost moves", ())
    if lost and found.from_cache:  # otherwise the import says so
        reporter.print(f"Edits without a sprite: {number(len(lost))}. 'studio inspect' lists them.")
    if found.quarantine:
        canvas = f" --size {found.sprites.size}" if found.sprites.size != found.proposed_size else ""
        reporter.print(f"Excluded files: {number(len(found.quarantine))}. 'studio inspect{canvas}' lists the reasons.")


def run_import(sources: Sequence[Path], options: ImportOptions, reporter: Reporter) -> SpritesImported:
    """Import sprites through the import cache, with the user's edits. Raises BadInputError."""
    from studio.data.importing.class_moves import load_edits, notices_on_unfollowed
    from studio.data.importing.importing import import_sprites

    edits = load_edits(sources, options)
    for notice in notices_on_unfollowed(edits, options):
        reporter.show(notice)
    importing = import_sprites(sources, options, paths.cache(), edits)
    return run_job(importing, reporter, SpritesImported)
