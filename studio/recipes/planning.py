"""Presets that suit what there is to train with: how many sprites, how large, on how fast a device."""

from __future__ import annotations

from dataclasses import dataclass

from studio.core import formatting
from studio.recipes.base import Preset, TrainingBudget

_FEWEST_LOOKED_AT = 12_800  # sprites, the same ones again and again if need be: before, nothing is learnt


@dataclass(frozen=True)
class Planner:
    """What is known of how a recipe learns.

    width: of its default network; widths: those that presets choose among, rising; slowing: what is wider trains slower
    with the width to this power; most_looks: how often a sprite may be looked at before it is learnt by heart;
    most_tuning_looks: the same where trained weights are tuned.
    """

    width: int
    widths: tuple[int, ...]
    slowing: float
    most_looks: int
    most_tuning_looks: int

    def preset(self, title: str, summary: str, minutes: float, enough: int, means: TrainingBudget) -> Preset:
        """At most so many minutes, with the widest network that sees `enough` sprites in them.

        Where few sprites are learnt by heart sooner than that, it takes as many epochs as they bear, and says so in
        place of `summary`.
        """
        given = None if means.given is None else int(means.given["width"])
        if not means.sprites_per_s:
            return Preset(title, summary, {"minutes": minutes, "width": given or self.width})
        widths = self.widths if given is None else (given,)
        fitting = [width for width in widths if 60 * minutes * self._speed(width, means) >= enough]
        width = fitting[-1] if fitting else widths[0]
        if means.sprites:
            most = self.most_looks if given is None else self.most_tuning_looks
            epochs = max(most, -(-_FEWEST_LOOKED_AT // means.sprites))
            looked_at = epochs * means.sprites
            if looked_at < 60 * minutes * self._speed(width, means):
                # Epochs: how fast the device is was only guessed, and minutes may be seconds.
                about_s = looked_at / self._speed(width, means)
                return Preset(title, _too_few(means.sprites), {"epochs": epochs, "width": width}, about_s)
        return Preset(title, summary, {"minutes": minutes, "width": width})

    def _speed(self, width: int, means: TrainingBudget) -> float:
        """Sprites a second. Of what is narrower, operations that cost the same whatever their size take a larger share:
        on two cores a generator of half the width was twice as fast, not 2.6 times.
        """
        return float(means.sprites_per_s * (self.width / width) ** (self.slowing if width > self.width else 1.0))


def _too_few(sprites: int) -> str:
    """Why a training of so many sprites is no longer."""
    if sprites == 1:
        return "One sprite is too few to learn from: it is only learnt by heart."
    return f"As long as suits {formatting.count(sprites, 'sprite')}: in more time they are only learnt by heart."
