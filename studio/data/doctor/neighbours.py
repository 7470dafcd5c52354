"""Find unusual and wrongly classified sprites by their most similar sprites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Indices, Rgba
from studio.data.files.source_files import ImportIssue
from studio.data.sprites import Sprites

_MIN_VOTES = 8  # neighbours that must agree on a different class, without a vote for the sprite's own
_FAR_FACTOR = 3.0  # times the median distance to the nearest neighbours
_MAX_NEW = 0.1  # share of sprites that features may not have been learned from
_PROBES = 64  # sprites whose pixels are compared


class Encoder(Protocol):
    """Computes learned features."""

    def of(self, rgba: Rgba) -> NDArray[np.float64]:
        """Return features float64 [N, D] of sprites uint8 [N, S, S, 4]."""


class Analysis:
    """A search for unusual sprites. During the search, another thread may replace `compared` if `accepts` agrees.

    learned: the sprites for learning features. encoder: the learned features; None before learning ends. compared: the
    sprites to compare by the features.
    """

    def __init__(self, sprites: Sprites) -> None:
        self.learned: Sprites | None = sprites  # None once the features are known, to free the pixels
        self.encoder: Encoder | None = None
        self.compared = sprites
        self._names = frozenset(sprites.names)
        some = np.unique(np.linspace(0, len(sprites) - 1, min(len(sprites), _PROBES)).astype(np.int64))
        self._probes = {sprites.names[index]: sprites.rgba[index].copy() for index in some.tolist()}

    def accepts(self, sprites: Sprites) -> bool:
        """Return whether most sprites are known, with equal pixels: after exclusions, or after their undo."""
        known = [index for index, name in enumerate(sprites.names) if name in self._names]
        probed = [index for index in known if sprites.names[index] in self._probes]
        same = [np.array_equal(sprites.rgba[index], self._probes[sprites.names[index]]) for index in probed]
        return len(known) >= (1 - _MAX_NEW) * len(sprites) and any(same) and sum(same) >= (1 - _MAX_NEW) * len(same)


@dataclass(frozen=True, eq=False)
class SpriteNeighbours:
    """The most similar sprites of each sprite, by learned features. A set that was not compared has no rows.

    near: int64 [N, n], indices, most similar first. apart: float32 [N], mean distance to them, 1 for the median sprite.
    """

    near: Indices
    apart: NDArray[np.float32]

    def outliers(self, sprites: Sprites) -> list[ImportIssue]:
        """Return issues for sprites without a similar sprite."""
        words = "times the usual distance to the nearest sprites"
        return [
            ImportIssue(sprites.names[index], f"{self.apart[index]:.1f} {words}", "outlier")
            for index in np.flatnonzero(self.apart > _FAR_FACTOR).tolist()
        ]

    def wrong_classes(self, sprites: Sprites) -> list[ImportIssue]:
        """Return issues for sprites whose neighbours agree on another class. twin: the nearest sprite of that class."""
        compared, wanted = self.near.shape
        own, neighbours = sprites.labels[:compared], sprites.labels[self.near]
        is_certain = (sprites.class_counts()[own] > wanted) & (self.apart <= _FAR_FACTOR)
        items = []
        for index in np.flatnonzero(is_certain & (neighbours != own[:, None]).all(1)).tolist():
            votes = np.bincount(neighbours[index])  # neighbours per class
            other = int(votes.argmax())
            if votes[other] >= _MIN_VOTES:
                words = f"{sprites.class_names[own[index]]}, looks like {sprites.class_names[other]}"
                twin = sprites.names[self.near[index, neighbours[index].tolist().index(other)]]
                items.append(ImportIssue(sprites.names[index], words, "wrong class", twin=twin))
        return items
