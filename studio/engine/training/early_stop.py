"""Ending a training before its budget is used up, where its settings want that: on advice that is sure enough."""

from __future__ import annotations

from studio.core.events import Advised, Events, Notice
from studio.core.formatting import VERDICTS, best_checkpoint, number
from studio.engine.runs.analysis.advice import MIN_BUDGET_SHARE, Adviser
from studio.engine.training.meter import QualityMeter
from studio.engine.training.state import Training

_UNMEASURED = "It is too short or has too few sprites for new ones to be measured, and the loss alone says too little."


class EarlyEnd:
    """Whether a training is to end early. Minutes that were asked for since ('Train longer') are trained whole."""

    def __init__(self, training: Training, adviser: Adviser, quality: QualityMeter) -> None:
        self._training, self._adviser, self._quality = training, adviser, quality
        self._is_wanted = training.config.stop_early and not training.extended_min
        self._has_warned = False

    def advice(self) -> Advised | None:
        """The advice on which it is to end now; None while it is to go on."""
        is_early = MIN_BUDGET_SHARE <= self._training.used_up() < 1
        return self._adviser.stop_advice if self._is_wanted and is_early else None

    def warn(self) -> Events:
        """Yield a Notice, once, when nothing will tell whether it is good enough."""
        if not self._is_wanted or self._has_warned:
            return
        why_not = "No sprites are held out." if not len(self._training.heldout) else ""
        if self._training.recipe.makes == "sprites":
            why_not = "" if self._quality.is_measuring() else _UNMEASURED
        if why_not:
            self._has_warned = True
            yield Notice("info", "This run will not end early: nothing tells whether it is good enough.", why_not)

    def notice(self, advised: Advised) -> Notice:
        """What to say of the training that has ended on this advice."""
        title = f"Training ended early, at step {number(self._training.step)}: {VERDICTS[advised.verdict].lower()}."
        return Notice("info", title, f"{advised.why} {best_checkpoint(advised.best_step)} To go on, train it longer.")
