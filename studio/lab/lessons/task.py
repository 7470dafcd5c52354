"""The task of the lessons: a small network that recognises the class of a sprite, and a batch of sprites."""

import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from studio.engine.devices import detection
from studio.engine.steps.batches import to_device, to_input
from studio.lab.experiments.base import ExperimentContext, evenly_spaced

BATCH = 32
_MOST_SPRITES = 512
_LARGEST = 32  # pixels; larger sprites are made smaller by leaving out rows and columns
_CPU = torch.device("cpu")
_LONGEST_ERROR = 160  # characters


@dataclass(frozen=True)
class Examples:
    """Sprites x, float32 [N, 4, S, S] in [-1, 1], and their classes y, int64 [N], on the CPU."""

    x: Tensor
    y: Tensor
    class_names: tuple[str, ...]

    def batch(self, size: int = BATCH) -> tuple[Tensor, Tensor]:
        """Return `size` sprites and their classes, evenly from all classes; a small set repeats its sprites."""
        order = np.resize(evenly_spaced(len(self.y), size), size)
        return self.x[order], self.y[order]


def examples(context: ExperimentContext) -> Examples:
    """Return at most 512 sprites with their classes. Sprites of one class become two: upright and upside down."""
    sprites = context.sprites.take(evenly_spaced(len(context.sprites), _MOST_SPRITES))
    stride = -(-sprites.size // _LARGEST)
    x = to_input(to_device(sprites.rgba[:, ::stride, ::stride], _CPU))
    y, names = torch.from_numpy(sprites.labels.astype(np.int64)), sprites.class_names
    if len(names) < 2:
        turned = torch.arange(2).repeat_interleave(len(x))
        return Examples(torch.cat([x, x.flip(2)]), turned, ("upright", "upside down"))
    return Examples(x, y, names)


def error_text(error: Exception, said: str) -> str:
    """Return an error for a table: 'RuntimeError: Expected …'. said: the part of the message to show."""
    return textwrap.shorten(f"{type(error).__name__}: {said}", _LONGEST_ERROR, placeholder=" …")


def make_network(classes: int, dropout: float = 0.0) -> nn.Sequential:
    """Create a network on the CPU from seed 0: float32 [B, 4, S, S] -> a score for each class, float32 [B, classes]."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(4, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Dropout(dropout), nn.Linear(128, classes),
    )  # fmt: skip


@dataclass(eq=False)
class Step:
    """A training step of a small network on a device: the five lines of the training loop."""

    network: nn.Module
    x: Tensor
    y: Tensor

    def __post_init__(self) -> None:
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=0.005)

    def __call__(self) -> Tensor:
        """Take a step; return the loss before it, float32 [] on the device."""
        loss: Tensor = self.criterion(self.network(self.x), self.y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def make_step(context: ExperimentContext, device: torch.device, size: int = BATCH) -> Step:
    """Create the training step of the lessons' network on a batch of `size` sprites."""
    data = examples(context)
    x, y = data.batch(size)
    return Step(make_network(len(data.class_names)).to(device), x.to(device), y.to(device))


def time_each(work: Callable[[], object], device: torch.device, seconds: float, least: int = 5) -> list[float]:
    """Call `work` for `seconds` and at least `least` times; return the duration of each call, device work included."""
    durations_s, start_s = list[float](), time.perf_counter()
    while len(durations_s) < least or time.perf_counter() - start_s < seconds:
        detection.synchronize(device)
        begun_s = time.perf_counter()
        work()
        detection.synchronize(device)
        durations_s.append(time.perf_counter() - begun_s)
    return durations_s
