"""Progress bars on a terminal. Drawn when events come, by no thread of their own: training keeps its cores."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from studio.cli import words
from studio.cli.reporting import Reporter, print_table
from studio.core import events
from studio.core.events import Event
from studio.core.wording import number

_REDRAW_S = 0.2


class BarReporter(Reporter):
    """One bar on stderr for the job at hand; notices and figures scroll by above it."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._bar: Progress | None = None
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
                self._console.print(words.started(event), soft_wrap=True)
            case events.LossChunk():
                self._losses.extend(event.losses.tolist())
                text = words.tick(event, float(np.mean(self._losses)), self._validated)
                total = event.elapsed_s + event.eta_s
                self._draw(event.elapsed_s, total if math.isfinite(total) else 0.0, text)
            case events.Progress() if not self._training:
                of = f" of {number(event.total)}" if event.total else ""
                self._draw(event.done, event.total, f"{number(event.done)}{of} {event.what}")
            case events.Validated():
                self._validated = event
            case events.RunFinished() if self._validated is not None:
                self._console.print(words.validated(self._validated), style="dim", soft_wrap=True)
            case events.QualityMeasured():
                self._console.print(words.quality(event), style="dim", soft_wrap=True)
            case events.Advised():
                self._console.print(words.advised(event), soft_wrap=True)
            case events.Notice():
                style = {"info": "", "warning": "yellow", "error": "red"}[event.level]
                self._console.print(words.notice(event), style=style, soft_wrap=True)

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
            self._bar = Progress(*columns, console=self._console, auto_refresh=False, transient=True)
            self._task = self._bar.add_task(text, total=total or None)
            self._bar.start()
        now_s = time.monotonic()
        if now_s - self._drawn_s < _REDRAW_S and done < total:
            return
        self._drawn_s = now_s
        self._bar.update(self._task, completed=done, total=total or None, description=text)
        self._bar.refresh()
