"""Save sprites as an indexed PNG sheet with JSON, for tools and machines that use palette indices.

Index 0 is transparent; the palette follows in its order. Each semi-transparent colour has an index, with its alpha in
the chunk tRNS.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from studio.core.errors import ExportError
from studio.core.formatting import count
from studio.exports.png import encode_indexed_png
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.indexing import MOST_COLOURS, index_colours, visible_colours
from studio.exports.sprites.sheet_plan import SheetPlan


class IndexedSheet(SpriteExport):
    name = "indexed_sheet"
    title = "Indexed sheet (PNG with a palette, and JSON)"
    suffix = ".png"
    companions = (".json",)
    help = "A PNG sheet that stores palette indices, in the order of the palette."
    order = 2

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        found = index_colours(sprites.sprites, sprites.palette)
        if found is None:
            colours = len(visible_colours(sprites.sprites))
            title = f"The sprites have {colours:,} colours; an indexed image has room for {MOST_COLOURS}."
            raise ExportError(title, "Reduce the colours first, or choose 'Sheet (PNG and JSON)'.")
        plan = SheetPlan.of(sprites)
        picture = plan.picture(found.indices[..., None])[..., 0]
        about = plan.json(target.name, sprites.about, "I8")
        return {target: encode_indexed_png(picture, found.table, sprites.about), target.with_suffix(".json"): about}

    def notes(self, sprites: SpriteSet) -> tuple[str, ...]:
        found, notes = index_colours(sprites.sprites, sprites.palette), []
        if found is not None and sprites.palette is not None and found.extra_colours:
            notes.append(f"{count(found.extra_colours, 'colour')} outside the palette added to its end.")
        if soft := int(np.count_nonzero(visible_colours(sprites.sprites) >> 24 < 255)):
            notes.append(f"{count(soft, 'semi-transparent colour')} with a separate index.")
        return tuple(notes)
