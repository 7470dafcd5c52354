"""Building blocks for networks. They need torch alone, because exported models carry their source."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def group_norm(channels: int) -> nn.GroupNorm:
    """Create a GroupNorm with at least 16 channels per group.

    Smaller groups make bf16 on a CPU ten times slower.
    """
    groups = next(count for count in range(channels // 16 or 1, 0, -1) if channels % count == 0)
    return nn.GroupNorm(groups, channels)


def whole_groups(width: int) -> int:
    """Round a number of channels up to a multiple of 16, for whole groups in `group_norm`."""
    return -(-width // 16) * 16


def patch_size(size: int) -> int:
    """Return the side, in pixels, of the square patches that a network's input layer turns into channels.

    size: width of a sprite in pixels. Large sprites need larger patches, or training would take too long.
    """
    return 2 if size < 96 else 4


class ResidualBlock(nn.Module):
    """Residual block of two 3x3 convolutions, each after GroupNorm and hard swish (Howard et al. 2019).

    condition: channels of a conditioning vector [B, condition], which scales and shifts the second norm (FiLM, Perez et
    al. 2018); 0 for none. The last convolution starts at zero: a new block returns its shortcut.
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

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:  # x: [B, inputs, H, W]
        h = self.norm2(self.conv1(F.hardswish(self.norm1(x))))  # [B, outputs, H / stride, W / stride]
        if self.modulate is not None and condition is not None:
            scale, shift = self.modulate(condition)[:, :, None, None].chunk(2, 1)  # [B, outputs, 1, 1] each
            h = torch.addcmul(shift, h, 1 + scale)  # shift + h * (1 + scale), in one kernel
        return self.shortcut(x) + self.conv2(F.hardswish(h))  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Adds self-attention over the positions to the input [B, channels, H, W] (Vaswani et al. 2017).

    The output layer starts at zero, so a new module returns the input.
    """

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = group_norm(channels)
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Tensor) -> Tensor:
        # Plain matrix products: with few positions the backward pass of scaled_dot_product_attention takes ten times as
        # long on a CPU. q, k, v: [B, heads, channels / heads, H * W].
        q, k, v = self.qkv(self.norm(x)).flatten(2).unflatten(1, (3, self.heads, -1)).unbind(1)
        weights = (q.transpose(-1, -2) @ k * q.shape[-2] ** -0.5).softmax(-1).to(v.dtype)  # [B, heads, H * W, H * W]
        h = (v @ weights.transpose(-1, -2)).reshape(x.shape)  # heads joined again: [B, channels, H, W]
        return x + self.out(h)  # type: ignore[no-any-return]


class TimeFeatures(nn.Module):
    """Sinusoidal features [B, channels] of times [B] in [0, 1], with frequencies from 1 to 1,000 radians."""

    frequencies: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.exp(torch.linspace(0, math.log(1000), channels // 2)))

    def forward(self, t: Tensor) -> Tensor:
        angles = t[:, None] * self.frequencies  # [B, channels / 2]
        return torch.cat([angles.sin(), angles.cos()], 1)
