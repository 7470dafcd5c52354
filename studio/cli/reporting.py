"""How a command speaks: bars on a terminal, plain lines elsewhere, JSON lines on request.

Results go to stdout; progress and notices go to stderr, so that stdout can be piped. Bars are drawn when events come,
by no thread of their own: training keeps its cores.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from rich import progress
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn

from studio.cli import messages
from studio.cli.as_json import line
from studio.core import events, logs
from studio.core.events import (
    Advised,
    Event,
    Events,
    Halted,
    LossChunk,
    Notice,
    Progress,
    QualityMeasured,
    RunFinished,
    RunStarted,
    Validated,
)
from studio.core.wording import number

E = TypeVar("E", bound=Event)
PLAIN_EVERY_S = 10.0
RETRY_S = 5.0
_WIDE = 160  # columns of a table that no terminal limits


class Reporter:
    """Where a command sends its events and its results. This one keeps silent."""

    def show(self, event: Event) -> None:
        """Take note of an event of a running job."""

    def clear(self) -> None:
        """A job is over: remove what showed its progress."""

    def say(self, text: str = "") -> None:
        """A result in words. JSON has none."""

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A result as a table; a column whose heading starts with '>' stands to the right. JSON has none."""

    def record(self, values: Mapping[str, Any]) -> None:
        """A result that no event carries, for JSON alone; by custom it has a 'type'."""


class JsonReporter(Reporter):
    """One JSON object a line, at once."""

    def show(self, event: Event) -> None:
        print(line(event), flush=True)  # noqa: T201

    def record(self, values: Mapping[str, Any]) -> None:
        print(line(values), flush=True)  # noqa: T201


class PlainReporter(Reporter):
    """Lines, at most one each PLAIN_EVERY_S of how far a job is, held-out figures among them, and these at the end."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=100)
        self._validated: Validated | None = None
        self._next_s = time.monotonic() + PLAIN_EVERY_S / 2
        self._training = False

    def show(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._note(messages.started(event))
                self._next_s, self._training = 0.0, True
            case LossChunk():
                self._losses.extend(event.losses.tolist())
                if self._is_time():
                    self._note(messages.tick(event, float(np.mean(self._losses)), self._validated))
            case Progress(done=done, total=total) if done and total and not self._training and self._is_time():
                self._note(f"{number(done)} of {number(total)} {event.what}")
            case Validated():
                self._validated = event
            case RunFinished() if self._validated is not None:
                self._note(messages.validated(self._validated))
            case QualityMeasured():
                self._note(messages.quality(event))
            case Advised():
                self._note(messages.advised(event))
            case Notice():
                self._note(messages.notice(event))

    def clear(self) -> None:
        self._training = False

    def say(self, text: str = "") -> None:
        print(text, flush=True)  # noqa: T201

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        print_table(columns, rows)

    def _is_time(self) -> bool:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + PLAIN_EVERY_S
        return True

    def _note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to stdout, as wide as its terminal, or as wide as it likes where there is none."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else _WIDE
    Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False).print(table)


def reporter_for(args: argparse.Namespace) -> Reporter:
    """What `args` and the streams ask for."""
    if getattr(args, "json", False):
        return JsonReporter()
    if not sys.stderr.isatty():
        return PlainReporter()

    return BarReporter()


def follow(events: Events, reporter: Reporter, kind: type[E]) -> E:
    """Drive a job to its end and return its last event of `kind`. The job is closed whatever happens.

    A job that can't go on says so once, and tries again every RETRY_S.
    """
    found: E | None = None
    is_halted = False
    with contextlib.closing(events):
        try:
            for event in events:
                if not (is_halted and isinstance(event, Halted)):
                    reporter.show(event)
                    logs.note(event)
                is_halted = isinstance(event, Halted)
                if is_halted:
                    time.sleep(RETRY_S)
                if isinstance(event, kind):
                    found = event
        finally:
            reporter.clear()
    assert found is not None, f"the job ended without {kind.__name__}"
    return found


_REDRAW_S = 0.2


class BarReporter(Reporter):
    """One bar on stderr for the job at hand; notices and figures scroll by above it."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._bar: progress.Progress | None = None
        self._task = TaskID(0)
        self._training = False
        self._losses: deque[float] = deque(maxlen=100)
        self._validated: events.Validated | None = None
        self._drawn_s = 0.0

    def show(self, event: Event) -> None:
        match event:
            case events.RunStarted():
                self.clear()
                self._training = True
                self._console.print(messages.started(event), soft_wrap=True)
            case events.LossChunk():
                self._losses.extend(event.losses.tolist())
                text = messages.tick(event, float(np.mean(self._losses)), self._validated)
                total = event.elapsed_s + event.eta_s
                self._draw(event.elapsed_s, total if math.isfinite(total) else 0.0, text)
            case events.Progress() if not self._training:
                of = f" of {number(event.total)}" if event.total else ""
                self._draw(event.done, event.total, f"{number(event.done)}{of} {event.what}")
            case events.Validated():
                self._validated = event
            case events.RunFinished() if self._validated is not None:
                self._console.print(messages.validated(self._validated), style="dim", soft_wrap=True)
            case events.QualityMeasured():
                self._console.print(messages.quality(event), style="dim", soft_wrap=True)
            case events.Advised():
                self._console.print(messages.advised(event), soft_wrap=True)
            case events.Notice():
                style = {"info": "", "warning": "yellow", "error": "red"}[event.level]
                self._console.print(messages.notice(event), style=style, soft_wrap=True)

    def clear(self) -> None:
        self._training = False
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say(self, text: str = "") -> None:
        print(text, flush=True)  # noqa: T201

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        print_table(columns, rows)

    def _draw(self, done: float, total: float, text: str) -> None:
        if self._bar is None:
            columns = (BarColumn(bar_width=30), TextColumn("{task.description}", markup=False))
            self._bar = progress.Progress(*columns, console=self._console, auto_refresh=False, transient=True)
            self._task = self._bar.add_task(text, total=total or None)
            self._bar.start()
        now_s = time.monotonic()
        if now_s - self._drawn_s < _REDRAW_S and done < total:
            return
        self._drawn_s = now_s
        self._bar.update(self._task, completed=done, total=total or None, description=text)
        self._bar.refresh()
