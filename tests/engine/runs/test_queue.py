"""Runs that wait: what was frozen is what is learnt from, the order holds, and nothing of a queue is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from studio.core import file_systems, files, paths
from studio.core.errors import DamagedError, RunError, TrainingError, UnwritableError
from studio.core.events import LossChunk, Notice, RunStarted
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.runs import queue
from studio.engine.runs.folder import RunDir, RunProgress
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import RunsListed, RunSummary, list_runs
from studio.engine.training.create import NewRun, create_queued_run
from studio.engine.training.loop import train_new, train_resumed
from studio.engine.training.parents import load_parent
from tests.conftest import make_sprites
from tests.engine.runs.test_damaged_runs import flip, no_room
from tests.engine.tools import CPU, TOY, kept_run, learnt, of_kind, small_toy, train_toy

SPRITES = make_sprites(per_class=6)


@pytest.fixture(scope="module")
def parent_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_run(tmp_path_factory, SPRITES, train_toy, steps=4)


@pytest.fixture(scope="module")
def one_queued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that waits, to be copied."""
    path = tmp_path_factory.mktemp("queued") / "trial"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(tmp_path_factory.mktemp("home")))
        list(create_queued_run(NewRun(path, SPRITES, TOY, small_toy(steps=3), CPU)))
    return path


@pytest.fixture
def runs(one_queued: Path) -> dict[str, Path]:
    """Three runs that wait, a before b before c: all made at one moment, as far as their records tell."""
    found = {name: shutil.copytree(one_queued, paths.runs() / name) for name in "cab"}
    for name in "abc":
        queue.append(found[name])
    return found


def waiting() -> tuple[RunSummary, ...]:
    (listed,) = list_runs()
    assert isinstance(listed, RunsListed)
    return queue.queued_runs(listed.runs)


def names() -> str:
    return "".join(run.path.name for run in waiting())


def move(run: Path, to: int) -> None:
    queue.move(run, to, waiting())


def set_state(run: Path, progress: RunProgress) -> None:
    RunDir(run).write_progress(progress)


def same(one: Path, other: Path) -> bool:
    """Whether two runs have learnt the same, bit by bit."""
    ours, theirs = learnt(one), learnt(other)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("has_parent", [False, True], ids=["from nothing", "from a model"])
def test_a_queued_run_learns_what_it_would_have_learnt_at_once(
    parent_run: Path, tmp_path: Path, has_parent: bool
) -> None:
    source = shutil.copytree(parent_run, tmp_path / "parent")
    recipe, config = TOY, small_toy(steps=4)
    parents = [load_parent(source, recipe) if has_parent else None for _ in range(2)]
    at_once, queued = tmp_path / "at once", tmp_path / "queued"
    list(train_new(at_once, SPRITES, recipe, config, CPU, Control(), parents[0]))
    *_, said = create_queued_run(NewRun(queued, SPRITES, recipe, config, CPU, parents[1]))
    assert said == queue.RunQueued(queued) and RunDir(queued).progress().state == "queued"
    assert not RunDir(queued).is_busy() and RunDir(queued).start.exists() == has_parent
    shutil.rmtree(source)
    events = list(train_resumed(queued, CPU, Control()))
    (started,) = of_kind(events, RunStarted)
    assert started.first_step == 0 and started.started_from == ("trial" if has_parent else "")
    assert not [notice for notice in of_kind(events, Notice) if notice.level != "info"]
    assert same(at_once, queued)
    losses = [read_history(run).series["loss"].values.tolist() for run in (at_once, queued)]
    assert len(losses[0]) == 4 and losses[0] == losses[1]
    ours, theirs = (RunDir(run).record() for run in (at_once, queued))
    assert (ours.ancestors, ours.config, ours.start_sha256) == (theirs.ancestors, theirs.config, theirs.start_sha256)


def test_fault_20_a_run_from_a_model_that_was_killed_before_its_first_checkpoint_starts_from_it_again(
    parent_run: Path, tmp_path: Path
) -> None:
    recipe, config = TOY, small_toy(steps=4)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for run in (killed, whole):
        events = train_new(run, SPRITES, recipe, config, CPU, Control(), load_parent(parent_run, recipe))
        for event in events:
            if run == killed and isinstance(event, LossChunk):
                events.close()
    assert not list((killed / "checkpoints").iterdir())
    spoilt = shutil.copytree(killed, tmp_path / "spoilt")
    list(train_resumed(killed, CPU, Control()))
    assert same(killed, whole)
    flip(spoilt / "start.safetensors")
    with pytest.raises(DamagedError, match=r"start.safetensors of killed is damaged"):
        list(train_resumed(spoilt, CPU, Control()))
    (spoilt / "start.safetensors").unlink()
    with pytest.raises(DamagedError, match=r"start.safetensors of killed is missing"):
        list(train_resumed(spoilt, CPU, Control()))
    assert not RunDir(spoilt).is_busy()


def test_failed_queueing_leaves_no_files(sprites: Sprites, run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingError, match="No sprites"):
        list(create_queued_run(NewRun(run_path, sprites.take([]), TOY, small_toy(), CPU)))
    monkeypatch.setattr("studio.engine.training.create.save_style", no_room)
    with pytest.raises(OSError, match="No space"):
        list(create_queued_run(NewRun(run_path, sprites, TOY, small_toy(), CPU)))
    assert not run_path.exists() and not (paths.home() / "queue.json").exists()


def test_queue_order_is_by_insertion_until_moved(runs: dict[str, Path]) -> None:
    """Fault 26: the clock, which may jump, has no say in it."""
    assert names() == "abc"
    move(runs["c"], 0)
    assert names() == "cab"
    move(runs["c"], 1)
    assert names() == "acb"
    move(runs["a"], 9)
    assert names() == "cba"
    queue.append(runs["c"])
    assert names() == "bac"
    queue.remove(runs["a"])
    assert names() == "bc" and RunDir(runs["a"]).progress().state == "stopped"  # kept, and no longer said to wait


def test_a_run_that_left_the_queue_while_it_was_dragged_moves_nothing(runs: dict[str, Path]) -> None:
    queue.remove(runs["a"])
    with pytest.raises(RunError, match="a is no longer in the queue"):
        queue.move(runs["a"], 1, waiting())
    assert names() == "bc"


def test_next_run_is_the_first_idle_one(runs: dict[str, Path]) -> None:
    holder = RunDir(runs["a"])
    holder.acquire()
    queue.mark_failed(runs["a"], "Nobody but its holder says how it goes.")
    queue.remove(runs["c"])
    holder.write_progress(RunProgress("training", 1, 1.0, {}))
    assert [(run.path.name, run.standing) for run in waiting()] == [("a", "training"), ("b", "queued")]
    following = queue.next_run(waiting())
    assert following is not None and following.path == runs["b"]
    assert queue.next_run(waiting(), {runs["b"]}) is None
    holder.release()  # as the system does when it is killed: it is first again
    following = queue.next_run(waiting())
    assert following is not None and following.path == runs["a"] and following.standing == "interrupted"


def test_ended_runs_leave_the_queue_and_stopped_runs_stay(runs: dict[str, Path]) -> None:
    set_state(runs["a"], RunProgress("stopped", 2, 1.0, {}))
    set_state(runs["b"], RunProgress("finished", 2, 1.0, {}))
    queue.mark_failed(runs["c"], "No device.")
    assert names() == "a" and RunDir(runs["c"]).progress() == RunProgress("failed", 0, 0.0, {}, "No device.")
    for run in runs.values():
        queue.remove_if_ended(run)
    for name in "bc":  # trained longer, one day, and stopped
        set_state(runs[name], RunProgress("stopped", 3, 1.0, {}))
    assert names() == "a"
    queue.remove(runs["a"])
    assert names() == "" and RunDir(runs["a"]).progress().step == 2


def test_damaged_queue_file_loses_only_the_order(runs: dict[str, Path]) -> None:
    move(runs["c"], 0)
    file = paths.home() / "queue.json"
    good = json.loads(file.read_text())
    file.write_text(
        json.dumps([None, 5, {"run": 3}, {"run": "x\0y", "created": ""}, good[0], "a", *good[:0:-1], good[0]])
    )
    assert names() == "cba"
    for odd in ("{}", "[[5]]", "null", "", "[" * 100_000):
        file.write_text(odd)
        assert sorted(names()) == ["a", "b", "c"]
    file.unlink()
    assert sorted(names()) == ["a", "b", "c"]
    move(runs["b"], 0)
    assert names()[0] == "b"


def test_a_folder_that_is_gone_is_passed_over_and_another_run_in_its_place_does_not_wait(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    shutil.move(runs["a"], tmp_path / "trash")
    assert names() == "bc"
    record = json.loads((tmp_path / "trash" / "run.json").read_text())
    for created, expected in (("2026-01-01T00:00:00+00:00", "bc"), (record["created"], "abc")):
        other = shutil.copytree(tmp_path / "trash", runs["a"])
        (other / "run.json").write_text(json.dumps({**record, "created": created}))
        set_state(other, RunProgress("stopped", 2, 1.0, {}))
        assert names() == expected  # taken back from the trash, it has its place again
        shutil.rmtree(other)
    (runs["b"] / "run.json").write_text("{")
    assert names() == "c"


def test_a_queue_that_can_not_be_written_loses_no_run(
    one_queued: Path, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = shutil.copytree(one_queued, paths.runs() / "d")
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_atomic", no_room)
        with pytest.raises(UnwritableError):
            queue.append(late)
    assert names() == "abcd"
    monkeypatch.setattr(queue, "_WAIT_S", 0.0)
    lock = file_systems.acquire_lock(paths.home() / ".queue.lock", 0.0)
    assert lock is not None
    with pytest.raises(RunError, match="Another window or command"):
        move(late, 0)
    lock.release()
    move(late, 0)
    assert names() == "dabc"
