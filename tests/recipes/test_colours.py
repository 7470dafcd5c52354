"""Palettes for a network, and the odds of their colours."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn import functional as F

from studio.recipes import colours as colours_module
from studio.recipes.colours import PaletteHead, _ColourLoss, choose_palette, choose_rows, colour_loss, select_rows


def _sprites(colours: NDArray[np.uint8], uses: NDArray[np.int64]) -> NDArray[np.uint8]:
    """These colours [K, 4], each so often, as sprites of 1 x 1."""
    return colours.repeat(uses, axis=0)[:, None, None]


def test_palette_holds_few_colours_most_frequent_first() -> None:
    colours = np.array([[10, 20, 30, 255], [0, 0, 0, 0], [200, 100, 50, 128]], np.uint8)
    palette = choose_palette(_sprites(colours, np.array([2, 5, 3])), 6)
    premultiplied = [[0, 0, 0, 0], [100, 50, 25, 128], [10, 20, 30, 255]]
    torch.testing.assert_close(palette[:3], torch.tensor(premultiplied) / 127.5 - 1)
    assert (palette[3:, 3] < -1).all()  # no colour has that alpha


def test_palette_groups_many_colours() -> None:
    """Each is in the sprites, and they stand nearer to the pixels than median cut's, which Pillow finds."""
    rng = np.random.default_rng(0)
    spread = np.clip(rng.normal(rng.integers(40, 216, (12, 3))[rng.integers(12, size=9000)], 14), 0, 255)
    rgba = np.concatenate([spread.astype(np.uint8), np.full((9000, 1), 255, np.uint8)], 1)
    palette = choose_palette(rgba[:, None, None], 32)
    levels = ((palette + 1) * 127.5).round()
    assert {tuple(row) for row in levels.int().tolist()} <= {tuple(row) for row in rgba.tolist()}
    assert len(levels.unique(dim=0)) == 32
    picture = Image.fromarray(rgba[None, :, :3])
    cut = np.asarray(picture.quantize(32, Image.Quantize.MEDIANCUT, kmeans=0).convert("RGB"))[0]
    error = float(torch.cdist(torch.from_numpy(rgba).float(), levels).amin(1).mean())
    assert error < np.linalg.norm(cut.astype(float) - rgba[:, :3], axis=1).mean()
    assert torch.equal(palette, choose_palette(rgba[:, None, None], 32))


def _head(colours: int = 5) -> PaletteHead:
    torch.manual_seed(0)
    return PaletteHead(6, colours).requires_grad_(False)


def _odds(head: PaletteHead, features: torch.Tensor) -> torch.Tensor:
    """Logarithms of the chances of each colour: [..., colours]."""
    return (F.pad(features, (0, 1), value=1.0) @ head.colour_keys().T).log_softmax(-1)


def test_expected_colour_is_softened_early_and_the_most_likely_late() -> None:
    head = _head()
    features = 20 * torch.randn(2, 3, 3, 6)
    odds = _odds(head, features)
    early = head.expected_at(features, torch.tensor([0.0, 0.9]))
    chances = torch.softmax(0.97 * odds, -1)
    torch.testing.assert_close(early, torch.einsum("bhwk,kc->bhwc", chances, head.palette))
    late = head.expected_at(features, torch.tensor([0.95, 0.97]))
    torch.testing.assert_close(late, head.palette[odds.argmax(-1)], atol=1e-3, rtol=0)


@pytest.mark.parametrize("in_cache", [2**18, 9 * 8])
def test_colour_loss_and_gradients_equal_those_of_torch(in_cache: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the odds of all pixels fit the cache or those of eight at a time: the last ones are fewer."""
    monkeypatch.setattr(colours_module, "_CACHED_LOGITS", in_cache)
    generator = torch.Generator().manual_seed(0)
    asked, known = (5 * torch.randn(count, 7, generator=generator, dtype=torch.float64) for count in (30, 9))
    palette = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    of_odds, of_means = torch.rand(2, 30, generator=generator, dtype=torch.float64)
    true = torch.arange(30) % 9
    leaves = asked.requires_grad_(), known.requires_grad_()
    found = _ColourLoss.apply(*leaves, palette, palette[true], of_odds, of_means)
    odds = asked @ known.T
    apart = (odds.softmax(1) @ palette - palette[true]).square().sum(1)
    expected = (of_odds * F.cross_entropy(odds, true, reduction="none") + of_means * apart).sum()
    torch.testing.assert_close(found, expected)
    ours, plain = (torch.autograd.grad(3 * total, leaves) for total in (found, expected))
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, other)


def test_extreme_logits_give_finite_losses() -> None:
    asked, known = torch.tensor([[300.0]]), torch.tensor([[1.0], [-1.0]], requires_grad=True)
    palette = torch.eye(2, 4)
    error = _ColourLoss.apply(asked, known, palette, palette[1:], torch.ones(1), torch.zeros(1))
    (gradient,) = torch.autograd.grad(error, known)
    assert error.item() == 600 and gradient.flatten().tolist() == [300, -300]


def test_unused_palette_entry_is_never_chosen() -> None:
    head = _head()
    head.palette[3] = torch.tensor([0.0, 0.0, 0.0, -2.0])
    features = torch.randn(1, 4, 4, 6)
    assert (_odds(head, features).exp()[..., 3] == 0).all()
    found = head.expected_at(features, torch.tensor([0.95])).flatten(0, 2)
    assert torch.isfinite(found).all() and (found.norm(dim=1) > 0).all()


def test_colours_are_computed_in_full_precision() -> None:
    head, features, t = _head(), torch.randn(1, 4, 4, 6), torch.tensor([0.95])
    ones = torch.ones(1, 4, 4)

    def outputs() -> tuple[torch.Tensor, ...]:
        return head.expected_at(features, t), colour_loss(head, features, head.palette[ones.long()], ones, ones)

    plain = outputs()
    with torch.autocast("cpu", torch.bfloat16):
        assert all(torch.equal(one, other) for one, other in zip(outputs(), plain, strict=True))


def test_logits_depend_on_the_colour_not_its_index() -> None:
    head, features = _head(), torch.randn(1, 4, 4, 6)
    plain = _odds(head, features)
    order = torch.tensor([4, 2, 0, 1, 3])
    head.palette.copy_(head.palette[order])
    torch.testing.assert_close(_odds(head, features), plain[..., order])


def test_nearest_index_minimises_the_distance() -> None:
    head, x = _head(40), 2 * torch.rand(3, 7, 7, 4) - 1
    distances = torch.cdist(x.double().flatten(0, 2), head.palette.double())
    assert torch.equal(head.nearest_index(x).flatten(), distances.argmin(1))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_palette_of_any_number_of_colours(count: int) -> None:
    rgba = np.random.default_rng(1).integers(0, 256, (6, 8, 8, 4)).astype(np.uint8)
    palette = choose_palette(rgba, count)
    assert palette.shape == (count, 4) and (palette >= -1).all() and (palette <= 1).all()


def test_large_sprites_train_on_some_rows() -> None:
    """Each row is as likely as any other to be among them."""
    offsets = torch.linspace(0, 1, 501)[:-1, None]
    rows = choose_rows(100, offsets)
    assert rows.shape == (500, 10) and (rows.diff(dim=1) > 0).all()
    assert torch.bincount(rows.flatten(), minlength=100).float().std() < 1
    assert choose_rows(32, offsets).shape == (500, 16)
    assert torch.equal(choose_rows(16, offsets[:1]), torch.arange(16)[None])
    values = torch.randn(2, 3, 5, 4)
    found = select_rows(values, torch.tensor([[0, 4], [1, 2]]))
    assert torch.equal(found[1], values[1][:, [1, 2]].permute(1, 2, 0))


@pytest.mark.slow
def test_compiled_16_bit_gradients_equal_eager_ones() -> None:
    torch.manual_seed(3)
    head, layer = PaletteHead(8, 16), torch.nn.Linear(8, 8)
    features, true, weights = torch.randn(2, 4, 4, 8), torch.randint(0, 16, (2, 4, 4)), torch.full((2, 4, 4), 1 / 32)

    def loss() -> torch.Tensor:
        return colour_loss(head, layer(features), head.palette[true], weights, weights)

    found = []
    for way in (loss, torch.compile(loss)):
        layer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            value = way()
        value.backward()
        assert layer.weight.grad is not None
        found.append(layer.weight.grad.clone())
    torch.testing.assert_close(found[1], found[0], rtol=1e-2, atol=1e-5)
