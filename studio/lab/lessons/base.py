"""The base of lessons. A learner predicts a measurement, measures, compares, and solves an exercise.

A new lesson is one new file in this folder (or in a package that names its module in the entry-point group
'studio.lab.lessons'): a subclass of `Lesson`. The Lab page, the command and hand-in pages follow from it.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from studio.core.errors import UsageError
from studio.core.formatting import decimal
from studio.lab.experiments.base import Experiment

Answer = str | float
"""A predicted or measured value: the text of a choice, or a number."""
Figures = Mapping[str, float | str]
"""Measured values by name."""

_LETTERS = "abcdefgh"
_ROUNDED = 100  # from this number on, texts have no decimals
_MUCH = 1.5  # a smaller factor between two numbers is not told
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(\D|$))")


@dataclass(frozen=True)
class Prediction:
    """The kind of prediction: a choice from `choices`, or without choices a number in `unit`."""

    choices: tuple[str, ...] = ()
    unit: str = ""
    low: float = 0.0
    high: float = 1e9
    slack: float = 0.25  # allowed error of a good prediction, as a share of the measured number

    def read(self, text: str) -> Answer:
        """Return the answer in a typed text: a choice by letter or by its text, or a number. Raises UsageError."""
        typed = text.strip().casefold()
        if self.choices:
            named = {choice.casefold(): choice for choice in self.choices}
            lettered = dict(zip(_LETTERS, self.choices, strict=False))
            if typed not in named and typed not in lettered:
                options = ", ".join(f"{letter} ({choice})" for letter, choice in lettered.items())
                raise UsageError(f"{text.strip()!r} is not one of the choices.", f"Choose {options}, or skip.")
            return named.get(typed) or lettered[typed]
        try:
            number = float(_THOUSANDS.sub("", typed.removesuffix(self.unit.casefold()).strip()))
        except ValueError:
            number = math.nan
        if not self.low <= number <= self.high:
            bounds = f"from {decimal(self.low)} to {decimal(self.high)}"
            raise UsageError(f"{text.strip()!r} is not a number {bounds}.", f"Type a number of {self.unit}, or skip.")
        return number

    def allows(self, answer: Answer | None) -> bool:
        """Return whether an answer is one of the choices, or without choices a number within the bounds."""
        if self.choices:
            return answer in self.choices
        return isinstance(answer, float) and self.low <= answer <= self.high

    def lettered(self) -> list[tuple[str, str]]:
        """Return the choices with their letters."""
        return list(zip(_LETTERS, self.choices, strict=False))

    def show(self, answer: Answer) -> str:
        """Return an answer as a text: 'faster', or '1,200 steps/s'."""
        if isinstance(answer, str):
            return answer
        return f"{answer:,.0f} {self.unit}" if answer >= _ROUNDED else f"{answer:.3g} {self.unit}"

    def is_right(self, answer: Answer, measured: Answer) -> bool:
        """Return whether an answer is the measured choice, or near the measured number."""
        if isinstance(answer, str) or isinstance(measured, str):
            return answer == measured
        return abs(answer - measured) <= self.slack * abs(measured)

    def compare(self, answer: Answer | None, measured: Answer) -> str:
        """Return a sentence that compares an answer with the measurement. answer: None if the learner skipped it."""
        if answer is None:
            return f"You made no prediction. Measured: {self.show(measured)}."
        said, is_right = self.show(answer), self.is_right(answer, measured)
        if isinstance(answer, str) or isinstance(measured, str):
            return f"You predicted '{said}'. " + ("The measurement agrees." if is_right else f"Measured: '{measured}'.")
        if is_right:
            return f"You predicted {said}. Measured: {self.show(measured)}. That is a good prediction."
        low, high = sorted((answer, measured))
        factor = high / low if low > 0 else 1.0
        times = f": {'more' if measured > answer else 'less'} by a factor of {factor:,.2g}" if factor > _MUCH else ""
        return f"You predicted {said}. Measured: {self.show(measured)}{times}."


@dataclass(frozen=True)
class Exercise:
    """A program to complete or to correct. `check` looks at the names that the learner's program has defined."""

    task: str  # the task in one or two sentences
    starter: str  # the code to start from; it fails the check
    answer: str  # a solution
    check: Callable[[Mapping[str, Any]], str]  # from the program's names to the fault, or ''


class Lesson(Experiment):
    """Base class of lessons. `question` asks for the prediction, `run` measures. Holds no state.

    `run` yields Progress and Outcomes, as for every experiment; the last Outcome has `figures`. `plain` is a template
    of a program that runs by itself.
    """

    minutes: ClassVar[int] = 8  # estimate for a learner: about 3 to read, 1 to measure, 4 for the exercise
    seconds: ClassVar[float] = 8.0  # default duration of the measurement
    sets_obstacle = ""
    intro: ClassVar[tuple[str, ...]] = ()  # paragraphs that explain the subject and its terms
    prediction: ClassVar[Prediction]
    exercise: ClassVar[Exercise]
    gpu: ClassVar[str] = ""  # what a GPU would show, in sentences without figures

    @abstractmethod
    def measured(self, figures: Figures) -> Answer:
        """Return the measured value that the prediction is compared with."""

    @abstractmethod
    def explain(self, figures: Figures, answer: Answer | None) -> Sequence[str]:
        """Return sentences that explain the measurement. answer: the learner's prediction; None if skipped."""

    def card_text(self, figures: Figures) -> str:
        """Return a sentence about the figures that a graphics card gave."""
        return f"Measured: {self.prediction.show(self.measured(figures))}."
