"""Recolour imported sprites by the user's edits, and edit their colours."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.data.edits import Edits, SpriteEdit
from studio.data.files.scratch import ScratchBuffer
from studio.data.images.canvas import OPAQUE, as_rgba, as_uint32, sprite_slices
from studio.data.import_result import ReadSprites
from studio.data.importing.edit_changes import EditChange, SpriteChange

_BATCH_PIXELS = 1 << 18  # pixels


class SpriteRecolouring(SpriteChange):
    """Changes the colours of imported sprites."""

    noun = "sprites recoloured"

    def __init__(
        self,
        before: Edits | EditChange,
        read: ReadSprites,
        shown: Rgba,
        indices: Sequence[int],
        recolour: Callable[[Rgba], Rgba],
    ) -> None:
        """Create a change of the sprites at `indices`. See SpriteChange.

        shown: imported sprites, uint8 [N, S, S, 4]. recolour: returns recoloured sprites and keeps alpha.
        """
        super().__init__(before, read, indices)
        self._shown, self._recolour = shown, recolour

    def _changed(self, index: int, row: int, old: SpriteEdit, folder: Mapping[str, SpriteEdit]) -> SpriteEdit:
        """Map colours of the file to new colours, pixel by pixel: fixes may have changed the shown sprite."""
        shown, original = self._shown[index], self._read.sprites.rgba[row]
        new = self._recolour(shown)
        changes = (shown[..., :3] != new[..., :3]).any(-1) & (original[..., 3] > 0)
        pairs = np.unique(np.concatenate([original[changes][:, :3], new[changes][:, :3]], 1), axis=0)
        colours = {**old.colours, **{_code(pair[:3]): _code(pair[3:]) for pair in pairs}}
        return msgspec.structs.replace(old, colours={code: to for code, to in colours.items() if code != to})


def recolour_edited(rgba: Rgba, edits: Mapping[int, SpriteEdit], folder: Path | None) -> Generator[Event, None, Rgba]:
    """Return a copy of sprites, uint8 [N, S, S, 4], with the new colours of `edits`, by index. Yields Progress.

    folder: for a scratch file, if the sprites are many. Raises OSError.
    """
    with closing(ScratchBuffer(folder)) as result:
        for part in sprite_slices(rgba, pixels=_BATCH_PIXELS):
            changed = rgba[part].copy()
            for index in range(part.start, part.stop):
                if index in edits:
                    changed[index - part.start] = replace_colours(changed[index - part.start], edits[index].colours)
            result.add(changed)
            yield Progress(part.stop, len(rgba), "sprites recoloured")
        return result.array().reshape(rgba.shape)


def replace_colours(rgba: Rgba, colours: Mapping[str, str]) -> Rgba:
    """Return a copy of uint8 [..., 4] with other colours and equal alpha. colours: new hex code by hex code."""
    old, new = (as_uint32(_opaque(codes)) for codes in (colours.keys(), colours.values()))
    order = old.argsort()
    pixels = as_uint32(rgba)
    found = order[np.searchsorted(old, pixels | OPAQUE, sorter=order).clip(max=len(old) - 1)]
    is_old = (old[found] == (pixels | OPAQUE)) & (rgba[..., 3] > 0)
    return as_rgba(np.where(is_old, (new[found] & ~OPAQUE) | (pixels & OPAQUE), pixels))


def _opaque(codes: Iterable[str]) -> Rgba:
    return np.array([[*bytes.fromhex(code), 255] for code in codes], np.uint8)


def _code(colour: NDArray[np.uint8]) -> str:
    return colour.tobytes().hex()
