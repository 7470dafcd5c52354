"""Palettes of sets: a set's pixels are indices into a palette with the set's own colours.

All views of a character use the colours of the front view. Because the network chooses among a set's own colours, the
network can draw colours that no training set has, and turning the hues of a set makes another training set. With a
palette shared by all sets, such networks overfit (Coutinho & Chaimowicz 2022).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from studio.recipes.base import BatchRng

TRANSPARENT = 0  # palette index
UNUSED = -2.0  # alpha of an unused palette entry; alpha of colours is in [-1, 1]
_FAR = 1e3  # a distance larger than between any two colours


def index_colours(x: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Index the colours of sets: return palette indices by pixel, and palettes by set.

    x: float32 [B, C, 4, S, S], premultiplied RGBA in [-1, 1]. most: size P of the palette; more colours share an entry.
    Returns index int64 [B, C, S, S] and palette float32 [B, P, 4], whose entry 0 is transparent.
    """
    in_order, order = _sorted_keys(x)
    is_new = F.pad(in_order[:, 1:] != in_order[:, :-1], (1, 0))
    ranks = is_new.cumsum(1).clamp(max=most - 1)  # [B, L + 1]
    index = torch.empty_like(ranks).scatter_(1, order, ranks)[:, 1:].view(len(x), x.shape[1], *x.shape[3:])
    palette = x.new_full((len(x), most, 4), UNUSED)
    channels = [in_order >> shift & 255 for shift in (16, 8, 0, 24)]  # red, green, blue, alpha
    colours = torch.stack(channels, 2).to(x.dtype) / 127.5 - 1  # [B, L + 1, 4]
    return index, palette.scatter_(1, ranks[:, :, None].expand(-1, -1, 4), colours)


def count_colours(x: Tensor) -> Tensor:
    """Count the colours of every set, including transparency: int64 [B]. x: see `index_colours`."""
    return (_sorted_keys(x)[0].diff(dim=1) != 0).sum(1) + 1


def colours_of(index: Tensor, palette: Tensor) -> Tensor:
    """Return the colour of each pixel, float32 [B, C, 4, S, S]. index: int64 [B, C, S, S]. palette: [B, P, 4]."""
    flat = palette.gather(1, index.flatten(1)[:, :, None].expand(-1, -1, 4))  # [B, C * S * S, 4]
    colours: Tensor = flat.unflatten(1, index.shape[1:])  # [B, C, S, S, 4]
    return colours.permute(0, 1, 4, 2, 3)


def _sorted_keys(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the colours of a set's pixels as sorted integers, and the pixels' order: two tensors int64 [B, L + 1].

    Prepends a transparent pixel to the L pixels of a set, so that transparency gets the smallest integer.
    """
    levels = ((x + 1) * 127.5).round().long()  # [B, C, 4, S, S], 0 to 255
    red, green, blue, alpha = levels.unbind(2)
    keys = (((alpha * 256 + red) * 256 + green) * 256 + blue).flatten(1)  # [B, L], equal for equal colours
    in_order, order = F.pad(keys, (1, 0)).sort(1)
    return in_order, order


def colours_in(index: Tensor, known: Tensor, count: int) -> Tensor:
    """Return which palette entries occur in known pixels: bool [B, P]; entry 0 always does.

    index: int64 [B, C, S, S]. known: bool [B, C, S, S]. count: P.
    """
    found = torch.zeros(len(index), count, device=index.device)
    found = found.scatter_add(1, index.flatten(1), known.flatten(1).float()) > 0
    found[:, TRANSPARENT] = True
    return found


def only_allowed(palette: Tensor, allowed: Tensor) -> Tensor:
    """Return palettes float32 [B, P, 4] with all entries marked unused except `allowed`, bool [B, P]."""
    return torch.where(allowed[:, :, None], palette, UNUSED)


def may_count(palette: Tensor) -> bool:
    """Return whether to count used entries: other devices would wait for the count, and exports can't trace it."""
    return palette.device.type == "cpu" and not torch.compiler.is_compiling()


def trimmed(palette: Tensor) -> Tensor:
    """Cut unused entries at the end of palettes [B, P, 4]; keep every entry where counting is impossible or slow."""
    if not may_count(palette):
        return palette
    return palette[:, : 1 + int((palette[..., 3] > UNUSED).any(0).nonzero().max())]


def nearest_allowed(palette: Tensor, limited: Tensor) -> Tensor:
    """Return the nearest used entry of `limited` for each entry of `palette`: int64 [B, P].

    palette, limited: float32 [B, P, 4], from `only_allowed`. A visible colour becomes transparent only if it must.
    """
    distance = torch.cdist(palette, limited) + _FAR * 2 * (limited[:, None, :, 3] == UNUSED)  # [B, P, P]
    distance[:, 1:, TRANSPARENT] += _FAR
    return distance.argmin(2)


def no_palettes(number: int, colours: int) -> Tensor:
    """Return palettes with the transparent entry alone: float32 [number, colours, 4]."""
    palettes = torch.full((number, colours, 4), UNUSED)
    palettes[:, TRANSPARENT] = -1.0
    return palettes


def turn_hues(palette: Tensor, rng: BatchRng) -> Tensor:
    """Turn hues by random angles in half of the palettes, and change the brightness; float32 [B, P, 4].

    Rotates a set's colours by a common angle about the grey axis of RGB.
    """
    chosen = (rng.rand() < 0.5).float()  # [B]
    angle = rng.rand() * 2 * math.pi * chosen
    cos, sin = angle.cos(), angle.sin() / math.sqrt(3)
    near, left, right = cos + (1 - cos) / 3, (1 - cos) / 3 - sin, (1 - cos) / 3 + sin
    rows = [torch.stack(row, 1) for row in ((near, left, right), (right, near, left), (left, right, near))]
    matrix = torch.stack(rows, 1)  # [B, 3, 3]
    gain = (1 + 0.15 * rng.randn() * chosen).clamp(0.6, 1.4)[:, None, None]
    alpha = (palette[..., 3:] + 1) / 2  # [B, P, 1]; negative for unused entries
    rgb = (palette[..., :3] + 1) / 2 @ matrix.transpose(1, 2) * gain
    rgb = torch.minimum(rgb.clamp(min=0), alpha.clamp(min=0))  # premultiplied colours are at most alpha
    return torch.cat([rgb * 2 - 1, palette[..., 3:]], 2)
