"""Results of an experiment as plain data for JSON. Undrawable values, such as NaN, raise ValueError at creation."""

import base64
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from PIL import Image

from studio.core import records
from studio.core.arrays import Rgba
from studio.core.config import Value
from studio.core.events import Event
from studio.core.formatting import decimal
from studio.core.pictures import PILLOW_ERRORS

ROOM_FOR_MARKS = 0.15  # share of a plot's height above the curves, for the labels of marks
_MOST_TICKS = 14
_MOST_TOLD = 12  # lines with more points are described by ends, lowest and highest value
_LARGEST = 4096  # pixels, width or height of a picture


@dataclass(frozen=True)
class Axis:
    """A plot's axis. log: logarithmic scale."""

    title: str
    log: bool = False


@dataclass(frozen=True)
class Line:
    """A curve through the points (x, y), from left to right. dots: also draw a dot per point."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dots: bool = True

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or not all(map(math.isfinite, (*self.x, *self.y))):
            raise ValueError(f"the line '{self.name}' has invalid points")

    def describe(self) -> str:
        """Describe the curve in a sentence: every point, or for many points the ends, the lowest and the highest."""
        points = list(zip(self.x, self.y, strict=True))
        if not points:
            return f"{self.name}: no points."
        if len(points) <= _MOST_TOLD:
            return f"{self.name}: {', '.join(map(_point, points))}."
        low, high = (choose(points, key=lambda point: point[1]) for choose in (min, max))
        ends = f"from {_point(points[0])} to {_point(points[-1])}"
        return f"{self.name}: {ends}; lowest {_point(low)}, highest {_point(high)}."


def _point(point: tuple[float, float]) -> str:
    x, y = point
    return f"{decimal(y)} at {decimal(x)}"


@dataclass(frozen=True)
class Mark:
    """A vertical line at x with a short label."""

    x: float
    words: str


@dataclass(frozen=True)
class Plot:
    """A plot of curves, with labelled vertical lines at `marks`."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()

    def tick_positions(self) -> list[float]:
        """Return the x values to label on a logarithmic x axis; empty for more than 14 values or for fractions."""
        positions = sorted({x for line in self.lines if line.dots for x in line.x})
        is_short = len(positions) <= _MOST_TICKS and all(x == round(x) for x in positions)
        return positions if self.x.log and is_short else []

    def has_whole_x(self) -> bool:
        """Return whether all x values are whole numbers."""
        return all(x == round(x) for line in self.lines for x in line.x)

    def describe(self) -> str:
        """Return the axes, values and marks in sentences, for screen readers."""
        marks = [f"{mark.words} at {decimal(mark.x)}." for mark in self.marks]
        return " ".join([f"{self.y.title} by {self.x.title}.", *(line.describe() for line in self.lines), *marks])

    def __post_init__(self) -> None:
        across = [*(x for line in self.lines for x in line.x), *(mark.x for mark in self.marks)]
        up = [y for line in self.lines for y in line.y]
        if (self.x.log and min(across, default=1.0) <= 0) or (self.y.log and min(up, default=1.0) <= 0):
            raise ValueError(f"the plot '{self.title}' has values that a logarithmic axis can't show")
        if not all(map(math.isfinite, across)):
            raise ValueError(f"the plot '{self.title}' has a mark at no finite x")


@dataclass(frozen=True)
class Table:
    """A table of texts. A heading starting with '>' aligns the column to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a table has a row with the wrong number of cells")


@dataclass(frozen=True)
class Picture:
    """A picture of pixel art. png: the file in base64. about: one sentence for screen readers and captions."""

    title: str
    png: str
    about: str = ""

    def __post_init__(self) -> None:
        try:
            self.pixels()
        except PILLOW_ERRORS as error:
            raise ValueError(f"the picture '{self.title}' is invalid: {error}") from error

    @classmethod
    def of(cls, title: str, pixels: Rgba, about: str = "") -> Self:
        """Create a picture from pixels, uint8 [H, W, 4]."""
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        return cls(title, base64.b64encode(file.getvalue()).decode(), about)

    def pixels(self) -> Rgba:
        """Return the pixels, uint8 [H, W, 4]. Raises ValueError if a side exceeds 4,096 pixels."""
        with Image.open(io.BytesIO(base64.b64decode(self.png, validate=True)), formats=["PNG"]) as picture:
            if max(picture.size) > _LARGEST:
                raise ValueError("the picture is too large")
            return np.asarray(picture.convert("RGBA"))


@dataclass(frozen=True)
class Outcome(Event):
    """An experiment's results so far. The last Outcome has the final results."""

    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    sentences: tuple[str, ...] = ()  # the findings, with numbers
    suggests: Mapping[str, Value] = field(default_factory=dict)  # recommended training settings, by name
    pictures: tuple[Picture, ...] = ()
    step: records.Count | None = None  # the examined checkpoint's step; None without a run
    figures: Mapping[str, float | str] = field(default_factory=dict)  # measured values by name, for lessons
