"""Preview the fixes that change pixels, without importing the sprites again."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Event
from studio.data.doctor.findings import Fix
from studio.data.doctor.fixes import PIXEL_OPTIONS, preview_changes
from studio.data.images.canvas import clear_magenta, crop_transparent, paste_centred, undo_upscaling, visible_bounds
from studio.data.import_result import ReadSprites
from studio.data.options import ImportOptions

_READ_OPTIONS = ("clear_magenta", "shrink")  # change pixels during reading


def changes_pixels(fix: Fix, options: ImportOptions) -> bool:
    """Whether a fix of an import with these options changes pixels of sprites."""
    names = {*PIXEL_OPTIONS, *_READ_OPTIONS}
    return any(name in names and getattr(options, name) != value for name, value in fix.changes.items())


def preview_fix(
    read: ReadSprites, indices: NDArray[np.int64], options: ImportOptions, fix: Fix
) -> Generator[Event, None, Rgba]:
    """Return imported sprites as they look after a fix: uint8 [n, S, S, 4]. Yields Progress.

    indices: int64 [n], positions of the sprites among the imported sprites. options: of the import. The canvas keeps
    its size; sprites with undone upscaling are smaller. Raises BadInputError for an unusable palette.
    """
    wanted = options.replace(**fix.changes)
    shown: Rgba = read.sprites.rgba[read.rows[indices]]
    for sprite in shown:
        if wanted.clear_magenta:
            _clear_magenta(sprite)
        if wanted.shrink != options.shrink:
            small = undo_upscaling(crop_transparent(sprite), wanted.shrink).copy()
            sprite[:] = 0
            paste_centred(small, sprite)
    return (yield from preview_changes(read.sprites.rgba, shown, wanted))


def _clear_magenta(sprite: Rgba) -> None:
    """Make magenta transparent in the picture on the canvas, in place, unless the picture has transparent pixels."""
    left, top, right, bottom = visible_bounds(sprite) or (0, 0, 0, 0)
    clear_magenta(sprite[top:bottom, left:right])
