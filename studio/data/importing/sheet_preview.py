"""A sheet looked at before it is cut: its pixels, the grid that is seen in it, the boxes of packed sprites."""

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
from studio.data.importing.single_sprite import pictures_of
from studio.data.options import SheetGrid
from studio.data.reading.finding import find_file, resolve_roots
from studio.data.sheets.cells import SummedAreaTable
from studio.data.sheets.grids import propose_grid
from studio.data.sheets.slicing import slice_packed

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class SheetPreview:
    """A picture that may be cut. rgba: uint8 [H, W, 4], colour zeroed under alpha 0. proposed: the grid seen in it."""

    name: str
    rgba: Rgba
    foreground: SummedAreaTable
    proposed: SheetGrid | None


def load_sheet_preview(
    paths: Sequence[Path], name: str, grid: SheetGrid | None = None
) -> Generator[Event, None, SheetPreview]:
    """Read the sheet that an import of `paths` calls `name`, with or without the part behind '#'.

    grid: the one that the import has recognised; otherwise the likeliest that this picture shows is proposed.
    Raises BadInputError when it has gone, can't be read, or is taken apart already by what describes it.
    """
    return (yield from _in_thread(lambda: _looked_at(paths, name, grid), "sheet read"))


def find_packed(sheet: SheetPreview, gap: int) -> Generator[Event, None, NDArray[np.int64]]:
    """The boxes of the sprites that cutting it as a packed one gives, in their order.

    int [n, 4]: left, top, right and bottom, the last two excluded. Raises BadInputError for too many.
    """
    return (yield from _in_thread(lambda: _boxes(sheet, gap), "sprites looked for"))


def _in_thread(work: Callable[[], T], what: str) -> Generator[Event, None, T]:
    """Run it on a thread, so that closing the generator never blocks."""

    def alone() -> Generator[int, None, T]:
        yield 0
        return work()

    return run_in_thread(alone(), 0, what)


def _looked_at(paths: Sequence[Path], name: str, grid: SheetGrid | None) -> SheetPreview:
    roots = resolve_roots(paths)
    file = find_file(roots, name)
    if file is None and "#" in name:
        file = find_file(roots, name.rpartition("#")[0])
    if file is None:
        raise BadInputError(f"{name!r} has gone since it was read.", "Open its folder again.")
    picture = _picture(file)
    clear_hidden(picture.rgba)
    return SheetPreview(file.name, picture.rgba, SummedAreaTable.of(picture.rgba), grid or propose_grid(picture.rgba))


def _picture(file: SourceFile) -> SourceImage:
    """Return the only picture of a file, or the rest of a partly described sheet. Raises BadInputError for others."""
    uncut = [picture for picture in pictures_of(file) if picture.may_be_sheet]
    if len(uncut) == 1:
        return uncut[0]
    title = f"The sprites of {file.name!r} are known: they are frames, or a file beside it describes them."
    raise BadInputError(title, "There is nothing to cut.")


def _boxes(sheet: SheetPreview, gap: int) -> NDArray[np.int64]:
    try:
        pieces = slice_packed(sheet.rgba, gap)
    except UnreadableFile as refused:
        raise BadInputError(f"{sheet.name!r} {refused.reason}.", "Allow larger gaps, or cut it as a grid.") from None
    corners = [(piece.left, piece.top, *piece.rgba.shape[1::-1]) for piece in pieces]
    boxes = np.array(corners, np.int64).reshape(-1, 4)
    boxes[:, 2:] += boxes[:, :2]
    return boxes
