"""The optimizer, the learning rate over a run, and the average of the weights."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig


def make_optimizer(network: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019), fused; norms and biases are not decayed."""
    decayed = [weight for weight in network.parameters() if weight.ndim > 1]
    plain = [weight for weight in network.parameters() if weight.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.99), fused=True)


def learning_rate(config: TrainingConfig, step: int, progress: float) -> float:
    """The rate of a step: a linear rise over the warm-up, level, then a linear fall over the last share of the budget.

    progress: share of the budget that is used up, 0 to 1.
    """
    rise = min(1.0, (step + 1) / max(1, config.lr_warmup_steps))
    fall = min(1.0, (1 - progress) / config.lr_decay_share) if config.lr_decay_share else 1.0
    return config.learning_rate * rise * max(0.01, fall)


class Average:
    """An exponential moving average of a network's weights; `network` is the averaged copy, in eval mode.

    The half-life is counted in sprites and grows with the run, so that early averages follow quickly
    (Karras et al. 2022).
    """

    def __init__(self, network: nn.Module, halflife_sprites: int) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self.halflife_sprites = halflife_sprites
        self._source: list[Tensor] = list(network.parameters())
        self._target: list[Tensor] = list(self.network.parameters())
        self._source_buffers: list[Tensor] = list(network.buffers())
        self._target_buffers: list[Tensor] = list(self.network.buffers())

    @torch.no_grad()
    def update(self, seen_sprites: int, batch_size: int) -> None:
        """Move towards the weights after `seen_sprites` in all, the last `batch_size` of them new."""
        halflife = min(self.halflife_sprites, seen_sprites / 20)
        keep = 0.5 ** (batch_size / halflife) if halflife else 0.0
        torch._foreach_lerp_(self._target, self._source, 1 - keep)
        if self._target_buffers:
            torch._foreach_copy_(self._target_buffers, self._source_buffers)
