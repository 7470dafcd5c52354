"""The job that imports sprites for the window, with the user's edits."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from studio.app.background.job_events import OnlySheets, StoredOptionsFollowed
from studio.core import paths
from studio.core.errors import BadInputError
from studio.core.events import Event, Events, Notice, Progress
from studio.data.edits import Edits, EditsError, save_edits
from studio.data.images.canvas import sprite_slices
from studio.data.import_result import SHEET_GROUPS
from studio.data.importing.class_moves import load_edits, notices_on_unfollowed
from studio.data.importing.edit_changes import EditChange
from studio.data.importing.importing import ImportOptions, NothingUsableError, SpritesImported, import_sprites
from studio.data.importing.stored_options import StoredOptionsError, read_options, store_options
from studio.data.sprites import Sprites

_BATCH_PIXELS = 1 << 20  # pixels


@dataclass(frozen=True)
class ImportState:
    """The paths, options and edits of an import.

    memory: whether the import follows the stored options of its paths, stores its own `options`, or neither.
    """

    paths: tuple[Path, ...] = ()
    options: ImportOptions = field(default_factory=ImportOptions)
    edits: Edits | EditChange | None = None  # None: load the edits from the files
    memory: Literal["follow", "store", "neither"] = "neither"

    def with_options(self, options: ImportOptions) -> ImportState:
        """Return this state with options that the user chose."""
        return replace(self, options=options, memory="store")

    def with_edits(self, edits: Edits | EditChange) -> ImportState:
        """Return this state with edits by the user."""
        return replace(self, edits=edits, memory="neither" if self.memory == "follow" else self.memory)

    def with_loaded(self, edits: Edits) -> ImportState:
        """Return this state after an import with `edits`, which loads no edits while the options ignore them."""
        is_unchanged = edits is self.edits or (self.edits is None and self.options.edits == "off")
        return self if is_unchanged else replace(self, edits=edits)


class SavedEdits:
    """Loads and saves the edits of the open folders. Used by import jobs, one at a time."""

    def __init__(self) -> None:
        self._saved: Edits = ()  # contents of the files after the last load or save

    def load(self, state: ImportState) -> Events:
        """Load the edits; a damaged file yields a Notice, and the import goes on without edits."""
        try:
            self._saved = load_edits(state.paths, state.options)
        except EditsError as error:
            self._saved = ()
            yield Notice("warning", f"{error.title} Sprites keep their files' classes.", error.hint)
        yield from notices_on_unfollowed(self._saved, state.options)

    @property
    def saved(self) -> Edits:
        """The edits as last loaded or saved."""
        return self._saved

    def save(self, edits: Edits) -> None:
        """Save the changes since the edits were last loaded or saved. Raises EditsError."""
        save_edits(self._saved, edits)
        self._saved = edits


def import_as_stored(state: ImportState, files: SavedEdits, open_sprites: Sprites | None = None) -> Events:
    """Import sprites as `import_with_edits` does, and follow the stored options if the state says so.

    Yields `StoredOptionsFollowed`, and a Notice if the stored options are damaged or no longer fit the files.
    """
    if state.memory != "follow":
        yield from import_with_edits(state, files, open_sprites)
        return
    stored, failed = ImportOptions(), list[BadInputError]()
    try:
        stored = read_options(state.paths)
    except StoredOptionsError as error:
        yield Notice("warning", f"{error.title} The sprites open with the usual settings.", error.hint)
    for options in dict.fromkeys((stored, stored.replace(palette=""), ImportOptions())):
        yield StoredOptionsFollowed(options)
        try:
            yield from import_with_edits(replace(state, options=options), files, open_sprites)
        except BadInputError as error:
            failed.append(error)
            continue
        if failed:
            yield Notice("warning", f"Some import settings of last time don't fit. {failed[0].title}", failed[0].hint)
        return
    raise failed[-1]


def import_with_edits(state: ImportState, files: SavedEdits, open_sprites: Sprites | None = None) -> Events:
    """Import sprites; save the edits and store the options once the import is done.

    If `open_sprites` have equal pixels, the imported sprites share the array: both have one object as `rgba`.
    Yields `OnlySheets` if the files contain only unsliced sheets.
    """
    edits = (yield from state.edits.resolve()) if isinstance(state.edits, EditChange) else state.edits
    if edits is None:
        yield from files.load(state)
        edits = files.saved
    try:
        with contextlib.closing(import_sprites(state.paths, state.options, paths.cache(), edits)) as events:
            for event in events:
                if isinstance(event, SpritesImported):
                    yield from _save(state, edits, files)
                if isinstance(event, SpritesImported) and open_sprites is not None:
                    sprites = yield from _with_shared_pixels(event.sprites, open_sprites)
                    yield replace(event, sprites=sprites)
                else:
                    yield event
    except NothingUsableError as error:
        yield _only_sheets(error, state)


def _save(state: ImportState, edits: Edits, files: SavedEdits) -> Events:
    """Save the user's edits, which raises EditsError, and options; yield a Notice if the options can't be stored."""
    if state.edits is not None:
        files.save(edits)
    if state.memory != "store":
        return
    try:
        store_options(state.paths, state.options)
    except OSError as error:
        title = f"The import settings can't be stored: {error.strerror or error}."
        yield Notice("warning", title, f"Free some space, or check the permissions of {paths.import_settings()}.")


def _with_shared_pixels(sprites: Sprites, before: Sprites) -> Generator[Event, None, Sprites]:
    """Return `sprites` with the pixel array of `before` if names and pixels are equal; else return `sprites`."""
    if sprites.names != before.names or sprites.rgba.shape != before.rgba.shape or sprites.stored != before.stored:
        return sprites
    if sprites.stored is None:  # otherwise one file holds options and edits
        for part in sprite_slices(sprites.rgba, pixels=_BATCH_PIXELS):
            if not np.array_equal(sprites.rgba[part], before.rgba[part]):
                return sprites
            yield Progress(part.stop, len(sprites), "sprites compared")
    return sprites.with_pixels(before.rgba, before.stored)


def _only_sheets(error: NothingUsableError, state: ImportState) -> Event:
    """Return an event if the files contain only unsliced sheets; else raise the error.

    Sprites that are too large for a canvas that the user chose are no sheets.
    """
    sheets = tuple(item for item in error.left_out if item.group in SHEET_GROUPS)
    if state.options.size and any(item.group == "wrong size" for item in sheets):
        raise error
    if not sheets or state.options.sheets != "as they are" or state.options.other_sizes == "leave out":
        raise error
    return OnlySheets(tuple(state.paths), sheets, error.sheet_summary, error.sheets, error.proposed_sets)
