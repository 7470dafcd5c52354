"""How near two sets of sprites are to each other, from features float64 [N, D]; a set is a sample of a distribution.

No single figure can be trusted: a model that hands its training sprites back has the best distances of all. Read them
beside the floor (real sprites against real ones) and the share of copies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float64]

_ITERATIONS = 30
_NARROWEST = 1e-3  # of the first guess of a variance
_NEIGHBOURS = 5  # how many reach decides what is near, for precision, recall and coverage


@dataclass(frozen=True)
class Estimate:
    """A figure and its standard error."""

    value: float
    error: float


def kid(first: Features, second: Features) -> Estimate:
    """Kernel distance (KID, Binkowski et al. 2018): 0 on average when both sets come from one distribution.

    The unbiased estimate of the squared maximum mean discrepancy under the kernel (x y / D + 1)^3, over all pairs; its
    error is the jackknife's (each sprite left out once). At least three sprites in each set.
    """
    n, m = len(first), len(second)
    within_first, within_second = _kernel(first, first), _kernel(second, second)
    np.fill_diagonal(within_first, 0)
    np.fill_diagonal(within_second, 0)
    across = _kernel(first, second)
    a, b, c = within_first.sum(), within_second.sum(), across.sum()
    value = a / (n * (n - 1)) + b / (m * (m - 1)) - 2 * c / (n * m)
    without_first = (
        (a - 2 * within_first.sum(1)) / ((n - 1) * (n - 2))
        + b / (m * (m - 1))
        - 2 * (c - across.sum(1)) / ((n - 1) * m)
    )
    without_second = (
        a / (n * (n - 1))
        + (b - 2 * within_second.sum(1)) / ((m - 1) * (m - 2))
        - 2 * (c - across.sum(0)) / (n * (m - 1))
    )
    variance = (n - 1) * without_first.var() + (m - 1) * without_second.var()
    return Estimate(float(value), float(np.sqrt(variance)))


def frechet_distance(first: Features, second: Features) -> float:
    """Distance of the normal distributions fitted to each set (FID, Heusel et al. 2017, there in other features).

    |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)). Too large for few sprites: compare figures of equal numbers only.
    """
    shift = first.mean(0) - second.mean(0)
    cov1, cov2 = np.cov(first, rowvar=False), np.cov(second, rowvar=False)
    values, vectors = np.linalg.eigh(cov1)
    root = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T
    shared = np.sqrt(np.linalg.eigvalsh(root @ cov2 @ root).clip(min=0)).sum()
    return float(shift @ shift + np.trace(cov1) + np.trace(cov2) - 2 * shared)


@dataclass(frozen=True)
class Overlap:
    """Shares from 0 to 1. precision: of the new sprites, how many look real. recall and coverage: of the real, how
    many the model could draw; coverage is the one that outliers among the new sprites do not inflate.
    """

    precision: float
    recall: float
    coverage: float


def overlap(real: Features, new: Features) -> Overlap:
    """Precision and recall (Kynkäänniemi et al. 2019), coverage (Naeem et al. 2020).

    A sprite's reach is the distance to its fifth neighbour in its own set. A new sprite within reach of a real one
    looks real; a real sprite within reach of a new one could be drawn; one that has a new sprite in reach is covered.
    """
    across = _distances(real, new)
    reach_real, reach_new = _reach(real)[:, None], _reach(new)[None, :]
    return Overlap(
        precision=float((across <= reach_real).any(0).mean()),
        recall=float((across <= reach_new).any(1).mean()),
        coverage=float((across <= reach_real).any(1).mean()),
    )


def probability_below(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    """How often a value of `first` [N] is below one of `second` [M], equal ones by half: 0.5 if they are distributed
    alike (the statistic of Mann & Whitney 1947).

    Of distances to the nearest training sprite, it is the three-sample test of copying (Meehan et al. 2020): new
    sprites that are nearer to what was learnt than unseen real ones are were learnt by heart.
    """
    values = np.sort(second)
    above = len(values) - np.searchsorted(values, first, side="right")
    equal = np.searchsorted(values, first, side="right") - np.searchsorted(values, first, side="left")
    return float((above + equal / 2).mean() / len(values))


def likelihood_divergence(new: Features, training: Features, heldout: Features) -> float:
    """How badly new sprites foretell unseen ones, in nats a feature (after Jiralerspong et al. 2023).

    A normal distribution around each new sprite, its width that with which the mixture makes the training sprites most
    likely, gives the held-out sprites a likelihood: the figure is its negative logarithm. Sprites that are unlike real
    ones leave it low, and so do copies, around which the width shrinks to nothing. Compare equal numbers only.
    """
    to_training, to_heldout = _distances(training, new), _distances(heldout, new)
    variances = np.full(len(new), to_training.min(1).mean() / new.shape[1])
    narrowest = _NARROWEST * variances
    for _ in range(_ITERATIONS):  # expectation maximisation: the means are given, and all weigh the same
        logs = _log_densities(to_training, variances, new.shape[1])
        shares = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
        spread = (shares * to_training).sum(0) / (new.shape[1] * shares.sum(0).clip(min=1e-12))
        variances = spread.clip(min=narrowest)
    likelihoods = np.logaddexp.reduce(_log_densities(to_heldout, variances, new.shape[1]), axis=1) - np.log(len(new))
    return float(-likelihoods.mean() / new.shape[1])


def _log_densities(squares: Features, variances: NDArray[np.float64], width: int) -> Features:
    """Of normal distributions [M] at points [N], by their squared distances [N, M]."""
    return np.asarray(-squares / (2 * variances) - width / 2 * np.log(2 * np.pi * variances))


def _kernel(first: Features, second: Features) -> Features:
    return np.asarray((first @ second.T / first.shape[1] + 1) ** 3)


def _distances(first: Features, second: Features) -> Features:
    """Squared distances [N, M]."""
    squares = (first**2).sum(1)[:, None] + (second**2).sum(1)[None, :] - 2 * first @ second.T
    return np.asarray(squares.clip(min=0))


def _reach(features: Features) -> NDArray[np.float64]:
    """Squared distance of each to its fifth neighbour, itself not counted; of a smaller set, to the farthest."""
    nearest = min(_NEIGHBOURS, len(features) - 1)
    return np.asarray(np.partition(_distances(features, features), nearest, axis=1)[:, nearest])
