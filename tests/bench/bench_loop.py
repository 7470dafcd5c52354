"""The tutorials' training loop against the studio's engine: the same network, batch size and sprites, in one run.

    python -m tests.bench.bench_loop [--sprites FOLDER] [--steps 20] [--pairs 3] [--recipe generator] [--width 0]

The tutorials' loop: ImageFolder, a DataLoader with two workers, `.to(device)` for each batch, fp32, a plain AdamW and
`loss.item()` at each step. The engine: sprites on the device, AdamW too, its own choice of precision. Both on the CPU,
in turn, each in a process of its own: the studio prepares its process for training, the tutorials do not. The first
steps of each, in which workers start and buffers are made, are not counted. Prints sprites/s and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms.functional import pil_to_tensor

from studio.core import places
from studio.core.config import TrainingConfig
from studio.core.events import LossChunk
from studio.core.process import prepare_for_training
from studio.data.importing import ImportOptions, SpritesImported, import_sprites
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.batches import to_input
from studio.engine.control import Control
from studio.engine.devices import choose, detect
from studio.engine.train import train_new
from studio.engine.types import Device
from studio.recipes.base import Batch, BatchRng, Recipe, Spec

WARM_UP_STEPS = 3


def load_rgba(path: str) -> Image.Image:
    """A picture as the tutorials load it, but with its alpha."""
    return Image.open(path).convert("RGBA")


def write_folder(sprites: Sprites, folder: Path) -> None:
    """One PNG a sprite in a folder a class, as ImageFolder wants it."""
    for number, (rgba, label) in enumerate(zip(sprites.rgba, sprites.labels, strict=True)):
        target = folder / f"{label:04d}" / f"{number:06d}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rgba).save(target)


def forever(loader: DataLoader[tuple[torch.Tensor, torch.Tensor]]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Epoch after epoch."""
    while True:
        yield from loader


def tutorial_rate(folder: Path, recipe: Recipe, config: TrainingConfig, spec: Spec, steps: int) -> float:
    """Sprites per second of the tutorials' loop."""
    device = torch.device("cpu")
    network = recipe.build(config, spec).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.learning_rate)
    data = ImageFolder(str(folder), transform=pil_to_tensor, loader=load_rgba)
    loader = DataLoader(data, batch_size=config.batch_size, shuffle=True, num_workers=2, drop_last=True)
    batches, rng, start = forever(loader), torch.Generator(), 0.0
    for step in range(WARM_UP_STEPS + steps):
        if step == WARM_UP_STEPS:
            start = time.perf_counter()
        rgba, y = next(batches)
        rgba, y = rgba.to(device), y.to(device)
        batch = Batch(to_input(rgba), y, torch.zeros(len(y), 3), torch.zeros(len(y), 0))
        optimizer.zero_grad()
        loss = recipe.loss(network, batch, config, BatchRng(rng, batch))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip_grad_norm)
        optimizer.step()
        loss.item()
    return steps * config.batch_size / (time.perf_counter() - start)


def engine_rate(sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device) -> float:
    """Sprites per second of the studio's loop, everything that it does beside training counted."""
    with tempfile.TemporaryDirectory() as folder:
        marks: list[tuple[float, int]] = []
        for event in train_new(Path(folder) / "run", sprites, recipe, config, device, Control()):
            if isinstance(event, LossChunk):
                marks.append((time.perf_counter(), event.first_step + len(event.losses)))
    warm = next(mark for mark in marks if mark[1] >= WARM_UP_STEPS)
    return (marks[-1][1] - warm[1]) * config.batch_size / (marks[-1][0] - warm[0])


def measure(side: str, chosen: argparse.Namespace, folder: Path) -> float:
    """Sprites per second of one side, in this process."""
    *_, found = import_sprites([chosen.sprites], ImportOptions())
    assert isinstance(found, SpritesImported)
    recipe, device = catalog.recipe(chosen.recipe), choose(detect(), "cpu")
    network = {"width": chosen.width} if chosen.width else {}
    config = recipe.Config(steps=WARM_UP_STEPS + chosen.steps, holdout=0.0, shift_px=0, optimizer="adamw", **network)
    sprites, _ = recipe.select(found.sprites, config)
    torch.set_num_threads(device.threads)
    if side == "engine":
        return engine_rate(sprites, recipe, config, device)
    write_folder(sprites, folder)
    return tutorial_rate(folder, recipe, config, Spec(sprites.size, sprites.class_names), chosen.steps)


def measure_apart(side: str) -> float:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.bench_loop", *sys.argv[1:], "--side", side]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main() -> None:
    """Run the pairs and print what they gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sprites", type=Path, default=places.demo_sprites())
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--recipe", default="generator")
    parser.add_argument("--width", type=int, default=0, help="of the network; 0 takes the recipe's own")
    parser.add_argument("--side", choices=("engine", "tutorials"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.side:
        if chosen.side == "engine":
            prepare_for_training()
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(f"{measure(chosen.side, chosen, Path(folder))}\n")
        return
    ratios = []
    for _ in range(chosen.pairs):
        plain, ours = measure_apart("tutorials"), measure_apart("engine")
        ratios.append(ours / plain)
        sys.stdout.write(
            f"tutorials' loop {plain:7.1f} sprites/s   engine {ours:7.1f} sprites/s   x {ratios[-1]:.2f}\n"
        )
    spread = f"{np.min(ratios):.2f} to {np.max(ratios):.2f}"
    sys.stdout.write(f"{chosen.recipe}: median ratio {statistics.median(ratios):.2f} ({spread})\n")


if __name__ == "__main__":
    main()
