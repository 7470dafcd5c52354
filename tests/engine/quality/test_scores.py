"""Each score against a closed form, or against its definition written as loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from studio.engine.quality.scores import (
    frechet_distance,
    kid,
    likelihood_divergence,
    overlap,
    probability_below,
    squared_distances,
)


def _normal(count: int, width: int = 6, shift: float = 0.0, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1, (count, width))


def _kernel(x: np.ndarray, y: np.ndarray) -> float:
    return float((sum(a * b for a, b in zip(x, y, strict=True)) / len(x) + 1) ** 3)


def test_kid_equals_its_definition() -> None:
    first, second = _normal(7), _normal(5, shift=0.5, seed=1)
    within_first = np.mean([_kernel(x, y) for i, x in enumerate(first) for j, y in enumerate(first) if i != j])
    within_second = np.mean([_kernel(x, y) for i, x in enumerate(second) for j, y in enumerate(second) if i != j])
    across = np.mean([_kernel(x, y) for x in first for y in second])
    assert kid(first, second).value == pytest.approx(within_first + within_second - 2 * across)


def test_kid_error_equals_the_jackknife() -> None:
    first, second = _normal(7), _normal(5, shift=0.5, seed=1)
    left_out_first = [kid(np.delete(first, i, 0), second).value for i in range(7)]
    left_out_second = [kid(first, np.delete(second, i, 0)).value for i in range(5)]
    variance = 6 * np.var(left_out_first) + 4 * np.var(left_out_second)
    assert kid(first, second).error == pytest.approx(np.sqrt(variance))


def test_kid_is_unbiased_and_its_error_fits() -> None:
    found = [kid(_normal(60, seed=2 * i), _normal(40, seed=2 * i + 1)) for i in range(200)]
    values, errors = np.array([one.value for one in found]), np.array([one.error for one in found])
    assert abs(values.mean()) < 3 * values.std() / np.sqrt(200)
    assert 0.7 < np.median(errors) / values.std() < 1.4
    apart = kid(_normal(60), _normal(40, shift=1.0, seed=1))
    assert apart.value > 4 * apart.error


def test_frechet_distance_has_a_closed_form_for_axes() -> None:
    corners = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])  # spread 4/3 in each axis, no correlation
    first, second = corners * [1.0, 3.0], corners * [2.0, 0.5] + [5.0, -1.0]
    spread = 4 / 3
    expected = 26 + spread * ((1 - 2) ** 2 + (3 - 0.5) ** 2)
    assert frechet_distance(first, second) == pytest.approx(expected)
    assert frechet_distance(first, first) == pytest.approx(0, abs=1e-9)
    flat = [np.pad(corners, ((0, 0), (0, 4))) for corners in (first, second)]  # fewer sprites than features
    assert frechet_distance(*flat) == pytest.approx(expected)


def test_frechet_distance_does_not_depend_on_the_axes() -> None:
    first, second = _normal(50) * [1, 2, 3, 1, 1, 1], _normal(50, seed=1) * [2, 1, 1, 3, 1, 1]
    turn, _ = np.linalg.qr(_normal(6, seed=2))
    assert frechet_distance(first @ turn, second @ turn) == pytest.approx(frechet_distance(first, second))
    assert frechet_distance(second, first) == pytest.approx(frechet_distance(first, second))


def test_overlap_on_a_line() -> None:
    real = np.arange(10.0)[:, None]  # each reaches its fifth neighbour: 3 in the middle, 5 at the ends
    new = np.array([[4.6], [13.0], [100.0], [101.0], [102.0], [103.0], [104.0]])
    reach = np.sort(np.abs(real - real.T), axis=1)[:, 5]
    near_real = np.abs(real - new.T) <= reach[:, None]
    found = overlap(real, new)
    assert found.precision == pytest.approx(2 / 7)  # 13 is 4 from the last, which reaches 5
    assert found.precision == near_real.any(0).mean() and found.coverage == near_real.any(1).mean()
    assert found.recall == 1.0  # the far ones reach over all: why coverage is the figure to trust


def test_overlap_is_1_with_itself_and_0_far_away() -> None:
    same, far = overlap(_normal(30), _normal(30)), overlap(_normal(30), _normal(30, shift=100))
    assert (same.precision, same.recall, same.coverage) == (1, 1, 1)
    assert (far.precision, far.recall, far.coverage) == (0, 0, 0)


def test_probability_below_counts_ties_as_half() -> None:
    first, second = np.random.default_rng(0).integers(0, 6, (2, 40)).astype(float)
    pairs = [1.0 if a < b else 0.5 if a == b else 0.0 for a in first for b in second[:25]]
    assert probability_below(first, second[:25]) == pytest.approx(np.mean(pairs))
    assert probability_below(first, first) == 0.5


def test_likelihood_of_one_point_has_a_closed_form() -> None:
    training, heldout = _normal(400), _normal(300, seed=1)
    variance = (training**2).sum(1).mean() / 6  # the most likely one around 0
    expected = ((heldout**2).sum(1).mean() / variance + 6 * np.log(2 * np.pi * variance)) / 2 / 6
    assert likelihood_divergence(np.zeros((1, 6)), training, heldout) == pytest.approx(expected)


def test_likelihood_divergence_is_least_for_similar_sprites() -> None:
    """What is near, far, all alike, or copied: copies are what no other distance sees."""
    training, heldout, same = _normal(300), _normal(300, seed=1), _normal(300, seed=2)
    least = likelihood_divergence(same, training, heldout)
    for name, other in {
        "far": _normal(300, shift=1.0, seed=2),
        "alike": np.tile(same[:5], (60, 1)),
        "copies": training,
        "half copies": np.concatenate([training[:150], same[:150]]),
    }.items():
        assert likelihood_divergence(other, training, heldout) > least + 0.02, name


def test_squared_distances_of_arrays_and_tensors() -> None:
    first, second = np.array([[0, 0], [1, 2]], np.float32), np.array([[3, 4], [1, 2], [0, 0]], np.float32)
    found = squared_distances(first, second)
    assert found.dtype == np.float32 and found.tolist() == [[25, 5, 0], [8, 0, 5]]
    assert squared_distances(torch.from_numpy(first), torch.from_numpy(second)).tolist() == found.tolist()
