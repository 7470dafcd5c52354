from __future__ import annotations

import dataclasses
from unittest.mock import patch

import numpy as np
import pytest
import torch

from studio.core import paths
from studio.core.generators import run_to_end
from studio.data.sprites import Sprites
from studio.engine.quality import features as module
from studio.engine.quality.features import TrainedFeatures, corrupt, fixed_features, learn_features
from studio.engine.quality.scores import frechet_distance, kid
from tests.conftest import make_sprites


def learnt(sprites: Sprites) -> tuple[TrainedFeatures, int]:
    """The features for these sprites, and how many steps it took to learn them."""
    with patch.object(module, "corrupt", wraps=corrupt) as looks:
        found = run_to_end(learn_features(sprites, torch.device("cpu"), "fp32"))
    return found, looks.call_count


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 8)
    monkeypatch.setattr(module, "_STEPS", 6)
    monkeypatch.setattr(module, "_WARM_UP", 2)


def test_features_separate_classes_and_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STEPS", 80)
    training, others = make_sprites(40), make_sprites(40, seed=1)
    found, _ = learnt(training)
    assert (found.classes_of(others.rgba) == others.labels).mean() > 0.9
    values = found.of(training.rgba)
    assert values.shape == (80, 128) and np.allclose((values**2).sum(1), 128)
    mush = others.rgba.astype(np.int64)
    noise = np.random.default_rng(0).integers(-60, 61, mush[..., :3].shape)
    mush[..., :3] = (mush[..., :3] + noise * (mush[..., 3:] > 0)).clip(0, 255)
    clean, spoiled = (frechet_distance(values, found.of(each)) for each in (others.rgba, mush.astype(np.uint8)))
    assert spoiled > 2 * clean


@pytest.mark.usefixtures("few_steps")
def test_features_are_cached_per_training_set(sprites: Sprites) -> None:
    first, steps = learnt(sprites)
    assert steps == 6
    again, steps = learnt(sprites)
    assert steps == 0
    np.testing.assert_allclose(again.of(sprites.rgba), first.of(sprites.rgba), rtol=1e-4, atol=1e-4)
    other = dataclasses.replace(sprites, labels=1 - sprites.labels)
    assert learnt(other)[1] == 6
    (kept, _) = sorted(paths.features().iterdir(), key=lambda path: path.stat().st_mtime)
    kept.write_bytes(kept.read_bytes()[:1000])
    anew, steps = learnt(sprites)
    assert steps == 6 and np.array_equal(anew.of(sprites.rgba), first.of(sprites.rgba))


@pytest.mark.usefixtures("few_steps")
def test_features_are_trained_without_a_cache(sprites: Sprites) -> None:
    paths.features().parent.mkdir(parents=True, exist_ok=True)
    paths.features().write_bytes(b"in the way")
    found, steps = learnt(sprites)
    assert steps == 6 and np.isfinite(found.of(sprites.rgba)).all()


@pytest.mark.usefixtures("few_steps")
def test_features_of_a_single_class() -> None:
    alone = make_sprites(24, classes=1)
    found, _ = learnt(alone)
    assert not found.knows_classes
    assert np.isfinite(found.of(alone.rgba)).all()


def test_large_sprites_are_folded() -> None:
    network = module.PretrainingNetwork(100, 3)
    assert network(torch.zeros(2, 4, 100, 100)).shape == (2, 128)


@pytest.mark.parametrize("size", [16, 40, 70])
def test_fixed_features_detect_noise_at_any_size(size: int) -> None:
    found, sprites = fixed_features(torch.device("cpu")), make_sprites(30, size=size)
    first, second = found.of(sprites.rgba[::2]), found.of(sprites.rgba[1::2])
    assert first.shape == (30, 128) and np.allclose((first**2).sum(1), 128)
    noise = np.random.default_rng(0).integers(-120, 121, (30, size, size, 3)) * (sprites.rgba[1::2, ..., 3:] > 0)
    mush = sprites.rgba[1::2].astype(np.int64)
    mush[..., :3] = (mush[..., :3] + noise).clip(0, 255)
    clean, spoiled = kid(first, second), kid(first, found.of(mush.astype(np.uint8)))
    assert spoiled.value > clean.value + 3 * clean.error


def test_corrupt_keeps_a_quarter_and_the_range() -> None:
    rng = torch.Generator().manual_seed(0)
    alpha = (torch.rand(16, 1, 10, 10, generator=rng) < 0.5).float()
    x = torch.cat([torch.rand(16, 3, 10, 10, generator=rng) * alpha, alpha], 1) * 2 - 1
    found, kind = corrupt(x, rng)
    assert torch.bincount(kind).tolist() == [4, 4, 4, 4]
    changed = (found - x).abs().amax((1, 2, 3))
    assert bool((changed[kind == 0] < 1e-6).all()) and bool((changed[kind > 0] > 0.05).all())
    assert float(found.min()) >= -1 and bool((found[:, :3] <= found[:, 3:] + 1e-6).all())  # still premultiplied
    noisy = (kind == 1) | (kind == 2)
    assert torch.equal(found[noisy, 3], x[noisy, 3])
