"""Drawn sprites in the colours that were asked for: as drawn, the data's own, or a palette's."""

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
from studio.data.pixels.corner_tiles import join_tiles, split_tiles

_AT_ONCE = 64  # sprites


@dataclass(frozen=True, eq=False)
class ColourMode:
    """What becomes of drawn sprites.

    true_pixels: make them pixel art (see `data.to_pixel_art`); without, they stay as drawn.
    palette: the one to take instead of that of the sprites learnt from. dither: one of snapping's DITHERS, with it.
    """

    true_pixels: bool = True
    palette: Palette | None = None
    dither: str = NO_DITHER


def recolour_sprites(
    drawn: Rgba,
    labels: NDArray[np.int64],
    style: PixelStyle,
    choice: ColourMode,
    keep: NDArray[np.bool_] | None = None,
    constraints: Constraints = UNCONSTRAINED,
) -> Generator[Progress, None, Rgba]:
    """Sprites uint8 [N, S, S, 4] as drawn, of classes int64 [N], in the chosen colours: the same shape.

    keep: bool [N, S, S], pixels that stay as they are, whatever the palette and the construction.
    Yields Progress after each part. Raises BadInputError for a palette in which nothing can be seen.
    """
    if not choice.true_pixels:
        return constraints.apply(drawn, keep)
    if constraints.corners:  # where tiles meet they have the same colours: they are coloured as one picture
        whole = join_tiles(drawn), np.zeros(1, np.int64), style.joined(labels)
        return constraints.apply(split_tiles(_in_palette(*whole, choice, None)))
    parts: list[Rgba] = []
    for start in range(0, len(drawn), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        parts.append(_in_palette(drawn[part], labels[part], style, choice, None if keep is None else keep[part]))
        yield Progress(min(part.stop, len(drawn)), len(drawn), "sprites coloured")
    return constraints.apply(np.concatenate(parts), keep) if parts else drawn


def _in_palette(
    drawn: Rgba,
    labels: NDArray[np.int64],
    style: PixelStyle,
    choice: ColourMode,
    keep: NDArray[np.bool_] | None,
) -> Rgba:
    if choice.palette is None:
        return to_pixel_art(drawn, labels, style, keep)
    if choice.dither == NO_DITHER:
        found = to_pixel_art(drawn, labels, dataclasses.replace(style, palette=choice.palette.visible()))
    else:  # patterns of flat colours are regular; of colours as drawn they would be noise
        found = map_to_palette(to_pixel_art(drawn, labels, style), choice.palette, choice.dither)
    return found if keep is None else np.where(keep[..., None], drawn, found)
