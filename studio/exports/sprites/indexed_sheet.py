"""A sheet as PNG with a palette, for tools and machines that count in colour numbers, and the JSON beside it.

Number 0 is transparent, then comes the palette in its order. A half-transparent colour has a number of its own, with
its alpha in the chunk tRNS.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from studio.core import pictures
from studio.core.errors import ExportError
from studio.exports import sheets
from studio.exports.png import encode_indexed_png, sheet_layout
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.indexing import MOST_COLOURS, index_colours, visible_colours


class IndexedSheet(SpriteExport):
    name = "indexed_sheet"
    title = "Indexed sheet (PNG with a palette, and JSON)"
    suffix = ".png"
    companions = (".json",)
    help = "One picture in the colours of the palette, in their order, for tools that count in colour numbers."
    order = 2

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        grid = sheet_layout(sprites.sprites, sprites.columns)
        found = index_colours(sprites.sprites, sprites.palette)
        if found is None:
            colours = len(visible_colours(sprites.sprites))
            title = f"The sprites have {colours:,} colours: a palette has room for {MOST_COLOURS} and transparent."
            raise ExportError(title, "Bring them into a palette first, or save a sheet that is not indexed.")
        picture = pictures.tile(found.indices[..., None], grid.columns)[..., 0]
        about = sheets.sheet_json(
            target.name, grid, sprites.named(), sprites.classes, sprites.about, sprites.durations_ms(), "I8"
        )
        return {target: encode_indexed_png(picture, found.table, sprites.about), target.with_suffix(".json"): about}

    def notes(self, sprites: SpriteSet) -> tuple[str, ...]:
        found, told = index_colours(sprites.sprites, sprites.palette), []
        if found is not None and sprites.palette is not None and found.extra_colours:
            told.append(f"Colours that the palette does not have come after its own: {found.extra_colours}.")
        if soft := int(np.count_nonzero(visible_colours(sprites.sprites) >> 24 < 255)):
            told.append(f"Half-transparent colours have numbers of their own: {soft}.")
        return tuple(told)
