"""The second part of the network that completes sets: one pass over each colour of a set."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.recipes.layers import group_norm

INPUTS = 4  # planes of a cell at the input: known pixels, their mirror image, shares of rows, first logits
SIDE = 4  # the sides of planes are multiples of this
_SHARES, _LOGITS = 4.0, 0.2  # scales of these planes


class ColourPlanes(nn.Module):
    """Corrects the first logits of each colour of a set, [N, C, S, S] for N colours of any sets.

    A colour's planes hold the known pixels with this colour in each cell, their mirror image, the colour's share of
    each row, because heights agree between views, and its first logits. The same weights serve every colour of every
    set: copying a pixel from another cell, from its mirror image or from a neighbour is one filter, learnt from all
    colours. Three resolutions let a whole region of a colour count. Features of the U-Net tell where to copy.
    """

    def __init__(self, cells: int, context: int, keys: int, width: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(INPUTS * cells, width, 3, 1, 1)
        self.context = nn.Conv2d(context, 2 * width, 1)
        self.keys = nn.Linear(keys, 3 * width)
        self.blocks = nn.ModuleList([_PlaneBlock(width) for _ in range(5)])
        self.norm, self.leave = group_norm(width), nn.Conv2d(width, cells, 3, 1, 1)
        for weight in self.leave.parameters():  # a new module changes nothing
            nn.init.zeros_(weight)

    def forward(self, planes: Tensor, context: Tensor, keys: Tensor) -> Tensor:
        """Return what to add to the logits, [N, C, S, S].

        planes: [N, INPUTS * C, S, S], with S a multiple of SIDE. context: [N, 2 * width, S, S], from the layer
        `context`. keys: [N, 3 * width], from the layer `keys`: of each colour, for each resolution.
        """
        enter, down1, down2, up1, up0 = self.blocks
        scale, shift = context.chunk(2, 1)  # [N, width, S, S] each
        key0, key1, key2 = keys[:, :, None, None].chunk(3, 1)  # [N, width, 1, 1] each
        x0 = enter(self.enter(planes) * (1 + scale) + shift + key0)  # [N, width, S, S]
        x1 = down1(F.avg_pool2d(x0, 2) + key1)  # [N, width, S / 2, S / 2]
        x2 = down2(F.avg_pool2d(x1, 2) + key2)  # [N, width, S / 4, S / 4]
        x1 = up1(x1 + F.interpolate(x2, scale_factor=2.0))
        x0 = up0(x0 + F.interpolate(x1, scale_factor=2.0))
        return self.leave(F.hardswish(self.norm(x0)))  # type: ignore[no-any-return]


class _PlaneBlock(nn.Module):
    """Residual block of one 3x3 convolution."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.conv = group_norm(width), nn.Conv2d(width, width, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(F.hardswish(self.norm(x)))  # type: ignore[no-any-return]


def planes_of(has: Tensor, logits: Tensor) -> Tensor:
    """Return the planes of N colours, [N, INPUTS * C, S, S], as ColourPlanes reads them.

    has: [N, C, S, S], 1 where a pixel is known and has the colour. logits: [N, C, S, S], the first logits.
    """
    shares = has.mean(3, keepdim=True).expand_as(has)  # of the pixels of a row
    return torch.cat([has, has.flip(3), _SHARES * shares, _LOGITS * logits], 1)
