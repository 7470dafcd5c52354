"""What the scripts that train the starters share: checking sources, training, and writing the file."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from studio.core.config import TrainingConfig
from studio.core.errors import BadInputError
from studio.core.events import LossChunk, RunFinished
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.devices import detection
from studio.engine.runs import checkpoints
from studio.engine.training.loop import train_new
from studio.engine.training.parents import StarterInfo
from studio.recipes.base import Recipe

HERE = Path(__file__).resolve().parent


def check_files(folder: Path, manifest: str) -> None:
    """Raise BadInputError unless the PNG files in `folder` are those of the manifest, a file of SHA-256 sums."""
    lines = [line.split("  ", 1) for line in (HERE / manifest).read_text(encoding="utf-8").splitlines()]
    known = {name: sha256 for sha256, name in lines}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*.png")}
    wrong = sorted(known.keys() ^ found)
    wrong += [name for name in sorted(known.keys() & found) if known[name] != _sha256(folder / name)]
    if wrong:
        raise BadInputError(f"{folder} is not the source of the starter.", f"{len(wrong)} files differ: {wrong[0]}.")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def train(sprites: Sprites, recipe: Recipe, config: TrainingConfig) -> dict[str, torch.Tensor]:
    """Train on the CPU and return the averaged weights of the last step. Prints the loss every 100 steps."""
    device = detection.choose_device(detection.probe_devices(), "cpu")
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        for event in train_new(run, sprites, recipe, config, device, Control()):
            if isinstance(event, LossChunk) and event.first_step % 100 < len(event.losses):
                sys.stdout.write(f"step {event.first_step} of {config.steps}: loss {event.losses.mean():.3f}\n")
                sys.stdout.flush()
            elif isinstance(event, RunFinished):
                path = checkpoints.checkpoint_path(run / "checkpoints", event.step)
                return load_file(path / "average.safetensors")
    raise AssertionError("the training has no end")


def save(path: Path, weights: Mapping[str, torch.Tensor], about: StarterInfo) -> None:
    """Write the weights in half precision, with their description."""
    halves = {name: tensor.half().contiguous() for name, tensor in weights.items()}
    save_file(halves, path, metadata={"about": json.dumps(asdict(about))})
    sys.stdout.write(f"{path}: {path.stat().st_size:,} bytes\n")
