"""Advice on when to stop: a training still improves, is good enough, or starts to copy its sprites.

'Good enough' needs a tenth of the budget and several validations without a gain. `best_saved_step` chooses the best
checkpoint, for the advice and for loading a model. Advice that stops a training needs twice as many measurements, to
rule out chance. A run read from disk gets the same advice, without torch.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from studio.core.events import Advised, CheckpointSaved, Event, Events, QualityMeasured, Validated
from studio.core.formatting import number, percent
from studio.core.metrics import LOSS, METRICS, Metric, Quality
from studio.engine.runs.history import RunHistory

QUALITY_SPRITES = 128  # new sprites per quality measurement
FINAL_SPRITES = 256  # new sprites for the only copy check of an unmeasured run, at its end
COPY_MARGIN = 0.02  # share of copies above the share among real sprites that is too much
MIN_BUDGET_SHARE = 0.1  # of the budget; no 'good enough' and no early stop before
_FALLING = 0.02  # relative drop of a falling loss
_PERFECT = 1.0  # the highest accuracy, and the highest R²
_UNLIKE_ANY_KID = 1.0  # KID; higher means unlike any real sprite. Noise of 24 grey levels has 0.5, the maximum is 8
StepValues = Sequence[tuple[int, float]]  # pairs of step and validation metric
_LOSS_FALLS = "The validation loss still falls."
_ADVISING = [metric for metric in METRICS.values() if metric.improving_text]


@dataclass(frozen=True)
class _Evidence:
    """The measurements required for advice; metrics must also not improve until `long` times the best step."""

    fewest: int  # measurements
    in_a_row: int  # newest measurements in agreement
    patience: int  # measurements without a gain
    long: float


_SHOW = _Evidence(fewest=3, in_a_row=2, patience=4, long=1.5)
_STOP = _Evidence(fewest=6, in_a_row=4, patience=8, long=2.0)


def copies_too_much(copies: float, real: float, count: int = QUALITY_SPRITES) -> bool:
    """Return whether new sprites copy training sprites clearly more often than real sprites do by chance.

    copies, real: shares of copies among `count` sprites. Clearly: by COPY_MARGIN plus two standard errors.
    """
    together = (copies + real) / 2
    error = math.sqrt(together * (1 - together) * 2 / count)  # standard error: difference between binomial shares
    return copies > real + COPY_MARGIN + 2 * error  # chance rarely exceeds two standard errors


@dataclass(frozen=True)
class Measurement:
    """The measured quality of new sprites at a step of the training."""

    step: int
    quality: Quality

    @property
    def copies_too_much(self) -> bool:
        """Whether too many new sprites are copies of training sprites."""
        return copies_too_much(self.quality.copies, self.quality.copies_real)

    @property
    def looks_real(self) -> bool:
        """Whether the KID of the new sprites is lower than the KID of real sprites, or equal within the standard error.

        The KID of real sprites is below 0 if validation sprites have near-duplicates in the training set.
        """
        return self.quality.kid <= self.quality.kid_real + self.quality.kid_error


class Adviser:
    """Gives advice on a training while it runs: improving, good enough, or copying.

    past: metrics from before a resume. used_up: returns the used share of the budget, 0 to 1. advice: the newest advice
    to show, or None. stop_advice: the newest advice to stop, which needs more measurements; None to go on.
    """

    def __init__(self, past: RunHistory, used_up: Callable[[], float]) -> None:
        self._measured, self._used_up = measurements(past), used_up
        self._curves = {metric: metric_curve(past, metric) for metric in _ADVISING}
        self._losses = metric_curve(past, LOSS)
        self._saved = list(past.checkpoints)
        self.advice = self._advice()
        self.stop_advice = self._stop_advice()

    def follow(self, events: Events) -> Events:
        """Forward a training's events. Yield an Advised when the advice to continue or stop training changes."""
        for event in events:
            yield event
            advised = self._advice_after(event)
            if advised is not None and self._is_new(advised):
                self.advice = advised
                yield advised

    def _advice_after(self, event: Event) -> Advised | None:
        if isinstance(event, QualityMeasured):
            self._measured.append(Measurement(event.step, event.quality))
        elif isinstance(event, Validated):
            self._losses.append((event.step, event.metrics[LOSS.name]))
            for metric, curve in self._curves.items():
                if metric.name in event.metrics:
                    curve.append((event.step, event.metrics[metric.name]))
        elif isinstance(event, CheckpointSaved):
            self._saved.append(event.step)
        else:
            return None
        self.stop_advice = self._stop_advice()
        return self._advice()

    def _advice(self) -> Advised | None:
        found = _newest_advice(self._measured, self._curves, self._losses) or advice_by_loss(self._losses)
        if found is None or (found.verdict == "good enough" and self._used_up() < MIN_BUDGET_SHARE):
            return None
        return self._with_best_checkpoint(found)

    def _stop_advice(self) -> Advised | None:
        """Return the advice to stop; None to go on. Ignores the loss, which rises in a generator before it copies."""
        found = _newest_advice(self._measured, self._curves, self._losses, _STOP)
        return None if found is None or found.verdict == "improving" else self._with_best_checkpoint(found)

    def _with_best_checkpoint(self, found: Advised) -> Advised:
        """Return the advice with the step of the best checkpoint, or the current step before the first checkpoint."""
        metric, curve = next(((metric, curve) for metric, curve in self._curves.items() if curve), (None, []))
        saved = self._all_saved()
        best = best_saved_step(saved, self._measured, metric, curve) or (saved[-1] if saved else found.step)
        return replace(found, best_step=best)

    def _all_saved(self) -> list[int]:
        return sorted({*self._saved, *(one.step for one in self._measured)})

    def _is_new(self, advised: Advised) -> bool:
        """Return whether to show the advice: its verdict changed, or an older checkpoint became the best.

        While a training improves, a new best checkpoint is no news.
        """
        if self.advice is None or advised.verdict != self.advice.verdict:
            return True
        moves_along = advised.verdict == "improving" or advised.best_step in (advised.step, *self._all_saved()[-1:])
        return advised.best_step != self.advice.best_step and not moves_along


def advice_for(history: RunHistory, used_up: float) -> Advised | None:
    """Return the advice for a recorded run; None after too few measurements. used_up: share of its budget, 0 to 1."""
    return Adviser(history, lambda: used_up).advice


def best_saved_step(
    saved: Sequence[int], measured: Sequence[Measurement], metric: Metric | None, curve: StepValues
) -> int | None:
    """Return the step of the best checkpoint; None without a metric to judge by.

    saved: steps of all checkpoints, ascending. measured: quality measurements of some checkpoints. curve: steps and
    values of `metric` on the validation set, ignored unless `measured` is empty. If the newest measured checkpoint is
    the best, returns the newest checkpoint of all. Of equal values of `metric`, the first wins.
    """
    if measured:
        best = best_step(measured)
        return saved[-1] if best == measured[-1].step else best
    values = {step: value for step, value in curve if step in saved}
    if metric is None or not values:
        return None
    return min(values, key=lambda step: metric.rank(values[step]))


def measurements(history: RunHistory) -> list[Measurement]:
    """Return the quality measurements of a run in order."""
    curves = history.quality
    if not curves:
        return []
    steps = next(iter(curves.values())).steps.tolist()
    rows = zip(*(curve.values.tolist() for curve in curves.values()), strict=True)
    qualities = (Quality(**dict(zip(curves, row, strict=True))) for row in rows)
    return [Measurement(step, quality) for step, quality in zip(steps, qualities, strict=True)]


def advice_by_quality(measured: Sequence[Measurement], evidence: _Evidence = _SHOW) -> Advised | None:
    """Return the advice by the quality of new sprites; None after too few measurements."""
    if len(measured) < evidence.fewest:
        return None
    last, before, best = measured[-1], measured[: -evidence.patience], best_step(measured)
    newest = measured[-evidence.in_a_row :]
    if all(one.copies_too_much for one in newest):
        share, own = percent(last.quality.copies), percent(last.quality.copies_real)
        why = f"{share} of the new sprites copy yours; {own} are expected by chance."
        return Advised(last.step, "copying", why, best)
    if all(one.looks_real for one in newest):
        return Advised(last.step, "good enough", "New sprites match your sprites.", best)
    if before:
        lowest = min(before, key=_distance)  # KID is smaller for better sprites
        if min(map(_distance, measured[-evidence.patience :])) > lowest.quality.kid - lowest.quality.kid_error / 2:
            why = f"New sprites have not improved since step {number(lowest.step)}."
            return Advised(last.step, "good enough", why, best)
    return Advised(last.step, "improving", "New sprites still improve.", best)


def metric_curve(history: RunHistory, metric: Metric) -> list[tuple[int, float]]:
    """Return steps and values of a validation metric of a run; empty if the run lacks it."""
    curve = history.validation.get(metric.name)
    return [] if curve is None else list(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))


def advice_by_metric(
    metric: Metric, curve: StepValues, losses: StepValues, evidence: _Evidence = _SHOW
) -> Advised | None:
    """Return the advice by a metric that should rise, such as accuracy; None after too few values.

    A flat `curve` counts as improving while the validation `losses` fall, because accuracy moves in jumps.
    """
    if len(curve) < evidence.fewest:
        return None
    step, _ = curve[-1]
    best, value = max(curve, key=lambda pair: pair[1])  # step and value; the first of equal values
    if sum(later > best for later, _ in curve) < evidence.patience or step < evidence.long * best:
        return Advised(step, "improving", metric.improving_text, best)
    if value < _PERFECT and _falls(losses, evidence.patience):  # accuracy may rise again while the loss falls
        return Advised(step, "improving", _LOSS_FALLS, best)
    return Advised(step, "good enough", metric.stalled_text.format(value=metric.format(value), step=number(best)), best)


def _falls(losses: StepValues, patience: int) -> bool:
    """Return whether one of the last `patience` losses is clearly below all earlier losses."""
    before = [loss for _, loss in losses[:-patience]]
    lowest = min(before, default=math.inf)
    return min((loss for _, loss in losses[-patience:]), default=math.inf) < lowest - _FALLING * abs(lowest)


def advice_by_loss(curve: StepValues) -> Advised | None:
    """Return the advice by the validation loss, which can't detect copies; None after too few values.

    Recommends the newest model: with few sprites the loss rises while a generator's new sprites still improve.
    """
    if len(curve) < _SHOW.fewest:
        return None
    step, _ = curve[-1]
    lowest_at, _ = min(curve, key=lambda pair: pair[1])
    if sum(later > lowest_at for later, _ in curve) >= _SHOW.patience and step >= _SHOW.long * lowest_at:
        why = f"The validation loss has not fallen since step {number(lowest_at)}."
        why = f"{why} With few sprites, the drawings may still improve: look at them."
        return Advised(step, "good enough", why, step)
    return Advised(step, "improving", _LOSS_FALLS, step)


def _newest_advice(
    measured: Sequence[Measurement], curves: Mapping[Metric, StepValues], losses: StepValues,
    evidence: _Evidence = _SHOW,
) -> Advised | None:  # fmt: skip
    by_metrics = (advice_by_metric(metric, curve, losses, evidence) for metric, curve in curves.items())
    return advice_by_quality(measured, evidence) or next(filter(None, by_metrics), None)


def best_step(measured: Sequence[Measurement]) -> int:
    """Return the step with the best new sprites: the newest whose KID equals the lowest, within its standard error.

    Ignores steps whose sprites copy training sprites. If all steps copy, returns the step with the fewest copies.
    """
    original = _not_copying(measured)
    lowest = min(original, key=_distance)
    return max(one.step for one in original if one.quality.kid <= lowest.quality.kid + lowest.quality.kid_error)


def lowest_step(measured: Sequence[Measurement]) -> int:
    """Return the step with the lowest KID among the steps whose sprites don't copy training sprites."""
    return min(_not_copying(measured), key=_distance).step


def _not_copying(measured: Sequence[Measurement]) -> Sequence[Measurement]:
    """Return the measurements whose sprites don't copy training sprites.

    If all copy, return the measurement with the fewest copies. Ignore measurements of noise: sprites with a KID above
    that of any real sprite.
    """
    alike = [one for one in measured if one.quality.kid < _UNLIKE_ANY_KID] or measured
    return [one for one in alike if not one.copies_too_much] or [min(alike, key=lambda one: one.quality.copies)]


def _distance(measured: Measurement) -> float:
    return measured.quality.kid
