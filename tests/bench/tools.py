"""What benchmarks share. Imports neither torch nor Qt: some measure how soon these come, or prepare for them first."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from studio.core.config import TrainingConfig
    from studio.data.sprites import Sprites
    from studio.engine.devices.types import Device
    from studio.engine.distributed.ranks import Ranks
    from studio.recipes.base import Recipe


def command_line(about: str | None) -> argparse.ArgumentParser:
    """Its parser; --help shows the benchmark's docstring as it is written."""
    return argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)


def training_command_line(about: str | None) -> argparse.ArgumentParser:
    """The same with the recipe and the network to train; see `configured`."""
    parser = command_line(about)
    parser.add_argument("--recipe", default="generator")
    parser.add_argument("--width", type=int, default=0, help="of the network; 0 takes the recipe's own")
    return parser


def configured(chosen: argparse.Namespace, **settings: Any) -> tuple[Recipe, TrainingConfig]:
    """The recipe that was chosen, and its settings."""
    from studio.engine import catalog

    recipe = catalog.recipe(chosen.recipe)
    network = {"width": chosen.width} if chosen.width else {}
    return recipe, recipe.Config(**settings, **network)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def told_by(module: str, *words: object, **environment: str) -> Any:
    """What a module says in its last line, as JSON, in a process of its own."""
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **environment})
    return json.loads(done.stdout.splitlines()[-1])


def ticks_of(
    sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, ranks: Ranks | None = None
) -> list[tuple[float, int]]:
    """A training's seconds and steps by each of its ticks, everything that it does beside training counted."""
    from studio.core.events import LossChunk
    from studio.engine.control.control import Control
    from studio.engine.distributed.ranks import ALONE
    from studio.engine.training.loop import train_new

    with tempfile.TemporaryDirectory() as folder:
        start_s = time.perf_counter()
        return [
            (time.perf_counter() - start_s, event.first_step + len(event.losses))
            for event in train_new(
                Path(folder) / "run", sprites, recipe, config, device, Control(), ranks=ranks or ALONE
            )
            if isinstance(event, LossChunk)
        ]
