"""What an experiment finds out: plots, tables and sentences, as plain data that JSON can hold. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from studio.core.config import Value
from studio.core.events import Event


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


@dataclass(frozen=True)
class Table:
    """Figures in rows, as texts; a column whose heading starts with '>' stands to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Outcome(Event):
    """What an experiment has found out up to now; the last one is what it has to say.

    sentences: what was measured, with its numbers. suggests: settings of the recipe that follow from it, by name.
    """

    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    sentences: tuple[str, ...] = ()
    suggests: Mapping[str, Value] = field(default_factory=dict)
