"""Fault 21: a full disk at every write of a training, once or permanently."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, Mock

import pytest
import torch
from PIL import Image

from studio.core import paths
from studio.core.errors import UnwritableError
from studio.core.events import Blocked, Event, LossChunk, RunFinished
from studio.core.generators import run_to_end
from studio.data.similarity.groups import find_near_duplicates
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.training import loop
from studio.engine.training.loop import train_resumed
from tests.engine.tools import CPU, learnt, of_kind, train_classifier, train_toy

STEPS = 2


class _Disk:
    """Counts the writes from 1: files that are flushed, lines, pictures. Those that `fails` names fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes, self.fails = 0, frozenset[int]()
        for owner, name, is_write in (
            (os, "fsync", lambda handle: stat.S_ISREG(os.fstat(handle).st_mode)),
            (Path, "open", lambda path, mode="r", *_, **named: mode == "ab"),
            (Image.Image, "save", lambda *_, **named: True),
        ):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name), is_write))

    def _counted(self, work: Callable[..., Any], is_write: Callable[..., bool]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            if is_write(*arguments, **named):
                self.writes += 1
                if self.writes in self.fails:
                    raise OSError(28, "No space left on device")
            return work(*arguments, **named)

        return counted


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> _Disk:
    monkeypatch.setattr(loop, "TICK_S", 0.0)  # a tick a step, however fast this machine is: as many writes each time
    return _Disk(monkeypatch)


def _busy(path: Path, sprites: Sprites, before_each: Callable[[Control, Event], None] | None = None) -> list[Event]:
    """A training that writes all that it can as often as it can."""
    control, events = Control(checkpoint_now=True, sample_now=True), list[Event]()
    for event in train_toy(path, sprites, control, steps=STEPS):
        events.append(event)
        control.checkpoint_now = control.sample_now = True
        if before_each is not None:
            before_each(control, event)
    return events


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_fault_21_failed_write_blocks_training_until_retry(
    tmp_path: Path, sprites: Sprites, disk: _Disk, stride: int
) -> None:
    run_to_end(find_near_duplicates(sprites, paths.cache()))  # kept from here on: looking for them writes no more
    disk.writes, first = 0, list[int]()
    events = _busy(tmp_path / "whole", sprites, lambda *_: first.append(disk.writes))
    of_the_loop, expected = range(first[0] + 1, disk.writes + 1), learnt(tmp_path / "whole")
    assert len(of_the_loop) > 10 and not of_kind(events, Blocked)
    for failing in of_the_loop[::stride]:
        disk.writes, disk.fails = 0, frozenset({failing})
        run = tmp_path / str(failing)
        events = _busy(run, sprites)
        (halted,) = of_kind(events, Blocked)
        assert "No space left" in halted.hint and str(run) in halted.title
        assert of_kind(events, RunFinished)[0].reason == "finished"
        history = read_history(run)
        assert history.series["loss"].steps.tolist() == list(range(STEPS))
        assert sorted(set(history.checkpoints)) == history.checkpoints and history.checkpoints[-1] == STEPS
        assert RunDir(run).progress().step == STEPS and not list(run.rglob(".tmp-*"))
        torch.testing.assert_close(learnt(run), expected, rtol=0, atol=0)


def test_failed_checkpoint_removal_is_retried(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = OSError(16, "Device or resource busy")
    monkeypatch.setattr(checkpoints, "rotate", Mock(wraps=checkpoints.rotate, side_effect=[busy, busy, DEFAULT]))
    events = list(train_classifier(run_path, sprites, steps=STEPS))
    assert len(of_kind(events, Blocked)) == 2 and read_history(run_path).checkpoints == [STEPS]


@pytest.mark.parametrize("failing", range(1, 30, 3))
def test_fault_21_full_disk_blocks_until_give_up(run_path: Path, sprites: Sprites, disk: _Disk, failing: int) -> None:
    disk.fails = frozenset(range(failing, 10_000))
    halted = list[Blocked]()

    def give_up_at_last(control: Control, event: Event) -> None:
        if isinstance(event, Blocked):
            halted.append(event)
            control.stop, control.give_up = True, len(halted) == 3

    with pytest.raises(UnwritableError, match="Can't write"):
        _busy(run_path, sprites, give_up_at_last)
    assert len(halted) in (0, 3)  # none where the training had not begun
    assert not RunDir(run_path).is_busy() and not list(run_path.rglob(".tmp-*"))
    found = checkpoints.list_checkpoints(run_path / "checkpoints")
    assert all(checkpoints.load_tensors(path, info, "average") for path, info in found)
    disk.fails = frozenset()
    if halted:
        assert of_kind(list(train_resumed(run_path, CPU, Control())), RunFinished)[0].step == STEPS


def test_fault_21_stop_on_full_disk_waits_for_space(run_path: Path, sprites: Sprites, disk: _Disk) -> None:
    control, events = Control(), list[Event]()
    for event in train_toy(run_path, sprites, control, steps=1_000_000):
        events.append(event)
        if isinstance(event, LossChunk):
            control.stop, disk.fails = True, frozenset(range(10_000))
        elif isinstance(event, Blocked):
            disk.fails = frozenset()
    assert len(of_kind(events, Blocked)) == 1
    finished = of_kind(events, RunFinished)[0]
    assert finished.reason == "stopped" and RunDir(run_path).progress().step == finished.step


@pytest.fixture
def small_files() -> Iterator[Callable[[int], None]]:
    """Sets how many bytes a file may have, which the system sees to: what is beyond is not written."""
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_fault_21_short_writes_are_completed(
    run_path: Path, sprites: Sprites, small_files: Callable[[int], None]
) -> None:
    limits, halted = itertools.count(300, 30_000), 0
    for event in train_toy(run_path, sprites, steps=STEPS):
        if halted == 0 and isinstance(event, LossChunk):
            small_files(next(limits))
        elif isinstance(event, Blocked):
            assert not list(run_path.rglob(".tmp-*"))
            halted += 1
            small_files(next(limits))
    assert halted > 3
    assert read_history(run_path).series["loss"].steps.tolist() == list(range(STEPS))
    assert learnt(run_path)
