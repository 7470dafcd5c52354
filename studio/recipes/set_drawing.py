"""Complete sets of pictures with torch alone. Exported models carry this source; the operators can be traced.

For equal random numbers it draws what `engine.sampling.complete` draws with the colours of the given cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from studio.recipes.capabilities import SetCondition
from studio.recipes.set_colours import UNUSED

_MIRRORED = 0.95  # share of training sets from which right views mirror left views
_OPAQUE = 255


def draw_missing(
    complete: Callable[[Any, SetCondition, Tensor, Any], Iterator[Tensor]],
    network: Any, cells: Tensor, given: Tensor, chances: Tensor, variety: float | Tensor,
) -> Tensor:  # fmt: skip
    """Draw the missing cells of sets; return all cells, uint8 [N, C, S, S, 4], given cells unchanged.

    complete: of the recipe, as in `CompletesSets`. cells: uint8 [N, C, S, S, 4], straight RGBA, ignored where missing.
    given: bool [N, C]; a set without given cells takes the palette of a training set. chances, variety: as for
    `complete`; variety may be a float32 tensor [1].
    """
    condition, colours = set_condition(cells, given, network.palettes, chances[:, 0, 1, 0, 0, 0])
    index = condition.index
    for index in complete(network, condition, chances, variety):  # noqa: B007 - the last round's cells are complete
        pass
    flat = colours.gather(1, index.flatten(1)[:, :, None].expand(-1, -1, 4))  # uint8 [N, C * S * S, 4]
    is_given = given[:, :, None, None, None]
    shown = torch.where(is_given, cells * (cells[..., 3:] > 0), flat.view(cells.shape))
    return torch.where(is_given, cells, mirror_sides(shown, given, network.partners, network.mirrored))


def set_condition(cells: Tensor, given: Tensor, palettes: Tensor, pick: Tensor) -> tuple[SetCondition, Tensor]:
    """Return the network's inputs for the given cells, and the palettes as straight RGBA, uint8 [N, P, 4].

    palettes: float32 [G, P, 4], of training sets, as in SetCondition. pick: float32 [N] in [0, 1), chooses a palette
    for a set without given cells.
    """
    index, own = palettes_of(cells, given, palettes.shape[1])
    chosen = palettes.index_select(0, (pick * len(palettes)).long().clamp(max=len(palettes) - 1))  # [N, P, 4]
    alpha = (chosen[:, :, 3:].clamp(-1, 1) + 1) / 2
    colour = (chosen[:, :, :3].clamp(-1, 1) + 1) / 2 / alpha.clamp(min=1 / _OPAQUE)
    of_training = torch.cat([colour.clamp(0, 1), alpha], 2) * (alpha > 0)
    is_new = ~given.any(1)[:, None, None]
    straight = torch.where(is_new, (of_training * _OPAQUE).round().to(torch.uint8), own)
    rgba = straight.float() / _OPAQUE
    x = torch.cat([rgba[:, :, :3] * rgba[:, :, 3:], rgba[:, :, 3:]], 2) * 2 - 1
    is_unused = (straight[:, :, 3:] == 0) & (torch.arange(x.shape[1], device=x.device) > 0)[:, None]
    return SetCondition(index, torch.where(is_unused, UNUSED, x), given), straight


def palettes_of(cells: Tensor, given: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Return the palette index of each pixel, int64 [N, C, S, S], and the palettes, uint8 [N, most, 4].

    A palette holds transparency, then the visible colours of the given cells, most used first; unused entries are
    transparent. Colours beyond `most` share the last index. Pixels of missing cells have the index 0.
    """
    red, green, blue, alpha = cells.long().flatten(1, 3).unbind(2)  # [N, L], L = C * S * S
    is_seen = (given[:, :, None, None] & (cells[..., 3] > 0)).flatten(1)
    keys = torch.where(is_seen, ((red * 256 + green) * 256 + blue) * 256 + alpha, -1)
    keys = torch.cat([torch.full_like(keys[:, :1], -1), keys], 1)  # [N, L + 1]; a transparent pixel comes first
    in_order, order = keys.sort(1)
    is_new = (in_order[:, 1:] != in_order[:, :-1]).long()
    ranks = torch.cat([torch.zeros_like(is_new[:, :1]), is_new.cumsum(1)], 1)  # colour ranks by key
    counts = torch.zeros_like(ranks).scatter_add(1, ranks, torch.ones_like(ranks))  # [N, L + 1], 0 for unused ranks
    numbers = torch.arange(counts.shape[1]).to(counts)
    # Distinct, because a plain sort, unlike a stable one, can be traced: transparency first, then by count and key.
    importance = torch.where(numbers == 0, len(numbers) ** 2, counts * len(numbers) - numbers)
    by_use = importance.sort(1, descending=True).indices
    places = torch.zeros_like(by_use).scatter(1, by_use, numbers.expand_as(by_use))
    places = places.gather(1, ranks)  # palette index by pixel, in key order
    index = torch.zeros_like(ranks).scatter(1, order, places)[:, 1:].clamp(max=most - 1)
    pixels = torch.cat([torch.zeros_like(cells[:, 0, 0, :1]), cells.flatten(1, 3) * is_seen[:, :, None]], 1)
    in_order = pixels.gather(1, order[:, :, None].expand(-1, -1, 4))  # uint8 [N, L + 1, 4]
    palettes = torch.zeros_like(pixels).scatter(1, places[:, :, None].expand(-1, -1, 4), in_order)
    short = max(0, most - palettes.shape[1])
    palettes = torch.cat([palettes, torch.zeros_like(palettes[:, :1]).expand(-1, short, -1)], 1)[:, :most]
    return index.view(cells.shape[:4]), palettes


def mirror_sides(cells: Tensor, given: Tensor, partners: Tensor, mirrored: Tensor) -> Tensor:
    """Replace a drawn side view by the mirror image of the opposite view if most training sets mirrored these views.

    cells: uint8 [N, C, S, S, 4]. given: bool [N, C]. partners: int64 [C], the opposite view of every cell, -1 for none.
    mirrored: float32 [C], the share of training sets with a mirrored view. Of two drawn views, replaces the second.
    """
    numbers, others = torch.arange(len(partners), device=partners.device), partners.clamp(min=0)
    has_partner = (partners >= 0) & (partners != numbers) & (mirrored >= _MIRRORED)
    follows = has_partner & ~given & (given.index_select(1, others) | (others < numbers))  # [N, C]
    return torch.where(follows[:, :, None, None, None], cells.index_select(1, others).flip(3), cells)
