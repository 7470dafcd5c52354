"""The generator's training loss: training times, the network's error at them, random labels, and inpainting masks."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from studio.recipes.base import Batch, BatchRng
from studio.recipes.colours import choose_rows, colour_loss, select_rows
from studio.recipes.flow import LATEST
from studio.recipes.unet import UNet, known_labels

AUTO_TIME_MEAN, USUAL_TIME_MEAN = -5.0, -0.3  # a training replaces the first, *Auto*, by `choose_time_mean`
_MUCH_DETAIL, _LEAST_DETAIL = 0.26, 0.03  # `choose_time_mean` treats more and less detail alike
_MOST_PIXELS = 3_000_000  # in 300 sprites of 100 pixels: enough for a steady value
# Progress at the first inpainting masks: earlier masks make new sprites up to 10 % worse, and inpainting no better.
INPAINT_FROM = 0.8
# Share of sprites with attributes that lose the class, so the model can draw new combinations from attributes alone.
_CLASS_DROPOUT = 0.5
# Share of class and values hidden from each block of the network. Without it, the network learns pairs of values by
# heart, and draws an unseen pair like a similar pair.
_BLOCK_DROPOUT = 0.6
_VELOCITY_SHARE = 0.5  # weight of the velocity's MSE beside the cross-entropy


def choose_time_mean(rgba: NDArray[np.uint8]) -> float:
    """Choose the mean of the logit of training times, by the detail of sprites uint8 [N, S, S, 4].

    The detail is the mean squared difference of neighbouring pixels, divided by the variance of a pixel: 2 for random
    pixels, little for large shapes. The same noise hides less of a large shape, so the network learns the shape only
    at more noise (Hoogeboom et al. 2023, Esser et al. 2024). For sprites with little detail, the mean falls by half the
    logarithm of the detail; by the whole logarithm, as in these papers, details become poor.
    """
    x = rgba[:: max(1, rgba.size // 4 // _MOST_PIXELS)].astype(np.float32)
    x[..., :3] *= x[..., 3:] / 255
    variance = x.var(0).mean()  # around the mean sprite
    difference = np.mean([np.square(np.diff(x, axis=axis)).mean() for axis in (1, 2)])
    detail = difference / variance if variance else _MUCH_DETAIL
    return round(USUAL_TIME_MEAN + 0.5 * math.log(np.clip(detail / _MUCH_DETAIL, _LEAST_DETAIL / _MUCH_DETAIL, 1)), 2)


def masked_error(network: UNet, batch: Batch, t: Tensor, label: Tensor, inpaint_share: float, rng: BatchRng) -> Tensor:
    """Return the training loss of a batch at times t [B], with random noise and inpainting masks: float32 [].

    label: as in `UNet`. inpaint_share: share of the sprites with a mask, from the progress INPAINT_FROM on.
    """
    noise = rng.randn(*batch.x.shape[1:])
    share = inpaint_share if batch.progress >= INPAINT_FROM else 0.0  # share of sprites with a mask
    rows = choose_rows(network.size, rng.rand(1))  # int64 [B, rows]
    error = flow_error(network, batch, noise, t, label, inpainting_mask(batch, share, rng), rows)
    # A mask hides half of the pixels on average; the division keeps the loss curve without a step.
    return error / (1 - share / 2)


def flow_error(
    network: UNet, batch: Batch, noise: Tensor, t: Tensor, label: Tensor, keep: Tensor, rows: Tensor
) -> Tensor:
    """Return the network's loss at times t [B] between `noise` (t = 0) and the batch's sprites (t = 1): float32 [].

    noise: float32 [B, 4, S, S]. label: as in `UNet`. keep: inpainting mask, float32 [B, 1, S, S].
    Without a palette, the loss is the MSE of the velocity. With a palette, it is half of the MSE plus the cross-entropy
    of the colours in nats per pixel, in these rows of the sprites, int64 [B, rows]. Pixels with keep == 1 do not count.
    """
    t = t.clamp(max=LATEST)
    mix = t[:, None, None, None]
    x = torch.where(keep == 1, batch.x, (1 - mix) * noise + mix * batch.x)  # x_t; kept pixels are clean
    guess = network.features(x, t, label, batch.augment_labels, keep)
    if network.head is None:
        return (((guess.float() - batch.x) / (1 - mix)).square() * (1 - keep)).mean()
    features, colours, counts = (select_rows(values, rows) for values in (guess, batch.x, 1 - keep))
    weights = counts[..., 0] / counts.numel()  # [B, rows, S], 0 at kept pixels
    # velocity = (guess - x) / (1 - t): the guess's squared error over (1 - t)^2 is the velocity's; 4: mean of RGBA.
    mse_weight = _VELOCITY_SHARE / 4 * weights / (1 - mix[:, 0]).square()
    return colour_loss(network.head, features, colours, weights, mse_weight)


def random_labels(network: UNet, batch: Batch, dropout: float, rng: BatchRng) -> Tensor:
    """Return labels for training a batch, float32 [B, blocks, classes + 1], with random classes and values hidden.

    For classifier-free guidance, a share `dropout` of the sprites gets the label of any class. Other sprites lose each
    attribute with the probability `dropout`. Half of these sprites also lose the class, so the network learns
    attributes without a class. Finally, each block of the network loses more of the class and the attributes.
    """
    is_any = rng.rand() < dropout  # bool [B]
    chances = rng.rand(1 + batch.targets.shape[1])  # [B, 1 + A]
    y = torch.where(is_any | (chances[:, 0] < _CLASS_DROPOUT), -1, batch.y)
    values = torch.where(is_any[:, None] | (chances[:, 1:] < dropout), -1, batch.targets)
    labels = sum_of_labels(network, y[:, None], values)
    return labels[:, None] * (rng.rand(network.blocks, labels.shape[1]) >= _BLOCK_DROPOUT)


def sum_of_labels(network: UNet, y: Tensor, values: Tensor) -> Tensor:
    """Return labels that add up the embeddings of a class and of values: float32 [B, classes + 1].

    y: int64 [B, 1]. values: float32 [B, A], indices as in `Batch.targets`. -1 for any class or value.
    """
    rows = torch.cat([y, values.long()], 1)
    rows = torch.where(rows < 0, network.classes, rows)  # into an extra column, cut off below
    chosen = torch.zeros(len(rows), network.classes + 1, device=rows.device).scatter_(1, rows, 1.0)
    return known_labels(network, chosen[:, :-1])


def inpainting_mask(batch: Batch, share: float, rng: BatchRng) -> Tensor:
    """Draw random inpainting masks float32 [B, 1, S, S], 1 for kept pixels, for a share of the sprites.

    Hides a box, everything except a box, or blobs, of any size. Other sprites get masks of 0.
    """
    if not share:
        return torch.zeros_like(batch.x[:, :1])
    size = batch.x.shape[-1]
    axis = torch.linspace(-1, 1, size, device=batch.x.device)
    x, y, slimness = rng.randn(3, 1, 1, 1).mul(0.5).unbind(1)  # [B, 1, 1, 1] each; centre and aspect of the box
    box = torch.maximum((axis - x).abs() * slimness.exp(), (axis[:, None] - y).abs() / slimness.exp())
    blobs = F.interpolate(rng.randn(1, 5, 5), size=(size, size), mode="bicubic", align_corners=True)
    kind, chosen, hidden = rng.rand(3, 1, 1, 1).unbind(1)
    depth = torch.where(kind < 0.5, blobs, torch.where(kind < 0.75, box, -box))
    # Hide the pixels with the lowest depth. hidden: share of pixels to hide.
    in_order = depth.flatten(1).sort(1).values  # [B, S * S]
    edge = in_order.gather(1, (hidden.flatten(1) * in_order.shape[1]).long())  # [B, 1]
    return ((depth >= edge.view_as(hidden)) & (chosen < share)).float()
