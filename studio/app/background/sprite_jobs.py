"""The window's jobs about files that become sprites, and about their colours; see jobs.py."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.background.job_events import (
    ColourFound,
    FilesSaved,
    OnlySheets,
    PackedSeen,
    PaletteFound,
    PaletteLoaded,
    PictureRead,
    SheetSeen,
    SheetUnseen,
    StyleRead,
)
from studio.core import paths
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.events import Events, Notice
from studio.core.formatting import count
from studio.data.sprites import Sprites

if TYPE_CHECKING:
    from studio.data.colour.palette import Palette
    from studio.data.importing.importing import ImportOptions
    from studio.data.importing.sheet_preview import Sheet
    from studio.data.options import Grid


def run_checks(sprites: Sprites, options: ImportOptions) -> Events:
    """What deserves a look in the sprites themselves."""
    from studio.data.doctor.checks import run_checks

    yield from run_checks(sprites, options, paths.cache())


def read_picture(path: Path) -> Events:
    """The picture in a file, of whatever size."""
    from studio.data.importing.single_sprite import read_picture

    yield PictureRead(path, read_picture(path))


def open_sprites(sources: Sequence[Path], options: ImportOptions) -> Events:
    """Import sprites; where there are none, but uncut sheets, hand on those."""
    from studio.data.importing.importing import SHEET_GROUPS, NothingUsableError, import_sprites

    try:
        yield from import_sprites(sources, options, paths.cache())
    except NothingUsableError as error:
        sheets = tuple(item for item in error.left_out if item.group in SHEET_GROUPS)
        if not sheets or options.sheets != "as they are" or options.other_sizes == "leave out":
            raise
        yield OnlySheets(tuple(sources), sheets, error.sheets)


def read_for_model(sources: Sequence[Path], options: ImportOptions) -> Events:
    """Import sprites for a prediction, and warn about unusable files."""
    from studio.data.assemble import commonest
    from studio.data.importing.importing import SpritesImported, import_sprites

    with contextlib.closing(import_sprites(sources, options, paths.cache())) as events:
        for event in events:
            if isinstance(event, SpritesImported) and event.quarantine:
                title = f"No prediction for {count(len(event.quarantine), 'unusable file')}."
                yield Notice("warning", title, f"{commonest(event.quarantine)}.")
            yield event


def look_at_sheet(paths: Sequence[Path], name: str, grid: Grid | None = None) -> Events:
    """The sheet that an import of `paths` calls `name`, or why it can't be seen."""
    from studio.data.importing.sheet_preview import look_at_sheet

    try:
        yield SheetSeen((yield from look_at_sheet(paths, name, grid)))
    except BadInputError as error:
        yield SheetUnseen(error.title, error.hint)


def find_packed(sheet: Sheet, gap: int) -> Events:
    """The sprites of a packed sheet, or why there are none."""
    from studio.data.importing.sheet_preview import find_packed

    try:
        yield PackedSeen((yield from find_packed(sheet, gap)))
    except BadInputError as error:
        yield SheetUnseen(error.title, error.hint)


def find_palette(sprites: Sprites) -> Events:
    """The colours that a set of sprites uses most."""
    from studio.data.colour.colour_counts import count_colours

    yield PaletteFound(count_colours(sprites.rgba))


def find_colour(sprites: Sprites, colour: Rgba) -> Events:
    """The sprites that use a colour."""
    from studio.data.colour.colour_counts import find_sprites_with_colour

    yield ColourFound(sprites, colour, (yield from find_sprites_with_colour(sprites.rgba, colour)))


def load_palette(path: Path) -> Events:
    """A palette from a file, of whatever kind; one in which nothing can be seen is refused."""
    from studio.data.palettes.files import load_palette

    palette = load_palette(path)
    palette.visible()
    yield PaletteLoaded(path, palette)


def save_palette(path: Path, palette: Palette) -> Events:
    """Write a palette as what the suffix of `path` says."""
    from studio.data.palettes.files import save_palette

    yield FilesSaved((save_palette(path, palette, replace=True),))


def read_style(path: Path) -> Events:
    """The palette of the sprites that a run learns from."""
    from studio.engine.models.model import load_style
    from studio.engine.runs.folder import RunDir

    run = RunDir(path)
    yield StyleRead(path, load_style(run, run.record()).palette)
