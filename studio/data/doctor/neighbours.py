"""Find unusual and wrongly classified sprites by their most similar sprites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Indices
from studio.data.files.source_files import ImportIssue
from studio.data.sprites import Sprites

_MIN_VOTES = 8  # neighbours that must agree on a different class, without a vote for the sprite's own
_FAR_FACTOR = 3.0  # times the median distance to the nearest neighbours


@dataclass(frozen=True, eq=False)
class SpriteNeighbours:
    """The most similar sprites of each sprite, by learned features. A set that was not compared has no rows.

    near: int64 [N, n], indices, most similar first. apart: float32 [N], mean distance to them, 1 for the median sprite.
    """

    near: Indices
    apart: NDArray[np.float32]

    def outliers(self, sprites: Sprites) -> list[ImportIssue]:
        """Return an issue for each sprite that is unlike all other sprites."""
        words = "times the usual distance to the nearest sprites"
        return [
            ImportIssue(sprites.names[index], f"{self.apart[index]:.1f} {words}", "outlier")
            for index in np.flatnonzero(self.apart > _FAR_FACTOR).tolist()
        ]

    def wrong_classes(self, sprites: Sprites) -> list[ImportIssue]:
        """Return an issue for each sprite whose neighbours agree on another class."""
        compared, wanted = self.near.shape
        own, neighbours = sprites.labels[:compared], sprites.labels[self.near]
        is_certain = (sprites.class_counts()[own] > wanted) & (self.apart <= _FAR_FACTOR)
        items = []
        for index in np.flatnonzero(is_certain & (neighbours != own[:, None]).all(1)).tolist():
            votes = np.bincount(neighbours[index])  # neighbours per class
            other = int(votes.argmax())
            if votes[other] >= _MIN_VOTES:
                agreeing = f"{votes[other]} of the {wanted} most similar sprites"
                words = f"{agreeing} belong to class {sprites.class_names[other]!r}"
                twin = sprites.names[self.near[index, 0]]
                items.append(ImportIssue(sprites.names[index], words, "wrong class", twin=twin))
        return items
