"""The split of a run's sprites: for training, for validation as it trains, and for its report (the test set)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from studio.core.config import TrainingConfig
from studio.data.sprites import Sprites
from studio.engine.runs.folder import RunRecord, newer_version_error

Indices = NDArray[np.int64]

BY_GROUP: Literal["group"] = "group"  # as `split_by_group` does it; kept in run.json
MIN_REPORT_SPRITES = 400  # held-out sprites: of fewer, a third would be too few to judge by


@dataclass(frozen=True, eq=False)
class Split:
    """Indices into a run's sprites, int64, sorted.

    training: learnt from. validation: held out; 'best' is chosen by them. report: held out; `evaluate` judges by them.
    The last two have nothing in common if `is_report_apart`, else they are the same.
    """

    training: Indices
    validation: Indices
    report: Indices

    @property
    def is_report_apart(self) -> bool:
        return self.report is not self.validation


def split_sprites(record: RunRecord, config: TrainingConfig, sprites: Sprites) -> Split:
    """How a run splits its sprites, by the rule that its record names. Raises RunError."""
    if record.split != BY_GROUP:
        raise newer_version_error(record.name)
    return split_by_group(sprites, config.holdout, config.seed)


def split_by_group(sprites: Sprites, share: float, seed: int) -> Split:
    """Hold out about `share` of the groups of each class: see `heldout_groups`.

    A test set that the data bring along is for the report; where nothing else is held out, for validation too. Without
    one, where 400 sprites or more are held out, every third of their groups is for the report alone, unless these are
    too few or too large for that.
    """
    is_test = sprites.is_test & ~sprites.is_test.all()
    test, others = np.flatnonzero(is_test), np.flatnonzero(~is_test)
    heldout, group = heldout_groups(sprites.groups[others], sprites.labels[others], share, seed)
    is_heldout = np.isin(group, heldout)
    training, validation = others[~is_heldout], others[is_heldout]
    if len(test):
        return Split(training, validation if len(validation) else test, test)
    is_reported = np.isin(group, heldout[1::3])
    # A few large groups can't be parted into a third and the rest.
    if len(validation) >= MIN_REPORT_SPRITES and len(validation) / 5 <= is_reported.sum() <= len(validation) / 2:
        return Split(training, np.flatnonzero(is_heldout & ~is_reported), np.flatnonzero(is_reported))
    return Split(training, validation, validation)


def heldout_groups(
    groups: NDArray[np.int64], labels: NDArray[np.int64], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """About `share` of the groups of each class, small groups and large ones alike, and the group of each sprite.

    groups, labels: of each sprite, int64 [N]. Groups are numbered from 0 on. One is of the class of its first sprite,
    and is never parted. No class is held out entirely; of a very small set nothing is.
    """
    _, first, group, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(first)), sizes, labels[first]))
    wanted = int(len(groups) * share)
    count = max(min(wanted, 1), round(wanted * len(first) / max(1, len(groups))))
    ranks = ((np.arange(count) + rng.random()) * len(first) / max(1, count)).astype(np.int64)
    heldout = order[ranks]  # by class and size, so that every third is a fair choice as well
    for label in np.setdiff1d(labels, labels[~np.isin(group, heldout)]):
        heldout = heldout[~np.isin(heldout, group[labels == label])]
    return heldout, group.astype(np.int64)


def split_in_halves(groups: Indices) -> tuple[Indices, Indices]:
    """Two halves of sprites of these groups, int64 [N], as places: real sprites against other real ones.

    Every second group is in the second one, so that what belongs together is not on both sides; every second sprite
    where the groups are too few or too large for that.
    """
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    is_second = sizes.argsort(kind="stable").argsort()[group] % 2 == 1
    if not len(groups) / 4 <= is_second.sum() <= 3 * len(groups) / 4:
        is_second = np.arange(len(groups)) % 2 == 1
    return np.flatnonzero(~is_second), np.flatnonzero(is_second)


def shuffle_by_group(groups: Indices, seed: int) -> Indices:
    """The places of sprites of these groups, int64 [N], in a random order in which those of a group stay together."""
    _, group = np.unique(groups, return_inverse=True)
    return np.argsort(np.random.default_rng(seed).permutation(len(groups))[group], kind="stable")
