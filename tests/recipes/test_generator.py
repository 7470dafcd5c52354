"""The network, and what it learns from: augmented sprites, of which some keep a part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from studio.recipes import generator
from studio.recipes.base import Spec
from studio.recipes.capabilities import EditCondition
from studio.recipes.generator import Generator
from studio.recipes.layers import ResidualBlock
from studio.recipes.unet import UNet, known_labels
from tests.conftest import make_sprites, with_numbers, with_tones
from tests.recipes.tools import batch_rng, network_with_palette, random_batch


@pytest.mark.parametrize("colours", [0, 7])
@pytest.mark.parametrize(("size", "levels"), [(8, 3), (20, 3), (24, 3), (32, 4), (56, 4), (64, 3), (100, 3), (100, 4)])
def test_network_accepts_any_size(size: int, levels: int, colours: int) -> None:
    network = UNet(size, classes=2, width=16, colours=colours, levels=levels).eval()
    x, t, y = torch.randn(2, 4, size, size), torch.tensor([0.1, 0.9]), torch.tensor([0, 2])
    with torch.no_grad():
        assert network(x, t, y).shape == x.shape


def test_large_sprites_get_a_fourth_level() -> None:
    recipe, usual = Generator(), Generator.Config(width=16, colours=0)
    levels = {size: recipe.arguments(usual, Spec(size, ()))["levels"] for size in (16, 32, 47, 48, 64, 256)}
    assert levels == {16: 3, 32: 3, 47: 3, 48: 4, 64: 4, 256: 4}
    assert recipe.arguments(usual.replace(levels="3"), Spec(64, ()))["levels"] == 3
    assert recipe.arguments(usual.replace(levels="4"), Spec(32, ()))["levels"] == 4


def test_a_fourth_level_saves_time_from_48_pixels_on() -> None:
    recipe = Generator()
    assert recipe.cost(32) == recipe.relative_cost
    assert recipe.cost(48) == recipe.cost(38) < recipe.cost(47) < recipe.cost(64)
    assert recipe.cost(96) < recipe.cost(64)  # a coarser patch


def test_weights_fix_the_levels_for_sprites_of_any_size() -> None:
    recipe, usual = Generator(), Generator.Config(width=16, colours=8)
    assert recipe.fixed_settings(usual, 32) == {"width": 16, "colours": 8, "levels": "3"}
    assert recipe.fixed_settings(usual, 64)["levels"] == "4"
    assert recipe.fixed_settings(usual.replace(levels="3"), 64)["levels"] == "3"


def test_run_from_before_levels_has_three() -> None:
    older = {name: value for name, value in Generator.Config().to_json().items() if name != "levels"}
    network = Generator().build(Generator.Config.from_json(older).replace(width=16), Spec(64, ("a",)))
    assert network.levels == 3 and not hasattr(network, "down0")


def test_network_is_conditioned_on_augmentation() -> None:
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


def test_sampling_shifts_the_time_and_training_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    network, mixing, batch = network_with_palette(12), UNet(12, classes=1, width=16), random_batch(3, 12)
    told = list[tuple[Tensor, Tensor]]()
    for each in (network, mixing):
        inner = each.features

        def features(x: Tensor, t: Tensor, *others: Tensor | None, inner: Callable[..., Tensor] = inner) -> Tensor:
            told.append((x, t))
            return inner(x, t, *others)

        monkeypatch.setattr(each, "features", features)
    times = torch.tensor([0.0, 0.5, 0.9])
    velocity = network(batch.x, times, batch.y)
    assert told[-1][1].tolist() == pytest.approx([0.0, 0.4875, 0.8955])
    sprite = network.sprite(network.features(batch.x, told[-1][1], batch.y), times)
    torch.testing.assert_close(velocity, (sprite - batch.x) / (1 - times)[:, None, None, None])
    mixing(batch.x, times, batch.y)
    assert torch.equal(told[-1][1], times)
    plain = Generator.Config(inpaint_share=0.0, time_mean=-0.3)
    Generator().loss(network, batch, plain, batch_rng(batch))
    x, t = told[-1]
    rng = batch_rng(batch)
    torch.testing.assert_close(t, torch.sigmoid(rng.randn() + plain.time_mean))
    rng.rand()
    mix = t[:, None, None, None]
    torch.testing.assert_close(x, (1 - mix) * rng.randn(4, 12, 12) + mix * batch.x)


def test_inpainting_redraws_the_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three pixels wide, by a network that has learnt to fill: what lies deeper stays, as what was kept does."""
    monkeypatch.setattr(generator, "_BEFORE_SEAMS", 1.0)  # the same steps with seams and without
    network = network_with_palette(12)
    keep = torch.zeros(2, 1, 12, 12)
    keep[..., :4] = 1
    given = EditCondition(random_batch(2, 12).x, 1.0, keep)
    deeper = torch.zeros(12).index_fill_(0, torch.arange(7, 12), 1).bool()

    def drawn() -> Tensor:
        *_, x = Generator.redraw(network, given, torch.zeros(2, dtype=torch.int64), 1.5, 6, seed=7)
        return x

    imposed = drawn()
    nn.init.normal_(network.keep.weight, std=0.1)
    once_more = drawn()
    monkeypatch.setattr(generator, "_SEAMS", ())
    once = drawn()
    seam = ~deeper & (keep[0, 0, 0] == 0)
    torch.testing.assert_close(once_more[..., ~seam], once[..., ~seam], rtol=1e-4, atol=1e-4)
    assert (once_more - once)[..., seam].abs().mean() > 0.01
    network.keep.weight.zero_()
    torch.testing.assert_close(drawn(), imposed, rtol=1e-4, atol=1e-4)  # for that network there is no seam


def test_weights_from_before_inpainting_draw_the_same_sprites() -> None:
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


def test_generator_draws_only_palette_colours() -> None:
    network = network_with_palette(12)
    assert network.head is not None
    network.head.leave.weight.mul_(500)  # as in a network that has learnt
    *_, sprites = Generator.draw(network, torch.tensor([0, -1]), guidance=2.0, steps=6, seed=0)
    pixels = sprites.permute(0, 2, 3, 1).reshape(-1, 4)
    assert (torch.cdist(pixels, network.head.palette).amin(1) < 1e-3).float().mean() > 0.98  # few are undecided
    assert len(network.head.nearest_index(pixels).unique()) > 1


def test_run_from_before_palettes_has_no_palette() -> None:
    older = {name: value for name, value in Generator.Config().to_json().items() if name != "colours"}
    assert Generator.Config.from_json(older).colours == 0


@pytest.mark.parametrize("levels", [3, 4])
def test_blocks_of_the_network_can_have_labels_of_their_own(levels: int) -> None:
    network = UNet(8, classes=2, width=16, levels=levels)
    for weights in network.requires_grad_(False).parameters():
        torch.nn.init.normal_(weights, std=0.2)  # some are zeros at first
    x, t = torch.randn(2, 4, 8, 8), torch.tensor([0.2, 0.6])
    label = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    changes = torch.ones(2, 3)
    each = label[:, None].repeat(1, network.blocks, 1)
    alike = network(x, t, label, changes)
    torch.testing.assert_close(network(x, t, each, changes), alike)
    for block in range(network.blocks):
        other = each.clone()
        other[:, block] = 0
        assert not torch.allclose(network(x, t, other, changes), alike)


def test_a_value_changes_the_network_alike_beside_any_class() -> None:
    spec = Spec(8, ("shield", "sword"), attributes={"element": ("fire", "ice")})
    network, seen = Generator().build(Generator.small, spec).requires_grad_(False), list[Tensor]()
    block = network.down1[0]
    assert isinstance(block, ResidualBlock) and block.modulate is not None
    block.modulate.register_forward_hook(lambda _, __, output: seen.append(output))
    labels = torch.tensor([[1.0, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 1, 0, 0], [0, 1, 0, 1, 0]])  # with fire, with ice
    network(torch.randn(1, 4, 8, 8).repeat(4, 1, 1, 1), torch.full((4,), 0.3), labels)
    shield_of_fire, shield_of_ice, sword_of_fire, sword_of_ice = seen[0]  # scales and shifts
    assert not torch.allclose(shield_of_ice, shield_of_fire, atol=0.01)
    torch.testing.assert_close(shield_of_ice - shield_of_fire, sword_of_ice - sword_of_fire)


def test_targets_of_a_batch_are_the_attributes() -> None:
    sprites = with_numbers(with_tones(make_sprites(2)))
    examples, _ = Generator().examples(sprites, np.arange(4))
    assert examples.targets.tolist() == [[2, 4], [2, 5], [3, 4], [3, 5]]
    assert Spec.of(sprites).labels == ("class0", "class1", "hue=hue0", "hue=hue1", "tone=dark", "tone=light")
    numbers = with_numbers(make_sprites(2))  # which a generator does not learn
    assert Generator().examples(numbers, np.arange(4))[0].targets.shape == (4, 0)


def test_networks_without_attributes_are_as_before() -> None:
    recipe, spec = Generator(), Spec(8, ("a", "b"))
    network = recipe.build(recipe.small, spec)
    assert recipe.loss_of(spec) == recipe.loss and network.label.num_embeddings == 3 and not network.additive
    labels = torch.tensor([[0.25, 0.75], [0.0, 0.0]])
    assert known_labels(UNet(8, 2, 16), labels).tolist() == [[0.25, 0.75, 0], [0, 0, 1]]
