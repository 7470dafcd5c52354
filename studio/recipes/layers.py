"""Building blocks that recipes share. Each needs torch alone, so that an exported model can carry its source along."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def group_norm(channels: int) -> nn.GroupNorm:
    """GroupNorm over as many groups as have 16 channels or more: with fewer, bf16 on a CPU takes ten times as long."""
    groups = next(count for count in range(channels // 16 or 1, 0, -1) if channels % count == 0)
    return nn.GroupNorm(groups, channels)


def whole_groups(width: int) -> int:
    """The next width that `group_norm` can divide."""
    return -(-width // 16) * 16


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut, each after GroupNorm and hard swish (Howard et al. 2019).

    With `condition` channels the second norm is scaled and shifted by a vector [B, condition] (FiLM,
    Perez et al. 2018). The last convolution starts at zero, so that a new block passes its input on.
    """

    def __init__(self, inputs: int, outputs: int, condition: int = 0, stride: int = 1) -> None:
        super().__init__()
        self.norm1, self.conv1 = group_norm(inputs), nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.norm2, self.conv2 = group_norm(outputs), nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.modulate = nn.Linear(condition, 2 * outputs) if condition else None
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1:
            self.shortcut = nn.Sequential(nn.AvgPool2d(stride, ceil_mode=True), nn.Conv2d(inputs, outputs, 1))
        elif inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1)
        nn.init.zeros_(self.conv2.weight)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        h = self.norm2(self.conv1(F.hardswish(self.norm1(x))))
        if self.modulate is not None and condition is not None:
            scale, shift = self.modulate(condition)[:, :, None, None].chunk(2, 1)
            h = torch.addcmul(shift, h, 1 + scale)
        return self.shortcut(x) + self.conv2(F.hardswish(h))  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Self-attention over all positions (Vaswani et al. 2017), added to its input; starts at zero."""

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = group_norm(channels)
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Tensor) -> Tensor:
        # Plain products of [B, heads, channels, positions]: for so few positions the backward pass of the fused kernel
        # takes ten times as long on a CPU.
        q, k, v = self.qkv(self.norm(x)).flatten(2).unflatten(1, (3, self.heads, -1)).unbind(1)
        weights = (q.transpose(-1, -2) @ k * q.shape[-2] ** -0.5).softmax(-1).to(v.dtype)
        h = (v @ weights.transpose(-1, -2)).reshape(x.shape)
        return x + self.out(h)  # type: ignore[no-any-return]


class TimeFeatures(nn.Module):
    """Times [B] in [0, 1] as sines and cosines of 1 to 1,000 radians: [B, channels]."""

    frequencies: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.exp(torch.linspace(0, math.log(1000), channels // 2)))

    def forward(self, t: Tensor) -> Tensor:
        angles = t[:, None] * self.frequencies
        return torch.cat([angles.sin(), angles.cos()], 1)
