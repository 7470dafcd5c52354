"""What an experiment finds out: plots, tables, sentences and pictures, as data that JSON can hold. Imports no torch.

What can't be drawn can't be made: a ValueError says why, also when it is read back.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from studio.core import records
from studio.core.arrays import Rgba
from studio.core.config import Value
from studio.core.events import Event
from studio.core.pictures import PILLOW_ERRORS

_MOST_NAMED = 14
_LARGEST = 4096  # pixels a side of a picture


@dataclass(frozen=True)
class Axis:
    """What is told along a side of a plot; `log` for a logarithmic scale."""

    title: str
    log: bool = False


@dataclass(frozen=True)
class Line:
    """A curve through the points (x, y), from left to right; `dots` shows each of them."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dots: bool = True

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or not all(map(math.isfinite, (*self.x, *self.y))):
            raise ValueError(f"the line '{self.name}' has points that are none")


@dataclass(frozen=True)
class Mark:
    """A place on the x axis that matters, and why, in a few words."""

    x: float
    words: str


@dataclass(frozen=True)
class Plot:
    """Curves over the same axes."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()

    def named_places(self) -> list[float]:
        """The x of the dots, to be named on a logarithmic axis; none where they are too many for that."""
        places = sorted({x for line in self.lines if line.dots for x in line.x})
        return places if self.x.log and len(places) <= _MOST_NAMED else []

    def __post_init__(self) -> None:
        across = [*(x for line in self.lines for x in line.x), *(mark.x for mark in self.marks)]
        up = [y for line in self.lines for y in line.y]
        if (self.x.log and min(across, default=1.0) <= 0) or (self.y.log and min(up, default=1.0) <= 0):
            raise ValueError(f"the plot '{self.title}' has the logarithm of what has none")
        if not all(map(math.isfinite, across)):
            raise ValueError(f"the plot '{self.title}' has a mark that is nowhere")


@dataclass(frozen=True)
class Table:
    """Figures in rows, as texts; a column whose heading starts with '>' stands to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a table has a row of another length")


@dataclass(frozen=True)
class Picture:
    """A picture of pixel art; png: the file, in base64. about: what is to be seen in it, in a sentence."""

    title: str
    png: str
    about: str = ""

    def __post_init__(self) -> None:
        try:
            self.pixels()
        except PILLOW_ERRORS as error:
            raise ValueError(f"the picture '{self.title}' is none: {error}") from error

    @classmethod
    def of(cls, title: str, pixels: Rgba, about: str = "") -> Picture:
        """The picture of uint8 [H, W, 4]."""
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        return cls(title, base64.b64encode(file.getvalue()).decode(), about)

    def pixels(self) -> Rgba:
        """uint8 [H, W, 4]."""
        with Image.open(io.BytesIO(base64.b64decode(self.png, validate=True)), formats=["PNG"]) as picture:
            if max(picture.size) > _LARGEST:
                raise ValueError("it is too large")
            return np.asarray(picture.convert("RGBA"))


@dataclass(frozen=True)
class Outcome(Event):
    """What an experiment has found out up to now; the last one is what it has to say.

    sentences: what was measured, with its numbers. suggests: settings of the recipe that follow from it, by name.
    step: of the checkpoint that was looked into; None where the subject is no run.
    """

    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    sentences: tuple[str, ...] = ()
    suggests: Mapping[str, Value] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    step: records.Count | None = None
