"""The number of CPU threads beside other programs, tested with simulated step times."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from studio.core.events import Event, LossChunk, Notice, Progress
from studio.core.generators import run_to_end
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.steps.cpu_threads import ThreadTuner, with_tuned_threads
from studio.engine.training.loop import train_new
from studio.recipes.classifier import Classifier
from tests.engine.tools import CPU, small_classifier

Machine = Callable[[int, float], float]  # seconds a step, by threads and by the time that has passed


def quiet(threads: int, now_s: float) -> float:
    """Seconds per step while all cores are free: two threads are 1.6 times faster than one."""
    return 0.28 / (0.4 + 0.6 * threads)


def busy(threads: int, now_s: float) -> float:
    """Seconds per step beside a program that computes on both of two cores, as measured."""
    return 0.31 if threads == 1 else 3.2 * threads / 2


def run(tuner: ThreadTuner, machine: Machine, seconds: float, now_s: float = 0.0) -> tuple[int, list[int]]:
    """Train on a simulated machine; returns the number of steps and the threads of each tick."""
    end_s, steps, threads = now_s + seconds, 0, list[int]()
    while now_s < end_s:
        threads.append(tuner.threads)
        count = max(1, round(0.05 / machine(tuner.threads, now_s)))
        tick_s = count * machine(tuner.threads, now_s)
        tuner.add(count, tick_s)
        now_s, steps = now_s + tick_s, steps + count
    return steps, threads


@pytest.mark.parametrize("most", [2, 6, 16])
def test_quiet_machine_uses_all_threads_and_tries_fewer_once(most: int) -> None:
    tuner = ThreadTuner(most)
    steps, threads = run(tuner, quiet, 600.0)
    fewer = [at for at, count in enumerate(threads) if count < most]
    assert 0 < len(fewer) <= 12 and fewer[-1] < 60 and not tuner.uses_fewer()
    assert steps > 0.99 * 600 / quiet(most, 0)


def test_busy_machine_uses_one_thread() -> None:
    tuner = ThreadTuner(2)
    steps, threads = run(tuner, busy, 60.0)
    assert threads[-1] == 1 and tuner.uses_fewer()
    assert steps > 0.7 * 60 / busy(1, 0)
    steps, threads = run(tuner, busy, 3600.0, now_s=60.0)
    assert steps > 0.97 * 3600 / busy(1, 0)
    assert 4 <= threads.count(2) <= 12  # tried again, ever more rarely


def test_threads_follow_a_busy_program_that_starts_and_ends() -> None:
    def machine(threads: int, now_s: float) -> float:
        return busy(threads, now_s) if 100 <= now_s < 400 else quiet(threads, now_s)

    tuner = ThreadTuner(2)
    _, threads = run(tuner, machine, 100.0)
    assert threads[-1] == 2
    steps, threads = run(tuner, machine, 300.0, now_s=100.0)
    assert threads[-1] == 1 and steps > 0.85 * 300 / busy(1, 0)
    _, threads = run(tuner, machine, 400.0, now_s=400.0)
    assert threads[-1] == 2 and not tuner.uses_fewer()


def test_threads_match_the_free_cores() -> None:
    def machine(threads: int, now_s: float) -> float:
        return 1 / threads if threads <= 4 else 5.0

    tuner = ThreadTuner(16)
    run(tuner, machine, 120.0)
    assert tuner.threads == 4


def test_equally_slow_thread_counts_are_tried_rarely() -> None:
    tuner = ThreadTuner(2)
    run(tuner, quiet, 60.0)
    steps, threads = run(tuner, lambda threads, now_s: 4 * quiet(threads, now_s), 600.0, now_s=60.0)
    assert threads[-1] == 2 and 0 < threads.count(1) <= 4
    assert steps > 0.97 * 600 / (4 * quiet(2, 0))


def test_single_slow_tick_starts_no_trial() -> None:
    tuner, slow = ThreadTuner(2), iter([True])
    run(tuner, quiet, 30.0)
    _, threads = run(tuner, lambda threads, now_s: 5.0 if next(slow, False) else quiet(threads, now_s), 60.0)
    assert 1 not in threads


def test_fixed_threads_are_restored() -> None:
    tuner = ThreadTuner(torch.get_num_threads(), may_change=False)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)  # another job, between two ticks
        for _ in range(50):
            assert not list(tuner.tick(1, 5.0))
        assert torch.get_num_threads() == before
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("changes", "adapts"), [({}, True), ({"steps": 100}, False), ({"threads": 2}, False)])
def test_only_runs_by_minutes_change_threads(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, changes: dict[str, int], adapts: bool
) -> None:
    told, add = [1], ThreadTuner.add
    monkeypatch.setattr(torch, "get_num_threads", lambda: told[-1])
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    monkeypatch.setattr(
        ThreadTuner, "add", lambda tuner, steps, duration_s: add(tuner, steps, steps * busy(tuner.threads, 0))
    )
    config = small_classifier(**{"steps": 0, "minutes": 10.0, "holdout": 0.0, **changes})
    notices, ticks = list[Notice](), 0
    with contextlib.closing(
        train_new(run_path, sprites, Classifier(), config, replace(CPU, threads=2), Control())
    ) as events:
        while ticks < 12:
            event = next(events)
            ticks += isinstance(event, LossChunk)
            notices += [event] if isinstance(event, Notice) else []
    assert told == ([1, 2, 1, 2] if adapts else [1, 2, 2])
    assert len(notices) == adapts and all("more would be slower" in notice.title for notice in notices)


def test_steps_that_other_programs_slow_down_get_fewer_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, used, before = [0.0], list[int](), torch.get_num_threads()

    def steps() -> Generator[Event, None, str]:
        for step in range(60):
            used.append(torch.get_num_threads())
            clock[0] += 0.1 if used[-1] == 1 else 1.0
            yield Progress(step + 1, 60, "steps")
        return "done"

    monkeypatch.setattr("studio.engine.steps.cpu_threads.time.monotonic", lambda: clock[0])
    torch.set_num_threads(2)
    try:
        assert run_to_end(with_tuned_threads(steps(), may_change=True)) == "done"
        assert used[0] == 2 and set(used[-40:]) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
