"""Split a run's sprites into training set, validation set and test set."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Indices
from studio.core.config import TrainingConfig
from studio.data.sprites import Sprites
from studio.engine.runs.folder import RunRecord, newer_version_error

BY_GROUP: Literal["group"] = "group"  # rule of `split_by_group`, stored in run.json
MIN_REPORT_SPRITES = 400  # held-out sprites for a test set; a third of fewer sprites would be too small


@dataclass(frozen=True, eq=False)
class Split:
    """A run's training set, validation set and test set, as sorted sprite indices."""

    training: Indices
    validation: Indices  # measured during training; selects the best checkpoint
    report: Indices  # the test set for `studio evaluate`; the array `validation` if the run has no test set

    @property
    def is_report_apart(self) -> bool:
        """Whether the run has a separate test set, disjoint from the validation set."""
        return self.report is not self.validation


def split_sprites(record: RunRecord, config: TrainingConfig, sprites: Sprites) -> Split:
    """Split a run's sprites by the rule in the record. Raises RunError for a newer version's rule."""
    if record.split != BY_GROUP:
        raise newer_version_error(record.name)
    return split_by_group(sprites, config.holdout, config.seed)


def split_by_group(sprites: Sprites, share: float, seed: int) -> Split:
    """Split sprites into training, validation and test set; groups of similar sprites stay together.

    Holds out about `share` of the groups per class. Given test sprites stay the test set, and also validate if no other
    sprite is held out. Without test sprites, every third held-out group becomes the test set if at least 400 sprites
    are held out.
    """
    is_test = sprites.is_test & ~sprites.is_test.all()  # bool [N]; if all are test sprites, split them normally
    test, others = np.flatnonzero(is_test), np.flatnonzero(~is_test)
    heldout, group = heldout_groups(sprites.groups[others], sprites.labels[others], share, seed)
    is_heldout = np.isin(group, heldout)
    training, validation = others[~is_heldout], others[is_heldout]
    if len(test):
        return Split(training, validation if len(validation) else test, test)
    is_reported = np.isin(group, heldout[1::3])
    # With a few large groups, a third of the groups may hold far more or fewer than a third of the sprites.
    if len(validation) >= MIN_REPORT_SPRITES and len(validation) / 5 <= is_reported.sum() <= len(validation) / 2:
        return Split(training, np.flatnonzero(is_heldout & ~is_reported), np.flatnonzero(is_reported))
    return Split(training, validation, validation)


def heldout_groups(
    groups: NDArray[np.int64], labels: NDArray[np.int64], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Choose about `share` of the groups per class, small and large groups alike, as the validation set.

    groups, labels: int64 [N], group and class by sprite. Returns the chosen groups, and the group by sprite, renumbered
    from 0. The first sprite decides a group's class. Every class keeps training sprites; a very small set holds out
    nothing.
    """
    # G groups. first: [G], index of the first sprite; group: [N]; sizes: [G].
    _, first, group, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(first)), sizes, labels[first]))  # by class, then size, then at random
    wanted = int(len(groups) * share)
    count = max(min(wanted, 1), round(wanted * len(first) / max(1, len(groups))))
    # Evenly spaced positions with a random offset: a stratified sample over classes and sizes.
    ranks = ((np.arange(count) + rng.random()) * len(first) / max(1, count)).astype(np.int64)
    heldout = order[ranks]  # ordered by class and size: every third group makes a fair sample too
    for label in np.setdiff1d(labels, labels[~np.isin(group, heldout)]):  # classes without a training sprite
        heldout = heldout[~np.isin(heldout, group[labels == label])]
    return heldout, group.astype(np.int64)


def split_in_halves(groups: Indices) -> tuple[Indices, Indices]:
    """Return the indices of two halves of sprites, to compare real sprites with real sprites. groups: int64 [N].

    The halves share no group of similar sprites, unless groups are too few or too large.
    """
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    is_second = sizes.argsort(kind="stable").argsort()[group] % 2 == 1  # [N]; every second group by size
    if not len(groups) / 4 <= is_second.sum() <= 3 * len(groups) / 4:
        is_second = np.arange(len(groups)) % 2 == 1
    return np.flatnonzero(~is_second), np.flatnonzero(is_second)


def shuffle_by_group(groups: Indices, seed: int) -> Indices:
    """Return sprite indices in random order; a group's sprites follow each other. groups: int64 [N], by sprite."""
    _, group = np.unique(groups, return_inverse=True)
    return np.argsort(np.random.default_rng(seed).permutation(len(groups))[group], kind="stable")
