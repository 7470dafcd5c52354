"""Pictures of all sizes -> `Sprites`: one canvas, classes from folders, each sprite once."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from studio.core import wording
from studio.core.errors import BadInputError
from studio.core.events import Event, Progress, Rgba
from studio.data.canvas import fit_into, looks_like_sheet, propose_size, visible_box
from studio.data.imported import ImportOptions, Quarantined
from studio.data.labelling import Labelling
from studio.data.reading import Reading, Shape
from studio.data.sources.base import Found, Remark
from studio.data.sprites import Sprites

MOST_BYTES = 4 << 30  # of pixels in memory
_TICK_S = 0.025
_ADVICE = {
    "as they are": "let Sheets be grid or packed (--sheets grid), or save its JSON beside it",
    "grid": "no such grid is seen in it, so give its tiles (--tile 16 --spacing 1)",
    "packed": "nothing parts its sprites, so try a grid (--sheets grid)",
}


@dataclass(frozen=True, eq=False)
class Arranged:
    """As in SpritesImported; `sprites` may be empty."""

    sprites: Sprites
    quarantine: tuple[Quarantined, ...]
    notes: tuple[Quarantined, ...]
    sizes: Mapping[tuple[int, int], int]
    proposed_size: int


@dataclass(eq=False)
class _Table:
    """What has been kept and left out so far."""

    options: ImportOptions
    size: int
    rgba: Rgba
    labelling: Labelling
    names: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)  # of the labelling
    places: dict[bytes, int] = field(default_factory=dict)  # digest of the pixels -> index of the sprite
    quarantine: list[Quarantined] = field(default_factory=list)
    notes: list[Quarantined] = field(default_factory=list)


def arrange(
    readings: list[Reading],
    options: ImportOptions,
    title: str,
    problems: Sequence[Quarantined],
    labelling: Labelling,
) -> Generator[Event, None, Arranged]:
    """Yields Progress and returns Arranged, with what could not even be looked at (`problems`) in its quarantine.

    `readings` is emptied, so that its memory comes free on the way.
    """
    readings.sort(key=lambda reading: (reading.file.name, reading.file.where), reverse=True)
    sizes = Counter(shape.size for reading in readings for shape in reading.shapes if shape.visible != (0, 0))
    proposed = propose_size(sizes)
    size = options.size or proposed
    room = sum(_fits(shape, size, options) for reading in readings for shape in reading.shapes)
    if room * size * size * 4 > MOST_BYTES:
        need = f"need more than {wording.memory(MOST_BYTES)} of memory"
        title = f"{wording.count(room, 'sprite')} on a canvas of {size} x {size} {need}."
        raise BadInputError(title, "Choose a smaller canvas, or import a smaller folder.")
    table = _Table(options, size, np.zeros((room, size, size, 4), np.uint8), labelling)
    total, told = len(readings), time.perf_counter()
    while readings:
        for _ in _added(table, readings.pop()):
            if time.perf_counter() - told > _TICK_S:
                yield Progress(total - len(readings), total, "files arranged")
                told = time.perf_counter()
    class_names = tuple(sorted(set(table.classes)))
    index = {name: label for label, name in enumerate(class_names)}
    labels = np.array([index[name] for name in table.classes], dtype=np.int64)
    targets, target_names = labelling.targets_of(table.rows), labelling.target_names
    rgba, names = table.rgba[: len(labels)], tuple(table.names)
    sprites = Sprites(rgba, labels, class_names, names, title, targets, target_names)
    quarantine = sorted([*problems, *table.quarantine], key=lambda item: item.name)
    notes = sorted([*table.notes, *labelling.notes()], key=lambda item: item.name)
    return Arranged(sprites, tuple(quarantine), tuple(notes), dict(sizes), proposed)


def _fits(shape: Shape, size: int, options: ImportOptions) -> bool:
    if shape.rgba is None:
        return False
    return shape.size == (size, size) if options.other_sizes == "leave out" else max(shape.visible) <= size


def _added(table: _Table, reading: Reading) -> Iterator[None]:
    """Put one shape of a file after the other on the canvas or in quarantine, and its remarks if any was kept."""
    table.quarantine += [_quarantined(reading.file, remark) for remark in reading.left_out]
    before = len(table.names)
    for shape in reading.shapes:
        problem = _place(table, reading.file, shape)
        if problem is None:
            table.notes += [_quarantined(reading.file, remark) for remark in shape.remarks]
        else:
            table.quarantine.append(_quarantined(reading.file, problem))
        yield
    kept = len(table.names) > before
    remarks = [remark for remark in reading.remarks if kept or remark.group == "cut sheet"]
    table.notes += [_quarantined(reading.file, remark) for remark in remarks]


def _place(table: _Table, file: Found, shape: Shape) -> Remark | None:
    """Put a shape at the end of the table. The reason where it can't be."""
    row = table.labelling.row_of(file, shape.part)
    if not _fits(shape, table.size, table.options):
        return _misfit(shape, table.size, table.options)
    assert shape.rgba is not None
    place = len(table.names)
    canvas = table.rgba[place]
    _fit(shape.rgba, canvas)
    folders = (*file.folders, *shape.folders)[: table.options.class_levels]
    class_name = shape.label or table.labelling.class_of(row) or "/".join(folders) or file.home
    first = table.places.setdefault(hashlib.blake2b(canvas, digest_size=16).digest(), place)
    if first != place:
        canvas[:] = 0
        other = table.classes[first]
        conflict = "" if other == class_name else f", which is in another class: {other!r}, not {class_name!r}"
        conflict += ", which has other numbers" if table.labelling.differ(table.rows[first], row) else ""
        return Remark("duplicate", f"the same pixels as {table.names[first]}{conflict}", shape.part)
    table.names.append(_name(file, shape.part))
    table.classes.append(class_name)
    table.rows.append(row)
    return None


def _fit(rgba: Rgba, canvas: Rgba) -> None:
    """Centre the picture on the canvas; where it is larger, its visible part."""
    if max(rgba.shape[:2]) > canvas.shape[0]:
        box = visible_box(rgba)
        assert box is not None
        left, top, right, bottom = box
        rgba = rgba[top:bottom, left:right]
    fit_into(rgba, canvas)


def _misfit(shape: Shape, size: int, options: ImportOptions) -> Remark:
    width, height = shape.size
    if shape.visible == (0, 0):
        return Remark("empty", "nothing to see: every pixel is fully transparent", shape.part)
    if not shape.part and looks_like_sheet(width, height, size):
        reason = f"{width:,} x {height:,} pixels, perhaps a sheet of many sprites"
        advice = _ADVICE[options.sheets]
        return Remark("looks like a sheet", f"{reason}: {advice}")
    if options.other_sizes == "leave out":
        return Remark("wrong size", f"{width} x {height} pixels instead of {size} x {size}", shape.part)
    return Remark("wrong size", f"{width} x {height} pixels: too large for the canvas of {size} x {size}", shape.part)


def _quarantined(file: Found, remark: Remark) -> Quarantined:
    return Quarantined(_name(file, remark.part), remark.reason, remark.group, file.path)


def _name(file: Found, part: str) -> str:
    return f"{file.name}#{part}" if part else file.name


def commonest(quarantine: Sequence[Quarantined], most: int = 3) -> str:
    """The commonest reasons in words, with how often: '8 x empty: the file has no bytes; ...'."""
    counts = Counter(item.reason for item in quarantine)
    return "; ".join(f"{count:,} x {reason}" for reason, count in counts.most_common(most))
