"""Read one file, on a thread or in a worker process: return sprites with remarks, or why the file can't be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest

import numpy as np

import studio.data.sources
from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.discovery import discover
from studio.core.names import escape_unprintable
from studio.data.files.source_files import SourceFile, SourceImage, SourceIssue, UnreadableFile, os_error_reason
from studio.data.images.canvas import (
    clear_hidden,
    clear_magenta,
    has_magenta_ground,
    looks_smooth,
    undo_upscaling,
    upscaling_factor,
    visible_bounds,
)
from studio.data.import_result import QUARANTINE_GROUPS
from studio.data.options import LARGEST_CANVAS, ImportOptions, SheetGrid
from studio.data.sheets.leftover import describe_leftover
from studio.data.sheets.recognising import SheetCandidate, sheet_candidates
from studio.data.sheets.slicing import grid_for, slice_sheet
from studio.data.sources.base import Source


@dataclass(frozen=True, eq=False, slots=True)
class DecodedSprite:
    """A sprite read from a file, before the import puts it on the canvas.

    rgba: uint8 [H, W, 4], colour 0 where alpha is 0. Holds the image, or only its visible part if the image exceeds the
    largest canvas; None if the visible part is empty or too large as well, to save disk space.
    """

    part: str  # name in the file, from SourceImage
    folders: tuple[str, ...]  # class name parts, from SourceImage
    label: str  # class, from SourceImage
    size: tuple[int, int]  # (width, height) of the image
    visible: tuple[int, int]  # (width, height) of the non-transparent part, or (0, 0)
    rgba: Rgba | None
    remarks: tuple[SourceIssue, ...]  # issues to report if the sprite is kept
    cut: bool = False  # whether the studio sliced the sprite from a sheet
    attributes: tuple[tuple[str, str], ...] = ()  # attributes given by the file, with their values


@dataclass(frozen=True, eq=False, slots=True)
class ReadResult:
    """The sprites and issues read from one file."""

    sprites: list[DecodedSprite] = field(default_factory=list)
    left_out: list[SourceIssue] = field(default_factory=list)  # issues of unusable parts, or of the whole file
    remarks: list[SourceIssue] = field(default_factory=list)  # other issues
    candidates: tuple[SheetCandidate, ...] = ()  # possible grids if the only image may be a sheet
    sheet_size: tuple[int, int] = (0, 0)  # (width, height) of the possible sheet


@cache
def all_sources() -> tuple[Source, ...]:
    """Return an instance of every source, sorted by `Source.order`."""
    return tuple(discover(studio.data.sources, Source).values())  # type: ignore[type-abstract]


def class_names_of(sources: Sequence[Source]) -> list[str]:
    """Return the qualified class names of sources, to check that two processes have the same sources."""
    return [f"{type(source).__module__}.{type(source).__qualname__}" for source in sources]


def read_all(
    files: Sequence[SourceFile], sources: Sequence[Source], options: ImportOptions,
    grids: Sequence[SheetGrid | None] = (),
) -> Iterator[ReadResult]:  # fmt: skip
    """Read each file with the first source that claims it; yields a result per file, empty for unclaimed files.

    grids: grid for slicing, by file. Without a grid, a possible sheet stays whole, and the result lists possible grids.
    """
    for file, grid in zip_longest(files, grids):
        source = next((source for source in sources if source.claims(file)), None)
        yield ReadResult() if source is None else _read(file, source, options, grid)


def _read(file: SourceFile, source: Source, options: ImportOptions, grid: SheetGrid | None) -> ReadResult:
    result = ReadResult()
    on_magenta = 0
    try:
        for item in source.read(file):
            if isinstance(item, SourceImage):
                if options.clear_magenta:
                    clear_magenta(item.rgba)
                on_magenta += has_magenta_ground(item.rgba)
                image = replace(item, label=item.label or item.tag) if options.tag_classes else item
                if options.attributes == "layers":
                    image = replace(image, attributes=(*image.layers, *image.attributes))
                _add_image(result, image, escape_unprintable(file.stem), options, grid)
                if grid is None and options.detects_sheets and image.may_be_sheet:
                    clear_hidden(image.rgba)
                    height, width = undo_upscaling(image.rgba, options.shrink).shape[:2]
                    candidates = sheet_candidates(image.rgba)
                    result = replace(result, candidates=candidates, sheet_size=(width, height))
            elif item.group in QUARANTINE_GROUPS:
                result.left_out.append(item)
            else:
                result.remarks.append(item)
    except UnreadableFile as error:
        return ReadResult(left_out=[SourceIssue(error.group, error.reason)])
    except OSError as error:
        return ReadResult(left_out=[SourceIssue("no access", os_error_reason(error, "file"))])
    if on_magenta:
        count = "" if on_magenta == 1 else f": {formatting.count(on_magenta, 'picture')}"
        result.remarks.append(SourceIssue("magenta ground", f"opaque, on a magenta background{count}"))
    return result


def _add_image(
    result: ReadResult, image: SourceImage, sheet: str, options: ImportOptions, grid: SheetGrid | None
) -> None:
    """Add an image, or the tiles sliced from it, to `result`. sheet: printable file name without suffix."""
    tiles: Sequence[SourceImage] = (image,)
    if image.may_be_sheet and (grid is not None or options.sheets != "as they are"):
        tiles = slice_sheet(image, sheet, options, grid)
    if tiles[0] is not image:
        result.sprites.extend(replace(_decoded(tile, options.shrink), cut=True) for tile in tiles)
        used = grid_for(options, grid)
        height, width = tiles[0].rgba.shape[:2]
        size = f" of {width} x {height} pixels" if used else ""
        words = f"sliced into {formatting.count(len(tiles), 'tile' if used else 'sprite')}{size}"
        result.remarks.append(SourceIssue("cut sheet", words))
        rest = describe_leftover(image.rgba, used) if used else ""
        if rest:
            result.remarks.append(SourceIssue("left over", rest))
    elif image.rest:
        result.remarks.append(SourceIssue("partly described", image.rest))
    else:
        result.sprites.append(_decoded(image, options.shrink))


def _decoded(image: SourceImage, shrink: int) -> DecodedSprite:
    """Convert an image to a DecodedSprite with upscaling undone. shrink: factor; 0 detects it, 1 changes nothing."""
    clear_hidden(image.rgba)
    rgba = undo_upscaling(image.rgba, shrink)
    size, box = (rgba.shape[1], rgba.shape[0]), visible_bounds(rgba)
    left, top, right, bottom = box or (0, 0, 0, 0)
    visible = (right - left, bottom - top)
    pixels: Rgba | None = None
    remarks: tuple[SourceIssue, ...] = ()
    if box is not None and max(visible) <= LARGEST_CANVAS:
        pixels = rgba[top:bottom, left:right].copy() if max(size) > LARGEST_CANVAS else rgba
        remarks = tuple(_remarks_on(pixels, size, image.part))
    return DecodedSprite(
        image.part, image.folders, image.label, size, visible, pixels, remarks, attributes=image.attributes
    )


def _remarks_on(rgba: Rgba, size: tuple[int, int], part: str) -> Iterator[SourceIssue]:
    """Yield remarks for odd shapes, semi-transparency, upscaling and blur. size: (width, height) before cropping."""
    width, height = size
    if min(size) == 1:
        yield SourceIssue("odd shape", f"only {width} x {height} pixels", part)
    alpha = rgba[..., 3]
    soft = int(np.count_nonzero((alpha - np.uint8(1)) < 254))  # alpha 1..254: 0 wraps around to 255
    if soft:
        yield SourceIssue("soft alpha", f"{soft:,} semi-transparent pixel{'s' if soft > 1 else ''}", part)
    scale = upscaling_factor(rgba)
    if scale > 1:
        small = f"{rgba.shape[1] // scale} x {rgba.shape[0] // scale}"
        yield SourceIssue("upscaled", f"looks like a {small} sprite shown at {scale}x", part)
    elif looks_smooth(rgba):
        yield SourceIssue("smooth", "blurry or photo-like", part)
