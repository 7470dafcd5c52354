"""Sampling along a learnt velocity: from noise to sprites, from sprites back to the noise that they would come from.

A state x_t lies on the line from noise, at t = 0, to a sprite, at t = 1. States are float32 [N, 4, S, S]. A velocity is
a function of a state and its time; the network that it asks gives [B, 4, S, S] of (x [B, 4, S, S], t [B], label [B])
and has a number of `classes`, which as a label stands for any class.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LATEST = 0.95  # of the times that are trained, and the last at which the network is asked: later, its errors grow
_PLACES_APART = 1_000_003  # seeds of sprites that are drawn together
_GUIDED_FROM = 0.1  # before, guidance makes sprites alike (Kynkäänniemi et al. 2024)
_GUIDED_TO = 0.88  # the time of the last step but one: what is left are single pixels
# What a program in another language needs to draw as `solve` does along what is `guided`.
CONSTANTS = MappingProxyType(
    {"last_from": LATEST, "guided_from": _GUIDED_FROM, "guided_to": _GUIDED_TO, "places_apart": _PLACES_APART}
)


def draw_noise(count: int, size: int, seed: int, first: int = 0) -> Tensor:
    """The noise of sprites, float32 [count, 4, size, size]: see `normal_rows`."""
    return normal_rows(count, (4, size, size), seed, first)


def normal_rows(count: int, shape: tuple[int, ...], seed: int, first: int = 0) -> Tensor:
    """Standard normal numbers float32 [count, *shape], on the CPU so that a seed means the same on every device.

    Each row follows from the seed and its place, `first` for the first one, however many are drawn.
    """
    rng = torch.Generator()
    seeds = (seed + _PLACES_APART * place for place in range(first, first + count))
    return torch.stack([torch.randn(*shape, generator=rng.manual_seed(own)) for own in seeds])


def timesteps(steps: int, start: float = 0.0) -> list[float]:
    """The times between so many steps, from `start` to 1: [steps + 1], or fewer where they would come too late.

    The first steps are the shortest, a quarter of an even share, because what the noise will become is decided there
    (the shift of times in Esser et al. 2024). The last one begins as late as the network is asked at all.
    """
    before = steps - 2
    shares = (_GUIDED_TO * step / (step + 4 * (before - step)) for step in range(1, steps - 1))
    times = (start + (1 - start) * share for share in shares)
    last = [LATEST] if steps > 1 and start < LATEST else []
    return [start, *(time for time in times if time < LATEST), *last, 1.0]


def guided(
    network: Any, labels: Tensor, guidance: float | Tensor, keep: Tensor | None = None
) -> Callable[[Tensor, float], Tensor]:
    """The velocity towards sprites of these classes: int64 [N], or float32 [N, classes + 1], shares of classes.

    guidance: a number or float32 [1]; 1 takes the class's velocity as it is, more exaggerates what sets the class
    apart (classifier-free guidance, Ho & Salimans 2022), from _GUIDED_FROM to _GUIDED_TO.
    keep: float32 [N, 1, S, S], handed on to the network.
    """
    any_class = torch.full(labels.shape[:1], network.classes, device=labels.device)
    if labels.is_floating_point():
        any_class = F.one_hot(any_class, network.classes + 1).to(labels.dtype)
    is_plain = isinstance(guidance, float | int) and guidance == 1

    def velocity(x: Tensor, t: float) -> Tensor:
        times = torch.full(x.shape[:1], t, device=x.device)
        given = {} if keep is None else {"keep": keep}
        if is_plain or not _GUIDED_FROM <= t < _GUIDED_TO:
            return network(x, times, labels, **given).float()  # type: ignore[no-any-return]
        given = {} if keep is None else {"keep": torch.cat([keep, keep])}
        both = network(torch.cat([x, x]), torch.cat([times, times]), torch.cat([labels, any_class]), **given).float()
        with_class, without = both.unflatten(0, (2, -1))
        return without + guidance * (with_class - without)  # type: ignore[no-any-return]

    return velocity


class Periodic:
    """A network to which a state has no border, across, down or both ways: what it draws is seamless there.

    Its 3x3 convolutions see the other side of the state beyond the border, instead of nothing.
    """

    def __init__(self, network: nn.Module, across: bool, down: bool) -> None:
        self.classes = network.classes
        self._network, self._across, self._down = network, across, down
        modules = (module for module in network.modules() if isinstance(module, nn.Conv2d))
        self._convolutions = [module for module in modules if module.padding == (1, 1)]

    def __call__(self, *inputs: Tensor, **more: Tensor) -> Tensor:
        hooks = [module.register_forward_pre_hook(self._pad) for module in self._convolutions]
        for module in self._convolutions:
            module.padding = (0, 0)
        try:
            return self._network(*inputs, **more)  # type: ignore[no-any-return]
        finally:  # the network is others' as well
            for module, hook in zip(self._convolutions, hooks, strict=True):
                module.padding = (1, 1)
                hook.remove()

    def _pad(self, _: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        (x,) = inputs
        for sides, wraps in (((1, 1, 0, 0), self._across), ((0, 0, 1, 1), self._down)):
            x = F.pad(x, sides, "circular") if wraps else F.pad(x, sides)
        return x


def overlapping(velocity: Callable[[Tensor, float], Tensor], size: int) -> Callable[[Tensor, float], Tensor]:
    """The velocity of one large state [1, 4, H, W] without borders, of which `velocity` sees parts of size x size.

    Each pixel is in four of them, which overlap by halves; the nearer it is to the middle of one, the more that counts
    (after Bar-Tal et al. 2023, MultiDiffusion). H and W are multiples of the size.
    """
    ramp = 1 - (torch.arange(size) + 0.5 - size / 2).abs() / (size / 2)
    weight, half = ramp[:, None] * ramp, size // 2

    def whole(x: Tensor, t: float) -> Tensor:
        rows, columns = x.shape[-2] // size, x.shape[-1] // size
        weights = weight.to(x.device).repeat(rows, columns)
        total, norm = torch.zeros_like(x), torch.zeros_like(weights)
        for down, across in itertools.product((0, half), repeat=2):
            moved = x.roll((-down, -across), (-2, -1)).view(4, rows, size, columns, size)
            parts = velocity(moved.permute(1, 3, 0, 2, 4).reshape(-1, 4, size, size), t)
            seen = parts.view(rows, columns, 4, size, size).permute(2, 0, 3, 1, 4).reshape(x.shape)
            total += (seen * weights).roll((down, across), (-2, -1))
            norm += weights.roll((down, across), (-2, -1))
        return total / norm

    return whole


def tied(x: Tensor, ties: Tensor) -> Tensor:
    """A state [1, 4, H, W] in which pixels of one number, int64 [H, W] from 0 on without a gap, are their mean."""
    numbers, pixels = ties.flatten(), x.flatten(2)
    counts = torch.bincount(numbers).to(x.dtype)
    sums = torch.zeros(1, 4, len(counts), device=x.device).index_add_(2, numbers, pixels)
    return (sums / counts)[..., numbers].view(x.shape)


def mirrored(x: Tensor, left_right: bool, top_bottom: bool) -> Tensor:
    """States whose right half is the left one seen in a mirror, the lower half the upper one, or both."""
    for mirror, axis in ((left_right, -1), (top_bottom, -2)):
        if mirror:
            half = x.narrow(axis, 0, x.shape[axis] // 2)
            x = torch.cat([x.narrow(axis, 0, -(-x.shape[axis] // 2)), half.flip(axis)], axis)
    return x


def solve(velocity: Callable[[Tensor, float], Tensor], x: Tensor, times: Sequence[float]) -> Iterator[Tensor]:
    """Follow the velocity from the state x at the first of these times to the last, 1; yields the state at each.

    Adams and Bashforth's second-order method: the velocity is taken to go on changing as it did in the step before, so
    that a step looks at the network once. The last one goes straight to the sprite that the network guesses there.
    """
    v_before, t_before = None, 0.0
    for t, t_next in itertools.pairwise(times):
        v, dt = velocity(x, t), t_next - t
        ahead = v if v_before is None or t_next == 1 else v + dt / 2 * (v - v_before) / (t - t_before)
        x, v_before, t_before = x + dt * ahead, v, t
        yield x


def encode(velocity: Callable[[Tensor, float], Tensor], sprites: Tensor, steps: int) -> Tensor:
    """The noise from which the velocity leads to these sprites, nearly: it is followed backwards.

    By Heun's method, in even steps, each of which looks at the network twice: an error made on the way back is not
    made good on the way forth.
    """
    x, times = sprites, [1 - step / steps for step in range(steps + 1)]
    for t, t_next in itertools.pairwise(times):
        v = velocity(x, min(t, LATEST))
        v_next = velocity(x + (t_next - t) * v, min(t_next, LATEST))
        x = x + (t_next - t) * (v + v_next) / 2
    return x


def blend_noise(noise: Tensor, shares: Tensor) -> Tensor:
    """Mixtures of M states of noise [M, 4, S, S] by shares float32 [N, M]: [N, 4, S, S], as strong as noise is.

    Of two it is a spherical interpolation: sums of independent noises are too weak by the root of the squared shares.
    """
    mixed = torch.einsum("nm,mchw->nchw", shares, noise)
    strength = shares @ noise.flatten(1).norm(dim=1)
    weakness: Tensor = strength / mixed.flatten(1).norm(dim=1)
    return mixed * weakness[:, None, None, None]


moments = timesteps  # the former name, until version 0.3: see core/former_names.py
