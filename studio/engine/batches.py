"""Sprites on the training device, and the batch of any step: chosen, augmented and made float there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.data.sprites import Sprites
from studio.recipes.base import Batch

_SHIFT_UNIT_PX = 8


def split(sprites: Sprites, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices for training and held out, int64, sorted: about `share` of each class, none of a very small set."""
    order = np.lexsort((np.random.default_rng(seed).random(len(sprites)), sprites.labels))
    # Every 1/share-th sprite of a list sorted by class, shuffled inside each class: a stratified choice.
    ranks = np.floor((np.arange(int(len(sprites) * share)) + 0.5) / share).astype(np.int64) if share else []
    heldout = np.zeros(len(sprites), dtype=bool)
    heldout[order[ranks]] = True
    return np.flatnonzero(~heldout), np.flatnonzero(heldout)


def to_input(rgba: Tensor) -> Tensor:
    """uint8 [B, 4, S, S], straight alpha -> float32 [B, 4, S, S], premultiplied, in [-1, 1]."""
    x = rgba.float() / 255
    return torch.cat([x[:, :3] * x[:, 3:], x[:, 3:]], 1) * 2 - 1


def to_rgba(x: Tensor) -> Tensor:
    """float32 [B, 4, S, S], premultiplied, in [-1, 1] -> uint8 [B, S, S, 4] on the CPU, straight alpha."""
    x = (x.float().clamp(-1, 1) + 1) / 2
    alpha = x[:, 3:]
    colour = torch.where(alpha > 0.02, x[:, :3] / alpha.clamp(min=0.02), 0).clamp(0, 1)  # below, colour is noise
    alpha = torch.where(alpha > 0.02, alpha, 0)
    return (torch.cat([colour, alpha], 1) * 255).round().byte().permute(0, 2, 3, 1).contiguous().cpu()


class DeviceSprites:
    """A set of sprites held on the device as uint8; the batch of a step depends on the seed and the step alone."""

    def __init__(self, sprites: Sprites, device: torch.device, seed: int = 0) -> None:
        self.device, self.seed = device, seed
        self.rgba = torch.from_numpy(sprites.rgba).permute(0, 3, 1, 2).contiguous().to(device)  # uint8 [N, 4, S, S]
        self.labels_host = sprites.labels  # int64 [N], for counting without a read-back
        self.labels = torch.from_numpy(sprites.labels).to(device)
        self.targets = torch.from_numpy(sprites.targets).to(device)  # float32 [N, T]
        self._epoch = -1
        self._order = self.labels  # the shuffled indices of `_epoch`, on the device

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, step: int, size: int, *, flip: bool, shift_px: int, rng: torch.Generator) -> Batch:
        """The batch of that step: every sprite comes once an epoch. Augmentation is drawn from `rng`, on the device."""
        chosen = self._indices(step * size, size)
        rgba, y = self.rgba.index_select(0, chosen), self.labels.index_select(0, chosen)
        changes = torch.zeros(len(y), 3, device=self.device)
        if shift_px:
            rgba, changes[:, 1:] = _shifted(rgba, shift_px, rng)
        if flip:
            flipped = torch.rand(len(y), device=self.device, generator=rng) < 0.5
            rgba = torch.where(flipped[:, None, None, None], rgba.flip(-1), rgba)
            changes[:, 0] = flipped
        return Batch(to_input(rgba), y, changes, self.targets.index_select(0, chosen))

    def plain_batches(self, size: int, limit: int) -> Iterator[Batch]:
        """The first `limit` sprites in their order, as they are."""
        for start in range(0, min(limit, len(self)), size):
            part = slice(start, min(start + size, limit))
            y = self.labels[part]
            yield Batch(to_input(self.rgba[part]), y, torch.zeros(len(y), 3, device=self.device), self.targets[part])

    def _indices(self, start: int, size: int) -> Tensor:
        """Entries start .. start + size - 1 of the endless list of shuffled epochs: int64 [size] on the device."""
        parts, stop = [], start + size
        while start < stop:
            epoch, offset = divmod(start, len(self))
            if epoch != self._epoch:
                shuffled = np.random.default_rng((self.seed, epoch)).permutation(len(self))
                self._epoch, self._order = epoch, torch.from_numpy(shuffled).to(self.device)
            parts.append(self._order[offset : offset + stop - start])
            start += len(parts[-1])
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def _shifted(rgba: Tensor, most: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Move each sprite by up to `most` whole pixels in x and y; what comes in is transparent.

    Also returns how far each was moved right and down, [B, 2] as in `Batch.changes`.
    """
    count, _, height, width = rgba.shape
    offset = torch.randint(0, 2 * most + 1, (2, count, 1), device=rgba.device, generator=rng)
    rows = torch.arange(height, device=rgba.device) + offset[0]  # [B, H] into the padded sprite
    columns = torch.arange(width, device=rgba.device) + offset[1]
    padded = torch.nn.functional.pad(rgba, (most, most, most, most))
    sprite = torch.arange(count, device=rgba.device)[:, None, None]
    moved = padded[sprite, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    return moved, (most - offset.flip(0).squeeze(2).T) / _SHIFT_UNIT_PX
