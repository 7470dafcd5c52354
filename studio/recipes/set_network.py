"""The network that completes sets: a small U-Net over all cells at once, whose pixels choose among a palette."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.recipes.base import CellSlices
from studio.recipes.layers import Attention, ResidualBlock, group_norm
from studio.recipes.set_colours import colours_of

FEATURES = 24  # of a pixel and of a colour, whose product is the colour's logit
_SHOWN = 5  # channels of a cell at the input: RGBA, and whether the pixel is known
_NEVER = 1e4  # subtracted from the logits of unused entries: exp(-1e4) is 0, and 1e4 fits into fp16
_LEVELS = 3  # halvings of the resolution


class SetNetwork(nn.Module):
    """Network that predicts, for each pixel of all C cells, logits of the set's colours: [B, C, P, S, S].

    The known pixels and their mirror images enter as channels, all cells stacked. The logit of a colour is the product
    of the pixel's features and the colour's key; the key follows from RGBA and the features of known pixels that have
    the colour, so that colours never seen in training work.
    palettes: float32 [G, P, 4], palettes of training sets, for drawing new sets. leads: bool [C], whether a cell
    begins a row. partners: int64 [C], the cell that mirrors each cell, -1 for none. mirrored: float32 [C], the share of
    training sets in which a cell is the exact mirror image of its partner.
    """

    palettes: Tensor
    leads: Tensor
    partners: Tensor
    mirrored: Tensor

    def __init__(self, cells: int, width: int, colours: int, palettes: int, features: int = FEATURES) -> None:
        super().__init__()
        self.cells, self.colours, self.features = cells, colours, features
        self.register_buffer("palettes", torch.zeros(palettes, colours, 4))
        self.register_buffer("leads", torch.arange(cells) == 0)
        self.register_buffer("partners", torch.arange(cells))
        self.register_buffer("mirrored", torch.zeros(cells))
        wide, deep = 2 * width, 4 * width
        self.enter = nn.Conv2d(2 * cells * _SHOWN + 2, width, 3, 1, 1)
        self.down = nn.ModuleList([ResidualBlock(width, width), ResidualBlock(width, wide), ResidualBlock(wide, deep)])
        self.bottom, self.attend = ResidualBlock(deep, deep), Attention(deep)
        self.up = nn.ModuleList(
            [ResidualBlock(2 * deep, deep), ResidualBlock(deep + wide, wide), ResidualBlock(wide + width, width)]
        )
        self.norm, self.leave = group_norm(width), nn.Conv2d(width, cells * features, 1)
        self.key = nn.Sequential(nn.Linear(width + 5, 96), nn.SiLU(), nn.Linear(96, features))

    def forward(self, index: Tensor, palette: Tensor, known: Tensor) -> Tensor:
        """Return the logits of the palette's entries for each pixel, float32 [B, C, P, S, S].

        index: int64 [B, C, S, S], palette indices. palette: float32 [B, P, 4]. known: float32 [B, C, S, S], 1 where
        the pixel is known; the index of other pixels is ignored.
        """
        batch, cells, height, width = index.shape
        shown = torch.cat([colours_of(index, palette) * known[:, :, None], known[:, :, None]], 2).flatten(1, 2)
        rows = torch.linspace(-1, 1, height, device=shown.device)[:, None].expand(batch, 1, height, width)
        columns = torch.linspace(-1, 1, width, device=shown.device).expand(batch, 1, height, width)
        side = 2**_LEVELS
        border = (0, -width % side, 0, -height % side)
        x = self.enter(F.pad(torch.cat([shown, shown.flip(3), rows, columns], 1), border))
        skips = []
        for number, block in enumerate(self.down):
            x = block(F.avg_pool2d(x, 2) if number else x)
            skips.append(x)
        x = self.attend(self.bottom(F.avg_pool2d(x, 2)))
        for block, skip in zip(self.up, reversed(skips), strict=True):
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), skip], 1))
        queries = self.leave(F.hardswish(self.norm(x)))[:, :, :height, :width]
        queries = queries.float().reshape(batch, cells, self.features, height * width)
        keys = self._keys(index, palette, known, skips[0][:, :, :height, :width].float())  # [B, P, features]
        logits = keys[:, None] @ queries / math.sqrt(self.features)  # [B, C, P, S * S]
        unused = _NEVER * (palette[..., 3] + 1).clamp(max=0.0)  # [B, P]: -1e4 for an alpha of -2, else 0
        usable: Tensor = logits + unused[:, None, :, None]
        return usable.view(batch, cells, -1, height, width)

    def _keys(self, index: Tensor, palette: Tensor, known: Tensor, features: Tensor) -> Tensor:
        """Return the keys of the palette's entries, float32 [B, P, features].

        features: float32 [B, width, S, S], of the first level; averaged over the known pixels of each colour.
        """
        has = index.new_zeros((len(index), palette.shape[1], features[0, 0].numel()), dtype=features.dtype)
        for cell in range(self.cells):  # has: [B, P, S * S], in how many cells a pixel is known and has a colour
            has = has.scatter_add(1, index[:, cell].flatten(1)[:, None], known[:, cell].flatten(1)[:, None])
        counts = has.sum(2, keepdim=True)  # [B, P, 1]
        pooled = has @ features.flatten(2).transpose(1, 2) / counts.clamp(min=1)  # [B, P, width]
        return self.key(torch.cat([pooled, palette, counts.log1p() / 6], 2))  # type: ignore[no-any-return]


def cell_slices(cells: Sequence[str], features: int = FEATURES) -> dict[str, CellSlices]:
    """Return which slices of the network's weights belong to which cell, by the weight's name."""
    shown = tuple(cell for cell in cells for _ in range(_SHOWN))
    drawn = tuple(cell for cell in cells for _ in range(features))
    enter = CellSlices(1, (*shown, *shown, "", ""))  # the cells, their mirror images, the coordinates
    return {"enter.weight": enter, "leave.weight": CellSlices(0, drawn), "leave.bias": CellSlices(0, drawn)}
