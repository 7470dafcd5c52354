"""The flow's solver, its way back and its mixtures against closed forms."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from studio.recipes.few_step import FewStepStudent
from studio.recipes.flow import (
    LATEST,
    CircularPadding,
    blend_noise,
    draw_noise,
    guided_velocity,
    invert,
    map_velocity,
    mirror_halves,
    solve,
    timesteps,
)
from studio.recipes.unet import UNet


class _Velocity(nn.Module):
    """A network whose velocity at x, at the time t and for a class is known."""

    classes = 3

    def __init__(self, velocity: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self._velocity = velocity

    def forward(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        return self._velocity(x, t[:, None, None, None], label[:, None, None, None])


def _to_gaussian(x: Tensor, t: Tensor | float, label: Tensor) -> Tensor:
    """The exact velocity for normal data of half the deviation."""
    return x * (t * 0.5**2 - (1 - t)) / ((1 - t) ** 2 + (t * 0.5) ** 2)


def _solve(
    velocity: Callable[[Tensor, Tensor, Tensor], Tensor], noise: Tensor, steps: int, guidance: float = 1.0
) -> list[Tensor]:
    network, labels = _Velocity(velocity), torch.zeros(len(noise), dtype=torch.int64)
    return list(solve(guided_velocity(network, labels, guidance), noise, timesteps(steps)))


@pytest.mark.parametrize("steps", [1, 2, 7, 30])
def test_solver_reaches_a_single_point_exactly(steps: int) -> None:
    point = torch.linspace(-1, 1, 64).reshape(1, 4, 4, 4)
    found = _solve(lambda x, t, label: (point - x) / (1 - t), draw_noise(3, 4, 0), steps)
    assert len(found) == steps and torch.allclose(found[-1], point.expand(3, -1, -1, -1), atol=1e-5)


def test_solver_is_second_order_on_a_gaussian() -> None:
    """Up to the last step: that goes to the mean of all sprites that the state could become."""
    noise = draw_noise(8, 4, 0).double()
    at_last = noise * (0.12**2 + 0.44**2) ** 0.5  # at t = 0.88
    errors = [float((_solve(_to_gaussian, noise, steps)[-3] - at_last).abs().max()) for steps in (12, 22, 42)]
    assert errors[-1] < 1e-2
    assert errors[0] / errors[1] > 3 and errors[1] / errors[2] > 3  # halving the step quarters the error
    at_end = noise * (0.05**2 + 0.475**2) ** 0.5  # at t = 0.95
    mean = at_end * 0.95 * 0.25 / (0.05**2 + 0.475**2)
    torch.testing.assert_close(_solve(_to_gaussian, noise, 42)[-1], mean, atol=1e-2, rtol=0)


def test_guidance_extrapolates_from_a_certain_time_on() -> None:
    noise = torch.zeros(2, 4, 4, 4)  # class 0 moves by 1, 'any' (label 3) by 4: from 4 towards 1, twice as far, is -2
    found = _solve(lambda x, t, label: (label.float() + 1).expand_as(x), noise, 4, guidance=2.0)
    begun, later, nearly, done = (float(x.unique()) for x in found)
    assert begun == pytest.approx(0.176)  # not at the beginning
    assert later == pytest.approx(0.176 + 0.704 * (-2 + 0.352 * -3 / 0.176))
    assert nearly == pytest.approx(later + 0.07 * (1 + 0.035 * 3 / 0.704))  # nor in the last two steps
    assert done == pytest.approx(nearly + 0.05)


class _Guided(nn.Module):
    """A step of guided drawing with a network for two classes."""

    def __init__(self) -> None:
        super().__init__()
        self.network = UNet(8, classes=2, width=16)

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        return guided_velocity(self.network, label, 1.5)(x, 0.5)


class _FewSteps(nn.Module):
    """The last step of a student."""

    def __init__(self) -> None:
        super().__init__()
        self.student = FewStepStudent(UNet(8, classes=2, width=16))

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        return self.student(x, 0, label)  # type: ignore[no-any-return]


@pytest.mark.parametrize("module", [_Guided, _FewSteps])
def test_traced_drawing_takes_any_number_of_sprites(module: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    drawing, batch = module().eval(), torch.export.Dim("batch")
    shapes = ({0: batch}, {0: batch})
    with torch.no_grad():
        traced = torch.export.export(
            drawing, (torch.randn(4, 4, 8, 8), torch.tensor([0, 1, 2, 0])), dynamic_shapes=shapes
        )
        x, label = torch.randn(3, 4, 8, 8), torch.tensor([1, 0, 2])
        torch.testing.assert_close(traced.module()(x, label), drawing(x, label), rtol=1e-4, atol=1e-4)


def test_noise_depends_on_seed_and_index() -> None:
    many = draw_noise(10, 6, seed=5)
    assert torch.equal(many[4:7], draw_noise(3, 6, seed=5, first=4))
    assert not torch.equal(many[0], many[1]) and not torch.equal(many[0], draw_noise(1, 6, seed=6)[0])
    assert abs(float(draw_noise(200, 16, 0).mean())) < 0.01
    assert float(draw_noise(200, 16, 0).std()) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("start", [0.0, 0.3, 0.8, 0.93, 0.97])
def test_late_start_stays_within_trained_times(start: float) -> None:
    times = timesteps(10, start)
    assert times[0] == start and times[-1] == 1 and all(later > sooner for sooner, later in itertools.pairwise(times))
    assert max(times[1:-1], default=0) <= LATEST and (len(times) == 11) == (start < 0.5)


def test_inversion_returns_the_noise() -> None:
    """Of normal data of half the deviation all states of a path are multiples of its noise: a sprite of half of it."""
    noise, labels = draw_noise(6, 4, 0).double(), torch.zeros(6, dtype=torch.int64)
    velocity = guided_velocity(_Velocity(_to_gaussian), labels, 1.0)
    for steps in (10, 40):
        torch.testing.assert_close(invert(velocity, noise / 2, steps), noise, atol=0.03, rtol=0)


def test_blended_noise_keeps_its_norm() -> None:
    noise = draw_noise(3, 16, 0)
    shares = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    mixed = blend_noise(noise, shares)
    torch.testing.assert_close(mixed[0], noise[0])
    torch.testing.assert_close(mixed.flatten(1).norm(dim=1), shares @ noise.flatten(1).norm(dim=1))
    angles = torch.nn.functional.cosine_similarity(mixed[1][None].flatten(1), noise[:2].flatten(1))
    torch.testing.assert_close(angles[0], angles[1], rtol=0.05, atol=0)
    twins = noise[:1].expand(2, -1, -1, -1)
    torch.testing.assert_close(blend_noise(twins, torch.tensor([[0.4, 0.6]])), noise[:1])


def test_guidance_accepts_shares_of_classes() -> None:
    def velocity(x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        shares = label[:, 0, 0, 0] if label.dim() > 4 else nn.functional.one_hot(label[:, 0, 0, 0], 4).float()
        return (shares @ torch.tensor([1.0, 2.0, 3.0, 7.0]))[:, None, None, None].expand_as(x)

    network, x = _Velocity(velocity), torch.zeros(2, 4, 4, 4)
    by_name = guided_velocity(network, torch.tensor([0, 1]), 2.0)(x, 0.5)
    by_share = guided_velocity(network, torch.eye(4)[:2], 2.0)(x, 0.5)
    torch.testing.assert_close(by_share, by_name)
    half = guided_velocity(network, torch.tensor([[0.5, 0.5, 0.0, 0.0]]).expand(2, -1), 1.0)(x, 0.5)
    torch.testing.assert_close(half, torch.full_like(x, 1.5))


@pytest.mark.parametrize(("across", "down"), [(True, True), (True, False), (False, True)])
def test_circular_padding_has_no_border(across: bool, down: bool) -> None:
    """A state that is moved around gives the same velocity, moved as far; where there is a border it does not."""
    network = UNet(16, classes=2, width=16).eval()
    rng = torch.Generator().manual_seed(0)
    for weight in network.parameters():
        nn.init.normal_(weight, std=0.1, generator=rng)
    x, t, labels = torch.randn(2, 4, 16, 16, generator=rng), torch.full((2,), 0.5), torch.tensor([0, 1])
    seamless = CircularPadding(network, across, down)
    with torch.no_grad():
        plain, velocity = network(x, t, labels), seamless(x, t, labels)
        for axis, wraps in ((3, across), (2, down)):
            moved = torch.roll(seamless(torch.roll(x, 8, axis), t, labels), -8, axis)
            assert torch.allclose(moved, velocity, rtol=1e-3, atol=1e-3) == wraps
        torch.testing.assert_close(network(x, t, labels), plain)  # it is as it was


@pytest.mark.parametrize("size", [6, 7])
def test_mirrored_noise_keeps_its_statistics(size: int) -> None:
    noise = draw_noise(2, size, 0)
    both = mirror_halves(noise, True, True)
    assert torch.equal(both, both.flip(-1)) and torch.equal(both, both.flip(-2))
    half = -(-size // 2)
    assert torch.equal(both[..., :half, :half], noise[..., :half, :half])
    assert torch.equal(mirror_halves(noise, True, False)[..., :half], noise[..., :half])
    assert torch.equal(mirror_halves(noise, False, False), noise)


class _ByLabel(nn.Module):
    """Stands in for a network: a velocity that depends on the label and the picture."""

    size, classes = 8, 3

    def forward(self, x: Tensor, t: Tensor, labels: Tensor, keep: Tensor | None = None) -> Tensor:
        assert len(x) == len(t) == len(labels)
        return x * (labels + 2).view(-1, 1, 1, 1) + x.mean((1, 2, 3), keepdim=True) + t.view(-1, 1, 1, 1)


def test_a_map_of_several_classes_mixes_the_velocities_of_each() -> None:
    network, rng = _ByLabel(), torch.Generator().manual_seed(0)
    x, shares, whole = torch.randn(1, 4, 16, 24, generator=rng), torch.zeros(1, 2, 16, 24), torch.ones(1, 1, 16, 24)
    shares[:, 0, :, :8], shares[:, 1, :, 8:16], shares[:, 0, 8:, 8:16] = 1, 0.5, 0.25
    for t in (0.05, 0.5):  # without guidance, and with it
        both = map_velocity(network, [2, 0], 1.5, has_mask=False)(torch.cat([x, shares], 1), t)
        two, zero = (
            map_velocity(network, [label], 1.5, has_mask=False)(torch.cat([x, whole], 1), t) for label in (2, 0)
        )
        torch.testing.assert_close(both, shares[:, :1] * two + shares[:, 1:] * zero)
    empty = map_velocity(network, [2], 1.5, has_mask=True)(torch.cat([x, whole, 0 * whole], 1), 0.5)
    assert not empty.any()
