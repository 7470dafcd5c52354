"""Distributed training: several ranks learn what one process learns, and end together after an error."""

from __future__ import annotations

import itertools
import math
import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed import HashStore  # type: ignore[attr-defined]

from studio.cli import main as studio_main
from studio.cli.messages import DONE, FAILED, WRONG_USAGE
from studio.core import paths
from studio.core.errors import UsageError
from studio.core.events import Event, LossChunk, Notice, RolledBack, RunFinished, Validated
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.distributed import ranks
from studio.engine.distributed.ranks import Group, TickCommand, process_group
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.training import loop, maintenance
from studio.engine.training.loop import train_resumed, train_worker
from studio.exports.png import save_files
from studio.recipes.classifier import Classifier
from studio.recipes.regression import Regression
from tests.conftest import make_sprites, with_numbers
from tests.engine.distributed.launching import Launcher, grouped, in_group
from tests.engine.runs.test_damaged_runs import flip
from tests.engine.tools import CPU, SavingAlways, learnt, of_kind, train_generator, train_regression

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Only on Linux can several processes train one run.")

LOSS_TOLERANCE = 2e-6  # for fp32 losses, whose terms are added in a different order
WEIGHT_TOLERANCE = 2e-5
ANYTHING = "head.leave.bias"  # shifts the logits of all colours equally, so its gradient is only rounding error


def take_part(
    group: Group, begin: Any, path: Path, sprites: Sprites, changes: dict[str, Any], until: int = 0
) -> list[Event]:
    """Run the training on one rank; returns rank 0's events. until: the step to stop at; 0: the end."""
    control, events = Control(), list[Event]()
    if not group.is_first:
        train_worker(CPU, control, group)
        return events
    is_begun = (path / "run.json").exists()
    for event in (
        train_resumed(path, CPU, control, ranks=group)
        if is_begun
        else begin(path, sprites, control, ranks=group, **changes)
    ):
        events.append(event)
        threads = changes.get("threads", CPU.threads)
        if isinstance(event, LossChunk | Validated):  # while one measures, the others wait
            assert torch.get_num_threads() == (threads if isinstance(event, Validated) else max(1, threads // 2))
        control.stop = isinstance(event, LossChunk) and 0 < until <= event.first_step + len(event.losses)
    return events


def losses(run: Path) -> np.ndarray[Any, Any]:
    curve = read_history(run).series["loss"]
    assert curve.steps.tolist() == list(range(len(curve.steps)))
    return curve.values


def weights(run: Path) -> dict[str, torch.Tensor]:
    return {
        name: tensor for name, tensor in learnt(run).items()
        if not name.startswith("optimizer") and not name.endswith(ANYTHING)
    }  # fmt: skip


def some_numbers() -> Sprites:
    """Return sprites with one or both numbers missing in many: weights of batch parts depend on the known numbers."""
    sprites = with_numbers(make_sprites())
    sprites.targets[np.random.default_rng(0).random(sprites.targets.shape) < 0.6] = np.nan
    return sprites


def assert_same_learnt(run: Path, other: Path) -> None:
    np.testing.assert_allclose(losses(run), losses(other), rtol=LOSS_TOLERANCE)
    torch.testing.assert_close(weights(run), weights(other), rtol=0, atol=WEIGHT_TOLERANCE)


def test_two_ranks_learn_what_one_learns(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"flip": True, "shift_px": 1}
    list(train_generator(tmp_path / "one", make_sprites(), **changes))
    in_group(2, take_part, train_generator, tmp_path / "two", make_sprites(), changes)
    assert_same_learnt(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
def test_run_resumes_with_another_number_of_ranks(tmp_path: Path) -> None:
    """Two, who read their parts of odd batches from the disk; one that goes on with their run, and two that end it."""
    changes: dict[str, Any] = {"batch_size": 5, "data_on_device": "no", "threads": 4}
    one, mixed = tmp_path / "one", tmp_path / "mixed"
    list(train_regression(one, some_numbers(), **changes))
    first, _ = in_group(2, take_part, train_regression, mixed, some_numbers(), changes, 3)
    for event in train_resumed(mixed, CPU, control := Control()):
        control.stop = control.stop or isinstance(event, LossChunk)
    last, _ = in_group(2, take_part, train_regression, mixed, some_numbers(), changes)
    assert [of_kind(events, RunFinished)[0].reason for events in (first, last)] == ["stopped", "finished"]
    assert_same_learnt(mixed, one)


def in_trouble(group: Group, trouble: str, path: Path, changes: dict[str, Any]) -> list[Event]:
    """The last process meets with this in its part of the step 5; a checkpoint follows each tick, which is a step."""
    loss, calls = Regression.loss, itertools.count()

    def troubled(*arguments: Any) -> torch.Tensor:
        if group.is_first or next(calls) != 5:
            return loss(*arguments)
        if trouble == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == "full":
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return loss(*arguments) * math.nan

    control = SavingAlways()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "TICK_S", 0.0)
        patch.setattr(Regression, "loss", troubled)
        if group.is_first:
            return list(train_regression(path, some_numbers(), control, ranks=group, **changes))
        train_worker(CPU, control, group)
        return []


@pytest.mark.slow
def test_nan_loss_on_one_rank_rolls_all_back(run_path: Path) -> None:
    events, _ = in_group(2, in_trouble, "not a number", run_path, {"batch_size": 5})
    (back,) = of_kind(events, RolledBack)
    assert (back.failed_step, back.step, back.lr_scale) == (5, 5, 0.5)
    assert of_kind(events, RunFinished)[0].step == 8 and RunDir(run_path).progress().nan_rollbacks == 1
    rates = [chunk.lr for chunk in of_kind(events, LossChunk)]
    assert rates[5] < 0.6 * rates[4]


@pytest.mark.slow
def test_rank_without_memory_restarts_all_with_smaller_micro_batches(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    list(train_regression(one, some_numbers()))
    first, last = Launcher(2).results(grouped, in_trouble, "full", two, {})
    assert "StepTooLargeError" in first and "OutOfMemoryError" in last
    progress = RunDir(two).progress()
    assert (progress.state, progress.step, progress.micro_batches) == ("failed", 5, 4)
    assert "no memory left" in progress.message
    events, _ = in_group(2, take_part, train_regression, two, some_numbers(), {})
    assert any("Batches are still split in 4 parts" in notice.title for notice in of_kind(events, Notice))
    np.testing.assert_allclose(losses(two), losses(one), rtol=LOSS_TOLERANCE)


def test_dead_rank_ends_the_training_with_an_error(run_path: Path) -> None:
    first, last = Launcher(2).results(grouped, in_trouble, "killed", run_path, {})
    assert last is None and "ProcessGoneError: Another process of this training has ended." in first
    progress = RunDir(run_path).progress()
    assert (progress.state, progress.step) == ("failed", 5) and "resume the run" in progress.message
    assert not RunDir(run_path).is_busy()


NOT_FINITE, NOT_MEASURED, NOT_LEARNT = 13, 14, 15  # seeds of runs that fail


def command(words: list[str], hit: int = -1, end: signal.Signals = signal.SIGKILL) -> tuple[int, str, str]:
    """A command line in a process that torchrun has started; at the first start, this signal hits it in this step: the
    last one where it is SIGKILL, else the first.

    Runs of some seeds fail. Returns the exit code, and what it wrote.
    """
    loss, evaluate, calls = Classifier.loss, Classifier.evaluate, itertools.count()
    is_first, is_restart = os.environ["RANK"] == "0", os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"

    def troubled(recipe: Any, network: Any, batch: Any, config: Any, rng: Any) -> torch.Tensor:
        if next(calls) == hit and not is_restart and is_first == (end != signal.SIGKILL):
            os.kill(os.getpid(), end)
        if config.seed == NOT_LEARNT and is_first:
            raise ZeroDivisionError("a bug in a plug-in")
        found: torch.Tensor = loss(recipe, network, batch, config, rng)
        return found * math.nan if config.seed == NOT_FINITE else found

    def measured(recipe: Any, network: Any, batches: Any, config: Any, spec: Any) -> Any:
        return 1 / 0 if config.seed == NOT_MEASURED else evaluate(recipe, network, batches, config, spec)

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        patch.setattr(maintenance, "MIN_BEST_SPACING", math.inf)
        patch.setattr(loop, "MAX_ROLLBACKS", 1)
        patch.setattr(loop, "TICK_S", 0.0)  # a step each, however fast the machine is
        patch.setattr(Classifier, "loss", troubled)
        patch.setattr(Classifier, "evaluate", measured)
        code = studio_main(words)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def art(tmp_path: Path) -> Path:
    """Sprites as files."""
    sprites = make_sprites()
    for label, name in enumerate(sprites.class_names):
        save_files(tmp_path / "art" / name, sprites.rgba[sprites.labels == label])
    return tmp_path / "art"


SMALL = ["--recipe", "classifier", "--width", "16", "--steps", "6", "--precision", "fp32", "--device", "cpu"]


@pytest.mark.slow
def test_restarted_command_resumes_its_run(art: Path) -> None:
    words = ["train", str(art), *SMALL, "--batch-size", "4", "--name", "trial"]
    launcher, run = Launcher(2), paths.runs() / "trial"

    (code, out, err), killed = launcher.results(command, words, 3)
    assert (code, out, killed) == (FAILED, "", None)
    assert "Training the classifier" in err and "Another process of this training has ended." in err
    assert RunDir(run).progress().state == "failed"

    (code, out, err), other = launcher.results(command, words, 3)
    assert code == DONE and "6 steps" in out and str(run) in out and "2 processes share each batch." in err
    assert other == (DONE, "", "")
    assert RunDir(run).progress().state == "finished" and not list(paths.runs().glob("trial *"))

    (code, out, err), other = launcher.results(command, words, 3)
    assert code == DONE and "is finished." in err and other == (DONE, "", "")


def queued(art: Path, **seeds: int) -> list[Path]:
    """Runs of these seeds, which wait."""
    for name, seed in seeds.items():
        size = "1" if name == "small" else "4"
        words = ["queue", "add", str(art), *SMALL, "--batch-size", size, "--seed", str(seed), "--name", name]
        assert studio_main(words) == DONE
    return [paths.runs() / name for name in seeds]


def standings() -> dict[str, str]:
    return {path.name: RunDir(path).progress().state for path in paths.runs().iterdir()}


@pytest.mark.slow
def test_queue_continues_after_failed_runs(art: Path) -> None:
    """Most fail between steps. One leaves the others in the middle of a step: torchrun starts all of them again."""
    spoilt, *_ = queued(art, spoilt=0, small=0, nan=NOT_FINITE, bug=NOT_LEARNT, sick=NOT_MEASURED, good=0)
    flip(spoilt / "data.safetensors")
    launcher, words = Launcher(2), ["queue", "run"]
    (code, _, err), _ = launcher.results(command, words)
    assert code == FAILED and "The other processes lost track of the queue." in err
    for said in ("is damaged", "can't be shared by 2 processes", "became NaN or infinite", "bug has failed."):
        assert said in err
    failed = dict.fromkeys(("spoilt", "small", "nan", "bug"), "failed")
    assert standings() == failed | {"sick": "queued", "good": "queued"}
    (code, out, err), other = launcher.results(command, words)
    assert (code, other) == (FAILED, (DONE, "", "")) and "1 run trained, 1 failed: sick." in out, err
    assert standings() == failed | {"sick": "failed", "good": "finished"}
    assert launcher.results(command, words) == [(FAILED, "", "")] * 2


@pytest.mark.slow
def test_queue_stops_and_resumes_after_a_restart(art: Path) -> None:
    queued(art, a=0, b=0)
    words = ["queue", "run"]
    (code, out, _), other = Launcher(2).results(command, words, 3, signal.SIGTERM)
    assert (code, other) == (
        DONE,
        (DONE, "", ""),
    ) and "2 runs left in the queue." in out  # a failure would be tried again
    assert standings() == {"a": "stopped", "b": "queued"}
    launcher = Launcher(2)
    (code, _, err), killed = launcher.results(command, words, 1)
    assert (code, killed) == (FAILED, None) and "Another process of this training has ended." in err
    (code, out, err), other = launcher.results(command, words)
    assert (code, other) == (DONE, (DONE, "", "")) and "2 runs trained, 0 failed." in out, err
    assert standings() == {"a": "finished", "b": "finished"}


@pytest.mark.slow
def test_usage_error_is_reported_once(art: Path) -> None:
    launcher, words = Launcher(2), ["train", str(art), *SMALL, "--batch-size", "1"]
    (code, out, err), _ = launcher.results(command, words)
    assert (code, out) == (WRONG_USAGE, "") and "can't be shared by 2 processes" in err
    assert launcher.results(command, words) == [(FAILED, "", "")] * 2


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> tuple[Group, Group]:
    """The first process of two and the other, of which neither computes."""
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    store = HashStore()
    first, other = (Group(store, number, 2, 2, "cpu") for number in range(2))
    return first, other


def test_workers_receive_commands_in_order(heard: tuple[Group, Group]) -> None:
    first, other = heard
    said = [TickCommand(number, 0.1 + number, 1, 2) for number in range(5)]
    for tick in said:
        first.send_command(tick)
        assert other.receive_command(Control()) == tick
    first.send_command(None)
    assert other.receive_command(Control()) is None and other.receive_command(Control()) is None


def test_stopping_worker_does_not_wait_for_a_dead_rank_0(
    heard: tuple[Group, Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = heard
    first.send_command(TickCommand(1, 0.0, 0, 1))
    assert other.receive_command(Control(stop=True)) is not None
    monkeypatch.setattr(ranks, "_STOP_TIMEOUT_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        other.receive_command(Control(stop=True))


@pytest.mark.parametrize(
    ("count", "here", "device", "devices"),
    [(4, 4, "cpu", 1), (8, 4, "cpu", 2), (4, 4, "cuda:3", 4), (8, 4, "cuda:3", 8)],
)
def test_group_counts_its_devices(
    monkeypatch: pytest.MonkeyPatch, count: int, here: int, device: str, devices: int
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert Group(HashStore(), 0, count, here, device).devices == devices and ranks.ALONE.devices == 1


def test_too_small_batch_and_unsupported_device_are_refused(
    heard: tuple[Group, Group], run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="A batch of 1 sprites can't be shared by 2 processes"):
        list(train_regression(run_path, some_numbers(), ranks=heard[0], batch_size=1))
    assert not run_path.exists()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "64")
    for device, said in (("mps", "Distributed training on 'mps'"), ("cuda", "64 processes need one GPU each")):
        with pytest.raises(UsageError, match=said), process_group(device):
            pass
