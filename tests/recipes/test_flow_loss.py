"""The generator's training loss: what counts, what is hidden, and what the network is told."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from studio.recipes.base import Spec, evenly_spread
from studio.recipes.flow_loss import choose_time_mean, inpainting_mask
from studio.recipes.generator import Generator
from studio.recipes.unet import UNet
from tests.conftest import make_sprites, with_plain_colours
from tests.recipes.tools import batch_rng, network_with_palette, random_batch


def test_kept_pixels_are_clean_and_do_not_count_in_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that guesses 0 everywhere, and the velocity's error that follows from that, pixel by pixel."""
    seen: dict[str, Tensor] = {}

    def features(x: Tensor, t: Tensor, label: Tensor, changes: Tensor, keep: Tensor) -> Tensor:
        seen.update(x=x, t=t, keep=keep.expand_as(x))
        return torch.zeros_like(x)

    network = UNet(12, classes=1, width=16)
    monkeypatch.setattr(network, "features", features)
    batch, recipe = random_batch(40, 12), Generator()
    loss = recipe.loss(network, batch, recipe.Config(inpaint_share=1.0), batch_rng(batch))
    x, kept = seen["x"], seen["keep"] == 1
    assert torch.equal(x[kept], batch.x[kept]) and not torch.isclose(x, batch.x)[~kept].any()
    errors = (batch.x / (1 - seen["t"])[:, None, None, None]) ** 2
    assert float(loss) == pytest.approx(float(errors[~kept].sum() / (errors.numel() / 2)), rel=1e-4)
    early = dataclasses.replace(batch, progress=0.7)
    recipe.loss(network, early, recipe.Config(inpaint_share=1.0), batch_rng(early))
    assert not seen["keep"].any()


def test_inpainting_masks_hide_any_part_of_a_share_of_sprites() -> None:
    batch = random_batch(3000, 16)
    shares = inpainting_mask(batch, 0.33, batch_rng(batch)).mean((1, 2, 3))
    some = shares[shares > 0]
    assert len(some) / len(shares) == pytest.approx(0.33, abs=0.03)
    assert torch.histc(some, 4, 0, 1).min() > 0.2 * len(some)  # a quarter each of little, some, more and much


def test_generator_trains_on_the_nearest_colour_of_each_pixel() -> None:
    """The cross-entropy of its odds, and half of the squared error of the velocity to their mean, in loops."""
    network, batch, seen = network_with_palette(12), random_batch(3, 12), list[tuple[Tensor, ...]]()
    inner = network.features

    def features(*inputs: Tensor) -> Tensor:
        seen.append(inputs)
        return inner(*inputs)

    network.features = features  # type: ignore[method-assign,assignment]
    assert network.head is not None
    loss = Generator().loss(network, batch, Generator.Config(inpaint_share=1.0), batch_rng(batch))
    ((x, t, label, changes, keep),) = seen
    total, palette, known = 0.0, network.head.palette, network.head.colour_keys()
    pixels = inner(x, t, label, changes, keep).permute(0, 2, 3, 1)
    chances = (pixels @ known[:, :-1].T + known[:, -1]).softmax(-1)
    for b in range(3):
        for i in range(12):
            for j in range(12):
                nearest = (palette - batch.x[b, :, i, j]).norm(dim=1).argmin()
                velocity = (chances[b, i, j] @ palette - batch.x[b, :, i, j]) / (1 - t[b])
                error = -chances[b, i, j, nearest].log() + 0.5 * velocity.square().mean()
                total += float(error * (1 - keep[b, 0, i, j]))
    assert float(loss) == pytest.approx(total / (3 * 144) / 0.5, rel=1e-4)


def test_attributes_reach_the_network_and_are_dropped_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    network, recipe = UNet(8, classes=5, width=16), Generator()
    count, seen = 4000, list[Tensor]()
    targets = torch.tensor([[2.0, 4.0], [-1.0, 4.0]]).repeat(count // 2, 1)
    batch = dataclasses.replace(random_batch(count, 8), y=torch.ones(count, dtype=torch.int64), targets=targets)

    def features(x: Tensor, t: Tensor, label: Tensor, *_: Tensor) -> Tensor:
        seen.append(label)
        return torch.zeros_like(x)

    monkeypatch.setattr(network, "features", features)
    spec = Spec(8, ("a", "b"), attributes={"hue": ("red",), "tone": ("dark", "light")})
    recipe.loss_of(spec)(network, batch, recipe.small.replace(class_dropout=0.2), batch_rng(batch))
    assert seen[0].shape == (count, network.blocks, 6)
    means = [each.mean((0, 1)) / 0.4 for each in (seen[0][::2], seen[0][1::2])]  # blocks lose 0.6 of the rest
    # Class, first and second attribute, and none of them: half of all others lose the class, a fifth an attribute.
    expected = torch.tensor([0, 0.4, 0.64, 0, 0.64, 0.2 + 0.8 * 0.5 * 0.2**2])
    torch.testing.assert_close(means[0], expected, atol=0.06, rtol=0)
    torch.testing.assert_close(means[1], torch.tensor([0, 0.4, 0, 0, 0.64, 0.28]), atol=0.06, rtol=0)
    monkeypatch.setattr(network, "head", None)
    recipe.evaluate(network, [dataclasses.replace(batch, x=batch.x[:2], y=batch.y[:2], targets=targets[:2])],
                    recipe.small, spec)  # fmt: skip
    assert seen[1].tolist() == [[0, 1, 1, 0, 1, 0], [0, 1, 0, 0, 1, 0]]


@pytest.mark.parametrize("cell", [1, 2, 8, 16, 32])
def test_sprites_with_plain_colours_train_with_more_noise(cell: int) -> None:
    """Cells of one random colour each: all differences are at the edges of cells, twice the variance each."""
    cells = 64 // cell
    colours = np.random.default_rng(0).integers(0, 256, (600, cells, cells, 4), np.uint8)
    colours[..., 3] = 255
    detail = 2 * (cells - 1) / 63
    chosen = choose_time_mean(colours.repeat(cell, 1).repeat(cell, 2))
    assert chosen == pytest.approx(-0.3 + 0.5 * math.log(min(1, detail / 0.26)), abs=0.02)


def test_only_an_automatic_noise_focus_is_resolved() -> None:
    recipe, sprites = Generator(), with_plain_colours(make_sprites())
    chosen = recipe.resolve(recipe.Config(), sprites)
    assert chosen == recipe.Config(time_mean=choose_time_mean(sprites.rgba)) and chosen.time_mean < -0.3
    given = recipe.Config(time_mean=0.5)
    assert recipe.resolve(given, sprites) == given


def test_noise_focus_of_unusual_sprites() -> None:
    """Plain sprites get the lowest value, equal sprites the usual; invisible colours don't count."""
    rng = np.random.default_rng(0)
    plain = with_plain_colours(make_sprites(per_class=25, size=64)).rgba
    assert choose_time_mean(plain) == pytest.approx(-0.3 + 0.5 * math.log(0.03 / 0.26), abs=0.01)
    assert choose_time_mean(plain[:1].repeat(9, 0)) == -0.3
    framed, noisy = (np.pad(plain, ((0, 0), (16, 16), (16, 16), (0, 0))) for _ in range(2))
    noisy[noisy[..., 3] == 0, :3] = rng.integers(0, 256, 3)
    assert (noisy != framed).any() and choose_time_mean(noisy) == choose_time_mean(framed) < -0.3


def test_loss_and_validation_loss_use_the_noise_focus(monkeypatch: pytest.MonkeyPatch) -> None:
    network, recipe, seen = UNet(16, classes=1, width=16), Generator(), list[Tensor]()
    batch = random_batch(2, 16)

    def features(x: Tensor, t: Tensor, *_: Tensor) -> Tensor:
        seen.append(t)
        return torch.zeros_like(x)

    monkeypatch.setattr(network, "features", features)
    for config, expected in ((recipe.Config(), -0.3), (recipe.Config(time_mean=-1.2), -1.2)):
        for loss in (recipe.loss, recipe.loss_of(Spec(16, ("a",), attributes={"hue": ("red",)}))):
            loss(network, batch, config, batch_rng(batch))
            torch.testing.assert_close(seen.pop(), torch.sigmoid(batch_rng(batch).randn() + expected))
        recipe.evaluate(network, [batch], config, Spec(16, ("a",)))
        normal = torch.special.ndtri(evenly_spread(0, 2)).float()
        torch.testing.assert_close(seen.pop(), torch.sigmoid(normal + expected))
