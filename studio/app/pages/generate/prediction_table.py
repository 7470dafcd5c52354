"""Predictions beside the true classes or numbers: totals, order, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studio.core import formatting
from studio.core.arrays import Indices, Mask
from studio.core.events import Classified, NumbersPredicted
from studio.data.sprites import Sprites

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Predicted classes of sprites. true: int64 [N], indices into the model's classes, -1 for unknown."""

    sprites: Sprites
    answer: Classified
    true: Indices

    orders = ("File order", "Least certain first", "Most certain first")

    @classmethod
    def of(cls, sprites: Sprites, answer: Classified) -> ClassTable:
        """Match the sprites' classes with the model's classes by name."""
        known = {name: index for index, name in enumerate(answer.class_names)}
        of_class = np.array([known.get(name, -1) for name in sprites.class_names], np.int64)
        return cls(sprites, answer, of_class[sprites.labels])

    @cached_property
    def predicted(self) -> Indices:
        """The most probable class of each sprite, int64 [N]."""
        found: Indices = self.answer.probabilities.argmax(1).astype(np.int64)
        return found

    @cached_property
    def is_wrong(self) -> Mask:
        """Whether each sprite's true class is known and another class was predicted, bool [N]."""
        found: Mask = (self.true >= 0) & (self.predicted != self.true)
        return found

    def why_not_wrong_only(self) -> str:
        """Return why the wrong predictions can't be listed alone; '' if possible."""
        if not (self.true >= 0).any():
            return "The true classes are unknown: no folder is named like a class."
        return "" if self.is_wrong.any() else "No prediction is wrong."

    def order(self, chosen: str, *, wrong_only: bool) -> Indices:
        """Return the indices of the shown sprites in one of `orders`."""
        certainty = self.answer.probabilities.max(1, initial=0.0)
        found = {
            "File order": np.arange(len(certainty)),
            "Least certain first": np.argsort(certainty, kind="stable"),
            "Most certain first": np.argsort(-certainty, kind="stable"),
        }[chosen]
        return found[self.is_wrong[found]] if wrong_only else found

    def summary(self) -> str:
        """Return the totals: '230 sprites: 41 of 50 right (82 %)'; only the number without a true class."""
        known = int((self.true >= 0).sum())
        sprites = formatting.count(len(self.true), "sprite")
        if not known:
            return sprites
        right = known - int(self.is_wrong.sum())
        return f"{sprites}: {right:,} of {known:,} right ({formatting.percent(right / known)})"

    def csv(self) -> str:
        """Return a CSV table with a row for each sprite and a column for each class's probability."""
        names, sure = self.answer.class_names, self.answer.probabilities
        rows = [
            [name, names[guess], f"{sure[row, guess]:.4f}", names[true] if true >= 0 else "", _right(guess, true)]
            + [f"{share:.4f}" for share in sure[row]]
            for row, (name, guess, true) in enumerate(
                zip(self.sprites.names, self.predicted.tolist(), self.true.tolist(), strict=True)
            )
        ]
        head = ["sprite", "predicted", "confidence", "true", "right", *(f"p({name})" for name in names)]
        return _csv([head, *rows])


@dataclass(frozen=True, eq=False)
class NumberTable:
    """A regression's predictions beside the true values. true: float32 [N sprites, T targets], NaN for unknown."""

    sprites: Sprites
    answer: NumbersPredicted
    true: Floats

    orders = ("File order", "Largest error first", "Smallest error first")

    @classmethod
    def of(cls, sprites: Sprites, answer: NumbersPredicted) -> NumberTable:
        """Match the sprites' numbers with the model's by name."""
        known = dict(zip(sprites.target_names, sprites.targets.T, strict=True))
        unknown = np.full(len(sprites), np.nan, np.float32)
        return cls(sprites, answer, np.stack([known.get(name, unknown) for name in answer.names], axis=1))

    @cached_property
    def errors(self) -> Floats:
        """Absolute errors, float32 [N, T], NaN for unknown."""
        found: Floats = np.abs(self.answer.numbers - self.true)
        return found

    def why_not_wrong_only(self) -> str:
        """Return why the wrong predictions can't be listed alone: numbers are only more or less exact."""
        return "Only classes are right or wrong. Sort numbers by their error."

    def order(self, chosen: str, *, wrong_only: bool) -> Indices:
        """Return the indices of the sprites in one of `orders`; unknown errors come last.

        Errors are compared in units of each number's mean error, and a sprite's are averaged.
        """
        with np.errstate(invalid="ignore"):
            errors = self.errors / np.maximum(_mean_known(self.errors, 0), 1e-30)
        mean = _mean_known(errors, 1)
        found = {
            "File order": np.arange(len(mean)),
            "Largest error first": np.argsort(np.where(np.isnan(mean), np.inf, -mean), kind="stable"),
            "Smallest error first": np.argsort(np.where(np.isnan(mean), np.inf, mean), kind="stable"),
        }
        return found[chosen]

    def summary(self) -> str:
        """Return the totals: '230 sprites, mean error: price 3.2'; only the number without a true number."""
        means = zip(self.answer.names, _mean_known(self.errors, 0).tolist(), strict=True)
        known = [f"{name} {formatting.decimal(mean)}" for name, mean in means if not np.isnan(mean)]
        sprites = formatting.count(len(self.true), "sprite")
        return f"{sprites}, mean error: {', '.join(known)}" if known else sprites

    def csv(self) -> str:
        """Return a CSV table with a row for each sprite: each number as predicted, and its true value if known."""
        head = ["sprite", *(f"{name}{kind}" for name in self.answer.names for kind in ("", " true"))]
        rows = [
            [name, *(_number(value) for pair in zip(guessed, true, strict=True) for value in pair)]
            for name, guessed, true in zip(
                self.sprites.names, self.answer.numbers.tolist(), self.true.tolist(), strict=True
            )
        ]
        return _csv([head, *rows])


def prediction_table(sprites: Sprites, answer: Classified | NumbersPredicted) -> ClassTable | NumberTable:
    """Return the table of a model's predictions."""
    return ClassTable.of(sprites, answer) if isinstance(answer, Classified) else NumberTable.of(sprites, answer)


def _right(predicted: int, true: int) -> str:
    return "" if true < 0 else "yes" if predicted == true else "no"


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.7g}"


def _mean_known(values: NDArray[Any], axis: int) -> NDArray[np.float64]:
    """Return the mean of the known values along an axis; NaN where all are unknown."""
    is_known = ~np.isnan(values)
    total = np.where(is_known, values, 0).sum(axis, dtype=np.float64)
    count = is_known.sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _csv(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
