"""The map of a run's sprites."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from studio.core.errors import UsageError
from studio.core.events import Progress
from studio.data.colour.pixel_art import to_pixel_art
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.devices.types import CodesDecoded, MapReady
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.quality import embedding_map
from studio.engine.quality.embedding_map import decode, make_map, marker_spacing, principal_plane, render_map
from studio.engine.steps.batches import to_device, to_input, to_rgba
from studio.engine.training.loop import train_new
from studio.recipes.autoencoder import Autoencoder
from studio.recipes.base import Recipe
from studio.recipes.capabilities import Decodes, Encodes
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from studio.recipes.regression import Regression
from tests.conftest import make_sprites, with_numbers
from tests.engine.tools import CPU, of_kind


def _model(path: Path, recipe: Recipe, sprites: Sprites, steps: int = 2) -> TrainedModel:
    config = recipe.small.replace(
        steps=steps, batch_size=8, precision="fp32", holdout=0.2, lr_warmup_steps=2, sample_every_s=1e3
    )
    list(train_new(path, with_numbers(sprites), recipe, config, CPU, Control()))
    return load_model(path, "last", CPU)


def _map(model: TrainedModel) -> MapReady:
    assert model.run is not None
    *progress, shown = make_map(model, model.run)
    assert isinstance(shown, MapReady) and of_kind(progress, Progress)
    return shown


def test_principal_plane_has_the_largest_singular_values() -> None:
    rng = np.random.default_rng(0)
    features = (rng.standard_normal((40, 7)) * [9, 1, 4, 1, 0.5, 1, 0] + rng.standard_normal(7)).astype(np.float32)
    positions, explained = principal_plane(features)
    centred = features.astype(np.float64) - features.mean(0)
    _, sizes, axes = np.linalg.svd(centred)
    assert explained == pytest.approx((sizes[:2] ** 2).sum() / (sizes**2).sum())
    places = centred @ axes[:2].T
    scale = np.ptp(places, 0).max()
    for axis in (0, 1):
        found = positions[:, axis] - positions[:, axis].mean()
        sign = np.sign(found @ places[:, axis])
        np.testing.assert_allclose(found, sign * places[:, axis] / scale, atol=1e-5)
    assert np.ptp(positions, 0).max() == pytest.approx(1) and positions.min() >= 0 and positions.max() <= 1
    order = rng.permutation(40)
    np.testing.assert_allclose(principal_plane(features[order])[0], positions[order], atol=1e-5)


def test_constant_features_have_a_map() -> None:
    for features in (np.ones((5, 3), np.float32), np.arange(5, dtype=np.float32)[:, None]):
        positions, explained = principal_plane(features)
        assert positions.shape == (5, 2) and np.isfinite(positions).all() and 0 <= explained <= 1
        assert np.isinf(marker_spacing(positions)).sum() == 1


def test_marker_spacing_avoids_overlaps() -> None:
    positions = np.random.default_rng(1).random((200, 2)).astype(np.float32)
    spacing = marker_spacing(positions)
    apart = np.abs(positions[:, None] - positions).max(2)
    before = 0
    for side in (0.5, 0.2, 0.07, 0.01):
        drawn = np.flatnonzero(spacing >= side)
        assert len(drawn) > before  # those from farther out stay
        before = len(drawn)
        assert (apart[np.ix_(drawn, drawn)] + np.eye(len(drawn)) >= side).all()
        assert (apart[:, drawn].min(1) < side).all()


@pytest.mark.parametrize("recipe", [Autoencoder(), Classifier(), Regression(), Generator()], ids=lambda each: each.name)
def test_every_recipe_has_a_map(recipe: Recipe, run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.quality.features._STEPS", 2)
    model = _model(run_path, recipe, make_sprites())
    shown = _map(model)
    assert shown.features.shape[0] == shown.positions.shape[0] == len(shown.sprites) == shown.total == 24
    assert shown.features.dtype == shown.positions.dtype == np.float32 and 0 < shown.explained <= 1
    assert shown.decodes == (recipe.name == "autoencoder") and shown.model == "trial, step 2"
    apart = np.linalg.norm(shown.features[:, None].astype(np.float64) - shown.features, axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (shown.neighbours[:, 0] == apart.argmin(1)).mean() > 0.9  # distances in float32 lose the last digits
    assert shown.odd[0] == shown.apart.argmax() and np.median(shown.apart) == pytest.approx(1)
    again = _map(model)
    assert np.array_equal(again.positions, shown.positions)


def test_map_separates_outliers_and_joins_duplicates(run_path: Path) -> None:
    sprites = make_sprites()
    rgba = sprites.rgba.copy()
    rgba[5] = [255, 0, 255, 255]
    rgba[9] = rgba[20]
    shown = _map(_model(run_path, Autoencoder(), dataclasses.replace(sprites, rgba=rgba), steps=15))
    assert shown.odd[0] == 5
    assert (shown.neighbours[9, 0], shown.neighbours[20, 0]) == (20, 9)


def test_map_limits_its_sprites(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model(run_path, Classifier(), make_sprites())
    monkeypatch.setattr(embedding_map, "MAX_MAPPED", 10)
    shown = _map(model)
    assert len(shown.sprites) == 10 and shown.total == 24 and len(set(shown.sprites.names)) == 10
    monkeypatch.setattr(embedding_map, "MIN_MAPPED", 25)
    with pytest.raises(UsageError, match="too few"):
        _map(model)


def test_decode_gives_pixel_art(run_path: Path) -> None:
    model = _model(run_path, Autoencoder(), make_sprites())
    codes = _map(model).features[[3, 8]].mean(0, keepdims=True)
    (made,) = decode(model, codes)
    assert isinstance(made, CodesDecoded) and made.sprites.shape == (1, 8, 8, 4)
    with torch.no_grad():
        assert isinstance(model.recipe, Decodes)
        drawn = to_rgba(model.recipe.decode(model.network, torch.from_numpy(codes))).numpy()
    assert np.array_equal(made.sprites, to_pixel_art(drawn, np.array([-1]), model.style))


def test_rendered_map_keeps_pixels(run_path: Path) -> None:
    model = _model(run_path, Classifier(), make_sprites())
    shown = _map(model)
    with torch.no_grad():
        x = to_input(to_device(shown.sprites.rgba, torch.device("cpu")))
        assert isinstance(model.recipe, Encodes)
        np.testing.assert_allclose(shown.features, model.recipe.encode(model.network, x), rtol=1e-3, atol=1e-5)
    picture, drawn = render_map(shown, 100)
    assert max(picture.shape[:2]) == 100 and 1 < drawn <= 24
    with_room = np.flatnonzero(shown.spacing * 92 >= 9)
    assert len(with_room) == drawn
    assert np.count_nonzero(picture[..., 3]) == np.count_nonzero(shown.sprites.rgba[with_room][..., 3])
