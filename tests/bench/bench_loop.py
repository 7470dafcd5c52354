"""The tutorials' training loop against the studio's engine: the same network, batch size and sprites, in one run.

    python -m tests.bench.bench_loop [--sprites FOLDER] [--steps 20] [--pairs 3] [--recipe generator] [--width 0]
        [--against NAME=VALUE] [--precision auto]

The tutorials' loop: ImageFolder, a DataLoader with two workers, `.to(device)` for each batch, fp32, a plain AdamW and
`loss.item()` at each step. The engine: sprites on the device, AdamW too, its own choice of precision. Both on the CPU,
in turn, each in a process of its own: the studio prepares its process for training, the tutorials do not. The first
steps of each, in which workers start and buffers are made, are not counted. Prints sprites/s and their ratio.
--against precision=fp32: the engine with this setting takes the place of the tutorials' loop.
"""

from __future__ import annotations

import sys

from studio.core.process import prepare_for_training

if __name__ == "__main__" and sys.argv[-1] in ("engine", "other"):
    prepare_for_training()  # before torch comes in

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms.functional import pil_to_tensor

from studio.core import paths
from studio.core.config import TrainingConfig, settings_of
from studio.data.sprites import Sprites
from studio.engine.devices.detection import choose_device, probe_devices
from studio.engine.devices.types import Device
from studio.engine.distributed.ranks import Ranks
from studio.engine.steps.batches import to_input
from studio.recipes.base import Batch, BatchRng, Recipe, Spec
from tests.bench.tools import configured, say, ticks_of, told_by, training_command_line
from tests.data.making import imported

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


def tutorial_data(folder: Path) -> ImageFolder:
    """A folder of sprites as the tutorials read it."""
    return ImageFolder(str(folder), transform=pil_to_tensor, loader=load_rgba)


def tutorial_steps(
    data: ImageFolder, network: nn.Module, recipe: Recipe, config: TrainingConfig, rate: float, clip: float | None
) -> Iterator[None]:
    """The tutorials' loop without an end; yields after each step."""
    device, rng = torch.device("cpu"), torch.Generator()
    optimizer = torch.optim.AdamW(network.to(device).parameters(), lr=rate)
    loader = DataLoader(data, batch_size=config.batch_size, shuffle=True, num_workers=2, drop_last=True)
    for rgba, y in forever(loader):
        x, labels = to_input(rgba.to(device)), y.to(device)
        batch = Batch(x, labels, torch.zeros(len(y), 3), torch.zeros(len(y), 0))
        optimizer.zero_grad()
        loss = recipe.loss(network, batch, config, BatchRng(rng, batch))
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(network.parameters(), clip)
        optimizer.step()
        loss.item()
        yield


def tutorial_rate(folder: Path, recipe: Recipe, config: TrainingConfig, spec: Spec, steps: int) -> float:
    """Sprites per second of the tutorials' loop."""
    network, start_s = recipe.build(config, spec), 0.0
    loop = tutorial_steps(tutorial_data(folder), network, recipe, config, config.learning_rate, config.clip_grad_norm)
    for step, _ in enumerate(loop, 1):
        if step == WARM_UP_STEPS:
            start_s = time.perf_counter()
        if step == WARM_UP_STEPS + steps:
            break
    return steps * config.batch_size / (time.perf_counter() - start_s)


def engine_rate(
    sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, ranks: Ranks | None = None
) -> float:
    """Sprites per second of the studio's loop."""
    ticks = ticks_of(sprites, recipe, config, device, ranks)
    first_s, first = next(tick for tick in ticks if tick[1] >= WARM_UP_STEPS)
    last_s, last = ticks[-1]
    return (last - first) * config.batch_size / (last_s - first_s)


def measure(chosen: argparse.Namespace) -> float:
    """Sprites per second of one side, in this process."""
    device = choose_device(probe_devices(), "cpu")
    recipe, config = configured(
        chosen, steps=WARM_UP_STEPS + chosen.steps, holdout=0.0, shift_px=0, precision=chosen.precision,
        optimizer="muon" if chosen.against else "adamw",
    )  # fmt: skip
    if chosen.side == "other":
        name, _, value = chosen.against.partition("=")
        known = {setting.name: setting for setting in settings_of(recipe.Config)}
        config = config.replace(**{name: known[name].parse(value)})
    sprites, _ = recipe.select(imported(chosen.sprites).sprites, config)
    torch.set_num_threads(device.threads)
    if chosen.side in ("engine", "other"):
        return engine_rate(sprites, recipe, config, device)
    with tempfile.TemporaryDirectory() as folder:
        write_folder(sprites, Path(folder))
        return tutorial_rate(Path(folder), recipe, config, Spec(sprites.size, sprites.class_names), chosen.steps)


def main() -> None:
    """Run the pairs and print what they gave."""
    parser = training_command_line(__doc__)
    parser.add_argument("--sprites", type=Path, default=paths.demo_sprites())
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--precision", default="auto", help="of the engine")
    parser.add_argument("--against", metavar="NAME=VALUE", help="compare with the engine with another setting")
    parser.add_argument("--side", choices=("engine", "tutorials", "other"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.side:
        say(str(measure(chosen)))
        return
    other, title = ("other", chosen.against) if chosen.against else ("tutorials", "tutorials' loop")
    ratios = []
    for _ in range(chosen.pairs):
        plain, ours = (told_by(__spec__.name, *sys.argv[1:], "--side", side) for side in (other, "engine"))
        ratios.append(ours / plain)
        say(f"{title} {plain:7.1f} sprites/s   engine {ours:7.1f} sprites/s   x {ratios[-1]:.2f}")
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    say(f"{chosen.recipe}: median ratio {statistics.median(ratios):.2f} ({spread})")


if __name__ == "__main__":
    main()
