"""Train the generator's starter on many collections of 16, 32 and 64 pixels, with a palette for each collection.

A user's sprites have one palette, and the starter must fit every palette. A step therefore adds up the gradients of
several parts. Each part comes from one collection; a random recolouring changes sprites and palette.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from recolouring import NATURAL, random_recolouring, recolour
from torch import Tensor, nn

from studio.core.config import TrainingConfig
from studio.data.sprites import Sprites
from studio.engine.steps.batches import DeviceSprites, augment, step_seed
from studio.engine.steps.optim import EMA, learning_rate, make_optimizers, set_learning_rate
from studio.recipes.base import Batch, BatchRng, Recipe, Spec

PALETTE = "head.palette"  # the buffer of the network
PARTS = 4  # of a step
PART_PIXELS = 16_384  # 64 sprites with 16 pixels, 16 with 32 or 4 with 64 take equally long
CPU = torch.device("cpu")


class Source:
    """Yields batches from a collection, in a new order each epoch.

    first_label: the number of its first class among the classes of all collections.
    """

    def __init__(self, sprites: Sprites, first_label: int, recipe: Recipe, config: TrainingConfig) -> None:
        self.size, self.palette = sprites.size, recipe.statistics(sprites, config)[PALETTE]
        self._sprites, self._first_label = DeviceSprites(sprites, CPU, config.seed), first_label
        self._batch_size, self._flip, self._taken = max(1, PART_PIXELS // sprites.size**2), config.flip, 0

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
    collections: Sequence[Sprites], recipe: Recipe, config: TrainingConfig, *, recolours: bool = True
) -> dict[str, Tensor]:
    """Train on the CPU and return the averaged weights, without buffers. Prints the loss every 100 steps.

    recolours: whether sprites and palettes are recoloured at random. The result depends on the seed and, in the last
    bits, on the number of threads.
    """
    torch.set_num_threads(config.threads or torch.get_num_threads())
    networks, sources = build_networks(collections, recipe, config), as_sources(collections, recipe, config)
    network = next(iter(networks.values()))
    optimizers, ema = make_optimizers(network, config, "fp32"), EMA(network, config.ema_halflife_sprites)
    # Odds in proportion to sprites: every sprite counts equally.
    odds = np.array([len(sprites) for sprites in collections], np.float64)
    odds /= odds.sum()
    losses, generator = list[float](), torch.Generator()
    for step in range(config.steps):
        progress, seed = step / config.steps, step_seed(config.seed, step)
        rng = np.random.default_rng(seed)
        generator.manual_seed(seed)
        set_learning_rate(optimizers, learning_rate(config, step, progress))
        ema.begin_step((step + 1) * config.batch_size, config.batch_size)
        total = 0.0
        for number in rng.choice(len(sources), PARTS, p=odds):
            source = sources[number]
            batch, palette = recoloured(source.next_batch(generator, progress), source.palette, rng, is_on=recolours)
            network.get_buffer(PALETTE).copy_(palette)
            loss = recipe.loss(networks[source.size], batch, config, BatchRng(generator, batch)) / PARTS
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip_grad_norm)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        ema.update()
        losses.append(total)
        if (step + 1) % 100 == 0:
            sys.stdout.write(f"step {step + 1} of {config.steps}: loss {np.mean(losses[-100:]):.3f}\n")
            sys.stdout.flush()
    return {name: weight.detach() for name, weight in ema.network.named_parameters()}
