"""The network that completes sets: first a small U-Net over all cells together, then a pass over every colour."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.recipes.base import CellSlices
from studio.recipes.layers import Attention, ResidualBlock, group_norm
from studio.recipes.set_colours import UNUSED, colours_of, may_count
from studio.recipes.set_planes import ColourPlanes

_FEATURES = 32  # features of a pixel and of a colour; their dot product is the colour's first logit
_PLANES = 16  # channels of ColourPlanes
_SHOWN = 5  # channels of a cell at the input: RGBA, and whether the pixel is known
_NEVER = 1e4  # subtracted from the logits of unused entries: exp(-1e4) is 0, and 1e4 fits into fp16
_LEVELS = 3  # halvings of the resolution


class SetNetwork(nn.Module):
    """Network that predicts, for each pixel of all C cells, logits of the set's colours: [B, C, P, S, S].

    The input of a U-Net is the known pixels of all cells and their mirror images, stacked as channels. The first logit
    of a colour is the product of a pixel's features and the colour's key. Keys are computed from RGBA and from the
    features of known pixels with this colour, so the network can draw colours that no training set has. `ColourPlanes`
    then corrects the logits.
    palettes: float32 [G, P, 4], palettes of training sets, for drawing new sets. leads: bool [C], whether a cell
    begins a row. partners, int64 [C], and mirrored, float32 [C]: see `set_mirrors.find_partners`.
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
        self.widths = width, wide, deep, deep  # channels of the blocks on the way down
        self.enter = nn.Conv2d(2 * cells * _SHOWN + 2, width, 3, 1, 1)
        self.down = nn.ModuleList([ResidualBlock(width, width), ResidualBlock(width, wide), ResidualBlock(wide, deep)])
        self.bottom, self.attend = ResidualBlock(deep, deep), Attention(deep)
        self.up = nn.ModuleList(
            [ResidualBlock(2 * deep, deep), ResidualBlock(deep + wide, wide), ResidualBlock(wide + width, width)]
        )
        self.norm, self.leave = group_norm(width), nn.Conv2d(width, cells * _FEATURES, 1)
        self.key = nn.Sequential(nn.Linear(width + 5, 96), nn.SiLU(), nn.Linear(96, _FEATURES))
        self.planes = ColourPlanes(cells, width, _FEATURES, _PLANES)

    def forward(self, index: Tensor, palette: Tensor, known: Tensor, masks: Sequence[Tensor] = ()) -> Tensor:
        """Return the logits of the palette's entries for each pixel, float32 [B, C, P, S, S].

        index: int64 [B, C, S, S], palette indices. palette: float32 [B, P, 4]. known: float32 [B, C, S, S], 1 where
        the pixel is known; the index of other pixels is ignored. masks: for dropout, factors [B, channels] for each
        number of channels in `widths`.
        """
        batch, cells, height, width = index.shape
        first, last = self._features(index, palette, known, masks)  # [B, width, S, S] each
        queries = self.leave(last).float().reshape(batch, cells, _FEATURES, height * width)
        keys = self._keys(index, palette, known, first.float())  # [B, P, features]
        logits = keys[:, None] @ queries / math.sqrt(_FEATURES)  # [B, C, P, S * S]
        logits = logits.view(batch, cells, -1, height, width).transpose(1, 2)  # [B, P, C, S, S]
        unused = _NEVER * (palette[..., 3] + 1).clamp(max=0.0)  # [B, P]: -1e4 for an alpha of -2, else 0
        corrections = self._corrections(index, known, logits, keys, last, palette)
        usable: Tensor = logits + corrections + unused[:, :, None, None, None]
        return usable.transpose(1, 2)

    def _features(
        self, index: Tensor, palette: Tensor, known: Tensor, masks: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the U-Net's features at the first and the last level, [B, width, S, S] each."""
        batch, _, height, width = index.shape
        shown = torch.cat([colours_of(index, palette) * known[:, :, None], known[:, :, None]], 2).flatten(1, 2)
        rows = torch.linspace(-1, 1, height, device=shown.device)[:, None].expand(batch, 1, height, width)
        columns = torch.linspace(-1, 1, width, device=shown.device).expand(batch, 1, height, width)
        side = 2**_LEVELS
        border = (0, -width % side, 0, -height % side)
        x = self.enter(F.pad(torch.cat([shown, shown.flip(3), rows, columns], 1), border))
        skips = []
        for number, block in enumerate([*self.down, self.bottom]):
            x = block(F.avg_pool2d(x, 2) if number else x)
            x = x * masks[number][:, :, None, None] if masks else x
            skips.append(x)
        x = self.attend(skips.pop())
        for block, skip in zip(self.up, reversed(skips), strict=True):
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0, mode="bilinear"), skip], 1))
        return skips[0][:, :, :height, :width], F.hardswish(self.norm(x))[:, :, :height, :width]

    def _keys(self, index: Tensor, palette: Tensor, known: Tensor, features: Tensor) -> Tensor:
        """Return the keys of the palette's entries, float32 [B, P, features].

        features: float32 [B, width, S, S], averaged over the known pixels of each colour.
        """
        pixels = features.new_zeros(palette.shape[0], palette.shape[1], features.shape[2] * features.shape[3])
        for cell in range(self.cells):  # pixels: [B, P, S * S], in how many cells a pixel is known and has the colour
            own = known[:, cell].flatten(1)[:, None].to(pixels.dtype)
            pixels = pixels.scatter_add(1, index[:, cell].flatten(1)[:, None], own)
        counts = pixels.sum(2, keepdim=True)  # [B, P, 1]
        pooled = pixels @ features.flatten(2).transpose(1, 2) / counts.clamp(min=1)  # [B, P, width]
        return self.key(torch.cat([pooled, palette, counts.log1p() / 6], 2))  # type: ignore[no-any-return]

    def _corrections(
        self, index: Tensor, known: Tensor, logits: Tensor, keys: Tensor, features: Tensor, palette: Tensor
    ) -> Tensor:
        """Return what `ColourPlanes` adds to the logits, [B, P, C, S, S]; zeros for unused entries."""
        batch, count = palette.shape[:2]
        context, keys = self.planes.context(features), self.planes.keys(keys)  # [B, 2 planes, S, S], [B, P, 3 planes]
        entries = torch.arange(count, device=index.device)[:, None, None, None]
        if not may_count(palette):
            has = (index[:, None] == entries).to(known.dtype) * known[:, None]  # [B, P, C, S, S]
            repeated = context[:, None].expand(-1, count, -1, -1, -1)
            added = self.planes(*(part.flatten(0, 1) for part in (has, logits, repeated, keys)))
        else:  # the used entries alone: half of the work, or less
            sets, used = (palette[..., 3] > UNUSED).nonzero(as_tuple=True)  # [N] each
            has = (index[sets] == entries[used]).to(known.dtype) * known[sets]  # [N, C, S, S]
            own = self.planes(has, logits[sets, used], context[sets], keys[sets, used])
            added = own.new_zeros(batch * count, *own.shape[1:]).index_copy(0, sets * count + used, own)
        corrections: Tensor = added.unflatten(0, (batch, count))
        return corrections


def mirrored_odds(network: SetNetwork, index: Tensor, palette: Tensor, known: Tensor) -> Tensor:
    """Return the odds of palette entries by pixel, averaged over sets and their mirror images.

    Arguments as for SetNetwork.forward; returns float32 [B, C, P, S, S]. A cell without a partner keeps its own odds.
    """
    own, partners = network(index, palette, known).float().softmax(2), network.partners.clamp(min=0)
    has_partner = (network.partners >= 0).to(known.dtype)[:, None, None]  # [C, 1, 1]
    seen = index[:, partners].flip(3), (known[:, partners] * has_partner).flip(3)
    mirrored = network(seen[0], palette, seen[1]).float().softmax(2)[:, partners].flip(4)
    share = has_partner[:, None] / 2  # [C, 1, 1, 1]
    return own * (1 - share) + mirrored * share  # type: ignore[no-any-return]


def cell_slices(cells: Sequence[str]) -> dict[str, tuple[CellSlices, ...]]:
    """Map the names of the network's weights to their dimensions with slices for cells."""
    own = tuple(cells)
    shown, drawn = (tuple(cell for cell in cells for _ in range(each)) for each in (_SHOWN, _FEATURES))
    enter = CellSlices(1, (*shown, *shown, "", ""))  # the cells, their mirror images, the coordinates
    leave = dict.fromkeys(("leave.weight", "leave.bias"), (CellSlices(0, drawn),))
    planes = {f"planes.{name}.weight": (CellSlices(1, own),) for name in ("enter", "enter_rows", "enter_logits")}
    leaving = dict.fromkeys(("planes.leave.weight", "planes.leave.bias"), (CellSlices(0, own),))
    copying = CellSlices(0, (*own, *own)), CellSlices(1, own)
    return {"enter.weight": (enter,), **leave, **planes, **leaving, "planes.copy.weight": copying}
