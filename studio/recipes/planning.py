"""Presets for the number of sprites, the sprite size and the speed of the device."""

from __future__ import annotations

from dataclasses import dataclass

from studio.core import formatting
from studio.recipes.base import Preset, TrainingBudget

FEW = 200  # sprites, sets or other examples
_FEWEST_SEEN = 12_800  # sprites in a training, with repetitions: fewer teach nothing


@dataclass(frozen=True)
class Planner:
    """Plans presets for a number of sprites and a device's speed."""

    width: int  # channels of the recipe's default network
    widths: tuple[int, ...]  # channels that presets choose from, rising
    slowing: float  # time per step grows with width ** slowing
    most_epochs: int  # epochs after which a network has memorised its sprites
    most_tuning_epochs: int  # likewise, for a training from another run's weights
    few_epochs: int | None = None  # likewise, for a training from scratch on FEW examples or fewer; None: most_epochs
    noun: str = "sprite"  # for a training example

    def preset(self, title: str, summary: str, minutes: float, enough: int, budget: TrainingBudget) -> Preset:
        """Create a preset of at most `minutes`, with the widest network that trains on `enough` sprites in this time.

        enough: sprites seen, with repetitions. With few sprites, which a network soon memorises, the preset limits the
        epochs instead of the minutes, and its help explains the short training instead of `summary`.
        """
        fixed = None if budget.parent_settings is None else int(budget.parent_settings["width"])
        if not budget.sprites_per_s:
            return Preset(title, summary, {"minutes": minutes, "width": fixed or self.width})
        widths = self.widths if fixed is None else (fixed,)
        fitting = [width for width in widths if 60 * minutes * self._speed(width, budget) >= enough]
        width = fitting[-1] if fitting else widths[0]
        if budget.sprites:
            epochs = max(self._most_epochs(budget), -(-_FEWEST_SEEN // budget.sprites))
            seen = epochs * budget.sprites
            if seen < 60 * minutes * self._speed(width, budget):
                # Limited by epochs, not minutes, because the speed is only an estimate.
                about_s = seen / self._speed(width, budget)
                return Preset(title, _too_few(budget.sprites, self.noun), {"epochs": epochs, "width": width}, about_s)
        return Preset(title, summary, {"minutes": minutes, "width": width})

    def _most_epochs(self, budget: TrainingBudget) -> int:
        """Return the epochs after which a network has memorised the sprites of a budget."""
        if budget.parent_settings is not None:
            return self.most_tuning_epochs
        if self.few_epochs is not None and budget.sprites <= FEW:
            return self.few_epochs
        return self.most_epochs

    def _speed(self, width: int, budget: TrainingBudget) -> float:
        """Return the training speed at a width, in sprites per second.

        Narrower networks gain less than the exponent says, because launching an operation costs the same at any width:
        on two cores a generator of half the width was twice as fast, not 2.6 times.
        """
        return float(budget.sprites_per_s * (self.width / width) ** (self.slowing if width > self.width else 1.0))


def _too_few(count: int, noun: str) -> str:
    """Return a preset's help that explains why a training on few examples is short."""
    if count == 1:
        return f"One {noun} is too few: the model can only memorise it."
    return f"Suits {formatting.count(count, noun)}; a longer training would only memorise them."
