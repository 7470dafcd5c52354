"""Train the generator's starter on many collections of 16, 32 and 64 pixels, with a palette for each collection.

A user's sprites have one palette, and the starter must fit every palette. A step therefore adds up the gradients of
several parts. Each part comes from one collection; a random recolouring changes sprites and palette.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from recolouring import NATURAL, random_recolouring, recolour
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from studio.core.config import TrainingConfig
from studio.core.errors import BadInputError
from studio.data.sprites import Sprites
from studio.engine.runs import checkpoints
from studio.engine.steps.batches import DeviceSprites, augment, step_seed
from studio.engine.steps.optim import EMA, learning_rate, make_optimizers, set_learning_rate
from studio.recipes.base import Batch, BatchRng, Recipe, Spec

PALETTE = "head.palette"  # the buffer of the network
PARTS = 4  # of a step
PART_PIXELS = 16_384  # 64 sprites with 16 pixels, 16 with 32 or 4 with 64 take equally long
STATE_STEPS = 500  # between two writings of the state
CPU = torch.device("cpu")


class Source:
    """Yields batches from a collection, in a new order each epoch.

    first_label: the number of its first class among the classes of all collections.
    """

    def __init__(self, sprites: Sprites, first_label: int, recipe: Recipe, config: TrainingConfig) -> None:
        self.size, self.palette = sprites.size, recipe.statistics(sprites, config)[PALETTE]
        self._sprites, self._first_label = DeviceSprites(sprites, CPU, config.seed), first_label
        self._batch_size, self._flip, self._taken = max(1, PART_PIXELS // sprites.size**2), config.flip, 0

    def skip_batch(self) -> None:
        """Leave out the next batch."""
        self._taken += 1

    def next_batch(self, rng: torch.Generator, progress: float) -> Batch:
        """Return the next batch, with some sprites mirrored."""
        rgba, labels, targets = self._sprites.raw_batch(self._taken, self._batch_size, slice(0, self._batch_size))
        self._taken += 1
        raw = rgba, labels + self._first_label, targets
        return augment(raw, self._batch_size, flip=self._flip, shift_px=0, rng=rng, progress=progress)


def as_sources(collections: Sequence[Sprites], recipe: Recipe, config: TrainingConfig) -> list[Source]:
    """Return a source of batches for each collection."""
    first_labels = np.cumsum([0, *(len(sprites.class_names) for sprites in collections)]).tolist()
    return [
        Source(sprites, first, recipe, config) for sprites, first in zip(collections, first_labels[:-1], strict=True)
    ]


def build_networks(collections: Sequence[Sprites], recipe: Recipe, config: TrainingConfig) -> dict[int, Any]:
    """Return a network for each sprite size, by size; the networks share weights and buffers."""
    names = tuple(f"{sprites.title}/{name}" for sprites in collections for name in sprites.class_names)
    sizes = sorted({sprites.size for sprites in collections})
    torch.manual_seed(config.seed)
    networks = {size: recipe.build(config, Spec(size, names)).to(memory_format=torch.channels_last) for size in sizes}
    first, *others = networks.values()
    for other in others:
        _share_tensors(first, other)
    return networks


def _share_tensors(network: nn.Module, other: nn.Module) -> None:
    """Put the tensors of `network` into `other`, a network with an equal structure."""
    for own, shared in zip(other.modules(), network.modules(), strict=True):
        for name, tensor in (*shared.named_parameters(recurse=False), *shared.named_buffers(recurse=False)):
            setattr(own, name, tensor)


def recoloured(batch: Batch, palette: Tensor, rng: np.random.Generator, *, is_on: bool = True) -> tuple[Batch, Tensor]:
    """Recolour a batch and its palette with a random recolouring; change nothing if not `is_on`."""
    how = random_recolouring(rng) if is_on else NATURAL
    x = recolour(batch.x.permute(0, 2, 3, 1), how).permute(0, 3, 1, 2)
    return replace(batch, x=x), recolour(palette, how)


def pretrain(
    collections: Sequence[Sprites], recipe: Recipe, config: TrainingConfig, *, recolours: bool = True,
    state: Path | None = None,
) -> dict[str, Tensor]:  # fmt: skip
    """Train on the CPU and return the averaged weights, without buffers. Prints the loss every 100 steps.

    recolours: whether to recolour sprites and palettes at random. state: a file for the state, written every
    STATE_STEPS steps; an existing file continues an interrupted training, with an equal result. The result depends on
    the seed and, in the last bits, on the number of threads. Raises BadInputError if `state` is of another training.
    """
    torch.set_num_threads(config.threads or torch.get_num_threads())
    training, losses = Pretraining(collections, recipe, config, recolours=recolours), list[float]()
    if state is not None and state.exists():
        training.load(state)
    while training.step < config.steps:
        losses.append(training.run_step())
        if training.step % 100 == 0:
            sys.stdout.write(f"step {training.step} of {config.steps}: loss {np.mean(losses[-100:]):.3f}\n")
            sys.stdout.flush()
        if state is not None and training.step % STATE_STEPS == 0:
            training.save(state)
    return {name: weight.detach() for name, weight in training.ema.network.named_parameters()}


class Pretraining:
    """The training of a starter; `step` is the number of finished steps."""

    def __init__(
        self, collections: Sequence[Sprites], recipe: Recipe, config: TrainingConfig, *, recolours: bool
    ) -> None:
        self.step, self._recipe, self._config, self._recolours = 0, recipe, config, recolours
        self._networks = build_networks(collections, recipe, config)
        self._network = next(iter(self._networks.values()))
        self._sources = as_sources(collections, recipe, config)
        self._optimizers = make_optimizers(self._network, config, "fp32")
        self.ema = EMA(self._network, config.ema_halflife_sprites)
        counts = np.array([len(sprites) for sprites in collections], np.float64)
        self._odds = counts / counts.sum()  # every sprite counts equally
        fingerprints = [sprites.fingerprint for sprites in collections]
        self._about = json.dumps([config.to_json(), recolours, fingerprints])

    def run_step(self) -> float:
        """Run a step; return the loss, averaged over the parts."""
        config, recipe, network = self._config, self._recipe, self._network
        progress, seed = self.step / config.steps, step_seed(config.seed, self.step)
        generator, rng = torch.Generator().manual_seed(seed), np.random.default_rng([seed, 1])
        set_learning_rate(self._optimizers, learning_rate(config, self.step, progress))
        self.ema.begin_step((self.step + 1) * config.batch_size, config.batch_size)
        total = 0.0
        for source in self._chosen(self.step):
            batch = source.next_batch(generator, progress)
            batch, palette = recoloured(batch, source.palette, rng, is_on=self._recolours)
            network.get_buffer(PALETTE).copy_(palette)
            loss = recipe.loss(self._networks[source.size], batch, config, BatchRng(generator, batch)) / PARTS
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip_grad_norm)
        for optimizer in self._optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.ema.update()
        self.step += 1
        return total

    def _chosen(self, step: int) -> list[Source]:
        """Return the sources of a step's parts."""
        rng = np.random.default_rng(step_seed(self._config.seed, step))
        return [self._sources[number] for number in rng.choice(len(self._sources), PARTS, p=self._odds)]

    def save(self, path: Path) -> None:
        """Write the state of the training to a file."""
        parts = {
            "network": self._network.state_dict(),
            "average": self.ema.network.state_dict(),
            "optimizer": checkpoints.optimizer_tensors(self._optimizers),
        }
        tensors = {f"{part}:{name}": tensor for part, found in parts.items() for name, tensor in found.items()}
        copies = {name: tensor.contiguous() for name, tensor in tensors.items()}
        new = path.with_name(path.name + ".new")
        save_file(copies, new, metadata={"step": str(self.step), "about": self._about})
        new.replace(path)

    def load(self, path: Path) -> None:
        """Load the state of an interrupted training. Raises BadInputError if the file is of another training."""
        with safe_open(path, "pt") as file:
            about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if about["about"] != self._about:
            raise BadInputError(f"{path} belongs to another training.", "Remove the file, or name another.")
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "average": {}, "optimizer": {}}
        for key, tensor in tensors.items():
            part, _, name = key.partition(":")
            parts[part][name] = tensor
        self._network.load_state_dict(parts["network"])
        self.ema.network.load_state_dict(parts["average"])
        checkpoints.load_optimizers(self._optimizers, parts["optimizer"])
        self.step = int(about["step"])
        for step in range(self.step):
            for source in self._chosen(step):
                source.skip_batch()
