"""Recolour sprites at random: change hues, keep light and shade.

The palette of the network changes along with the sprites, so that the starter learns to read colours from a palette.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

NATURAL_SHARE = 0.25  # of recolourings without a change: grass is more often green than violet
_MOST_BEND = 0.8  # below 1: different hues stay different
_CHROMA = 0.5, 1.5
_U, _V = math.sqrt(2 / 3), math.sqrt(1 / 2)  # lengths of the two directions at right angles to grey


class Recolouring(NamedTuple):
    """A mapping of hues: new hue = turn + direction * hue + bend * sin(hue + phase), in radians.

    direction: 1, or -1 to exchange hues such as red and green. chroma: multiplies the chroma. Greys stay grey.
    """

    turn: float = 0.0
    direction: float = 1.0
    bend: float = 0.0
    phase: float = 0.0
    chroma: float = 1.0


NATURAL = Recolouring()


def random_recolouring(rng: np.random.Generator) -> Recolouring:
    """Return a random recolouring, or NATURAL with the odds NATURAL_SHARE."""
    turn, phase = rng.uniform(0, 2 * math.pi, 2).tolist()
    bend, chroma, chance = rng.uniform(0, _MOST_BEND), rng.uniform(*_CHROMA), rng.uniform()
    direction = float(rng.choice((-1.0, 1.0)))
    return NATURAL if chance < NATURAL_SHARE else Recolouring(turn, direction, bend, phase, chroma)


def recolour(colours: Tensor, how: Recolouring) -> Tensor:
    """Return recoloured colours of equal alpha and brightness.

    colours: float32 [..., 4], premultiplied RGBA in [-1, 1], also a palette, whose unused entries have an alpha of -2.
    Equal colours give equal colours, whether they are pixels or entries of a palette.
    """
    if how == NATURAL:
        return colours
    *rgb, alpha = ((channel + 1) / 2 for channel in colours.unbind(-1))  # planes, which are faster than [..., 4]
    alpha = alpha.clamp(min=0)
    red, green, blue = (torch.minimum(channel.clamp(min=0), alpha) for channel in rgb)
    luma = _luma(red, green, blue)
    u, v = _U * (red - (green + blue) / 2), _V * (green - blue)  # hue: the angle of (u, v); chroma: the length
    length = torch.hypot(u, v).clamp(min=1e-6)
    angle = how.turn + how.bend * (u * math.sin(how.phase) + v * math.cos(how.phase)) / length
    cosine, sine, v = angle.cos() * how.chroma, angle.sin() * how.chroma, v * how.direction
    u, v = u * cosine - v * sine, u * sine + v * cosine
    turned = _U * u, _V * v - _U / 2 * u, -_V * v - _U / 2 * u
    grey = _luma(*turned)
    changes = [channel - grey for channel in turned]  # from the grey of equal brightness
    # The largest share of the changes that keeps every channel between 0 and alpha.
    room = torch.ones_like(luma)
    for change in changes:
        room = torch.minimum(room, torch.where(change > 0, alpha - luma, luma) / change.abs().clamp(min=1e-6))
    new = [torch.minimum((luma + room * change).clamp(min=0), alpha) * 2 - 1 for change in changes]
    return torch.stack([*new, colours[..., 3]], -1)


def _luma(red: Tensor, green: Tensor, blue: Tensor) -> Tensor:
    return 0.299 * red + 0.587 * green + 0.114 * blue
