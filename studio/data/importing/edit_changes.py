"""Change the user's edits to imported sprites: base classes for class moves, new colours and new names."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence

import msgspec
import numpy as np

from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.data.edits import Edits, SpriteEdit, with_edits
from studio.data.images.canvas import crop_transparent, undo_upscaling
from studio.data.import_result import ReadSprites

_PROGRESS_EVERY = 256  # sprites


def content_key(rgba: Rgba) -> str:
    """Return a hash of a sprite's visible pixels, 32 hex digits: the key of its edits.

    The canvas size and whole-number upscaling don't change the key; equal sprites share it.
    """
    pixels = np.ascontiguousarray(crop_transparent(undo_upscaling(rgba, 0)))
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=16)
    digest.update(pixels.data)
    return digest.hexdigest()


class EditChange(ABC):
    """Changes the user's edits of imported sprites."""

    def __init__(self, before: Edits | EditChange, read: ReadSprites) -> None:
        """Create a change. before: edits without the change. read: sprites as in the files, without edits."""
        self._before, self._read = before, read
        self._edits: Edits | None = None  # with the change, once computed

    def resolve(self) -> Generator[Event, None, Edits]:
        """Return the edits with this change; yields Progress. Edits without an effect are removed.

        The first call hashes the sprites, which takes long for many sprites.
        """
        if self._edits is None:
            before = (yield from self._before.resolve()) if isinstance(self._before, EditChange) else self._before
            self._edits = with_edits(before, (yield from self._changes(before)))
        return self._edits

    @abstractmethod
    def _changes(self, before: Edits) -> Generator[Event, None, list[dict[str, SpriteEdit]]]:
        """Return the new edits by key, in a dict per folder; yields Progress."""


class SpriteChange(EditChange):
    """Changes the user's edits to some imported sprites, sprite by sprite."""

    noun: str  # text of the progress: 'sprites moved'

    def __init__(self, before: Edits | EditChange, read: ReadSprites, indices: Sequence[int]) -> None:
        """Create a change. See EditChange. indices: positions of the imported sprites."""
        super().__init__(before, read)
        self._indices = list(indices)

    def _changes(self, before: Edits) -> Generator[Event, None, list[dict[str, SpriteEdit]]]:
        changes: list[dict[str, SpriteEdit]] = [{} for _ in before]
        sprites = self._read.sprites
        for done, index in enumerate(self._indices):
            if not done % _PROGRESS_EVERY:
                yield Progress(done, len(self._indices), self.noun)
            row = int(self._read.rows[index])
            name, key = sprites.names[row], content_key(sprites.rgba[row])
            number = next((number for number, each in enumerate(before) if each.holds(name)), 0)
            folder = before[number].sprites
            changed = self._changed(index, row, folder.get(key, SpriteEdit()), folder)
            changes[number][key] = msgspec.structs.replace(changed, name=name)
        return changes

    @abstractmethod
    def _changed(self, index: int, row: int, old: SpriteEdit, folder: Mapping[str, SpriteEdit]) -> SpriteEdit:
        """Return an imported sprite's new edit. row: index in the read sprites. folder: the folder's edits."""
