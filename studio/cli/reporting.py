"""Report events and results: a progress bar on a terminal, lines of text elsewhere, or JSON lines.

Results go to stdout; progress and notices go to stderr, so that stdout can be piped. Progress bars are redrawn when an
event arrives, without a thread, which would take CPU time from training.
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
from studio.cli.json_lines import to_json_line
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

E = TypeVar("E", bound=Event)
PLAIN_EVERY_S = 10.0
RETRY_S = 5.0
_REDRAW_S = 0.2
_PIPED_COLUMNS = 160  # width of a table that is not printed to a terminal


class Reporter:
    """The output of a command: receives its events and results. This base class prints nothing."""

    def show(self, event: Event) -> None:
        """Report an event of a running job."""

    def clear(self) -> None:
        """Remove the progress bar at the end of a job."""

    def print(self, text: str = "") -> None:
        """Print a result as text; does nothing with --json."""

    def print_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; does nothing with --json. A heading that starts with '>' aligns its column to the right."""

    def write_json(self, values: Mapping[str, Any]) -> None:
        """Write a result as a JSON line if --json is set. values: fields of the result, with its 'type'."""


class JsonReporter(Reporter):
    """Writes each event and result to stdout as a JSON line; skips repeated Progress events."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def show(self, event: Event) -> None:
        if isinstance(event, Progress):
            if event == self._progress:
                return
            self._progress = event
        print(to_json_line(event), flush=True)  # noqa: T201

    def write_json(self, values: Mapping[str, Any]) -> None:
        print(to_json_line(values), flush=True)  # noqa: T201


class TextReporter(Reporter):
    """Writes events as text: the base class of the reporters with and without a progress bar."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=100)
        self._validated: Validated | None = None
        self._is_training = False
        self._examples = "sprites"  # of the training examples

    def show(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.clear()
                self._losses.clear()  # a queue trains several runs
                self._validated, self._is_training, self._examples = None, True, event.examples
                self._print(messages.started(event))
            case LossChunk():
                self._losses.extend(event.losses.tolist())
                text = messages.progress(event, float(np.mean(self._losses)), self._validated, self._examples)
                total_s = event.elapsed_s + event.eta_s
                self._show_progress(event.elapsed_s, total_s if math.isfinite(total_s) else 0.0, text)
            case Progress() if not self._is_training:
                self._show_progress(event.done, event.total, event.text())
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

    def print(self, text: str = "") -> None:
        print(text, flush=True)  # noqa: T201

    def print_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in columns:
            table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
        for row in rows:
            table.add_row(*row)
        width = None if sys.stdout.isatty() else _PIPED_COLUMNS
        Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False).print(table)

    def _show_progress(self, done: float, total: float, text: str) -> None:
        """Show the progress of a job. done, total: in any unit; total is 0 if unknown."""

    def _print(self, text: str, style: str = "") -> None:
        """Print a line to stderr. style: a style of rich, ignored without colours."""


class PlainReporter(TextReporter):
    """Writes lines without colours; progress at most every PLAIN_EVERY_S, and validation metrics at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._next_s = time.monotonic() + PLAIN_EVERY_S / 2

    def show(self, event: Event) -> None:
        super().show(event)
        if isinstance(event, RunStarted):
            self._next_s = 0.0  # show the first step immediately

    def _show_progress(self, done: float, total: float, text: str) -> None:
        now_s = time.monotonic()
        if (self._is_training or (done and total)) and now_s >= self._next_s:
            self._next_s = now_s + PLAIN_EVERY_S
            self._print(text)

    def _print(self, text: str, style: str = "") -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class BarReporter(TextReporter):
    """Draws a progress bar on stderr for the running job; notices and metrics scroll above the bar."""

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


def reporter_for(args: argparse.Namespace) -> Reporter:
    """Return the reporter for --json, a terminal or a pipe."""
    if getattr(args, "json", False):
        return JsonReporter()
    return BarReporter() if sys.stderr.isatty() else PlainReporter()


def run_job(events: Events, reporter: Reporter, kind: type[E]) -> E:
    """Run a job to its end, report its events, and return its last event of type `kind`. Always closes the job.

    While the job yields Blocked (a full disk), report Blocked once and continue the job every RETRY_S.
    """
    found: E | None = None
    is_blocked = False
    with contextlib.closing(events):
        try:
            for event in events:
                if not (is_blocked and isinstance(event, Blocked)):
                    reporter.show(event)
                    logs.log_event(event)
                is_blocked = isinstance(event, Blocked)
                if is_blocked:
                    time.sleep(RETRY_S)
                if isinstance(event, kind):
                    found = event
        finally:
            reporter.clear()
    assert found is not None, f"the job ended without {kind.__name__}"
    return found
