"""The window's jobs about files that become sprites; see jobs.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.answers import OnlySheets, PackedSeen, SheetSeen, SheetUnseen
from studio.core import places
from studio.core.errors import BadInputError
from studio.core.events import Events
from studio.data.sprites import Sprites

if TYPE_CHECKING:
    from studio.data.grids import Grid
    from studio.data.importing import ImportOptions
    from studio.data.sheets import Sheet


def import_sprites(paths: Sequence[Path], options: ImportOptions) -> Events:
    """Dropped files and folders become sprites."""
    from studio.data.importing import import_sprites

    yield from import_sprites(paths, options, places.cache())


def examine(sprites: Sprites, options: ImportOptions) -> Events:
    """What deserves a look in the sprites themselves."""
    from studio.data.examining import examine

    yield from examine(sprites, options, places.cache())


def open_sprites(paths: Sequence[Path], options: ImportOptions) -> Events:
    """Import sprites; where there are none, but uncut sheets, hand on those."""
    from studio.data.importing import SHEET_GROUPS, NothingUsableError

    try:
        yield from import_sprites(paths, options)
    except NothingUsableError as error:
        sheets = tuple(item for item in error.left_out if item.group in SHEET_GROUPS)
        if not sheets or options.sheets != "as they are" or options.other_sizes == "leave out":
            raise
        yield OnlySheets(tuple(paths), sheets, error.sheets)


def look_at_sheet(paths: Sequence[Path], name: str, grid: Grid | None = None) -> Events:
    """The sheet that an import of `paths` calls `name`, or why it can't be seen."""
    from studio.data.sheets import look_at_sheet

    try:
        yield SheetSeen((yield from look_at_sheet(paths, name, grid)))
    except BadInputError as error:
        yield SheetUnseen(error.title, error.hint)


def find_packed(sheet: Sheet, gap: int) -> Events:
    """The sprites of a packed sheet, or why there are none."""
    from studio.data.sheets import find_packed

    try:
        yield PackedSeen((yield from find_packed(sheet, gap)))
    except BadInputError as error:
        yield SheetUnseen(error.title, error.hint)
