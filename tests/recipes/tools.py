"""Batches, random numbers and networks for the tests of recipes."""

from __future__ import annotations

import torch

from studio.recipes.base import Batch, BatchRng
from studio.recipes.unet import UNet


def random_batch(count: int, size: int) -> Batch:
    rng = torch.Generator().manual_seed(3)
    x = torch.rand(count, 4, size, size, generator=rng) * 2 - 1
    return Batch(x, torch.zeros(count, dtype=torch.int64), torch.zeros(count, 3), torch.zeros(count, 0), progress=0.9)


def batch_rng(batch: Batch) -> BatchRng:
    return BatchRng(torch.Generator().manual_seed(5), batch)


def network_with_palette(size: int) -> UNet:
    torch.manual_seed(0)
    return UNet(size, classes=1, width=16, colours=9).eval().requires_grad_(False)
