"""Sprites to train on, and the batch of each step: selected, augmented and converted to float on the device."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Indices, Rgba
from studio.data.sprites import Examples, Sprites
from studio.recipes.base import Batch, Recipe

# Examples of a batch before augmentation: pixels uint8 [B, 4, S, S], or [B, 4 C, S, S] for sets of C cells,
# labels int64 [B], targets float32 [B, T].
RawBatch = tuple[Tensor, Tensor, Tensor]
Rows = TypeVar("Rows", bound=NDArray[Any])

_SHIFT_UNIT_PX = 8
_UPLOAD_BYTES = 64 << 20  # bytes per upload, which limits the memory for copies
_MAX_SAMPLED = 20_480  # limit of sprites, about the number that feature training sees
_MAX_SAMPLED_BYTES = 256 << 20


def to_device(rgba: Rgba, device: torch.device) -> Tensor:
    """Copy sprites or stacked sets to the device: uint8 [B, S, S, 4], also memory-mapped -> uint8 [B, 4, S, S]."""
    own = rgba if rgba.flags.writeable else rgba.copy()  # torch does not support read-only memory
    return torch.from_numpy(np.ascontiguousarray(own)).to(device).permute(0, 3, 1, 2)


def to_input(rgba: Tensor) -> Tensor:
    """Convert pixels to network input: uint8 [B, 4 C, S, S], straight alpha -> float32, premultiplied, in [-1, 1]."""
    return premultiply(rgba.float() / 255)


def premultiply(rgba: Tensor) -> Tensor:
    """Premultiply and rescale: float32 [B, 4 C, S, S], straight alpha, in [0, 1] -> premultiplied, in [-1, 1]."""
    if rgba.shape[1] > 4:  # sets of C cells
        return premultiply(rgba.reshape(-1, 4, *rgba.shape[2:])).view_as(rgba)
    return torch.cat([rgba[:, :3] * rgba[:, 3:], rgba[:, 3:]], 1).mul_(2).sub_(1)  # transparent pixels have no colour


def to_rgba(x: Tensor) -> Tensor:
    """Convert output to pixels: float32 [B, 4, S, S] in [-1, 1] -> uint8 [B, S, S, 4], straight alpha, on the CPU."""
    return (unpremultiply(x) * 255).round().byte().permute(0, 2, 3, 1).contiguous().cpu()


def unpremultiply(x: Tensor) -> Tensor:
    """Undo `premultiply`: float32 [B, 4, S, S], premultiplied, in [-1, 1] -> straight alpha, in [0, 1]."""
    x = (x.float().clamp(-1, 1) + 1) / 2  # [0, 1]
    alpha = x[:, 3:]  # [B, 1, S, S]
    # Divided by a lower alpha, colour is only noise.
    colour = torch.where(alpha > 0.02, x[:, :3] / alpha.clamp(min=0.02), 0).clamp(0, 1)
    alpha = torch.where(alpha > 0.02, alpha, 0)
    return torch.cat([colour, alpha], 1)


def subsample(sprites: Sprites, indices: NDArray[np.int64]) -> Sprites:
    """Return the sprites at `indices`, or a fixed random sample of at most 20,480 sprites and 256 MB."""
    most = max_sampled(sprites.size)
    if len(indices) > most:
        indices = np.sort(np.random.default_rng(0).choice(indices, most, replace=False))
    return sprites.take(indices)


def max_sampled(size: int) -> int:
    """Return the largest number of sprites that `subsample` returns. size: the sprites' side in pixels."""
    return min(_MAX_SAMPLED, _MAX_SAMPLED_BYTES // (4 * size**2))


def stride_subsample(rows: Rows, most: int) -> Rows:
    """Return every k-th row of an array, with the smallest k that leaves at most `most` rows."""
    return rows[:: max(1, -(-len(rows) // most))]  # type: ignore[return-value]


def step_seed(seed: int, step: int) -> int:
    """Return the random seed of a training step: 32 bits, because torch's CPU generator ignores higher bits."""
    return int(np.random.SeedSequence((seed, step)).generate_state(1)[0])  # mixes well, unlike seed + step


def shuffled_indices(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    """Return the random order of an epoch's sprites: a permutation, int64 [count]."""
    return np.random.default_rng((seed, epoch)).permutation(count)  # a new order per epoch


def augment(
    chosen: RawBatch, size: int, *, flip: bool, shift_px: int, rng: torch.Generator, progress: float = 0.0,
    rows: slice | None = None,
) -> Batch:  # fmt: skip
    """Shift and flip a raw batch's sprites at random, and convert the sprites to float.

    Does not wait for the device. size: sprites in the whole batch. rows: the part of the batch in `chosen`; None for
    the whole batch. Draws random numbers for the whole batch, so the ranks' division of the batch doesn't matter.
    """
    rows = rows or slice(0, size)
    rgba, y, targets = chosen
    augment_labels = torch.zeros(len(y), 3, device=y.device)  # the network is told how a sprite was augmented
    if shift_px:
        offset = torch.randint(0, 2 * shift_px + 1, (2, size, 1), device=y.device, generator=rng)
        rgba, augment_labels[:, 1:] = shift(rgba, shift_px, offset[:, rows])
    if flip:
        flipped = torch.rand(size, device=y.device, generator=rng)[rows] < 0.5
        rgba = torch.where(flipped[:, None, None, None], rgba.flip(-1), rgba)  # [B, 4, S, S]
        augment_labels[:, 0] = flipped
    return Batch(to_input(rgba), y, augment_labels, targets, progress, rows.start, size)


class TrainSet(ABC):
    """A training set whose batches depend only on seed and step. indices: int64, the sprites to use; None for all."""

    def __init__(self, sprites: Examples, device: torch.device, seed: int, indices: Indices | None = None) -> None:
        self.device, self.seed = device, seed
        self._source_indices = np.arange(len(sprites)) if indices is None else indices
        self.labels_host = sprites.labels[self._source_indices]  # int64 [N] on the CPU, for counting
        self.targets_host = sprites.targets[self._source_indices]  # float32 [N, T] on the CPU

    def __len__(self) -> int:
        return len(self.labels_host)

    def batch(
        self, step: int, size: int, *, flip: bool, shift_px: int, rng: torch.Generator, progress: float = 0.0,
        rows: slice | None = None,
    ) -> Batch:  # fmt: skip
        """Return a step's augmented batch, or its `rows`; an epoch has each sprite once. rng: on the device."""
        chosen = self.raw_batch(step, size, rows or slice(0, size))
        return augment(chosen, size, flip=flip, shift_px=shift_px, rng=rng, progress=progress, rows=rows)

    @abstractmethod
    def raw_batch(self, step: int, size: int, rows: slice) -> RawBatch:
        """Return the sprites at `rows` of a step's batch, without augmentation."""

    def close(self) -> None:  # noqa: B027 - most sets have no threads
        """Stop background threads."""


class DeviceSprites(TrainSet):
    """A training or validation set, kept on the device as uint8."""

    def __init__(self, sprites: Examples, device: torch.device, seed: int = 0, indices: Indices | None = None) -> None:
        super().__init__(sprites, device, seed, indices)
        size = sprites.size
        channels = sprites.rgba.shape[-1]
        self.rgba = torch.empty((len(self), channels, size, size), dtype=torch.uint8, device=device)
        step = max(1, _UPLOAD_BYTES // (channels * size * size))
        for start in range(0, len(self), step):
            indices = self._source_indices[start : start + step]
            self.rgba[start : start + step] = to_device(sprites.rgba[indices], device)
        self.labels = torch.from_numpy(self.labels_host).to(device)
        self.targets = torch.from_numpy(self.targets_host).to(device)
        self._epoch = -1
        self._order = self.labels  # shuffled indices of `_epoch`, int64 [N] on the device

    def raw_batch(self, step: int, size: int, rows: slice) -> RawBatch:
        chosen = self._order_slice(step * size + rows.start, rows.stop - rows.start)
        rgba, labels, targets = (held.index_select(0, chosen) for held in (self.rgba, self.labels, self.targets))
        return rgba, labels, targets

    def plain_batches(self, size: int, count: int) -> Iterator[Batch]:
        """Yield batches of `count` sprites in total, in order, repeated if necessary, without augmentation."""
        for start in range(0, count, size):
            part = torch.arange(start, min(start + size, count), device=self.device) % len(self)
            x, y = to_input(self.rgba[part]), self.labels[part]
            yield Batch(x, y, torch.zeros(len(y), 3, device=self.device), self.targets[part])

    def _order_slice(self, start: int, size: int) -> Tensor:
        """Return entries start to start + size of the endless sequence of shuffled epochs: int64 [size]."""
        parts, stop = [], start + size
        while start < stop:
            epoch, offset = divmod(start, len(self))  # a batch may span two epochs
            if epoch != self._epoch:
                order = torch.from_numpy(shuffled_indices(self.seed, epoch, len(self)))
                if self.device.type == "cuda":  # asynchronous from pinned memory; later kernels wait for the copy
                    order = order.pin_memory()
                self._epoch, self._order = epoch, order.to(self.device, non_blocking=self.device.type == "cuda")
            parts.append(self._order[offset : offset + stop - start])
            start += len(parts[-1])
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def device_examples(recipe: Recipe, sprites: Sprites, device: torch.device) -> DeviceSprites:
    """Keep the training examples that a recipe forms from these sprites on the device."""
    examples, indices = recipe.examples(sprites, np.arange(len(sprites)))
    return DeviceSprites(examples, device, indices=indices)


def shift(rgba: Tensor, most: int, offset: Tensor) -> tuple[Tensor, Tensor]:
    """Shift each sprite by up to `most` whole pixels in x and y; new pixels are transparent.

    offset: int64 [2, B, 1], 0 to 2 * most; 0 shifts a sprite farthest down and right. Returns the shifted sprites, and
    their shifts right and down, float32 [B, 2] as in `Batch.augment_labels`.
    """
    count, _, height, width = rgba.shape
    rows = torch.arange(height, device=rgba.device) + offset[0]  # row indices into the padded sprite: [B, H]
    columns = torch.arange(width, device=rgba.device) + offset[1]
    padded = torch.nn.functional.pad(rgba, (most, most, most, most))  # [B, 4, H + 2 most, W + 2 most]
    sprite = torch.arange(count, device=rgba.device)[:, None, None]
    moved = padded[sprite, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)  # gather: [B, H, W, 4]
    return moved, (most - offset.flip(0).squeeze(2).T) / _SHIFT_UNIT_PX
