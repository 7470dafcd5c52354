"""Recolour generated sprites: as drawn, in the palette of the training sprites, or in a chosen palette."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Progress
from studio.data.colour.constraints import UNCONSTRAINED, Constraints
from studio.data.colour.palette import Palette
from studio.data.colour.pixel_art import PixelStyle, to_pixel_art
from studio.data.colour.quantizing import NO_DITHER, map_to_palette

_BATCH_SIZE = 64


@dataclass(frozen=True, eq=False)
class ColourMode:
    """Settings for recolouring generated sprites."""

    true_pixels: bool = True  # reduce colours and alpha to pixel art; False leaves sprites as drawn
    palette: Palette | None = None  # replaces the training sprites' palette
    dither: str = NO_DITHER  # one of quantizing.DITHERS, for `palette`


def recolour_sprites(
    drawn: Rgba,
    labels: NDArray[np.int64],
    style: PixelStyle,
    choice: ColourMode,
    keep: NDArray[np.bool_] | None = None,
    constraints: Constraints = UNCONSTRAINED,
) -> Generator[Progress, None, Rgba]:
    """Recolour sprites, uint8 [N, S, S, 4], of classes int64 [N], and apply the constraints.

    style: pixel style of the training sprites. choice: how to recolour. keep: bool [N, S, S], pixels that stay
    unchanged. Yields Progress. Raises BadInputError for a palette without visible colours.
    """
    if not choice.true_pixels:
        return constraints.apply(drawn, keep)
    if constraints.tiles is not None:  # matching tiles need equal colours, so recolour all tiles as one picture
        layout = constraints.tiles.layout(drawn.shape[1])
        whole = layout.join(drawn), np.zeros(1, np.int64), style.merged(labels[labels >= 0])
        coloured = _in_palette(*whole, choice, None if keep is None else layout.join(keep))
        return constraints.apply(layout.split(coloured), keep)
    parts: list[Rgba] = []
    for start in range(0, len(drawn), _BATCH_SIZE):
        part = slice(start, start + _BATCH_SIZE)
        parts.append(_in_palette(drawn[part], labels[part], style, choice, None if keep is None else keep[part]))
        yield Progress(min(part.stop, len(drawn)), len(drawn), "sprites coloured")
    return constraints.apply(np.concatenate(parts), keep) if parts else drawn


def _in_palette(
    drawn: Rgba, labels: NDArray[np.int64], style: PixelStyle, choice: ColourMode, keep: NDArray[np.bool_] | None
) -> Rgba:
    if choice.palette is None:
        return to_pixel_art(drawn, labels, style, keep)
    if choice.dither == NO_DITHER:
        found = to_pixel_art(drawn, labels, dataclasses.replace(style, palette=choice.palette.visible()))
    else:  # dither flat colours: dithering the drawing itself would give noise
        found = map_to_palette(to_pixel_art(drawn, labels, style), choice.palette, choice.dither)
    return found if keep is None else np.where(keep[..., None], drawn, found)
