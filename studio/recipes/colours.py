"""Sprites as choices of colours: what a network is to know of a set's palette, and the head that chooses from it.

Pixel art has few colours, and a mean of two of them is mostly a third that does not belong there. So the network tells
the odds of each colour, learns by cross-entropy, and in the end the likeliest one is taken (after Dieleman et al. 2022,
continuous diffusion for categorical data).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

_LOOKED_AT = 4_000_000  # pixels
_WEIGHED = 16_384  # colours, the most used, from which a palette is chosen
_MOST_USED = 4  # one in so many centres begins as one of the most used colours
_ROUNDS = 20  # of k-means
_ABSENT = -2.0  # alpha of a place in a palette that has no colour; real ones are in [-1, 1]
_NEVER = 1e4  # taken from the odds of what is absent: exp(-1e4) is 0, and 16 bits can hold it
_FREQUENCIES = (1.5, 3.0, 6.0, 12.0)  # by which colours are told apart
_CRISP_FROM = 0.94  # of the times: just before the last step
_IN_CACHE = 2**18  # odds of a table, 1 MiB: of CPUs' second caches, most hold that
_LEARNT_PIXELS = 512, 2048  # half of a sprite's in a step, within these bounds: neighbours teach nearly the same
_SOFTENED = 0.97  # what multiplies odds before that: of states that are drawn, the network is a little too sure
SHARPEST = 100.0  # what multiplies them from there on: the likeliest colour is all that is left


def palette_for(rgba: NDArray[np.uint8], count: int) -> Tensor:
    """At most `count` colours that stand for all of uint8 [N, S, S, 4]: float32 [count, 4] as x in `Batch`.

    All of them where there are no more, otherwise those next to the centres of so many groups. The most used ones come
    first; places that are left are absent.
    """
    some = rgba[:: max(1, rgba.size // 4 // _LOOKED_AT)]
    values, pixels = np.unique(_premultiplied(some).view("<u4"), return_counts=True)
    order = np.argsort(-pixels, kind="stable")[:_WEIGHED]
    colours = torch.from_numpy(values[order, None].view(np.uint8).astype(np.float32)) / 127.5 - 1
    weights = torch.from_numpy(pixels[order].astype(np.float32))
    palette = torch.zeros(count, 4)
    palette[:, 3] = _ABSENT
    if len(colours) > count:
        centres = _centres(colours, weights, count)
        colours = colours[torch.cdist(centres, colours).argmin(1).unique()]
    palette[: len(colours)] = colours
    return palette


def some_of(palette: Tensor, count: int) -> Tensor:
    """At most `count` colours that stand for all of a palette, float32 [colours, 4] both, on the CPU."""
    colours = palette[palette[:, 3] > _ABSENT]
    if len(colours) <= count:
        return colours
    centres = _centres(colours, torch.ones(len(colours)), count)
    return colours[torch.cdist(centres, colours).argmin(1).unique()]


def _premultiplied(rgba: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Colours uint8 [pixels, 4], premultiplied and rounded."""
    colours = rgba.reshape(-1, 4).astype(np.uint16)
    colours[:, :3] = (colours[:, :3] * colours[:, 3:] + 127) // 255
    return np.ascontiguousarray(colours.astype(np.uint8))


def _centres(colours: Tensor, weights: Tensor, count: int) -> Tensor:
    """Centres [count, 4] of groups of colours [n, 4], most used first, by k-means. It begins with the most used colours
    and with those that are far from all before them.
    """
    centres = colours[: max(1, count // _MOST_USED)]
    apart = torch.cdist(colours, centres).amin(1)
    while len(centres) < count:
        farthest = colours[None, (apart * weights**0.25).argmax()]
        centres = torch.cat([centres, farthest])
        apart = torch.minimum(apart, (colours - farthest).norm(dim=1))
    for _ in range(_ROUNDS):
        group = torch.cdist(colours, centres).argmin(1)
        sums = torch.zeros_like(centres).index_add_(0, group, colours * weights[:, None])
        totals = torch.zeros(count).index_add_(0, group, weights)[:, None]
        centres = torch.where(totals > 0, sums / totals.clamp(min=1), centres)
    return centres


@contextmanager
def _full_precision(device: torch.device) -> Iterator[None]:
    """Without autocast: in 16 bits, many colours would be equally likely."""
    if torch.is_autocast_enabled(device.type):
        with torch.autocast(device.type, enabled=False):
            yield
    else:  # a graph that is traced knows no autocast
        yield


class PaletteHead(nn.Module):
    """The odds of each colour of a palette, from features [B, S, S, channels] of each pixel.

    What it has learnt of a colour follows from the colour itself, so that it fits the palette of other sprites as well.
    palette: float32 [colours, 4], as x in `Batch`: `palette_for` the sprites that are learnt from, once it is given.
    """

    palette: Tensor
    frequencies: Tensor

    def __init__(self, channels: int, colours: int) -> None:
        super().__init__()
        self.register_buffer("palette", 2 * torch.rand(colours, 4) - 1)
        self.register_buffer("frequencies", torch.tensor(_FREQUENCIES), persistent=False)
        numbers = 4 * (1 + 2 * len(_FREQUENCIES))
        self.enter, self.leave = nn.Linear(numbers, 64), nn.Linear(64, channels + 1)
        nn.init.normal_(self.leave.weight, std=0.05)

    def mean(self, features: Tensor, t: Tensor) -> Tensor:
        """The colour to be expected by softened odds at times t [B], late the likeliest: float32 [B, S, S, 4]."""
        return self.expected(features, ((t - _CRISP_FROM) * 1e5).clamp(_SOFTENED, SHARPEST)[:, None, None, None])

    def expected(self, features: Tensor, sharpness: Tensor | float) -> Tensor:
        """The colour to be expected where likely colours are made so many times as likely as they are, in logarithms:
        float32 [B, S, S, 4].
        """
        with _full_precision(features.device):
            known = self.known()
            asked = F.pad(features.float(), (0, 1), value=1.0) * sharpness
            if torch.compiler.is_compiling():  # for other programs: not all of them know attention
                return (asked @ known.T).softmax(-1) @ self.palette
            # Attention from pixels to colours: four times as fast, without a table of all odds. It wants values as long
            # as keys.
            told = F.pad(self.palette, (0, known.shape[1] - 4))
            keys, values = (each.expand(len(features), 1, -1, -1) for each in (known, told))
            found = F.scaled_dot_product_attention(asked.flatten(1, 2)[:, None], keys, values, scale=1.0)
            colours: Tensor = found[:, 0, :, :4].unflatten(1, features.shape[1:3])
            return colours

    def nearest(self, x: Tensor) -> Tensor:
        """The place in the palette of the colour nearest to each of x [..., 4]: int64 [...]."""
        with _full_precision(x.device):
            return F.linear(x, 2 * self.palette, -self.palette.square().sum(1)).argmax(-1)

    def known(self) -> Tensor:
        """What is known of each colour, and last its odds whatever the pixel: float32 [colours, channels + 1]."""
        angles = (self.palette[:, :, None] * self.frequencies).flatten(1)
        known = self.leave(F.silu(self.enter(torch.cat([self.palette, angles.sin(), angles.cos()], 1))))
        absent = _NEVER * (self.palette[:, 3:] + 1).clamp(max=0.0)
        return torch.cat([known[:, :-1], known[:, -1:] + absent], 1)


class _ColourErrors(torch.autograd.Function):
    """What `colour_errors` adds up, with its gradients, from the odds of some pixels at a time.

    The odds are the products of what is asked of each pixel, float32 [n, numbers], and known of each colour, float32
    [colours, numbers]. palette: float32 [colours, 4]. Of each pixel its colour, float32 [n, 4], and its two weights,
    float32 [n].

    On a CPU a table of all odds would take a third of a training step: the system has to find its memory anew each
    time, and none of it stays in the cache.
    """

    @staticmethod
    def forward(
        ctx: Any, asked: Tensor, known: Tensor, palette: Tensor, colours: Tensor, of_odds: Tensor, of_means: Tensor
    ) -> Tensor:
        total, is_learnt = asked.new_zeros(()), any(ctx.needs_input_grad)
        of_asked, of_known = torch.empty_like(asked), torch.zeros_like(known.T)
        leads = torch.cat([palette, torch.ones_like(palette[:, :1])], 1).T.contiguous()
        lengths = palette.square().sum(1)
        in_parts = asked.device.type == "cpu" and not torch.compiler.is_compiling()
        at_once = min(len(asked), _IN_CACHE // len(known)) if in_parts else len(asked)
        tables = asked.new_empty(2, at_once, len(known))
        for start in range(0, len(asked), at_once):
            some = slice(start, start + at_once)
            true, weights, mean_weights = colours[some], of_odds[some], of_means[some]
            table, shares = tables[:, : len(weights)]
            place = torch.addmm(-lengths, true, 2 * palette.T, out=table).argmax(1, keepdim=True)  # the nearest
            torch.mm(asked[some], known.T, out=table)
            torch.softmax(table, 1, out=shares)
            errors = table.amax(1) - table.gather(1, place)[:, 0] - shares.amax(1).log()  # the highest is never 0
            means = (palette.T @ shares.T).T
            apart = means - true
            total += weights @ errors + mean_weights @ apart.square().sum(1)
            if is_learnt:
                # Of the odds: the share times (weight + of_mean . (colour - mean)), less the weight at the true colour.
                of_mean = 2 * mean_weights[:, None] * apart
                rest = weights - (of_mean * means).sum(1)
                torch.mm(torch.cat([of_mean, rest[:, None]], 1), leads, out=table).mul_(shares)
                table.scatter_add_(1, place, -weights[:, None])
                torch.mm(table, known, out=of_asked[some])
                of_known.addmm_(asked[some].T, table)
        ctx.save_for_backward(of_asked, of_known)
        return total

    @staticmethod
    def backward(ctx: Any, of_total: Tensor) -> tuple[Tensor | None, ...]:
        of_asked, of_known = ctx.saved_tensors
        return of_total * of_asked, of_total * of_known.T, None, None, None, None


def colour_errors(head: PaletteHead, features: Tensor, colours: Tensor, of_odds: Tensor, of_means: Tensor) -> Tensor:
    """How wrong the odds of pixels are, float32 []: the sum of their cross-entropies, in nats, and of the squared
    distances between expected and true colours, each times its weight, of_odds and of_means [...].

    features: [..., channels]. colours: [..., 4], the pixels' own; the nearest one of the palette is the true one. Only
    features and head get gradients.
    """
    with _full_precision(features.device):
        asked = F.pad(features.float().flatten(0, -2), (0, 1), value=1.0)
        given = colours.flatten(0, -2), of_odds.flatten(), of_means.flatten()
        total: Tensor = _ColourErrors.apply(asked, head.known(), head.palette, *given)
        return total


def some_rows(size: int, offset: Tensor) -> Tensor:
    """Rows of sprites of this side that are learnt from in a step, evenly apart: int64 [B, rows].

    offset: [B, 1] in [0, 1), where between two of them the first one is.
    """
    least, most = _LEARNT_PIXELS
    count = min(size, max(1, min(max(least, size**2 // 2), most) // size))
    places = (torch.arange(count, device=offset.device) + offset) * (size / count)
    return places.long().clamp(max=size - 1)


def in_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Of [B, channels, S, S] these rows, int64 [B, rows], with channels last: [B, rows, S, channels]."""
    every = values.permute(0, 2, 3, 1).flatten(0, 1)
    first = torch.arange(0, len(every), values.shape[2], device=rows.device)
    chosen: Tensor = every.index_select(0, (first[:, None] + rows).flatten()).unflatten(0, rows.shape)
    return chosen
