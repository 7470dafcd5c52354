"""How many threads a training on the CPU computes with: fewer while another program keeps all cores busy.

At the end of each operation all threads wait for the slowest. Where another program has its core that takes ten times
as long as the work, and one thread alone is several times faster than all.
"""

from __future__ import annotations

import statistics
from collections import deque

import torch

from studio.core import formatting
from studio.core.events import Events, Notice

_WINDOW_S, _FEWEST_TICKS = 2.0, 3  # what is looked at to say how long a step takes
_TRIAL_S = 0.5  # of the same, for a number of threads on trial
_SLOWER = 2.5  # times as slow as usual: something has happened
_FASTER = 1.2  # times as fast: worth a change
_TOO_SLOW = 1.5  # times as slow as the best: fewer threads still need not be tried
_REST_S = 10.0  # between trials, however slow it is
_RETRY_S, _MAX_RETRY_S = 60.0, 960.0  # before all are tried again, twice as long each time that it was in vain


class ThreadTuner:
    """Says how many `threads` to compute with from how long steps have taken.

    All of them are usual. A half, a quarter and so on are tried at the beginning and when steps have become several
    times slower than they were; all again from time to time. What is faster is kept.
    """

    def __init__(self, most: int, *, may_change: bool = True) -> None:
        self.threads = most
        self.is_reported = False  # that they are fewer
        self._most, self._may_change = most, may_change
        self._chosen = most
        self._ticks: deque[tuple[float, float]] = deque()  # seconds a step, and seconds, with these threads
        self._usual_s = float("inf")  # a step's
        self._to_try: list[int] = []
        self._tried: dict[int, float] = {}  # seconds a step by threads
        self._is_trial = False
        self._skip_below_s = float("inf")  # the next tick, if it is shorter: at first, buffers are made anew
        self._now_s = self._last_trial_s = 0.0
        self._retry_s = _RETRY_S

    def add(self, steps: int, duration_s: float) -> None:
        """Count a tick."""
        if not self._may_change or self._most == 1:
            return
        self._now_s += duration_s
        skip_below_s, self._skip_below_s = self._skip_below_s, 0.0
        if duration_s < skip_below_s:
            return
        self._ticks.append((duration_s / steps, duration_s))
        if self._is_trial:
            self._continue_trial()
        else:
            self._observe()

    def tick(self, steps: int, duration_s: float) -> Events:
        """Count a tick, and compute with as many threads as is best now: yields a Notice when they first are fewer.

        Between two ticks, in the engine's thread.
        """
        self.add(steps, duration_s)
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)
        if self.uses_fewer() and not self.is_reported:
            self.is_reported = True
            title = f"Training uses {formatting.count(self.threads, 'CPU thread')} for now: more would slow it down."
            hint = "Most likely another program keeps all cores busy. All threads are tried again now and then."
            yield Notice("info", title, hint)

    def uses_fewer(self) -> bool:
        """Whether fewer than all were found to be faster."""
        return not self._is_trial and self._chosen < self._most

    def _observe(self) -> None:
        while len(self._ticks) > _FEWEST_TICKS and self._seconds() - self._ticks[0][1] >= _WINDOW_S:
            self._ticks.popleft()
        few = len(self._ticks) < _FEWEST_TICKS
        if self._seconds() < (_FEWEST_TICKS * _WINDOW_S if few else _WINDOW_S):
            return
        step_s, rested_s = self._step_s(), self._now_s - self._last_trial_s
        is_first = self._usual_s == float("inf")
        is_slow = step_s > _SLOWER * self._usual_s and rested_s >= _REST_S
        self._usual_s = min(self._usual_s, step_s)
        if is_first or is_slow:
            everything = [self._most >> halvings for halvings in range(self._most.bit_length())]
            self._start_trial([count for count in everything if count != self._chosen], step_s)
        elif self._chosen < self._most and rested_s >= self._retry_s:
            self._start_trial([self._most], step_s)

    def _start_trial(self, others: list[int], step_s: float) -> None:
        """Begin to try other numbers of threads than these, with which a step takes `step_s`."""
        self._is_trial, self._tried, self._to_try = True, {self._chosen: step_s}, others
        self._set_threads(self._to_try.pop(0))

    def _continue_trial(self) -> None:
        step_s, best_s = self._step_s(), min(self._tried.values())
        is_too_slow = step_s > _TOO_SLOW * best_s
        few = len(self._ticks) < _FEWEST_TICKS and not is_too_slow
        if self._seconds() < (_WINDOW_S if few else _TRIAL_S):
            return
        self._tried[self.threads] = step_s
        if self._to_try and (not is_too_slow or self.threads == self._most):
            self._set_threads(self._to_try.pop(0))
        else:
            self._finish_trial()

    def _finish_trial(self) -> None:
        best = min(self._tried, key=lambda count: self._tried[count])
        is_changed = self._tried[best] * _FASTER < self._tried[self._chosen]
        self._chosen = best if is_changed else self._chosen
        self._retry_s = _RETRY_S if is_changed else min(2 * self._retry_s, _MAX_RETRY_S)
        self._usual_s, self._is_trial, self._last_trial_s = self._tried[self._chosen], False, self._now_s
        self._set_threads(self._chosen)

    def _set_threads(self, threads: int) -> None:
        self._ticks.clear()
        self._skip_below_s = _WINDOW_S if threads != self.threads else 0.0
        self.threads = threads

    def _seconds(self) -> float:
        return sum(duration_s for _, duration_s in self._ticks)

    def _step_s(self) -> float:
        return statistics.median(step_s for step_s, _ in self._ticks)
