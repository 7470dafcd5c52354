"""Choose the number of CPU threads for a training, fewer while another program keeps the cores busy.

After every operation, all threads wait for the slowest thread. If another program occupies the slowest thread's core,
waiting takes ten times as long as the work, and a single thread trains several times faster.
"""

import statistics
import time
from collections import deque
from collections.abc import Generator
from typing import TypeVar

import torch

from studio.core.events import Event, Events, Notice, Progress
from studio.core.formatting import count

T = TypeVar("T")

_WINDOW_S, _FEWEST_TICKS = 2.0, 3  # window for the usual time of a step
_TRIAL_S = 0.5  # window for a trial
_SLOWER = 2.5  # times slower than usual: start a trial
_FASTER = 1.2  # times faster: keep the other number of threads
_TOO_SLOW = 1.5  # times slower than the best: end the trial
_REST_S = 10.0  # least time between trials
_RETRY_S, _MAX_RETRY_S = 60.0, 960.0  # pause before trying the full number again; doubles after a failed trial


class ThreadTuner:
    """Chooses the number of CPU `threads` that makes training steps fastest. most: the full number.

    It starts with the full number. At the start, and when steps become several times slower, it tries a half, a quarter
    and so on; from time to time it tries the full number again. The fastest number stays.
    """

    def __init__(self, most: int, *, may_change: bool = True) -> None:
        self.threads = most
        self.is_reported = False  # the notice about fewer threads was yielded
        self._most, self._chosen, self._may_change = most, most, may_change
        self._ticks: deque[tuple[float, float]] = deque()  # (seconds per step, seconds) by tick
        self._usual_s = float("inf")  # usual seconds per step
        self._to_try: list[int] = []
        self._tried: dict[int, float] = {}  # seconds per step by number of threads
        self._is_trial = False
        self._skip_below_s = float("inf")  # ignore the first tick after a change, which allocates buffers
        self._now_s = self._last_trial_s = 0.0
        self._retry_s = _RETRY_S

    def add(self, steps: int, duration_s: float) -> None:
        """Record the duration of `steps` training steps and choose `threads` anew."""
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

    def adjust(self, steps: int, duration_s: float) -> None:
        """Record the duration of `steps` training steps, and set torch's number of threads."""
        self.add(steps, duration_s)
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)

    def tick(self, steps: int, duration_s: float) -> Events:
        """Record the duration of `steps` training steps, and set torch's number of threads.

        Yields a Notice when torch first gets fewer than all threads. Call this between steps, on the engine thread.
        """
        self.adjust(steps, duration_s)
        if self.uses_fewer() and not self.is_reported:
            self.is_reported = True
            title = f"Training uses {count(self.threads, 'CPU thread')} for now, because more would be slower."
            hint = "Another program probably keeps the cores busy. Training will try more threads later."
            yield Notice("info", title, hint)

    def uses_fewer(self) -> bool:
        """Return whether fewer threads than the full number turned out to be faster."""
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
            self._start_trial([threads for threads in everything if threads != self._chosen], step_s)
        elif self._chosen < self._most and rested_s >= self._retry_s:
            self._start_trial([self._most], step_s)

    def _start_trial(self, others: list[int], step_s: float) -> None:
        """Start to time steps with other numbers of threads. step_s: seconds per step with the current number."""
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
        best = min(self._tried, key=self._tried.__getitem__)
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


def with_tuned_threads(steps: Generator[Event, None, T], *, may_change: bool) -> Generator[Event, None, T]:
    """Run `steps` with the fastest number of CPU threads; yield the events and return the result of `steps`.

    steps: yields a Progress after every step. may_change: True if the steps compute on the CPU.
    """
    before = torch.get_num_threads()
    tuner = ThreadTuner(before, may_change=may_change)
    try:
        while True:
            start_s = time.monotonic()
            try:
                event = next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if may_change and isinstance(event, Progress):
                tuner.adjust(1, time.monotonic() - start_s)
            yield event
    finally:
        steps.close()
        torch.set_num_threads(before)
