"""Several processes that train one run: four of them on every recipe, a pause, a full disk, and kills by the dozen."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from studio.core.events import Blocked, LossChunk
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.distributed.ranks import Group
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.training.loop import train_new, train_worker
from studio.exports.png import save_files
from studio.recipes.base import Recipe
from studio.recipes.classifier import Classifier
from tests.campaigns import tell
from tests.conftest import make_sprites, with_numbers, with_sets
from tests.engine.distributed.launching import in_group
from tests.engine.tools import CPU, train_classifier

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="Only on Linux can several processes train one run."),
]

LOSS_TOLERANCE = 1e-4  # of a loss in fp32: the same numbers are added up in another order
KILLS, STEPS, INTERVAL_S = 20, 100_000, 1.0
PAUSE_S = 60.0


def losses(run: Path) -> np.ndarray[Any, Any]:
    return read_history(run).series["loss"].values


def train_small(group: Group | None, recipe: Recipe, path: Path) -> None:
    config = recipe.small.replace(
        steps=12, batch_size=10, precision="fp32", holdout=0.2, flip=True, shift_px=1, lr_warmup_steps=2
    )
    sprites = with_sets(with_numbers(make_sprites()))
    if group is None:
        list(train_new(path, sprites, recipe, config, CPU, Control()))
    elif group.is_first:
        list(train_new(path, sprites, recipe, config, CPU, Control(), ranks=group))
    else:
        train_worker(CPU, Control(), group)


@pytest.mark.parametrize("recipe", catalog.recipes().values(), ids=lambda recipe: recipe.name)
def test_what_four_learn_is_what_one_learns(tmp_path: Path, recipe: Recipe) -> None:
    train_small(None, recipe, tmp_path / "one")
    in_group(4, train_small, recipe, tmp_path / "four")
    one, four = losses(tmp_path / "one"), losses(tmp_path / "four")
    np.testing.assert_allclose(four, one, rtol=LOSS_TOLERANCE)
    tell(f"{recipe.name}: losses of four processes are those of one to {np.abs(four / one - 1).max():.1g}")


def train_with_a_pause(group: Group, path: Path) -> list[str]:
    """The first process is paused after its second tick; the last one takes ten times as long for a step."""
    loss = Classifier.loss

    def slow(*arguments: Any) -> torch.Tensor:
        time.sleep(0.1)
        return loss(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        if group.rank == group.world_size - 1:
            patch.setattr(Classifier, "loss", slow)
        if not group.is_first:
            train_worker(CPU, Control(), group)
            return []
        ticks, kinds = itertools.count(1), list[str]()
        for event in train_classifier(path, make_sprites(), ranks=group):
            kinds.append(type(event).__name__)
            if isinstance(event, LossChunk) and next(ticks) == 2:
                time.sleep(PAUSE_S)
        return kinds


def train_on_a_full_disk(group: Group, path: Path) -> list[str]:
    """The disk takes nothing from the first tick on until that was said three times."""
    if not group.is_first:
        train_worker(CPU, Control(), group)
        return []
    flush, titles, is_full = os.fsync, list[str](), False

    def refuse(handle: int) -> None:
        if is_full:
            raise OSError(28, "No space left on device")
        flush(handle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        for event in train_classifier(path, make_sprites(), ranks=group):
            if isinstance(event, Blocked):
                titles.append(event.title)
            is_full = (is_full or isinstance(event, LossChunk)) and len(titles) < 3
    return titles


def test_a_minute_of_pause_a_slow_process_and_a_full_disk_change_nothing(tmp_path: Path) -> None:
    list(train_classifier(tmp_path / "one", make_sprites()))
    kinds, _, _ = in_group(3, train_with_a_pause, tmp_path / "paused")
    assert kinds[-1] == "RunFinished"
    titles, _ = in_group(2, train_on_a_full_disk, tmp_path / "full")
    assert titles == [f"Can't write to {tmp_path / 'full'}."] * 3
    for name in ("paused", "full"):
        assert RunDir(tmp_path / name).progress().state == "finished"
        np.testing.assert_allclose(losses(tmp_path / name), losses(tmp_path / "one"), rtol=LOSS_TOLERANCE)


class _Torchrun:
    """torchrun with two processes that train, of which one can be killed."""

    def __init__(self, words: list[str]) -> None:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
        command = [*torchrun, "--max-restarts", str(KILLS), "-m", "studio", *words]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.said = list[str]()  # on stderr
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line)

    def events(self) -> Iterator[dict[str, Any]]:
        """What the first process says, whichever start it is of."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield json.loads(line)

    def kill(self, number: int) -> None:
        """Kill the process of this number."""
        for child in psutil.Process(self._process.pid).children():
            if child.environ().get("RANK") == str(number):
                child.kill()

    def stop(self) -> None:
        """What Ctrl+C does."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Whatever comes, none of it stays."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        for child in children:
            child.kill()
        self._process.wait()


def test_of_a_run_whose_processes_are_killed_at_random_moments_no_checkpoint_is_lost(tmp_path: Path) -> None:
    chance, sprites = random.Random(20), make_sprites()
    for label, name in enumerate(sprites.class_names):
        save_files(tmp_path / "art" / name, sprites.rgba[sprites.labels == label])
    run = tmp_path / "run"
    words = ["train", str(tmp_path / "art"), "--out", str(run), "--recipe", "classifier", "--width", "16", "--json"]
    words += ["--steps", str(STEPS), "--batch-size", "4", "--precision", "fp32", "--device", "cpu"]
    words += ["--checkpoint-every-s", str(INTERVAL_S), "--sample-every-s", "1000"]
    torchrun, kills, saved, done, lost_s = _Torchrun(words), 0, (0, 0.0), (0, 0.0), list[float]()
    killer: threading.Timer | None = None
    try:
        for event in torchrun.events():
            match event["type"]:
                case "RunStarted":
                    assert event["first_step"] >= saved[0]
                    lost_s.append(done[1] - event["elapsed_s"])
                    if kills < KILLS:
                        kills += 1
                        wait_s, number = chance.uniform(0, 4), chance.randrange(2)
                        killer = threading.Timer(wait_s, torchrun.kill, [number])
                    else:
                        killer = threading.Timer(3, torchrun.stop)
                    killer.start()
                case "LossChunk":
                    done = event["first_step"] + len(event["losses"]), event["elapsed_s"]
                case "CheckpointSaved":
                    saved = event["step"], done[1]
    finally:
        if killer is not None:
            killer.join()
        torchrun.end()
    progress = RunDir(run).progress()
    assert len(lost_s) == KILLS + 1 and progress.state == "stopped" and progress.step == saved[0] == done[0]
    assert max(lost_s) < 5 * INTERVAL_S
    steps = read_history(run).series["loss"].steps
    assert steps.tolist() == list(range(progress.step))
    assert all(
        checkpoints.load_tensors(path, info, part)
        for path, info in checkpoints.list_checkpoints(run / "checkpoints")
        for part in checkpoints.PARTS
    )
    assert not any("Traceback" in line for line in torchrun.said if "studio" in line)
    tell(f"{KILLS} kills in {progress.step:,} steps: at most {max(lost_s):.1f} s were trained anew")
