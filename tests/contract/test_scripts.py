"""What a recipe's training script must do: lose, step by step, what the studio loses, with torch, numpy and pillow."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from studio.core.config import Config
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices.adam import AdamW
from studio.engine.models.exporting import exportable_copy
from studio.engine.models.loading import load_model
from studio.engine.training.loop import train_new
from studio.exports.script import Script
from tests.conftest import make_sprites, with_numbers, with_sets
from tests.engine.tools import CPU
from tests.exports.tools import hidden

RECIPES = list(catalog.recipes())
Losses = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]  # by recipe: recorded by the run, the script's

_HIDDEN = ("studio", "safetensors", "torchvision", "msgspec", "rich", "PySide6")  # torch has needs of its own
_PROGRAM = f"""
import sys, runpy
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {_HIDDEN}:
            raise ModuleNotFoundError(f"{{name}} must not be needed")
sys.meta_path.insert(0, Hidden())
for path in sys.argv[1:]:
    runpy.run_path(path, run_name="__main__")
"""


def run_alone(scripts: Iterable[Path], folder: Path) -> None:
    """Run scripts in `folder` on a Python that finds neither the studio nor what only the studio needs."""
    command = [sys.executable, "-I", "-c", _PROGRAM, *map(str, scripts)]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False, env=environment)
    assert done.returncode == 0, done.stderr


def run_alone_here(scripts: Iterable[Path], folder: Path) -> None:
    """The same in this process, which has imported torch: seconds less. AdamW is torch's, without its compiler."""
    with hidden(_HIDDEN.__contains__), pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(torch.optim.AdamW, "step", AdamW.step)
        for path in scripts:
            runpy.run_path(str(path), run_name="__main__")


def losses_of_both(
    folder: Path, steps: int, run_scripts: Callable[[Iterable[Path], Path], None], optimizer: str = "muon"
) -> Losses:
    """Of a small run of each recipe, and of its script, which is started from elsewhere; AdamW learns from sprites as
    they are.
    """
    is_muon = optimizer == "muon"
    scripts = {}
    for name in RECIPES:
        recipe = catalog.recipe(name)
        run = folder / name
        config = recipe.small.replace(
            steps=steps, batch_size=10, threads=1, precision="fp32", holdout=0.2, seed=3, optimizer=optimizer,
            flip=is_muon, shift_px=2 * is_muon, lr_warmup_steps=4, ema_halflife_sprites=100, sample_every_s=1e3,
            checkpoint_every_s=1e3,
        )  # fmt: skip
        list(train_new(run, with_sets(with_numbers(make_sprites())), recipe, config, CPU, Control()))
        model = exportable_copy(load_model(run, "last", CPU))
        scripts[name] = Script().write(model, run / "exports" / "trial.py", Config())[0]
    run_scripts(scripts.values(), folder)
    return {
        name: (_recorded(folder / name), np.loadtxt(script.with_name("trial_losses.txt")))
        for name, script in scripts.items()
    }


def _recorded(run: Path) -> NDArray[np.float64]:
    """The loss of each step, out of metrics.jsonl."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return np.concatenate([line["loss"] for line in lines if "grad_norm" in line])


@pytest.fixture(scope="module")
def of_few_steps(tmp_path_factory: pytest.TempPathFactory) -> Losses:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(tmp_path_factory.mktemp("home")))
        return losses_of_both(tmp_path_factory.mktemp("runs"), 5, run_alone_here)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_script_loses_what_the_studio_loses(recipe: str, of_few_steps: Losses) -> None:
    recorded, found = of_few_steps[recipe]
    assert len(recorded) == 5 and np.ptp(recorded) > 0.01 * recorded.max()
    np.testing.assert_allclose(found, recorded, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["muon", "adamw", "adam"])
def test_a_hundred_losses_are_the_studios(optimizer: str, tmp_path: Path) -> None:
    for recorded, found in losses_of_both(tmp_path, 100, run_alone, optimizer).values():
        assert len(recorded) == 100
        np.testing.assert_allclose(found, recorded, rtol=1e-3)
