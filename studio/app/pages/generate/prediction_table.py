"""Predictions beside the true classes or numbers: totals, order, and CSV."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    """Predicted classes of sprites, or predicted values of an attribute.

    true: int64 [N], indices into the model's classes or values, -1 for unknown. attribute: the table's attribute; ''
    for classes. attributes: tables by attribute, only in the table of classes.
    """

    sprites: Sprites
    answer: Classified
    true: Indices
    attributes: Mapping[str, ClassTable] = field(default_factory=dict)
    attribute: str = ""

    orders = ("File order", "Least certain first", "Most certain first")

    @classmethod
    def of(cls, sprites: Sprites, answer: Classified) -> ClassTable:
        """Match the sprites' classes and attributes with the model's classes and attributes by name."""
        attributes = {}
        for name, each in answer.attributes.items():
            true, own = np.full(len(sprites), -1), sprites.attributes
            if name in own.names:
                number = own.names.index(name)
                true = _matched(own.values[number], each.class_names, own.table[:, number])
            attributes[name] = cls(sprites, each, true, attribute=name)
        return cls(sprites, answer, _matched(sprites.class_names, answer.class_names, sprites.labels), attributes)

    @cached_property
    def predicted(self) -> Indices:
        """The most probable class by sprite, int64 [N]."""
        found: Indices = self.answer.probabilities.argmax(1).astype(np.int64)
        return found

    @cached_property
    def is_wrong(self) -> Mask:
        """Mask of sprites with a known true class and another predicted class, bool [N]."""
        found: Mask = (self.true >= 0) & (self.predicted != self.true)
        return found

    def why_not_wrong_only(self) -> str:
        """Return why the wrong predictions can't be listed alone; '' if possible."""
        if self.attribute and not (self.true >= 0).any():
            return f"The true values are unknown: the sprites have no {self.attribute!r}."
        if not (self.true >= 0).any():
            return "The true classes are unknown: no folder is named like a class."
        return "" if self.is_wrong.any() else "No prediction is wrong."

    def order(self, chosen: str, *, wrong_only: bool) -> Indices:
        """Return the indices of the shown sprites in the chosen order. chosen: from `orders`."""
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
        """Return a CSV table with a row per sprite. Columns hold probabilities, by class and by attribute value."""
        tables = (self, *self.attributes.values())
        head = ["sprite", *(text for table in tables for text in table._head())]
        rows = zip(self.sprites.names, *(table._rows() for table in tables), strict=True)
        return _csv([head, *([name, *itertools.chain(*parts)] for name, *parts in rows)])

    def _head(self) -> list[str]:
        start = f"{self.attribute} " if self.attribute else ""
        names = ["predicted", "confidence", "true", "right", *(f"p({name})" for name in self.answer.class_names)]
        return [f"{start}{name}" for name in names]

    def _rows(self) -> Iterator[list[str]]:
        """Yield the table cells by sprite."""
        names = self.answer.class_names
        rows = zip(self.answer.probabilities, self.predicted.tolist(), self.true.tolist(), strict=True)
        for sure, guess, true in rows:
            known = [names[true] if true >= 0 else "", _right(guess, true)]
            yield [names[guess], f"{sure[guess]:.4f}", *known, *(f"{share:.4f}" for share in sure)]


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
        """Return the sprites' indices in the chosen order; unknown errors come last. chosen: from `orders`.

        A sprite's error averages the errors of its numbers, in units of the number's mean error.
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
        """Return a CSV table with a row per sprite: predicted numbers, and true numbers if known."""
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


def _matched(own: Sequence[str], names: Sequence[str], codes: NDArray[Any]) -> Indices:
    """Convert indices into `own`, [N], -1 for none, to indices into `names` by name: int64 [N], -1 for unknown."""
    known = {name: index for index, name in enumerate(names)}
    found: Indices = np.array([*(known.get(name, -1) for name in own), -1], np.int64)[codes]
    return found


def _right(predicted: int, true: int) -> str:
    return "" if true < 0 else "yes" if predicted == true else "no"


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.7g}"


def _mean_known(values: NDArray[Any], axis: int) -> NDArray[np.float64]:
    """Return the mean over known values along an axis; NaN without known values."""
    is_known = ~np.isnan(values)
    total = np.where(is_known, values, 0).sum(axis, dtype=np.float64)
    count = is_known.sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _csv(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
