"""The second part of the network for completing sets: a pass over every colour in a set."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from studio.recipes.layers import group_norm

_SIDE = 4  # pad height and width to a multiple
# Scales of two inputs, and of the copied planes: with 30, copying is learnt within a few hundred steps.
_SHARES, _LOGITS, _COPIES = 4.0, 0.2, 30.0


class ColourPlanes(nn.Module):
    """Corrects the first logits of a set's colours, [N, C, S, S] for N colours of any sets.

    A colour's planes hold, by cell, the known pixels with the colour. Further inputs: the planes' mirror image, the
    colour's share by row, because heights agree between views, and the colour's first logits. Every colour of every set
    uses equal weights, so the network learns one filter for copying a pixel from another cell, a mirror image or a
    neighbour. Three resolutions let a whole region of a colour count. Smooth upsampling leaves fewer stray pixels.
    Features of the U-Net tell where to copy. One convolution leads from the planes straight to the result: without this
    convolution, a right view drawn from a left view has fewer right pixels than the mirror image.
    """

    def __init__(self, cells: int, context: int, keys: int, width: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(cells, 2 * width, 3, 1, 1)  # for the planes and for their mirror images
        self.copy = nn.Conv2d(cells, 2 * cells, 3, 1, 1, bias=False)  # from the planes, and from their mirror images
        self.enter_rows = nn.Conv2d(cells, width, (3, 1), 1, (1, 0))
        self.enter_logits = nn.Conv2d(cells, width, 3, 1, 1)
        self.context = nn.Conv2d(context, 2 * width, 1)
        self.keys = nn.Linear(keys, 3 * width)
        self.blocks = nn.ModuleList([_PlaneBlock(width) for _ in range(5)])
        self.norm, self.leave = group_norm(width), nn.Conv2d(width, cells, 3, 1, 1)
        for weight in (*self.leave.parameters(), self.copy.weight):  # zeros: a new module changes nothing
            nn.init.zeros_(weight)

    def forward(self, has: Tensor, logits: Tensor, context: Tensor, keys: Tensor) -> Tensor:
        """Return what to add to the logits, [N, C, S, S].

        has: [N, C, S, S], 1 where a pixel is known and has the colour. logits: [N, C, S, S], the first logits. context:
        [N, 2 * width, S, S], from the layer `context`. keys: [N, 3 * width], from the layer `keys`: of each colour,
        for each resolution.
        """
        enter, down1, down2, up1, up0 = self.blocks
        (scale, shift), (height, width) = context.chunk(2, 1), has.shape[2:]
        key0, key1, key2 = keys[:, :, None, None].chunk(3, 1)  # [N, width, 1, 1] each
        straight, mirrored = self.enter(has).chunk(2, 1)  # [N, width, S, S] each
        rows = self.enter_rows(_SHARES * has.mean(3, keepdim=True))  # [N, width, S, 1]
        x = straight + mirrored.flip(3) + rows + self.enter_logits(_LOGITS * logits)
        x0 = enter(F.pad(x * (1 + scale) + shift + key0, (0, -width % _SIDE, 0, -height % _SIDE)))
        x1 = down1(F.avg_pool2d(x0, 2) + key1)  # [N, width, S / 2, S / 2]
        x2 = down2(F.avg_pool2d(x1, 2) + key2)  # [N, width, S / 4, S / 4]
        x1 = up1(x1 + F.interpolate(x2, scale_factor=2.0, mode="bilinear"))
        x0 = up0(x0 + F.interpolate(x1, scale_factor=2.0, mode="bilinear"))
        copied, copied_mirrored = (_COPIES * self.copy(has)).chunk(2, 1)  # [N, C, S, S] each
        drawn = self.leave(F.hardswish(self.norm(x0)))[..., :height, :width]
        return drawn + copied + copied_mirrored.flip(3)  # type: ignore[no-any-return]


class _PlaneBlock(nn.Module):
    """Residual block of one 3x3 convolution."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.conv = group_norm(width), nn.Conv2d(width, width, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(F.hardswish(self.norm(x)))  # type: ignore[no-any-return]
