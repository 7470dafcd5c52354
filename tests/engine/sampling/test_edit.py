"""Variations, inpainting, tweens and similar sprites start from given sprites."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from studio.core.errors import UsageError
from studio.core.events import Events, Notice, Progress, SpritesGenerated
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.sampling import edit
from studio.engine.sampling.edit import EditInput, draw_similar, redraw, tween
from studio.engine.sampling.generate import generate
from studio.engine.sampling.settings import GenerateSettings
from studio.recipes.unet import UNet
from tests.conftest import make_sprites
from tests.engine.tools import CPU, agreeing, of_kind

SPRITES = make_sprites()
SIZE = SPRITES.size
TWO = EditInput(SPRITES.rgba[[0, 20]], SPRITES.labels[[0, 20]])
ONE = EditInput(SPRITES.rgba[:1], SPRITES.labels[:1])
HALF = np.arange(SIZE)[:, None].repeat(SIZE, 1) < SIZE // 2


@pytest.fixture(scope="module")
def model(generator_run: Path) -> TrainedModel:
    return load_model(generator_run, "last", CPU)


def _made(events: Events) -> SpritesGenerated:
    found = list(events)
    (made,) = of_kind(found, SpritesGenerated)
    assert made is found[-1] and of_kind(found, Progress)[-1].done == of_kind(found, Progress)[-1].total
    return made


def _settings(**changes: float | str | bool) -> GenerateSettings:
    return GenerateSettings(**{"count": 6, "steps": 4, "seed": 3, **changes})  # type: ignore[arg-type]


def test_strength_0_leaves_the_sprite_unchanged(model: TrainedModel) -> None:
    (made,) = list(redraw(model, _settings(strength=0.0), TWO))
    assert isinstance(made, SpritesGenerated) and made.keep is not None and made.keep.all()
    np.testing.assert_array_equal(made.sprites, TWO.sprites[[0, 1] * 3])
    np.testing.assert_array_equal(made.labels, TWO.labels[[0, 1] * 3])


def test_the_share_that_changes_grows_with_the_strength(model: TrainedModel) -> None:
    """At 0.1, fewer than a tenth of the pixels change, with any model; other pixels stay equal, also in true pixels."""
    shares = []
    for strength in (0.1, 0.3, 0.7, 1.0):
        made = _made(redraw(model, _settings(strength=strength), TWO))
        assert made.keep is not None
        before = TWO.sprites[[0, 1] * 3]
        np.testing.assert_array_equal(made.sprites[made.keep], before[made.keep])
        seen = before[..., 3] > 0
        changed = (made.sprites != before).any(-1)
        assert (changed.sum((1, 2)) < strength * seen.sum((1, 2))).all() or strength > 0.3
        shares.append(float(changed.mean()))
    assert shares == sorted(shares) and shares[0] < shares[-1]


def test_a_variation_depends_on_seed_and_index(model: TrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    how = _settings(strength=0.8, true_pixels=False)
    many = _made(redraw(model, how, TWO)).sprites
    assert not np.array_equal(many[0], many[2])
    assert agreeing(_made(redraw(model, how.replace(count=3), TWO)).sprites, many[:3]) > 0.97
    monkeypatch.setattr("studio.engine.sampling.generate._DRAW_BATCH", 4)
    assert agreeing(_made(redraw(model, how, TWO)).sprites, many) > 0.97
    assert agreeing(_made(redraw(model, how.replace(seed=4), TWO)).sprites, many) < 0.97


@pytest.mark.parametrize("true_pixels", [True, False])
@pytest.mark.parametrize("strength", [1.0, 0.6])
def test_kept_pixels_stay_bit_for_bit(model: TrainedModel, strength: float, true_pixels: bool) -> None:
    """The kept pixels include colours and alpha outside the style."""
    odd = np.random.default_rng(0).integers(0, 256, (1, SIZE, SIZE, 4), np.uint8)
    how = _settings(strength=strength, true_pixels=true_pixels)
    made = _made(redraw(model, how, EditInput(odd, np.array([-1])), HALF))
    np.testing.assert_array_equal(made.sprites[:, HALF], odd.repeat(6, 0)[:, HALF])
    assert made.keep is not None and made.keep[:, HALF].all()
    assert not np.array_equal(made.sprites[:, ~HALF], odd.repeat(6, 0)[:, ~HALF])


def test_an_inpainting_network_sees_the_kept_pixels_without_noise(model: TrainedModel) -> None:
    """A network without inpainting training gets noisy pixels everywhere, and the user gets a notice."""
    seen = list[torch.Tensor]()
    network = cast(UNet, model.network)

    class Spy(nn.Module):
        classes, size, keep = network.classes, network.size, network.keep

        def forward(self, x: torch.Tensor, t: torch.Tensor, label: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
            seen.append(x[:1].clone())
            return cast(torch.Tensor, network(x, t, label, **more))

    spied = dataclasses.replace(model, network=Spy())
    assert not of_kind(list(redraw(spied, _settings(strength=1.0), ONE, HALF)), Notice)
    assert all(torch.equal(x[:, :, HALF], seen[0][:, :, HALF]) for x in seen)
    unlearnt = nn.Conv2d(4, 16, 3)
    nn.init.zeros_(unlearnt.weight)
    Spy.keep = unlearnt
    seen.clear()
    assert len(of_kind(list(redraw(spied, _settings(strength=1.0), ONE, HALF)), Notice)) == 1
    spread = [float(x[:, :, HALF].std()) for x in seen]
    assert spread[0] == pytest.approx(1, abs=0.1) and not torch.equal(seen[0], seen[-1])


def test_tween_starts_and_ends_with_the_given_sprites(model: TrainedModel) -> None:
    made = _made(tween(model, _settings(count=5), TWO))
    assert len(made.sprites) == 7 and made.labels.tolist() == [0, 0, 0, *made.labels[3:6].tolist(), 1][:7]
    np.testing.assert_array_equal(made.sprites[[0, -1]], TWO.sprites)
    others = _made(tween(model, _settings(count=5, seed=99), TWO))
    np.testing.assert_array_equal(others.sprites, made.sprites)  # independent of the seed
    away = np.abs(made.sprites.astype(int) - TWO.sprites[0].astype(int)).mean((1, 2, 3))
    assert away[1] < away[5]


def test_similar_sprites_blend_two_sources_each(model: TrainedModel) -> None:
    source = EditInput(SPRITES.rgba[::5], SPRITES.labels[::5])
    made = _made(draw_similar(model, _settings(), source))
    assert len(made.sprites) == 6 and len(np.unique(made.sprites.reshape(6, -1), axis=0)) > 3  # hardly trained
    assert agreeing(_made(draw_similar(model, _settings(count=3), source)).sprites, made.sprites[:3]) > 0.97
    assert not np.array_equal(_made(draw_similar(model, _settings(seed=4), source)).sprites, made.sprites)
    assert set(_made(draw_similar(model, _settings(class_name="class1"), source)).labels) == {
        model.spec.class_names.index("class1")
    }


def test_classes_are_mixed_by_their_shares(model: TrainedModel) -> None:
    first, second = model.spec.class_names[:2]
    mixed = _made(generate(model, _settings(mix=f"{first}:1,{second}:3")))
    assert set(mixed.labels) == {1}
    alone = _made(generate(model, _settings(mix=f"{second}:2")))
    assert agreeing(alone.sprites, _made(generate(model, _settings(class_name=second))).sprites) > 0.97
    varied = _made(redraw(model, _settings(mix=f"{first}:3,{second}:1", strength=0.5), TWO))
    assert set(varied.labels) == {0}
    for text in ("x:1", f"{first}", f"{first}:-1", f"{first}:nan", f"{first}:0", ","):
        with pytest.raises(UsageError):
            list(generate(model, _settings(mix=text)))


def test_impossible_edits_are_usage_errors(model: TrainedModel) -> None:
    nothing, small = np.zeros((SIZE, SIZE), bool), EditInput(ONE.sprites[:, :4, :4], ONE.labels)
    for events, words in (
        (redraw(model, _settings(), ONE, nothing), "keeps no pixel"),
        (redraw(model, _settings(), ONE, ~nothing), "keeps all pixels"),
        (redraw(model, _settings(), ONE, nothing[:4]), "mask has"),
        (redraw(model, _settings(), small), "but the model draws"),
        (tween(model, _settings(), ONE), "not 1"),
        (tween(model, _settings(count=edit.MAX_TWEENS + 1), TWO), "too many"),
        (tween(model, _settings(mix="class1:1"), TWO), "take their classes"),
        (draw_similar(model, _settings(), ONE), "two or more"),
    ):
        with pytest.raises(UsageError, match=words):
            list(events)


def test_missing_capability_is_a_usage_error(model: TrainedModel) -> None:
    class Plain(type(model.recipe)):  # type: ignore[misc]
        capabilities = frozenset[str]()

    plain = dataclasses.replace(model, recipe=Plain())
    for events in _all(plain):
        with pytest.raises(UsageError, match="can't"):
            list(events)


def _all(model: TrainedModel) -> Iterator[Events]:
    yield redraw(model, _settings(), ONE)
    yield redraw(model, _settings(), ONE, HALF)
    yield tween(model, _settings(), TWO)
    yield draw_similar(model, _settings(), TWO)
    yield generate(model, _settings(mix="class1:1"))


@pytest.mark.parametrize("mirror", ["left-right", "top-bottom", "both"])
def test_sprites_are_drawn_mirrored(model: TrainedModel, mirror: str) -> None:
    how = _settings(mirror=mirror)
    drawings = [generate(model, how), redraw(model, how.replace(strength=0.5), TWO), draw_similar(model, how, TWO)]
    for events in (*drawings, generate(model, how.replace(true_pixels=False))):
        sprites = _made(events).sprites
        for axis in {"left-right": (2,), "top-bottom": (1,), "both": (1, 2)}[mirror]:
            np.testing.assert_array_equal(sprites, np.flip(sprites, axis))


def test_seamless_drawing_leaves_the_network_unchanged(model: TrainedModel) -> None:
    plain = _made(generate(model, _settings())).sprites
    seamless = _made(generate(model, _settings(seamless="both"))).sprites
    assert not np.array_equal(seamless, plain)
    np.testing.assert_array_equal(_made(generate(model, _settings())).sprites, plain)


def _disc() -> NDArray[np.uint8]:
    y, x = np.mgrid[:SIZE, :SIZE] - SIZE // 2
    return np.where(x * x + y * y < 9, np.uint8(255), np.uint8(0))


@pytest.mark.parametrize("true_pixels", [True, False])
def test_sprites_are_drawn_into_a_silhouette(model: TrainedModel, true_pixels: bool) -> None:
    how, shape = _settings(true_pixels=true_pixels), _disc()
    for events in (generate(model, how, shape), redraw(model, how.replace(strength=0.5), TWO, silhouette=shape)):
        sprites = _made(events).sprites
        assert (sprites[..., 3] == shape).all() and not sprites[:, shape == 0].any()
        assert sprites[:, shape > 0, :3].any((1, 2)).all()
    kept = _made(redraw(model, how.replace(strength=1.0), ONE, HALF, shape)).sprites
    np.testing.assert_array_equal(kept[:, HALF], ONE.sprites.repeat(6, 0)[:, HALF])
    assert (kept[:, ~HALF, 3] == shape[~HALF]).all()


def test_invalid_silhouette_is_an_error(model: TrainedModel) -> None:
    for shape in (np.zeros((SIZE, SIZE), np.uint8), np.ones((4, SIZE), np.uint8)):
        with pytest.raises(UsageError, match="silhouette"):
            list(generate(model, _settings(), shape))
