"""Check the description of a sheet against its picture and slice the described sprites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.atlases.base import Atlas, Box, Region
from studio.data.files.source_files import UnreadableFile
from studio.data.images.canvas import as_rgba, as_uint32, clear_hidden, upscaling_factor
from studio.data.images.decoding import LARGEST_SIDE
from studio.data.options import MAX_SHEET_SPRITES
from studio.data.sheets.grids import background_pixel

_MOST_OVERLAP = 4  # area of all boxes / area of the picture; a larger ratio means a decompression bomb
_MOST_RESTORED = 16 * LARGEST_SIDE**2  # pixels of all sprites after restoring trimmed borders
_NEARLY = 0.75  # share of the picture's width and height: a larger box is the whole picture
_EXTRUDED = 2  # pixels around a box: packers fill them with copies of the box's edge


@dataclass(frozen=True, eq=False, slots=True)
class SkippedRegion:
    """A region of a described sheet that can't be sliced, with the reason."""

    number: int  # index of the region in the description
    group: str  # a name of QUARANTINE_GROUPS
    reason: str


@dataclass(frozen=True, eq=False, slots=True)
class DescribedSheet:
    """A sheet with the usable regions (sprites) from its description file."""

    rgba: Rgba  # uint8 [H, W, 4], straight alpha, colour zeroed under alpha 0
    source: str  # printable name of the description
    regions: dict[int, tuple[Region, Box]]  # region and box inside the picture, by the region's index
    problems: Sequence[SkippedRegion]
    remark: str  # sentence about a mismatch between description and picture; '' without

    @classmethod
    def of(cls, rgba: Rgba, atlas: Atlas) -> Self:
        """Check a sheet, uint8 [H, W, 4], against its description. Raises UnreadableFile if no region is usable."""
        if len(atlas.regions) > MAX_SHEET_SPRITES:
            words = f"lists {len(atlas.regions):,} frames: too many to be read"
            raise UnreadableFile("refused", f"{_source(atlas)} {words}")
        rgba = _straight(rgba) if atlas.premultiplied else rgba.copy()
        if atlas.clear_colour is not None:
            rgba[(rgba[..., :3] == atlas.clear_colour).all(axis=-1), 3] = 0
        clear_hidden(rgba)
        height, width = rgba.shape[:2]
        fitting, remark = _at_size_of(rgba, atlas)
        found: dict[int, tuple[Region, Box]] = {}
        problems = []
        for number, region in enumerate(fitting):
            box = _filled(region, width, height)
            if box is not None and box.inside(width, height) and region.turns is not None:
                if not region.may_be_empty or rgba[box.y : box.y + box.h, box.x : box.x + box.w, 3].any():
                    found[number] = region, box
                continue
            group, reason = "unreadable", f"lies outside the sheet of {width} x {height} pixels"
            if box is None:
                reason = "its position in the sheet is missing or invalid"
            elif box.inside(width, height):
                group, reason = "unsupported", "is rotated by an unusual angle: export the sheet without rotation"
            problems.append(SkippedRegion(number, group, reason))
        if not found:
            first_reason = problems[0].reason if problems else "is empty"
            raise UnreadableFile("unreadable", f"{_source(atlas)} describes no usable sprite: the first {first_reason}")
        if sum(box.w * box.h for box in {box for _, box in found.values()}) > _MOST_OVERLAP * height * width:
            words = f"describes frames that cover the picture more than {_MOST_OVERLAP} times"
            raise UnreadableFile("refused", f"{_source(atlas)} {words}")
        if sum(_pixels(region, box) for region, box in found.values()) > _MOST_RESTORED:
            raise UnreadableFile("refused", f"{_source(atlas)} describes frames that are too large")
        return cls(rgba, atlas.source, found, problems, remark)

    @property
    def is_one_sprite(self) -> bool:
        """Whether a single box holds all foreground and nearly the whole picture."""
        box, *others = {box for _, box in self.regions.values()}
        if others or self.problems:
            return False
        height, width = self.rgba.shape[:2]
        return box.w >= _NEARLY * width and box.h >= _NEARLY * height and not self._outside(0).any()

    def sprites(self) -> Iterator[tuple[int, Rgba]]:
        """Yield each region's index and sprite: uint8 [h, w, 4], unrotated, with trimmed borders restored."""
        for number, (region, box) in self.regions.items():
            cut = self.rgba[box.y : box.y + box.h, box.x : box.x + box.w]
            pixels, canvas, place = np.rot90(cut, region.turns or 0), _canvas(region, box), region.place
            if canvas is None or place is None:
                yield number, pixels.copy()
                continue
            restored = np.zeros((canvas[1], canvas[0], 4), np.uint8)
            restored[place.y : place.y + place.h, place.x : place.x + place.w] = pixels
            yield number, restored

    def unused_share(self) -> float:
        """Return the share of foreground pixels outside all boxes and extruded edges."""
        pixels = as_uint32(self.rgba)
        foreground = int(np.count_nonzero(pixels != background_pixel(pixels)))
        return int(np.count_nonzero(self._outside(_EXTRUDED))) / max(1, foreground)

    def without_regions(self) -> Rgba:
        """Return the picture with all boxes erased to the background: uint8 [H, W, 4]."""
        pixels = as_uint32(self.rgba)
        return as_rgba(np.where(self._outside(0), pixels, np.uint32(background_pixel(pixels))))

    def _outside(self, around: int) -> NDArray[np.bool_]:
        """Return the foreground pixels more than `around` pixels away from every box: bool [H, W]."""
        pixels = as_uint32(self.rgba)
        outside: NDArray[np.bool_] = pixels != background_pixel(pixels)
        for _, box in self.regions.values():
            rows = slice(max(0, box.y - around), box.y + box.h + around)
            outside[rows, max(0, box.x - around) : box.x + box.w + around] = False
        return outside


def _source(atlas: Atlas) -> str:
    return atlas.source if "/" in atlas.source else f"{atlas.source} beside it"


def _straight(rgba: Rgba) -> Rgba:
    """Convert premultiplied RGBA, uint8 [H, W, 4], to straight alpha; unchanged if a colour exceeds its alpha."""
    colour, alpha = rgba[..., :3].astype(np.uint16), rgba[..., 3:].astype(np.uint16)
    result = rgba.copy()
    if not ((colour > alpha) & (alpha > 0)).any():
        result[..., :3] = (colour * 255 + alpha // 2) // np.maximum(alpha, 1)
    return result


def _at_size_of(rgba: Rgba, atlas: Atlas) -> tuple[Sequence[Region], str]:
    """Return the regions scaled to the picture's size, and a remark if the sizes differ. Raises UnreadableFile."""
    height, width = rgba.shape[:2]
    size, boxes = atlas.size, [region.box for region in atlas.regions if region.box is not None]
    is_known = size is not None and min(size) > 0 and size != (width, height)
    if size is None or not is_known or not all(box.inside(*size) for box in boxes):
        return atlas.regions, ""
    words = f"is {width} x {height} pixels, but {_source(atlas)} describes {size[0]} x {size[1]}"
    factor = Fraction(width, size[0])
    if _is_extended(rgba, size, factor) or factor != Fraction(height, size[1]):
        return atlas.regions, f"{words}: frames were used unscaled: check that they fit"
    if any(number % factor.denominator for region in atlas.regions for number in _numbers(region)):
        raise UnreadableFile("unreadable", f"{words}, and scaled frames have fractions of pixels: export both again")
    return [_scaled(region, factor) for region in atlas.regions], f"{words}: frames were scaled by {factor}"


def _is_extended(rgba: Rgba, size: tuple[int, int], factor: Fraction) -> bool:
    """Return whether the canvas, but not the drawing, grew by `factor` since the description. size: width, height."""
    enlarged = factor.denominator == 1 and upscaling_factor(rgba) % factor.numerator == 0
    empty = not rgba[size[1] :, :, 3].any() and not rgba[:, size[0] :, 3].any()
    return factor > 1 and empty and not enlarged


def _numbers(region: Region) -> list[int]:
    boxes = [box for box in (region.box, region.place) if box is not None]
    return [*(region.whole or ()), *(number for box in boxes for number in (box.x, box.y, box.w, box.h))]


def _scaled(region: Region, factor: Fraction) -> Region:
    """Return a region with positions and sizes multiplied by `factor`; all products must be integers."""

    def scaled(box: Box | None) -> Box | None:
        return box and Box(*(int(number * factor) for number in (box.x, box.y, box.w, box.h)))

    whole = region.whole and (int(region.whole[0] * factor), int(region.whole[1] * factor))
    return replace(region, box=scaled(region.box), place=scaled(region.place), whole=whole)


def _filled(region: Region, width: int, height: int) -> Box | None:
    """Return a region's box; extend a width or height of 0 to the picture's edge if the region has `zero_fills`."""
    box = region.box
    if box is None or not region.zero_fills:
        return box
    return Box(box.x, box.y, box.w or width - box.x, box.h or height - box.y)


def _canvas(region: Region, box: Box) -> tuple[int, int] | None:
    """Return a sprite's width and height before trimming; None for untrimmed sprites and inconsistent sizes."""
    whole, place = region.whole, region.place
    upright = (box.h, box.w) if region.turns in (1, 3) else (box.w, box.h)
    if whole is None or place is None or upright != (place.w, place.h):
        return None
    return whole if max(whole) <= LARGEST_SIDE and place.inside(*whole) else None


def _pixels(region: Region, box: Box) -> int:
    width, height = _canvas(region, box) or (box.w, box.h)
    return width * height
