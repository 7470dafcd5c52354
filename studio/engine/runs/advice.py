"""Advice on when to stop: whether a training still improves, is good enough, or starts to copy its sprites.

A training may end on it: then twice as much must have been measured, so that nothing ends by chance. No torch here: a
run that is read back gets the same advice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from studio.core.events import Advised, Event, Events, QualityMeasured, Validated
from studio.core.metrics import LOSS, METRICS, Metric, Quality
from studio.core.wording import number, percent
from studio.engine.runs.history import History

COUNT = 128  # sprites that are drawn for a measurement
LAST_COUNT = 256  # those in which copies are counted at the end of a run that was not measured: it is done but once
COPY_MARGIN = 0.02  # of the new sprites: so many more copies than real sprites have are too many, chance apart
_UNLIKE_ANY_KID = 1.0  # above it sprites are unlike any real one: noise of 24 grey levels gives a half, the most is 8
Curve = Sequence[tuple[int, float]]  # steps, and values of a figure on held-out sprites
_ADVISING = [metric for metric in METRICS.values() if metric.rising]


@dataclass(frozen=True)
class _Evidence:
    """How much must have been measured. Of figures on held-out sprites, which are found more often, `patience` alone
    would be soon had: they must also have brought no gain until so many times (`long`) the steps of the best.
    """

    fewest: int  # measurements
    in_a_row: int  # of them, the last ones, that say the same
    patience: int  # measurements that bring no gain
    long: float


_TO_SAY = _Evidence(fewest=3, in_a_row=2, patience=4, long=1.5)
_TO_END = _Evidence(fewest=6, in_a_row=4, patience=8, long=2.0)


def copies_much(copies: float, real: float, count: int = COUNT) -> bool:
    """Whether this share of copies exceeds that among real sprites by COPY_MARGIN and two standard errors: those of two
    shares of so many sprites each, if all were alike.
    """
    together = (copies + real) / 2
    error = math.sqrt(together * (1 - together) * 2 / count)
    return copies > real + COPY_MARGIN + 2 * error


@dataclass(frozen=True)
class Measurement:
    """What one `QualityMeasured` says."""

    step: int
    quality: Quality

    @property
    def copies_much(self) -> bool:
        return copies_much(self.quality.copies, self.quality.copies_real)

    @property
    def looks_real(self) -> bool:
        """Whether the distance is that of real sprites, as far as that can be told.

        Theirs lies below 0 where held-out sprites have their like among those learnt from; new ones follow them there.
        """
        return self.quality.kid <= self.quality.kid_real + self.quality.kid_error


class Adviser:
    """Gives advice on a training while it goes on.

    to_end: the advice on which the training may end; None while there is none that is sure enough.
    """

    def __init__(self, past: History) -> None:
        """past: what was measured before the run was resumed."""
        self._measured, self._last = measurements(past), advice_on(past)
        self._curves = {metric: metric_curve(past, metric) for metric in _ADVISING}
        self._losses = metric_curve(past, LOSS)
        self.to_end = self._advice_to_end()

    def follow(self, events: Events) -> Events:
        """Forward `events`; yields an Advised after each measurement that changes the advice."""
        for event in events:
            yield event
            advised = self._advice_after(event)
            if advised is not None and (self._last is None or _differ(advised, self._last)):
                self._last = advised
                yield advised

    def _advice_after(self, event: Event) -> Advised | None:
        if isinstance(event, QualityMeasured):
            self._measured.append(Measurement(event.step, event.quality))
        elif isinstance(event, Validated):
            self._losses.append((event.step, event.metrics[LOSS.name]))
            for metric, curve in self._curves.items():
                if metric.name in event.metrics:
                    curve.append((event.step, event.metrics[metric.name]))
        else:
            return None
        self.to_end = self._advice_to_end()
        return _by_what_is_known(self._measured, self._curves, self._losses)

    def _advice_to_end(self) -> Advised | None:
        """No loss ends a training: a generator's rises before it copies, and other recipes have better figures."""
        found = _by_what_is_known(self._measured, self._curves, [], _TO_END)
        return None if found is None or found.verdict == "improving" else found


def advice_on(history: History) -> Advised | None:
    """The advice that follows from the curves of a run; None when there are too few measurements."""
    curves = {metric: metric_curve(history, metric) for metric in _ADVISING}
    return _by_what_is_known(measurements(history), curves, metric_curve(history, LOSS))


def measurements(history: History) -> list[Measurement]:
    """What a run has measured so far."""
    curves = history.quality
    if not curves:
        return []
    steps = next(iter(curves.values())).steps.tolist()
    rows = zip(*(curve.values.tolist() for curve in curves.values()), strict=True)
    return [
        Measurement(step, Quality(**dict(zip(curves, row, strict=True)))) for step, row in zip(steps, rows, strict=True)
    ]


def advice(measured: Sequence[Measurement], evidence: _Evidence = _TO_SAY) -> Advised | None:
    """The advice that follows from all measurements so far; None when they are too few."""
    if len(measured) < evidence.fewest:
        return None
    last, before, best = measured[-1], measured[: -evidence.patience], best_step(measured)
    newest = measured[-evidence.in_a_row :]
    if all(one.copies_much for one in newest):
        share, own = percent(last.quality.copies), percent(last.quality.copies_real)
        why = f"{share} of the new sprites are copies of yours; by chance {own} would be."
        return Advised(last.step, "copying", why, best)
    if all(one.looks_real for one in newest):
        return Advised(last.step, "good enough", "New sprites are as near to yours as yours are to each other.", best)
    if before:
        lowest = min(before, key=_distance)
        if min(map(_distance, measured[-evidence.patience :])) > lowest.quality.kid - lowest.quality.kid_error / 2:
            why = f"New sprites have come no nearer to yours since step {number(lowest.step)}."
            return Advised(last.step, "good enough", why, best)
    return Advised(last.step, "improving", "New sprites still come nearer to yours.", best)


def metric_curve(history: History, metric: Metric) -> list[tuple[int, float]]:
    """Steps and values of a figure on held-out sprites, of a run that has it."""
    curve = history.validation.get(metric.name)
    return [] if curve is None else list(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))


def advice_by_metric(metric: Metric, curve: Curve, evidence: _Evidence = _TO_SAY) -> Advised | None:
    """The advice by a figure on held-out sprites of which more is better; None when there are too few values."""
    if len(curve) < evidence.fewest:
        return None
    step, _ = curve[-1]
    best, value = max(curve, key=lambda pair: pair[1])  # the first of equals
    if sum(later > best for later, _ in curve) >= evidence.patience and step >= evidence.long * best:
        return Advised(step, "good enough", metric.risen.format(value=metric.write(value), step=number(best)), best)
    return Advised(step, "improving", metric.rising, best)


def advice_by_loss(curve: Curve) -> Advised | None:
    """The advice by the loss on held-out sprites, of a generator whose new sprites were not measured.

    The newest model is the best, as far as that is known: of few sprites, the loss rises while new ones still get
    better, and says nothing of copies. None when there are too few values.
    """
    if len(curve) < _TO_SAY.fewest:
        return None
    step, _ = curve[-1]
    lowest_at, _ = min(curve, key=lambda pair: pair[1])
    if sum(later > lowest_at for later, _ in curve) >= _TO_SAY.patience and step >= _TO_SAY.long * lowest_at:
        why = f"The loss on held-out sprites has been no lower since step {number(lowest_at)}."
        why = f"{why} With few sprites, new ones may still get better: look at them."
        return Advised(step, "good enough", why, step)
    return Advised(step, "improving", "The loss on held-out sprites still falls.", step)


def _by_what_is_known(
    measured: Sequence[Measurement], curves: Mapping[Metric, Curve], losses: Curve, evidence: _Evidence = _TO_SAY
) -> Advised | None:
    """By new sprites where they were measured often enough, else by what recipes tell of held-out ones, else by the
    loss on them.
    """
    by_metrics = (advice_by_metric(metric, curve, evidence) for metric, curve in curves.items())
    return advice(measured, evidence) or next(filter(None, by_metrics), None) or advice_by_loss(losses)


def best_step(measured: Sequence[Measurement]) -> int:
    """The newest of the steps that are as good as the best one, as far as that can be told, and that do not copy.

    Where all that are like anything copy, the one that copies least.
    """
    original = _original(measured)
    lowest = min(original, key=_distance)
    return max(one.step for one in original if one.quality.kid <= lowest.quality.kid + lowest.quality.kid_error)


def lowest_step(measured: Sequence[Measurement]) -> int:
    """The step of the lowest distance: the one that others must come near to, to be as good as the best one."""
    return min(_original(measured), key=_distance).step


def _original(measured: Sequence[Measurement]) -> Sequence[Measurement]:
    """Those that do not copy or, where all do, the one that copies least. Sprites unlike any real one copy
    nothing, but are no use either."""
    alike = [one for one in measured if one.quality.kid < _UNLIKE_ANY_KID] or measured
    return [one for one in alike if not one.copies_much] or [min(alike, key=_copies)]


def _distance(measured: Measurement) -> float:
    return measured.quality.kid


def _copies(measured: Measurement) -> float:
    return measured.quality.copies


def _differ(one: Advised, other: Advised) -> bool:
    """Whether to say it again: a best step that moves along with the training is no news."""
    moves_along = one.verdict == "improving" or one.best_step == one.step
    return one.verdict != other.verdict or (one.best_step != other.best_step and not moves_along)
