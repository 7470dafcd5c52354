"""Outliers and wrong classes, found by their nearest neighbours."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pytest

from studio.core.config import TrainingConfig
from studio.core.events import Event, Progress
from studio.core.generators import run_to_end
from studio.data.doctor.findings import SpritesChecked
from studio.data.doctor.neighbours import Analysis
from studio.data.sprites import Sprites
from studio.engine.quality import outliers
from studio.engine.quality.outliers import find_outliers, nearest_neighbours
from tests.engine.tools import CPU


class PlacesAsFeatures:
    """Says of each sprite where it was put: see `put`."""

    def of(self, rgba: np.ndarray) -> np.ndarray:
        return rgba[:, 0, 0, :2].astype(np.float64) / 16


def put(places: list[tuple[int, int]], labels: list[int]) -> Sprites:
    rgba = np.zeros((len(places), 8, 8, 4), np.uint8)
    rgba[:, 0, 0, :2], rgba[:, 0, 0, 3] = places, 255
    names = tuple(f"{number}.png" for number in range(len(places)))
    return Sprites(rgba, np.array(labels, np.int64), ("warm", "cold"), names, "places")


def found_among(sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    def learn_features(*_: object) -> Generator[Event, None, PlacesAsFeatures]:
        yield Progress(1, 1, "steps")
        return PlacesAsFeatures()

    monkeypatch.setattr(outliers, "learn_features", learn_features)
    *_, examined = find_outliers(Analysis(sprites), TrainingConfig(), CPU)
    assert isinstance(examined, SpritesChecked) and examined.sprites is sprites
    return {item.name: item.reason if item.group == "wrong class" else item.group for item in examined.items}


def test_nearest_neighbours_equal_brute_force() -> None:
    places = np.random.default_rng(0).normal(size=(700, 5)).astype(np.float32)
    near, far = run_to_end(nearest_neighbours(places))
    apart = np.linalg.norm(places[:, None].astype(np.float64) - places, axis=2)
    np.fill_diagonal(apart, np.inf)
    nearest = np.sort(apart, 1)[:, :10]
    assert near.shape == (700, 10) and all(len(set(row)) == 10 for row in near.tolist())
    assert np.allclose(np.take_along_axis(apart, near, 1), nearest, atol=1e-3)  # of two that are as near, either
    assert np.allclose(far, nearest, atol=1e-3)


def test_few_rows_have_few_neighbours() -> None:
    near, far = run_to_end(nearest_neighbours(np.eye(3, dtype=np.float32)))
    assert near.shape == far.shape == (3, 2)


def test_finds_a_wrong_class_and_an_outlier(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    warm = [tuple(row) for row in rng.integers(10, 40, (30, 2)).tolist()]
    cold = [tuple(row) for row in rng.integers(200, 230, (30, 2)).tolist()]
    sprites = put([*warm, *cold, (25, 25), (25, 250)], [0] * 30 + [1] * 30 + [1, 0])
    assert found_among(sprites, monkeypatch) == {"60.png": "cold, looks like warm", "61.png": "outlier"}


def test_very_few_sprites_have_no_outliers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_among(put([(0, 0), (0, 9), (250, 250)], [0, 0, 1]), monkeypatch) == {}


def test_excluded_sprites_leave_the_features_that_are_being_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = list[Sprites]()

    def learn_features(training: Sprites, *_: object) -> Generator[Event, None, PlacesAsFeatures]:
        learned.append(training)
        yield Progress(1, 2, "steps")
        yield Progress(2, 2, "steps")
        return PlacesAsFeatures()

    monkeypatch.setattr(outliers, "learn_features", learn_features)
    places = [tuple(row) for row in np.random.default_rng(0).integers(10, 40, (60, 2)).tolist()]
    sprites = put([*places, (25, 250)], [0] * 61)
    analysis = Analysis(sprites)
    fewer, other = sprites.take(np.arange(3, 61)), put([(9, 9)] * 61, [0] * 61)
    assert analysis.accepts(fewer) and not analysis.accepts(other)
    checked, asked = [], list[str]()
    for event in find_outliers(analysis, TrainingConfig(), CPU):
        if isinstance(event, Progress):
            asked.append(event.what)
            analysis.compared = fewer if event.what == "steps" else analysis.compared
        elif isinstance(event, SpritesChecked):
            checked.append(event)
    assert [each.sprites for each in checked] == [fewer]
    assert [item.name for item in checked[0].items] == ["60.png"]
    assert len(learned) == 2 and asked[-1] == "steps for trainings"  # trainings on fewer sprites measure by their own
    undone = find_outliers(analysis, TrainingConfig(), CPU)
    analysis.compared = sprites
    assert [event.sprites for event in undone if isinstance(event, SpritesChecked)] == [sprites]
