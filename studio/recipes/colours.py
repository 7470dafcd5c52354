"""Draw sprites as choices from a palette: the palette of the training sprites, and a network head for colours.

Pixel art has few colours, and the mean of two colours is usually missing in the palette. The network therefore predicts
logits of the palette's colours by pixel, trains with cross-entropy, and finally takes the most likely colour (after
Dieleman et al. 2022, continuous diffusion for categorical data).
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

_MOST_PIXELS = 4_000_000  # counted to choose a palette
_MOST_COLOURS = 16_384  # the most frequent colours, which k-means groups
_FREQUENT_SHARE = 4  # a quarter of the centres start as the most frequent colours
_ROUNDS = 20  # rounds of k-means
_EMPTY = -2.0  # alpha of an unused palette entry; alpha of colours is in [-1, 1]
_NEVER = 1e4  # subtracted from the logits of unused entries: exp(-1e4) is 0, and 1e4 fits into fp16
_FREQUENCIES = (1.5, 3.0, 6.0, 12.0)  # frequencies of a colour's sinusoidal features
_CRISP_FROM = 0.94  # from this time on, just before the last step, take the most likely colour
_CACHED_LOGITS = 2**18  # 1 MiB of float32, which fits into the L2 cache of most CPUs
_TRAINED_PIXELS = 512, 1024  # bounds for half of a sprite's pixels: neighbouring rows teach nearly the same
_SOFTENED = 0.97  # multiplies the logits before _CRISP_FROM: on sampled states the network is slightly overconfident
SHARPEST = 100.0  # multiplies the logits from _CRISP_FROM on: only the most likely colour remains


def choose_palette(rgba: NDArray[np.uint8], count: int) -> Tensor:
    """Return a palette for sprites uint8 [N, S, S, 4]: float32 [count, 4], premultiplied RGBA in [-1, 1].

    From more than `count` colours, k-means forms groups and the palette takes the colour nearest to each centre. The
    most frequent colours come first; unused entries at the end have an alpha of -2.
    """
    some = rgba[:: max(1, rgba.size // 4 // _MOST_PIXELS)]
    # Four bytes as one integer: np.unique sorts integers faster than rows.
    values, pixels = np.unique(_premultiplied(some).view("<u4"), return_counts=True)
    order = np.argsort(-pixels, kind="stable")[:_MOST_COLOURS]
    colours = torch.from_numpy(values[order, None].view(np.uint8).astype(np.float32)) / 127.5 - 1  # [n, 4]
    weights = torch.from_numpy(pixels[order].astype(np.float32))
    palette = torch.zeros(count, 4)
    palette[:, 3] = _EMPTY
    if len(colours) > count:
        centres = _centres(colours, weights, count)
        colours = colours[torch.cdist(centres, colours).argmin(1).unique()]
    palette[: len(colours)] = colours
    return palette


def reduce_palette(palette: Tensor, count: int) -> Tensor:
    """Choose at most `count` representative colours [n, 4] of a palette [colours, 4], both float32 on the CPU."""
    colours = palette[palette[:, 3] > _EMPTY]
    if len(colours) <= count:
        return colours
    centres = _centres(colours, torch.ones(len(colours)), count)
    return colours[torch.cdist(centres, colours).argmin(1).unique()]


def _premultiplied(rgba: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert sprites uint8 [N, S, S, 4] to premultiplied, rounded colours uint8 [pixels, 4]."""
    colours = rgba.reshape(-1, 4).astype(np.uint16)
    colours[:, :3] = (colours[:, :3] * colours[:, 3:] + 127) // 255
    return np.ascontiguousarray(colours.astype(np.uint8))


def _centres(colours: Tensor, weights: Tensor, count: int) -> Tensor:
    """Group colours [n, 4] by weighted k-means; return the centres [count, 4].

    The first centres are the most frequent colours; further centres are colours far from every centre.
    """
    centres = colours[: max(1, count // _FREQUENT_SHARE)]
    apart = torch.cdist(colours, centres).amin(1)  # [n], distance to the nearest centre
    while len(centres) < count:
        farthest = colours[None, (apart * weights**0.25).argmax()]
        centres = torch.cat([centres, farthest])
        apart = torch.minimum(apart, (colours - farthest).norm(dim=1))
    for _ in range(_ROUNDS):
        group = torch.cdist(colours, centres).argmin(1)  # int64 [n]
        sums = torch.zeros_like(centres).index_add_(0, group, colours * weights[:, None])
        totals = torch.zeros(count).index_add_(0, group, weights)[:, None]
        centres = torch.where(totals > 0, sums / totals.clamp(min=1), centres)
    return centres


@contextmanager
def _full_precision(device: torch.device) -> Iterator[None]:
    """Disable autocast in this context, because many colours would get equal logits in 16 bits."""
    if torch.is_autocast_enabled(device.type):
        with torch.autocast(device.type, enabled=False):
            yield
    else:  # torch.export can't trace autocast
        yield


class PaletteHead(nn.Module):
    """Network head that predicts palette colours from the features of pixels, [B, S, S, channels].

    The logit of a colour is the product of a pixel's features and the colour's key. Two layers compute keys from RGBA
    values, so the head also works with the palettes of other sprites.
    palette: float32 [colours, 4], premultiplied RGBA in [-1, 1]; random until set to the training sprites' palette.
    """

    palette: Tensor
    frequencies: Tensor

    def __init__(self, channels: int, colours: int) -> None:
        super().__init__()
        self.register_buffer("palette", 2 * torch.rand(colours, 4) - 1)
        self.register_buffer("frequencies", torch.tensor(_FREQUENCIES), persistent=False)
        numbers = 4 * (1 + 2 * len(_FREQUENCIES))  # RGBA, its sines and its cosines
        self.enter, self.leave = nn.Linear(numbers, 64), nn.Linear(64, channels + 1)
        nn.init.normal_(self.leave.weight, std=0.05)

    def expected_at(self, features: Tensor, t: Tensor) -> Tensor:
        """Return the expected colour of each pixel at times t [B] of drawing: float32 [B, S, S, 4].

        In the last step, from _CRISP_FROM on, this is the most likely colour.
        """
        return self.expected(features, ((t - _CRISP_FROM) * 1e5).clamp(_SOFTENED, SHARPEST)[:, None, None, None])

    def expected(self, features: Tensor, sharpness: Tensor | float) -> Tensor:
        """Return the expected colour of each pixel, float32 [B, S, S, 4].

        sharpness: multiplies the logits; high values select the most likely colour.
        """
        with _full_precision(features.device):
            keys = self.colour_keys()
            queries = F.pad(features.float(), (0, 1), value=1.0) * sharpness  # [B, S, S, channels + 1], 1 for the bias
            if torch.compiler.is_compiling():  # exported: not every program has an attention operator
                return (queries @ keys.T).softmax(-1) @ self.palette
            # Attention from pixels to colours is four times as fast: attention stores no table of all logits. The fused
            # kernel requires values of the keys' length, hence the padding.
            values = F.pad(self.palette, (0, keys.shape[1] - 4))
            keys, values = (each.expand(len(features), 1, -1, -1) for each in (keys, values))
            found = F.scaled_dot_product_attention(queries.flatten(1, 2)[:, None], keys, values, scale=1.0)
            colours: Tensor = found[:, 0, :, :4].unflatten(1, features.shape[1:3])  # from [B, 1, S * S, channels + 1]
            return colours

    def nearest_index(self, x: Tensor) -> Tensor:
        """Return the indices of the nearest palette colours, int64 [...]. x: colours [..., 4]."""
        with _full_precision(x.device):  # |x - p|^2 is smallest where 2 x.p - |p|^2 is largest
            return F.linear(x, 2 * self.palette, -self.palette.square().sum(1)).argmax(-1)

    def colour_keys(self) -> Tensor:
        """Return one key per colour, float32 [colours, channels + 1]; the last element is a bias."""
        angles = (self.palette[:, :, None] * self.frequencies).flatten(1)
        keys = self.leave(F.silu(self.enter(torch.cat([self.palette, angles.sin(), angles.cos()], 1))))
        unused = _NEVER * (self.palette[:, 3:] + 1).clamp(max=0.0)  # [colours, 1]: -1e4 for an alpha of -2, else 0
        return torch.cat([keys[:, :-1], keys[:, -1:] + unused], 1)


class _ColourLoss(torch.autograd.Function):
    """Autograd function of the colour loss: computes the loss and its gradients in chunks of pixels.

    queries: float32 [n, numbers], of each pixel. keys: float32 [colours, numbers]; logits = queries @ keys.T.
    palette: float32 [colours, 4]. colours: float32 [n, 4], the true colours. ce_weight, mse_weight: float32 [n].

    On a CPU one large table of logits would take a third of a training step: the system maps its memory anew in each
    step, and the table does not fit into the cache. The backward pass is computed along with the forward pass, while
    the logits are in the cache.
    """

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, palette: Tensor, colours: Tensor, ce_weight: Tensor, mse_weight: Tensor
    ) -> Tensor:
        total, needs_gradients = queries.new_zeros(()), any(ctx.needs_input_grad)
        query_gradients, key_gradients = torch.empty_like(queries), torch.zeros_like(keys.T)
        # Rows of the palette with a 1 below: one product gives the MSE part and the CE part of the logits' gradients.
        extended = torch.cat([palette, torch.ones_like(palette[:, :1])], 1).T.contiguous()  # [5, colours]
        squares = palette.square().sum(1)
        in_parts = queries.device.type == "cpu" and not torch.compiler.is_compiling()
        at_once = min(len(queries), _CACHED_LOGITS // len(keys)) if in_parts else len(queries)
        buffers = queries.new_empty(2, at_once, len(keys))
        for start in range(0, len(queries), at_once):
            part = slice(start, start + at_once)
            true, weights, mean_weights = colours[part], ce_weight[part], mse_weight[part]
            logits, shares = buffers[:, : len(weights)]  # [n, colours] each
            torch.addmm(-squares, true, 2 * palette.T, out=logits)
            index = logits.max(1, keepdim=True).indices  # the nearest colour; argmax takes twice as long on a CPU
            torch.mm(queries[part], keys.T, out=logits)
            torch.softmax(logits, 1, out=shares)
            # Cross-entropy as max - logit - log(max share), which is finite: the highest share is never 0.
            errors = logits.amax(1) - logits.gather(1, index)[:, 0] - shares.amax(1).log()
            means = (palette.T @ shares.T).T  # [n, 4], expected colours
            apart = means - true
            total += weights @ errors + mean_weights @ apart.square().sum(1)
            if needs_gradients:
                # d loss / d logits = share * (weight + g . (colour - mean)) - weight at the true colour, where
                # g = 2 * mean_weight * (mean - true).
                g = 2 * mean_weights[:, None] * apart
                rest = weights - (g * means).sum(1)
                torch.mm(torch.cat([g, rest[:, None]], 1), extended, out=logits).mul_(shares)
                logits.scatter_add_(1, index, -weights[:, None])
                torch.mm(logits, keys, out=query_gradients[part])
                key_gradients.addmm_(queries[part].T, logits)
        ctx.save_for_backward(query_gradients, key_gradients)
        return total

    @staticmethod
    def backward(ctx: Any, of_total: Tensor) -> tuple[Tensor | None, ...]:
        query_gradients, key_gradients = ctx.saved_tensors
        return of_total * query_gradients, of_total * key_gradients.T, None, None, None, None


def colour_loss(head: PaletteHead, features: Tensor, colours: Tensor, ce_weight: Tensor, mse_weight: Tensor) -> Tensor:
    """Return the weighted sum of the pixels' cross-entropies in nats and squared colour errors, float32 [].

    features: [..., channels]. colours: [..., 4], the true colours; the nearest palette colour is the target class.
    ce_weight, mse_weight: [...], the weight of each pixel. Only features and head get gradients.
    """
    with _full_precision(features.device):
        queries = F.pad(features.float().flatten(0, -2), (0, 1), value=1.0)  # [n, channels + 1], 1 for the bias
        pixels = colours.flatten(0, -2), ce_weight.flatten(), mse_weight.flatten()
        total: Tensor = _ColourLoss.apply(queries, head.colour_keys(), head.palette, *pixels)
        return total


def choose_rows(size: int, offset: Tensor) -> Tensor:
    """Choose evenly spaced pixel rows for a training step; return the row indices by sprite, int64 [B, rows].

    size: the sprites' height. offset: [B, 1] in [0, 1), shift of the rows as a share of the distance between rows.
    """
    least, most = _TRAINED_PIXELS
    count = min(size, max(1, min(max(least, size**2 // 2), most) // size))
    rows = (torch.arange(count, device=offset.device) + offset) * (size / count)
    return rows.long().clamp(max=size - 1)


def select_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Gather rows, int64 [B, rows], of values [B, channels, S, S]; return [B, rows, S, channels]."""
    every = values.permute(0, 2, 3, 1).flatten(0, 1)  # [B * S, S, channels]
    first = torch.arange(0, len(every), values.shape[2], device=rows.device)  # the index of each sprite's row 0
    chosen: Tensor = every.index_select(0, (first[:, None] + rows).flatten()).unflatten(0, rows.shape)
    return chosen
