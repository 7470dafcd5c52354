"""Load a sheet for the slicing preview: pixels, detected grid, and boxes around packed sprites."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.events import Event
from studio.core.threads import run_in_thread
from studio.data.files.source_files import SourceFile, SourceImage, UnreadableFile
from studio.data.images.canvas import clear_hidden
from studio.data.importing.single_sprite import load_images
from studio.data.options import SheetGrid
from studio.data.reading.finding import find_file, resolve_roots
from studio.data.sheets.cells import SummedAreaTable
from studio.data.sheets.grids import propose_grid
from studio.data.sheets.slicing import slice_packed

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class SheetPreview:
    """A sheet with its detected grid, for the preview of slicing."""

    name: str
    rgba: Rgba  # uint8 [H, W, 4], colour 0 where alpha is 0
    foreground: SummedAreaTable  # counts foreground pixels in rectangles
    proposed: SheetGrid | None  # the detected grid


def load_sheet_preview(
    paths: Sequence[Path], name: str, grid: SheetGrid | None = None
) -> Generator[Event, None, SheetPreview]:
    """Load the sheet `name` from the imported `paths`, to preview its slicing.

    name: a printable file name; a part name behind '#' is ignored. grid: the grid that the import detected; None
    detects a grid in this image alone. Raises BadInputError for a missing or unreadable file, and for frames or
    described sprites.
    """
    return (yield from _run_in_thread(lambda: _load(paths, name, grid), "sheets loaded"))


def find_packed(sheet: SheetPreview, gap: int) -> Generator[Event, None, NDArray[np.int64]]:
    """Find the sprites in a packed sheet, separated by transparent gaps; return their boxes.

    Boxes: int64 [n, 4], left, top, right, bottom (right and bottom excluded). gap: largest gap within a sprite, in
    pixels. Raises BadInputError for too many sprites.
    """
    return (yield from _run_in_thread(lambda: _packed_boxes(sheet, gap), "sheets searched"))


def _run_in_thread(work: Callable[[], T], what: str) -> Generator[Event, None, T]:
    """Call `work` on a thread and return its result; closing never blocks. what: noun for the Progress events."""

    def once() -> Generator[int, None, T]:
        yield 0
        return work()

    return run_in_thread(once(), 0, what)


def _load(paths: Sequence[Path], name: str, grid: SheetGrid | None) -> SheetPreview:
    roots = resolve_roots(paths)
    file = find_file(roots, name)
    if file is None and "#" in name:
        file = find_file(roots, name.rpartition("#")[0])
    if file is None:
        raise BadInputError(f"{name!r} was moved or deleted.", "Open the folder again.")
    image = _image_to_slice(file)
    clear_hidden(image.rgba)
    return SheetPreview(file.name, image.rgba, SummedAreaTable.of(image.rgba), grid or propose_grid(image.rgba))


def _image_to_slice(file: SourceFile) -> SourceImage:
    """Return the only sheet in `file`, perhaps without described sprites. Raises BadInputError for no or two sheets."""
    candidates = [image for image in load_images(file) if image.may_be_sheet]
    if len(candidates) == 1:
        return candidates[0]
    title = f"The sprites of {file.name!r} are known: they are frames, or a file beside it describes them."
    raise BadInputError(title, "Choose another sheet.")


def _packed_boxes(sheet: SheetPreview, gap: int) -> NDArray[np.int64]:
    try:
        pieces = slice_packed(sheet.rgba, gap)
    except UnreadableFile as error:
        raise BadInputError(f"{sheet.name!r} {error.reason}.", "Allow larger gaps, or slice it by a grid.") from None
    corners = [(piece.left, piece.top, *piece.rgba.shape[1::-1]) for piece in pieces]
    boxes = np.array(corners, np.int64).reshape(-1, 4)
    boxes[:, 2:] += boxes[:, :2]
    return boxes
