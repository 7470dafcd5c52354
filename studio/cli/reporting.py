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
from studio.core import logs
from studio.core.events import (
    Advised,
    Blocked,
    Event,
    Events,
    LossChunk,
    Notice,
    Progress,
    QualityMeasured,
    RunFinished,
    RunStarted,
    Validated,
)
from studio.core.formatting import number

E = TypeVar("E", bound=Event)
PLAIN_EVERY_S = 10.0
RETRY_S = 5.0
_REDRAW_S = 0.2
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
    """One JSON object a line, at once; progress that stands still is told once."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def show(self, event: Event) -> None:
        if isinstance(event, Progress):
            if event == self._progress:
                return
            self._progress = event
        print(line(event), flush=True)  # noqa: T201

    def record(self, values: Mapping[str, Any]) -> None:
        print(line(values), flush=True)  # noqa: T201


class TextReporter(Reporter):
    """Sentences for a terminal or a file: the base of those with and without a bar."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=100)
        self._validated: Validated | None = None
        self._is_training = False

    def show(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.clear()
                self._losses.clear()  # of a run before it, in the queue
                self._validated, self._is_training = None, True
                self._print(messages.started(event))
            case LossChunk():
                self._losses.extend(event.losses.tolist())
                text = messages.tick(event, float(np.mean(self._losses)), self._validated)
                total_s = event.elapsed_s + event.eta_s
                self._show_progress(event.elapsed_s, total_s if math.isfinite(total_s) else 0.0, text)
            case Progress() if not self._is_training:
                of = f" of {number(event.total)}" if event.total else ""
                self._show_progress(event.done, event.total, f"{number(event.done)}{of} {event.what}")
            case Validated():
                self._validated = event
            case RunFinished() if self._validated is not None:
                self._print(messages.validated(self._validated), "dim")
            case QualityMeasured():
                self._print(messages.quality(event), "dim")
            case Advised():
                self._print(messages.advised(event))
            case Notice():
                self._print(messages.notice(event), {"info": "", "warning": "yellow", "error": "red"}[event.level])

    def clear(self) -> None:
        self._is_training = False

    def say(self, text: str = "") -> None:
        print(text, flush=True)  # noqa: T201

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        print_table(columns, rows)

    def _show_progress(self, done: float, total: float, text: str) -> None:
        """How far a job is; `total` 0 means unknown."""

    def _print(self, text: str, style: str = "") -> None:
        """A line on stderr, in a style of rich's where colours are to be had."""


class PlainReporter(TextReporter):
    """Lines, at most one each PLAIN_EVERY_S of how far a job is, held-out figures among them, and these at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._next_s = time.monotonic() + PLAIN_EVERY_S / 2

    def show(self, event: Event) -> None:
        super().show(event)
        if isinstance(event, RunStarted):
            self._next_s = 0.0  # its first step is shown at once

    def _show_progress(self, done: float, total: float, text: str) -> None:
        if (self._is_training or (done and total)) and self._is_time():
            self._print(text)

    def _is_time(self) -> bool:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + PLAIN_EVERY_S
        return True

    def _print(self, text: str, style: str = "") -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class BarReporter(TextReporter):
    """One bar on stderr for the job at hand; notices and figures scroll by above it."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__()
        self._console = console or Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._bar: progress.Progress | None = None
        self._task = TaskID(0)
        self._drawn_s = 0.0

    def clear(self) -> None:
        super().clear()
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, soft_wrap=True)

    def _show_progress(self, done: float, total: float, text: str) -> None:
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


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to stdout, as wide as its terminal, or as wide as it likes where there is none."""
    from rich import box
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
                if not (is_halted and isinstance(event, Blocked)):
                    reporter.show(event)
                    logs.log_event(event)
                is_halted = isinstance(event, Blocked)
                if is_halted:
                    time.sleep(RETRY_S)
                if isinstance(event, kind):
                    found = event
        finally:
            reporter.clear()
    assert found is not None, f"the job ended without {kind.__name__}"
    return found
