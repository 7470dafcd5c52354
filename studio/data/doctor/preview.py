"""Preview the fixes that change pixels, without importing the sprites again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Event, Events
from studio.core.formatting import count, number
from studio.data.colour.colour_counts import colours_per_sprite
from studio.data.doctor.findings import Fix
from studio.data.doctor.fixes import PIXEL_OPTIONS, change_sprites, pixel_changes
from studio.data.images.canvas import clear_magenta, crop_transparent, paste_centred, undo_upscaling, visible_bounds
from studio.data.import_result import ReadSprites
from studio.data.options import ImportOptions

_FIRST = 8  # sprites to preview at once; reducing colours takes long
READ_OPTIONS = ("clear_magenta", "shrink")  # change pixels during reading


def changes_pixels(fix: Fix, options: ImportOptions) -> bool:
    """Return whether a fix changes pixels of sprites. options: the import's options."""
    names = {*PIXEL_OPTIONS, *READ_OPTIONS}
    return any(name in names and getattr(options, name) != value for name, value in fix.changes.items())


@dataclass(frozen=True, eq=False)
class FixPreviewed(Event):
    """Sprites of a preview after the fix: the first few, or all in the last event."""

    rgba: Rgba  # uint8 [k, S, S, 4]


def preview_fix(read: ReadSprites, indices: NDArray[np.int64], options: ImportOptions, fix: Fix) -> Events:
    """Preview how imported sprites look after a fix: yields Progress, and FixPreviewed for few and then all sprites.

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
    changes = yield from pixel_changes(read.sprites.rgba, wanted)
    for end in sorted({min(_FIRST, len(shown)), len(shown)}):
        changed = shown[:end]
        for change in changes:
            changed = yield from change_sprites(changed, change, None)
        yield FixPreviewed(changed)


def changed_pixels(before: Rgba, after: Rgba) -> NDArray[np.int64]:
    """Count the changed pixels of each sprite of uint8 [n, S, S, 4]: int64 [n]."""
    return np.asarray(np.count_nonzero((before != after).any(-1), axis=(1, 2)))


def describe_change(before: Rgba, after: Rgba, changed: int) -> str:
    """Describe the main change of a sprite: '143 → 61 colours'. changed: number of changed pixels."""
    pairs = (
        ([_soft_pixels(before), _soft_pixels(after)], "semi-transparent"),
        ([_size(before), _size(after)], "pixels"),
        ([_colours(before), _colours(after)], "colours"),
    )
    different = (f"{old} → {new} {words}" for (old, new), words in pairs if old != new)
    return next(different, f"{count(changed, 'pixel')} changed" if changed else "This sprite does not change")


def _soft_pixels(sprite: Rgba) -> str:
    return number(int(np.count_nonzero((sprite[..., 3] > 0) & (sprite[..., 3] < 255))))


def _colours(sprite: Rgba) -> str:
    return number(int(colours_per_sprite(sprite[None])[0]))


def _size(sprite: Rgba) -> str:
    left, top, right, bottom = visible_bounds(sprite) or (0, 0, 0, 0)
    return f"{right - left} × {bottom - top}"


def _clear_magenta(sprite: Rgba) -> None:
    """Make magenta transparent in the picture on the canvas, in place, unless the picture has transparent pixels."""
    left, top, right, bottom = visible_bounds(sprite) or (0, 0, 0, 0)
    clear_magenta(sprite[top:bottom, left:right])
