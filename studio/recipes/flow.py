"""Solvers for rectified flow: from noise to sprites, and from sprites back to noise.

A state x_t is float32 [N, 4, S, S] and lies on the straight line from noise (t = 0) to a sprite (t = 1). A velocity is
a function of a state and its time. It evaluates a network, which predicts [B, 4, S, S] from (x [B, 4, S, S], t [B],
label [B]); the label `network.classes` stands for any class.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LATEST = 0.95  # the latest time in training and of a network evaluation: close to 1 its errors grow
_SEED_STRIDE = 1_000_003  # distance between the seeds of consecutive sprites
_GUIDED_FROM = 0.1  # guidance at earlier times reduces the variety of sprites (Kynkäänniemi et al. 2024)
_MOST_TILES = 32  # limit of tiles to evaluate at once, for the memory
_GUIDED_TO = 0.88  # the time of the second to last step: after it only single pixels change
# Constants for programs in other languages that reimplement `solve` and `guided_velocity`.
CONSTANTS = MappingProxyType(
    {"last_from": LATEST, "guided_from": _GUIDED_FROM, "guided_to": _GUIDED_TO, "places_apart": _SEED_STRIDE}
)


def draw_noise(count: int, size: int, seed: int, first: int = 0) -> Tensor:
    """Return noise for drawing sprites, float32 [count, 4, size, size], on the CPU.

    A sprite's noise depends only on the seed and the sprite's index, counted from `first`.
    """
    return normal_rows(count, (4, size, size), seed, first)


def normal_rows(count: int, shape: tuple[int, ...], seed: int, first: int = 0) -> Tensor:
    """Return standard normal numbers float32 [count, *shape], on the CPU, so that all devices draw the same sprites.

    Row i depends only on the seed and the index first + i, not on `count`.
    """
    rng = torch.Generator()
    seeds = (seed + _SEED_STRIDE * index for index in range(first, first + count))
    return torch.stack([torch.randn(*shape, generator=rng.manual_seed(own)) for own in seeds])


def timesteps(steps: int, start: float = 0.0) -> list[float]:
    """Return the times of the solver's steps, from `start` to 1: steps + 1 numbers, or fewer if `start` is late.

    The first steps are the shortest, a quarter of an even step, because early times decide the content of the sprite
    (timestep shift in Esser et al. 2024). The last step starts at LATEST.
    """
    before = steps - 2
    shares = (_GUIDED_TO * step / (step + 4 * (before - step)) for step in range(1, steps - 1))
    times = (start + (1 - start) * share for share in shares)
    last = [LATEST] if steps > 1 and start < LATEST else []
    return [start, *(time for time in times if time < LATEST), *last, 1.0]


def guided_velocity(
    network: Any, labels: Tensor, guidance: float | Tensor, keep: Tensor | None = None, of: Tensor | None = None
) -> Callable[[Tensor, float], Tensor]:
    """Return a velocity function that draws sprites of these classes with classifier-free guidance.

    labels: int64 [N], or float32 [N, classes + 1], shares of classes.
    guidance: the guidance scale (Ho & Salimans 2022), a number or float32 [1]; 1 is without guidance. It applies at
    times from _GUIDED_FROM to _GUIDED_TO.
    keep: float32 [M, 1, S, S], the inpainting mask for the network.
    of: int64 [N], the state that each label draws; by default N states in order. The M states may have several labels:
    the function takes x [M, 4, S, S] and returns [N, 4, S, S].
    """
    is_plain = isinstance(guidance, float | int) and guidance == 1

    def velocity(x: Tensor, t: float) -> Tensor:
        own, own_keep = (x, keep) if of is None else (x[of], None if keep is None else keep[of])
        times = torch.full(own.shape[:1], t, device=x.device)
        if is_plain or not _GUIDED_FROM <= t < _GUIDED_TO:
            given = {} if own_keep is None else {"keep": own_keep}
            return network(own, times, labels, **given).float()  # type: ignore[no-any-return]
        given = {} if own_keep is None or keep is None else {"keep": torch.cat([own_keep, keep])}
        any_class = torch.full(x.shape[:1], network.classes, device=x.device)
        if labels.is_floating_point():
            any_class = F.one_hot(any_class, network.classes + 1).to(labels.dtype)
        times = torch.cat([times, times if of is None else torch.full(x.shape[:1], t, device=x.device)])
        # A single evaluation for N + M sprites: N sprites with the class, then M sprites with any class.
        both = network(torch.cat([own, x]), times, torch.cat([labels, any_class]), **given).float()
        with_class, without = both.split([own.shape[0], x.shape[0]])  # len() would fix the number in an exported model
        without = without if of is None else without[of]  # [N, 4, S, S]
        return without + guidance * (with_class - without)  # type: ignore[no-any-return]

    return velocity


class CircularPadding:
    """Wraps a network: 3x3 convolutions use circular padding, to draw seamless sprites.

    across, down: wrap horizontally, vertically. A direction that doesn't wrap keeps zero padding.
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
        finally:  # other code uses the network, too
            for module, hook in zip(self._convolutions, hooks, strict=True):
                module.padding = (1, 1)
                hook.remove()

    def _pad(self, _: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        (x,) = inputs
        for sides, wraps in (((1, 1, 0, 0), self._across), ((0, 0, 1, 1), self._down)):
            x = F.pad(x, sides, "circular") if wraps else F.pad(x, sides)
        return x


def tiled_velocity(velocity: Callable[[Tensor, float], Tensor], size: int) -> Callable[[Tensor, float], Tensor]:
    """Return a velocity function for one large seamless state [1, C, H, W], from tiles of `size` x `size` pixels.

    Tiles overlap by half, and the velocities of the four tiles at a pixel are averaged with weights that fall off
    towards the edges of a tile (MultiDiffusion, Bar-Tal et al. 2023). H and W are multiples of `size`. velocity:
    returns [n, 4, S, S] for tiles [n, C, S, S] of the state, whose first 4 channels are the picture; the others may be
    masks and shares.
    """
    ramp = 1 - (torch.arange(size) + 0.5 - size / 2).abs() / (size / 2)  # [size], 1 in the middle, 0 at the edges
    weight, half = ramp[:, None] * ramp, size // 2  # [size, size]

    def whole(x: Tensor, t: float) -> Tensor:
        rows, columns = x.shape[-2] // size, x.shape[-1] // size
        weights = weight.to(x.device).repeat(rows, columns)
        total, norm = torch.zeros_like(x[:, :4]), torch.zeros_like(weights)
        for down, across in itertools.product((0, half), repeat=2):
            # Shift the state, cut it into tiles [rows * columns, C, size, size], and put the velocities back.
            moved = x.roll((-down, -across), (-2, -1)).view(-1, rows, size, columns, size)
            tiles = moved.permute(1, 3, 0, 2, 4).reshape(rows * columns, -1, size, size)
            parts = torch.cat([velocity(some, t) for some in tiles.split(_MOST_TILES)])
            seen = parts.view(rows, columns, 4, size, size).permute(2, 0, 3, 1, 4).reshape(total.shape)
            total += (seen * weights).roll((down, across), (-2, -1))
            norm += weights.roll((down, across), (-2, -1))
        return total / norm

    return whole


def map_velocity(
    network: Any, labels: Sequence[int], guidance: float, *, has_mask: bool
) -> Callable[[Tensor, float], Tensor]:
    """Return a velocity function for a large seamless state [1, C, H, W] with areas of several classes.

    The channels of the state: the picture, the inpainting mask if `has_mask`, and the share of each label. The network
    evaluates a tile only with labels that have a share in the tile.
    """

    def velocity(x: Tensor, t: float) -> Tensor:
        picture, keep, shares = x[:, :4], x[:, 4:5] if has_mask else None, x[:, -len(labels) :]
        of, which = shares.amax((2, 3)).nonzero(as_tuple=True)  # [P] each: tile index, label index
        if not len(of):
            return torch.zeros_like(picture)
        own = torch.tensor(labels, device=x.device)[which]
        v = guided_velocity(network, own, guidance, keep, of)(picture, t)  # [P, 4, S, S]
        return torch.zeros_like(picture).index_add_(0, of, v * shares[of, which][:, None])

    return tiled_velocity(velocity, network.size)


def average_tied(x: Tensor, ties: Tensor) -> Tensor:
    """Replace each group of tied pixels in the state x [1, 4, H, W] by the group's mean.

    ties: int64 [H, W], group numbers from 0 without gaps.
    """
    numbers, pixels = ties.flatten(), x.flatten(2)  # [H * W], [1, 4, H * W]
    counts = torch.bincount(numbers).to(x.dtype)
    sums = torch.zeros(1, 4, len(counts), device=x.device).index_add_(2, numbers, pixels)  # [1, 4, groups]
    return (sums / counts)[..., numbers].view(x.shape)


def mirror_halves(x: Tensor, left_right: bool, top_bottom: bool) -> Tensor:
    """Mirror the left half of states x [..., H, W] onto the right half, the upper onto the lower half, or both."""
    for mirror, axis in ((left_right, -1), (top_bottom, -2)):
        if mirror:
            half = x.narrow(axis, 0, x.shape[axis] // 2)
            x = torch.cat([x.narrow(axis, 0, -(-x.shape[axis] // 2)), half.flip(axis)], axis)
    return x


def solve(velocity: Callable[[Tensor, float], Tensor], x: Tensor, times: Sequence[float]) -> Iterator[Tensor]:
    """Integrate the velocity from the state x along the times, which end at 1; yields the state after each step.

    Uses the second-order Adams-Bashforth method, with one network evaluation per step. The last step is an Euler step
    to the predicted sprite.
    """
    v_before, t_before = None, 0.0  # of the previous step
    for t, t_next in itertools.pairwise(times):
        v, dt = velocity(x, t), t_next - t
        ahead = v if v_before is None or t_next == 1 else v + dt / 2 * (v - v_before) / (t - t_before)
        x, v_before, t_before = x + dt * ahead, v, t
        yield x


def invert(velocity: Callable[[Tensor, float], Tensor], sprites: Tensor, steps: int) -> Tensor:
    """Return the noise from which `velocity` draws nearly these sprites: integrate from t = 1 back to t = 0.

    Uses Heun's method with even steps and two network evaluations per step, because drawing does not correct errors of
    the inversion.
    """
    x, times = sprites, [1 - step / steps for step in range(steps + 1)]
    for t, t_next in itertools.pairwise(times):
        v = velocity(x, min(t, LATEST))
        v_next = velocity(x + (t_next - t) * v, min(t_next, LATEST))
        x = x + (t_next - t) * (v + v_next) / 2
    return x


def blend_noise(noise: Tensor, shares: Tensor) -> Tensor:
    """Mix M noise tensors [M, 4, S, S] by weights float32 [N, M]; return [N, 4, S, S] with the norm of noise.

    For two tensors this is spherical interpolation. A plain weighted sum of independent noise has too small a norm: the
    root of the sum of squared weights.
    """
    mixed = torch.einsum("nm,mchw->nchw", shares, noise)
    norm = shares @ noise.flatten(1).norm(dim=1)  # [N], the norm to restore
    scale: Tensor = norm / mixed.flatten(1).norm(dim=1)  # [N]
    return mixed * scale[:, None, None, None]
