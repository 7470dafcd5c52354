"""The flow and its solver against closed forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from studio.recipes import generator
from studio.recipes.base import Batch, BatchRng
from studio.recipes.generator import Generator, UNet, draw_noise, solve


class _Velocity(nn.Module):
    """A network whose velocity at x, at the time t and for a class is known."""

    classes = 3

    def __init__(self, velocity: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self._velocity = velocity

    def forward(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        return self._velocity(x, t[:, None, None, None], label[:, None, None, None])


def _solve(
    velocity: Callable[[Tensor, Tensor, Tensor], Tensor], noise: Tensor, steps: int, guidance: float = 1.0
) -> list[Tensor]:
    network, labels = cast(UNet, _Velocity(velocity)), torch.zeros(len(noise), dtype=torch.int64)
    return list(solve(network, noise, labels, guidance, steps))


@pytest.mark.parametrize("steps", [1, 2, 7, 30])
def test_one_point_is_reached_exactly(steps: int) -> None:
    point = torch.linspace(-1, 1, 64).reshape(1, 4, 4, 4)
    found = _solve(lambda x, t, label: (point - x) / (1 - t), draw_noise(3, 4, 0), steps)
    assert len(found) == steps and torch.allclose(found[-1], point.expand(3, -1, -1, -1), atol=1e-5)


def test_a_gaussian_is_solved_to_second_order() -> None:
    """The exact velocity for normal data of half the deviation, up to the last step: that goes to the mean of all
    sprites that the state could become.
    """

    def velocity(x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        return x * (t * 0.5**2 - (1 - t)) / ((1 - t) ** 2 + (t * 0.5) ** 2)

    noise = draw_noise(8, 4, 0).double()
    at_last = noise * (0.12**2 + 0.44**2) ** 0.5  # at t = 0.88
    errors = [float((_solve(velocity, noise, steps)[-2] - at_last).abs().max()) for steps in (11, 21, 41)]
    assert errors[-1] < 1e-2
    assert errors[0] / errors[1] > 3 and errors[1] / errors[2] > 3  # halving the step quarters the error
    mean = at_last * 0.88 * 0.25 / (0.12**2 + 0.44**2)
    torch.testing.assert_close(_solve(velocity, noise, 41)[-1], mean, atol=1e-2, rtol=0)


def test_guidance_goes_on_past_the_class_once_the_sprite_begins_to_show() -> None:
    noise = torch.zeros(2, 4, 4, 4)  # class 0 moves by 1, 'any' (label 3) by 4: from 4 towards 1, twice as far, is -2
    found = _solve(lambda x, t, label: (label.float() + 1).expand_as(x), noise, 2, guidance=2.0)
    assert torch.allclose(found[0], torch.full_like(noise, 0.88))  # not at the beginning
    assert torch.allclose(found[1], torch.full_like(noise, 0.88 - 0.12 * 2))


def test_noise_follows_from_seed_and_place() -> None:
    many = draw_noise(10, 6, seed=5)
    assert torch.equal(many[4:7], draw_noise(3, 6, seed=5, first=4))
    assert not torch.equal(many[0], many[1]) and not torch.equal(many[0], draw_noise(1, 6, seed=6)[0])
    assert abs(float(draw_noise(200, 16, 0).mean())) < 0.01
    assert float(draw_noise(200, 16, 0).std()) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("size", [8, 20, 24, 32, 100])
def test_any_size_goes_through(size: int) -> None:
    network = UNet(size, classes=2, width=16).eval()
    x, t, y = torch.randn(2, 4, size, size), torch.tensor([0.1, 0.9]), torch.tensor([0, 2])
    with torch.no_grad():
        assert network(x, t, y).shape == x.shape


def test_what_augmentation_did_is_told_to_the_network() -> None:
    network = UNet(8, classes=2, width=16)
    nn.init.normal_(network.leave.weight)
    nn.init.normal_(network.changes.weight)
    for block in network.modules():
        if isinstance(block, nn.Conv2d):
            nn.init.normal_(block.weight, std=0.1)
    x, t, y = torch.randn(2, 4, 8, 8), torch.rand(2), torch.tensor([0, 1])
    plain, told = network(x, t, y), network(x, t, y, torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.25, -0.25]]))
    torch.testing.assert_close(plain[0], told[0], rtol=1e-4, atol=1e-4)
    assert not torch.allclose(plain[1], told[1], rtol=0.01, atol=0.01)


def _batch(count: int, size: int) -> Batch:
    rng = torch.Generator().manual_seed(3)
    x = torch.rand(count, 4, size, size, generator=rng) * 2 - 1
    return Batch(x, torch.zeros(count, dtype=torch.int64), torch.zeros(count, 3), torch.zeros(count, 0), progress=0.9)


def _rng(batch: Batch) -> BatchRng:
    return BatchRng(torch.Generator().manual_seed(5), batch)


def test_pixels_that_are_kept_are_shown_and_marked_and_count_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that guesses 0 everywhere, and the velocity's error that follows from that, pixel by pixel."""
    seen: dict[str, Tensor] = {}

    def network(x: Tensor, t: Tensor, label: Tensor, changes: Tensor, keep: Tensor) -> Tensor:
        seen.update(x=x, t=t, keep=keep.expand_as(x))
        return -x / (1 - t)[:, None, None, None]

    monkeypatch.setattr(network, "classes", 1, raising=False)
    batch, recipe = _batch(40, 12), Generator()
    loss = recipe.loss(cast(UNet, network), batch, recipe.Config(filling=1.0), _rng(batch))
    x, kept = seen["x"], seen["keep"] == 1
    assert torch.equal(x[kept], batch.x[kept]) and not torch.isclose(x, batch.x)[~kept].any()
    errors = (batch.x / (1 - seen["t"])[:, None, None, None]) ** 2
    assert float(loss) == pytest.approx(float(errors[~kept].sum() / (errors.numel() / 2)), rel=1e-4)
    early = dataclasses.replace(batch, progress=0.7)
    recipe.loss(cast(UNet, network), early, recipe.Config(filling=1.0), _rng(early))
    assert not seen["keep"].any()


def test_a_share_of_the_sprites_show_any_part_of_themselves() -> None:
    batch = _batch(3000, 16)
    shares = generator._some_kept(batch, 0.33, _rng(batch)).mean((1, 2, 3))
    some = shares[shares > 0]
    assert len(some) / len(shares) == pytest.approx(0.33, abs=0.03)
    assert torch.histc(some, 4, 0, 1).min() > 0.2 * len(some)  # a quarter each of little, some, more and much


def test_weights_from_before_there_was_filling_draw_what_they_drew() -> None:
    old, new = UNet(8, classes=2, width=16), UNet(8, classes=2, width=16)
    for network in (old, new):
        nn.init.normal_(network.leave.weight)
        nn.init.normal_(network.keep.weight)
    weights = {name: weight for name, weight in old.state_dict().items() if name != "keep.weight"}
    new.load_state_dict(weights)
    x, t, y = torch.randn(2, 4, 8, 8), torch.rand(2), torch.tensor([0, 1])
    assert torch.equal(new(x, t, y), old(x, t, y)) and torch.equal(
        new(x, t, y, keep=torch.ones(2, 1, 8, 8)), new(x, t, y)
    )
    assert not torch.equal(old(x, t, y, keep=torch.ones(2, 1, 8, 8)), old(x, t, y))
    with pytest.raises(RuntimeError, match=r"enter\.weight"):
        new.load_state_dict({"keep.weight": old.keep.weight})
