"""Codes of sprites, and sprites from codes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from studio.engine.steps.batches import DeviceSprites
from studio.recipes.autoencoder import Autoencoder, AutoencoderConfig, CodeNetwork
from studio.recipes.base import Batch, BatchRng, Spec
from tests.conftest import make_sprites

RECIPE, CONFIG = Autoencoder(), AutoencoderConfig(width=16, code=6, colours=12)


def _network(size: int = 8, classes: int = 2) -> CodeNetwork:
    """With weights of a fixed seed, none of them zero."""
    torch.manual_seed(0)
    network = RECIPE.build(CONFIG, Spec(size, tuple(f"class{number}" for number in range(classes)))).eval()
    for weight in network.parameters():
        weight.requires_grad_(False).add_(0.05 * torch.randn_like(weight))
    return network


def _batch(size: int = 8, count: int = 4) -> Batch:
    return next(DeviceSprites(make_sprites(size=size), torch.device("cpu")).plain_batches(count, count))


@pytest.mark.parametrize("size", [8, 13, 17, 28, 64, 100])
def test_sprites_of_any_size_are_encoded_and_decoded(size: int) -> None:
    network, x = _network(size), torch.rand(2, 4, size, size) * 2 - 1
    codes = RECIPE.encode(network, x)
    assert codes.shape == (2, 6) and not torch.allclose(codes[0], codes[1])
    sprites = RECIPE.decode(network, codes)
    assert sprites.shape == x.shape and sprites.dtype == torch.float32 and sprites.abs().max() <= 1.0001


def test_loss_is_cross_entropy_plus_kl_divergence() -> None:
    network, batch = _network(), _batch(count=3)
    rng = BatchRng(torch.Generator().manual_seed(5), batch)
    found = RECIPE.loss(network, batch, CONFIG.replace(kl_weight=2.0), rng)
    drawn = torch.Generator().manual_seed(5)
    label = torch.where(torch.rand(3, generator=drawn) < 0.1, 2, batch.y)
    mean, deviation = network.encode(batch.x)
    odds = _odds(network, mean + deviation.exp() * torch.randn(3, 6, generator=drawn))
    true = torch.cdist(batch.x.permute(0, 2, 3, 1).reshape(-1, 4), network.head.palette).argmin(1)
    prior_mean, prior_deviation = network.prior(label).chunk(2, 1)
    apart = kl_divergence(Normal(mean, deviation.exp()), Normal(prior_mean, prior_deviation.exp())).sum(1)
    wanted = F.cross_entropy(odds.flatten(0, 2), true) + 2.0 / 64 * apart.mean()
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def _odds(network: CodeNetwork, codes: Tensor) -> Tensor:
    """The logits [B, S, S, colours] of codes."""
    asked = F.pad(network.features(codes).permute(0, 2, 3, 1), (0, 1), value=1.0)
    return asked @ network.head.colour_keys().T


def test_evaluation_counts_correct_pixels() -> None:
    network, batch = _network(), _batch()
    likeliest = network.head.palette[_odds(network, RECIPE.encode(network, batch.x)).argmax(-1)]
    true = network.head.palette[network.head.nearest_index(batch.x.permute(0, 2, 3, 1))]
    found = RECIPE.evaluate(network, [batch], CONFIG, Spec(8, ("a", "b"))).metrics
    assert found["pixels"] == pytest.approx(float((likeliest == true).all(-1).float().mean()), abs=0.01)


def test_class_is_drawn_from_its_prior() -> None:
    network = _network()
    network.prior.weight[:, :6] = torch.tensor([-3.0, 3.0, 0.0])[:, None]
    network.prior.weight[:, 6:] = -8.0  # all codes of a class are nearly the same
    (drawn,) = Autoencoder.draw(network, torch.tensor([1, 0, -1]), 1.5, 10, seed=4)
    means = torch.tensor([3.0, -3.0, 0.0])[:, None].expand(3, 6)
    torch.testing.assert_close(drawn, RECIPE.decode(network, means.contiguous()), rtol=0.05, atol=0.05)
    assert not torch.allclose(drawn[0], drawn[1], atol=0.1)


def test_blending_interpolates_codes() -> None:
    network, batch = _network(), _batch(count=2)
    shares = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    (blended,) = Autoencoder.blend(network, batch.x, batch.y, shares, 10)
    first, last = RECIPE.encode(network, batch.x)
    wanted = RECIPE.decode(network, torch.stack([first, 0.25 * first + 0.75 * last]))
    torch.testing.assert_close(blended, wanted, rtol=1e-4, atol=1e-5)
