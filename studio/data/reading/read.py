"""One found file -> its decoded sprites with remarks, or the reason why there are none.

Runs on reader threads, and in processes that read for the studio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np

import studio.data.sources
from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.discovery import discover
from studio.data.files.naming import escape_unprintable
from studio.data.files.source_files import Picture, Remark, SourceFile, UnreadableFile
from studio.data.images.canvas import (
    clear_hidden,
    clear_magenta,
    has_magenta_ground,
    looks_smooth,
    undo_upscaling,
    upscaling_factor,
    visible_bounds,
)
from studio.data.options import LARGEST_CANVAS, QUARANTINE_GROUPS, Grid, ImportOptions
from studio.data.reading.finding import no_access
from studio.data.sheets.leftover import describe_leftover
from studio.data.sheets.recognising import SheetCandidate, sheet_candidates
from studio.data.sheets.slicing import grid_for, slice_sheet
from studio.data.sources.base import Source


@dataclass(frozen=True, eq=False, slots=True)
class DecodedSprite:
    """A picture that was read.

    part, folders, label: as in Picture. size, visible: (width, height) of all of it, and of what is not transparent.
    rgba: uint8, colour zeroed under alpha 0: the whole picture, or only its visible part where the whole is larger than
    any canvas; None where nothing is visible or that is too large as well, so that big pictures don't fill the disk.
    remarks: what is worth a look if it is kept. cut: the studio cut it out of a sheet that nothing describes.
    """

    part: str
    folders: tuple[str, ...]
    label: str
    size: tuple[int, int]
    visible: tuple[int, int]
    rgba: Rgba | None
    remarks: tuple[Remark, ...]
    cut: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """What came of one file.

    left_out: parts, or all of it, with the reasons. remarks: about the file as a whole. candidates: the grids that its
    one picture may have, where it may be a sheet. sheet_size: width and height of the picture of `candidates`.
    """

    sprites: list[DecodedSprite] = field(default_factory=list)
    left_out: list[Remark] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    candidates: tuple[SheetCandidate, ...] = ()
    sheet_size: tuple[int, int] = (0, 0)


def all_sources() -> list[Source]:
    """Every kind of input there is, in the order in which they are asked."""
    return list(discover(studio.data.sources, Source).values())  # type: ignore[type-abstract]


def kinds_of(sources: Sequence[Source]) -> list[str]:
    """Which classes these are, so that another process can tell whether it has the same."""
    return [f"{type(source).__module__}.{type(source).__qualname__}" for source in sources]


def read_all(
    files: Sequence[SourceFile], sources: Sequence[Source], options: ImportOptions, grids: Sequence[Grid | None] = ()
) -> Iterator[Reading]:
    """Read `files` with the first of `sources` that claims each; files that none claims give an empty reading.

    What of `options` is about sheets is done here, the rest once all sprites are known. grids: those that were
    recognised in these files; without them, a picture that may be a sheet stays whole and says what is seen in it.
    """
    for file, grid in zip_longest(files, grids):
        source = next((source for source in sources if source.claims(file)), None)
        yield Reading() if source is None else _read(file, source, options, grid)


def _read(file: SourceFile, source: Source, options: ImportOptions, grid: Grid | None) -> Reading:
    reading = Reading()
    on_magenta = 0
    try:
        for item in source.read(file):
            if isinstance(item, Picture):
                if options.clear_magenta:
                    clear_magenta(item.rgba)
                on_magenta += has_magenta_ground(item.rgba)
                picture = replace(item, label=item.label or item.tag) if options.tag_classes else item
                _add_picture(reading, picture, escape_unprintable(file.stem), options, grid)
                if grid is None and options.looks_for_sheets and picture.may_be_sheet:
                    clear_hidden(picture.rgba)
                    height, width = undo_upscaling(picture.rgba, options.shrink).shape[:2]
                    seen = sheet_candidates(picture.rgba)
                    reading = replace(reading, candidates=seen, sheet_size=(width, height))
            elif item.group in QUARANTINE_GROUPS:
                reading.left_out.append(item)
            else:
                reading.remarks.append(item)
    except UnreadableFile as refused:
        return Reading(left_out=[Remark(refused.group, refused.reason)])
    except OSError as error:
        return Reading(left_out=[Remark("no access", no_access(error, "file"))])
    if on_magenta:
        which = "" if on_magenta == 1 else f": {formatting.count(on_magenta, 'picture')}"
        reading.remarks.append(Remark("magenta ground", f"opaque, on a magenta ground{which}"))
    return reading


def _add_picture(reading: Reading, picture: Picture, sheet: str, options: ImportOptions, grid: Grid | None) -> None:
    """Add a picture, or the sprites cut from the picture, to `reading`. sheet: printable file name without suffix."""
    cut: Sequence[Picture] = (picture,)
    if picture.may_be_sheet and (grid is not None or options.sheets != "as they are"):
        cut = slice_sheet(picture, sheet, options, grid)
    if cut[0] is not picture:
        reading.sprites.extend(replace(_decoded(part, options.shrink), cut=True) for part in cut)
        used = grid_for(options, grid)
        reading.remarks.append(Remark("cut sheet", _in_words(cut, used)))
        words = describe_leftover(picture.rgba, used) if used else ""
        if words:
            reading.remarks.append(Remark("left over", words))
    elif picture.rest:
        reading.remarks.append(Remark("partly described", picture.rest))
    else:
        reading.sprites.append(_decoded(picture, options.shrink))


def _in_words(cut: Sequence[Picture], grid: Grid | None) -> str:
    if grid is None:
        return f"cut into {formatting.count(len(cut), 'sprite')}"
    height, width = cut[0].rgba.shape[:2]
    return f"cut into {formatting.count(len(cut), 'tile')} of {width} x {height} pixels"


def _decoded(picture: Picture, shrink: int) -> DecodedSprite:
    clear_hidden(picture.rgba)
    rgba = undo_upscaling(picture.rgba, shrink)
    size = (rgba.shape[1], rgba.shape[0])
    box = visible_bounds(rgba)
    if box is None:
        return DecodedSprite(picture.part, picture.folders, picture.label, size, (0, 0), None, ())
    left, top, right, bottom = box
    visible = (right - left, bottom - top)
    if max(visible) > LARGEST_CANVAS:
        return DecodedSprite(picture.part, picture.folders, picture.label, size, visible, None, ())
    if max(size) > LARGEST_CANVAS:
        rgba = rgba[top:bottom, left:right].copy()
    remarks = tuple(_remarks_on(rgba, size, picture.part))
    return DecodedSprite(picture.part, picture.folders, picture.label, size, visible, rgba, remarks)


def _remarks_on(rgba: Rgba, size: tuple[int, int], part: str) -> Iterator[Remark]:
    """Remarks on what a person should look at; nothing is repaired."""
    width, height = size
    if min(size) == 1:
        yield Remark("odd shape", f"only {width} x {height} pixels", part)
    alpha = rgba[..., 3]
    soft = int(np.count_nonzero((alpha - np.uint8(1)) < 254))  # 1..254, as 0 wraps around to 255
    if soft:
        yield Remark("soft alpha", f"{soft:,} half-transparent pixel{'s' if soft > 1 else ''}", part)
    scale = upscaling_factor(rgba)
    if scale > 1:
        small = f"{rgba.shape[1] // scale} x {rgba.shape[0] // scale}"
        yield Remark("upscaled", f"looks like a {small} sprite shown at {scale}x", part)
    elif looks_smooth(rgba):
        yield Remark("smooth", "shaded like a photo or a smoothed enlargement", part)
