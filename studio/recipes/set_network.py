"""The network that completes sets: a small U-Net over all cells at once, then a pass over each colour of the set."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.recipes.base import CellSlices
from studio.recipes.layers import Attention, ResidualBlock, group_norm
from studio.recipes.set_colours import UNUSED, colours_of, may_count
from studio.recipes.set_planes import INPUTS, SIDE, ColourPlanes, planes_of

_FEATURES = 32  # of a pixel and of a colour, whose product is the colour's first logit
_PLANES = 16  # channels of ColourPlanes
_SHOWN = 5  # channels of a cell at the input: RGBA, and whether the pixel is known
_NEVER = 1e4  # subtracted from the logits of unused entries: exp(-1e4) is 0, and 1e4 fits into fp16
_LEVELS = 3  # halvings of the resolution


class SetNetwork(nn.Module):
    """Network that predicts, for each pixel of all C cells, logits of the set's colours: [B, C, P, S, S].

    The known pixels and their mirror images enter a U-Net as channels, all cells stacked. The first logit of a colour
    is the product of the pixel's features and the colour's key; the key follows from RGBA and the features of known
    pixels that have the colour, so that colours never seen in training work. `ColourPlanes` then corrects the logits.
    palettes: float32 [G, P, 4], palettes of training sets, for drawing new sets. leads: bool [C], whether a cell
    begins a row. partners: int64 [C], the cell that mirrors each cell, -1 for none. mirrored: float32 [C], the share of
    training sets in which a cell is the exact mirror image of its partner.
    """

    palettes: Tensor
    leads: Tensor
    partners: Tensor
    mirrored: Tensor

    def __init__(self, cells: int, width: int, colours: int, palettes: int) -> None:
        super().__init__()
        self.cells, self.colours = cells, colours
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
        self.norm, self.leave = group_norm(width), nn.Conv2d(width, cells * _FEATURES, 1)
        self.key = nn.Sequential(nn.Linear(width + 5, 96), nn.SiLU(), nn.Linear(96, _FEATURES))
        self.planes = ColourPlanes(cells, width, _FEATURES, _PLANES)

    def forward(self, index: Tensor, palette: Tensor, known: Tensor) -> Tensor:
        """Return the logits of the palette's entries for each pixel, float32 [B, C, P, S, S].

        index: int64 [B, C, S, S], palette indices. palette: float32 [B, P, 4]. known: float32 [B, C, S, S], 1 where
        the pixel is known; the index of other pixels is ignored.
        """
        batch, cells, height, width = index.shape
        entries = torch.arange(palette.shape[1], device=index.device)[:, None, None, None]
        has = (index[:, None] == entries).to(known.dtype) * known[:, None]  # [B, P, C, S, S], known with this colour
        first, last = self._features(index, palette, known)  # [B, width, S, S] each
        queries = self.leave(last).float().reshape(batch, cells, _FEATURES, height * width)
        keys = self._keys(has, palette, first.float())  # [B, P, features]
        logits = keys[:, None] @ queries / math.sqrt(_FEATURES)  # [B, C, P, S * S]
        logits = logits.view(batch, cells, -1, height, width).transpose(1, 2)  # [B, P, C, S, S]
        unused = _NEVER * (palette[..., 3] + 1).clamp(max=0.0)  # [B, P]: -1e4 for an alpha of -2, else 0
        usable: Tensor = logits + self._corrections(has, logits, keys, last, palette) + unused[:, :, None, None, None]
        return usable.transpose(1, 2)

    def _features(self, index: Tensor, palette: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Return the U-Net's features of the first level and of the last, [B, width, S, S] each."""
        batch, _, height, width = index.shape
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
        return skips[0][:, :, :height, :width], F.hardswish(self.norm(x))[:, :, :height, :width]

    def _keys(self, has: Tensor, palette: Tensor, features: Tensor) -> Tensor:
        """Return the keys of the palette's entries, float32 [B, P, features].

        has: [B, P, C, S, S]. features: float32 [B, width, S, S], averaged over the known pixels of each colour.
        """
        pixels = has.float().sum(2).flatten(2)  # [B, P, S * S], in how many cells a pixel is known and has the colour
        counts = pixels.sum(2, keepdim=True)  # [B, P, 1]
        pooled = pixels @ features.flatten(2).transpose(1, 2) / counts.clamp(min=1)  # [B, P, width]
        return self.key(torch.cat([pooled, palette, counts.log1p() / 6], 2))  # type: ignore[no-any-return]

    def _corrections(self, has: Tensor, logits: Tensor, keys: Tensor, features: Tensor, palette: Tensor) -> Tensor:
        """Return what `ColourPlanes` adds to the logits, [B, P, C, S, S]; zeros for unused entries."""
        (batch, count), (height, width) = has.shape[:2], has.shape[3:]
        border = (0, -width % SIDE, 0, -height % SIDE)
        context, keys = F.pad(self.planes.context(features), border), self.planes.keys(keys)  # keys: [B, P, 3 planes]
        if not may_count(palette):
            planes, repeated = planes_of(has.flatten(0, 1), logits.flatten(0, 1)), context.repeat_interleave(count, 0)
            added = self.planes(F.pad(planes, border), repeated, keys.flatten(0, 1))
        else:
            sets, entries = (palette[..., 3] > UNUSED).nonzero(as_tuple=True)  # [N] each: half of the work, or less
            planes = F.pad(planes_of(has[sets, entries], logits[sets, entries]), border)
            own = self.planes(planes, context[sets], keys[sets, entries])
            added = own.new_zeros(batch * count, *own.shape[1:]).index_copy(0, sets * count + entries, own)
        corrections: Tensor = added.unflatten(0, (batch, count))
        return corrections[..., :height, :width]


def mirrored_odds(network: SetNetwork, index: Tensor, palette: Tensor, known: Tensor) -> Tensor:
    """Return the odds of the palette's entries for each pixel, averaged over the sets and their mirror images.

    Arguments as of SetNetwork.forward; returns float32 [B, C, P, S, S]. A cell without a partner has its own odds.
    """
    own, partners = network(index, palette, known).float().softmax(2), network.partners.clamp(min=0)
    has_partner = (network.partners >= 0).to(known.dtype)[:, None, None]  # [C, 1, 1]
    seen = index[:, partners].flip(3), (known[:, partners] * has_partner).flip(3)
    mirrored = network(seen[0], palette, seen[1]).float().softmax(2)[:, partners].flip(4)
    share = has_partner[:, None] / 2  # [C, 1, 1, 1]
    return own * (1 - share) + mirrored * share  # type: ignore[no-any-return]


def cell_slices(cells: Sequence[str]) -> dict[str, CellSlices]:
    """Return which slices of the network's weights belong to which cell, by the weight's name."""
    shown, drawn = (tuple(cell for cell in cells for _ in range(each)) for each in (_SHOWN, _FEATURES))
    enter = CellSlices(1, (*shown, *shown, "", ""))  # the cells, their mirror images, the coordinates
    leave = dict.fromkeys(("leave.weight", "leave.bias"), CellSlices(0, drawn))
    planes = dict.fromkeys(("planes.leave.weight", "planes.leave.bias"), CellSlices(0, tuple(cells)))
    return {"enter.weight": enter, **leave, "planes.enter.weight": CellSlices(1, tuple(cells) * INPUTS), **planes}
