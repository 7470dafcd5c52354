"""Score the similarity between two sets of sprites, from features float64 [N, D].

No score is reliable by itself: copies of training sprites get the best scores. Compare with real sprites, and count
copies.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Features = NDArray[np.float64]
Matrix = TypeVar("Matrix", NDArray[np.float64], NDArray[np.float32], Tensor)

_ITERATIONS = 30
_NARROWEST = 1e-3  # lowest variance, as a share of the first estimate
_NEIGHBOURS = 5  # k for the nearest-neighbour radius in precision, recall and coverage


@dataclass(frozen=True)
class Estimate:
    """A score and its standard error."""

    value: float
    error: float


def kid(first: Features, second: Features) -> Estimate:
    """Return the kernel distance (KID, Binkowski et al. 2018): 0 on average for sets from one distribution.

    Estimates the squared maximum mean discrepancy without bias, with the kernel (x y / D + 1)^3 over all pairs. The
    standard error comes from a jackknife that leaves out each sprite once. A set needs at least three sprites.
    """
    n, m = len(first), len(second)
    within_first, within_second = _kernel(first, first), _kernel(second, second)
    np.fill_diagonal(within_first, 0)  # comparing a sprite with itself would bias the estimate
    np.fill_diagonal(within_second, 0)
    across = _kernel(first, second)
    a, b, c = within_first.sum(), within_second.sum(), across.sum()
    mean_a, mean_b = a / (n * (n - 1)), b / (m * (m - 1))
    value = mean_a + mean_b - 2 * c / (n * m)  # MMD^2
    a_without = (a - 2 * within_first.sum(1)) / ((n - 1) * (n - 2))  # leaving out each sprite of `first`: [n]
    b_without = (b - 2 * within_second.sum(1)) / ((m - 1) * (m - 2))  # [m]
    without_first = a_without + mean_b - 2 * (c - across.sum(1)) / ((n - 1) * m)
    without_second = mean_a + b_without - 2 * (c - across.sum(0)) / (n * (m - 1))
    variance = (n - 1) * without_first.var() + (m - 1) * without_second.var()
    return Estimate(float(value), float(np.sqrt(variance)))


def frechet_distance(first: Features, second: Features) -> float:
    """Fit normal distributions to both sets; return their Fréchet distance, as in FID (Heusel et al. 2017).

    |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)). Biased upwards for few sprites: compare only sets of equal size.
    """
    shift = first.mean(0) - second.mean(0)
    fewer, more = sorted((first, second), key=len)
    cov1, cov2 = np.cov(fewer, rowvar=False), np.cov(more, rowvar=False)
    if len(fewer) < len(cov1):  # the centred features, [N, D], make a far smaller root of C1 than [D, D]
        root = (fewer - fewer.mean(0)) / np.sqrt(len(fewer) - 1)
    else:
        values, vectors = np.linalg.eigh(cov1)  # symmetric, so eigh instead of a general matrix root
        root = (vectors * np.sqrt(values.clip(min=0))).T  # [D, D]: root.T @ root = C1
    shared = np.sqrt(np.linalg.eigvalsh(root @ cov2 @ root.T).clip(min=0)).sum()  # tr (C1 C2)^(1/2)
    return float(shift @ shift + np.trace(cov1) + np.trace(cov2) - 2 * shared)


@dataclass(frozen=True)
class Overlap:
    """The overlap between new and real sprites, as shares from 0 to 1."""

    precision: float  # new sprites that look real
    recall: float  # real sprites that the model can draw; outliers among new sprites raise the recall
    coverage: float  # real sprites that the model can draw; robust against outliers


def overlap(real: Features, new: Features) -> Overlap:
    """Return precision and recall (Kynkäänniemi et al. 2019) and coverage (Naeem et al. 2020).

    A sprite's radius reaches to the fifth neighbour in its set. precision: new sprites within a real sprite's radius.
    recall: real sprites within a new sprite's radius. coverage: real sprites with a new sprite in their radius.
    """
    across = _clipped_squares(real, new)  # [N real, M new]
    radius_real, radius_new = _squared_radius(real)[:, None], _squared_radius(new)[None, :]
    return Overlap(
        precision=float((across <= radius_real).any(0).mean()),
        recall=float((across <= radius_new).any(1).mean()),
        coverage=float((across <= radius_real).any(1).mean()),
    )


def probability_below(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    """Return the probability that a value from `first` [N] is below a value from `second` [M].

    Ties count half (Mann & Whitney 1947): equal distributions give 0.5. Distances to the nearest training sprite test
    for copying (Meehan et al. 2020): memorized sprites come nearer to training sprites than unseen real sprites.
    """
    values = np.sort(second)
    above = len(values) - np.searchsorted(values, first, side="right")
    equal = np.searchsorted(values, first, side="right") - np.searchsorted(values, first, side="left")
    return float((above + equal / 2).mean() / len(values))


def likelihood_divergence(new: Features, training: Features, heldout: Features) -> float:
    """Return the validation sprites' negative log likelihood given new sprites, in nats per feature; lower is better.

    A normal distribution around each new sprite forms a mixture (after Jiralerspong et al. 2023). The mixture's widths
    maximize the likelihood of the training sprites. Unrealistic sprites raise the score; copies raise the score, too,
    because their width shrinks towards 0. Compare only sets of equal size.
    """
    to_training, to_heldout = _clipped_squares(training, new), _clipped_squares(heldout, new)
    variances = np.full(len(new), to_training.min(1).mean() / new.shape[1])
    narrowest = _NARROWEST * variances
    for _ in range(_ITERATIONS):  # expectation maximization with fixed means and equal weights
        logs = _log_densities(to_training, variances, new.shape[1])  # [N, M]
        shares = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))  # E step: responsibilities
        spread = (shares * to_training).sum(0) / (new.shape[1] * shares.sum(0).clip(min=1e-12))
        variances = spread.clip(min=narrowest)  # M step
    likelihoods = np.logaddexp.reduce(_log_densities(to_heldout, variances, new.shape[1]), axis=1) - np.log(len(new))
    return float(-likelihoods.mean() / new.shape[1])


def squared_distances(first: Matrix, second: Matrix) -> Matrix:
    """Return the squared distances [N, M] between all pairs of rows, [N, D] and [M, D].

    A squared distance near 0 loses its last digits and may be slightly negative.
    """
    # |a - b|^2 = |a|^2 + |b|^2 - 2 a b, so one matrix product gives all distances.
    squares: Matrix = (first**2).sum(1)[:, None] + (second**2).sum(1)[None, :] - 2 * first @ second.T
    return squares


def _log_densities(squares: Features, variances: NDArray[np.float64], width: int) -> Features:
    """Return log densities [N, M] under normal distributions with variances [M], from squared distances [N, M]."""
    return np.asarray(-squares / (2 * variances) - width / 2 * np.log(2 * np.pi * variances))


def _kernel(first: Features, second: Features) -> Features:
    """Return the cubic polynomial kernel [N, M] between all pairs of rows."""
    return np.asarray((first @ second.T / first.shape[1] + 1) ** 3)


def _clipped_squares(first: Features, second: Features) -> Features:
    """Return the squared distances [N, M] between all pairs of rows, at least 0."""
    return squared_distances(first, second).clip(min=0)


def _squared_radius(features: Features) -> NDArray[np.float64]:
    """Return squared distances from a row to the fifth neighbour, or the farthest in smaller sets: float64 [N]."""
    nearest = min(_NEIGHBOURS, len(features) - 1)
    return np.asarray(np.partition(_clipped_squares(features, features), nearest, axis=1)[:, nearest])
