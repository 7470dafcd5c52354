"""A training's work between its steps: validation, checkpoints, live samples, measurements, early stopping."""

import math
from typing import Literal

from studio.core.events import Advised, Events, Notice, RunFinished, SamplesSpaced
from studio.core.formatting import VERDICTS, best_checkpoint, number
from studio.engine.control.control import Control, retry_until_writable
from studio.engine.runs.analysis.advice import MIN_BUDGET_SHARE, Adviser
from studio.engine.runs.checkpoints import best_step
from studio.engine.runs.history import read_history
from studio.engine.steps.timing import Stopwatch, Throttle
from studio.engine.training.live_samples import live_samples
from studio.engine.training.meter import QualityMeter
from studio.engine.training.saving import save, validate, write_state
from studio.engine.training.state import Training

MAX_UNVALIDATED_S = 60.0
FIRST_CHECKPOINT_S = 10.0  # of training: a kill before the first checkpoint loses no more
MIN_BEST_SPACING = 0.05  # of the run's time: least time between checkpoints that are saved only for a new best metric
_UNMEASURED = "The run is too short or has too few sprites for measurements, and the loss alone is not enough."


class Maintenance:
    """Runs a training's work between its steps: validation, checkpoints, live samples, quality measurements."""

    def __init__(self, training: Training, control: Control, clock: Stopwatch) -> None:
        self._training, self._control, self._clock = training, control, clock
        self._quality = QualityMeter(training, control, clock)
        self._sampling = Throttle(training.config.sample_every_s, clock)
        first_s = math.inf if training.saved_step >= 0 else FIRST_CHECKPOINT_S
        self._saving = Throttle(training.config.checkpoint_every_s, clock, first_s)
        self._validating = Throttle(0.0, clock)  # as often as SIDE_SHARE of the time allows
        self._validated_epoch = int(training.epoch())
        self._best_saved: float | None = None  # best validation metric of a saved checkpoint
        self._adviser = Adviser(read_history(training.run.path), training.budget_share)  # knows the run before a resume
        self._may_stop_early = training.config.stop_early and not training.extended_min
        self._has_warned = False  # that the training will not stop early

    def stop_advice(self) -> Advised | None:
        """Return the advice to stop the training early; None while the training should continue."""
        is_early = MIN_BUDGET_SHARE <= self._training.budget_share() < 1
        return self._adviser.stop_advice if self._may_stop_early and is_early else None

    def after_tick(self) -> Events:
        """Run the due work; yields Validated, CheckpointSaved, SamplesReady, QualityMeasured, Advised."""
        yield from self._adviser.follow(self._due_work())  # yields Advised after new measurements

    def finish(self) -> Events:
        """End the training: save a checkpoint, draw the last samples, measure the model, and write state.json.

        After `control.stop` it skips the last samples and measurements. Yields RunFinished last.
        """
        training, control = self._training, self._control
        advice = self.stop_advice()
        yield from training.ranks.with_all_threads(self._last_work())
        best = best_step(training.run.checkpoints, training.recipe.best_by)
        if advice is not None:
            title = f"Training stopped early at step {number(training.step)}: {VERDICTS[advice.verdict].lower()}."
            told = f" {best_checkpoint(best)}" if best is not None else ""
            hint = f"{advice.why}{told} To continue, train it longer."
            yield Notice("info", title, hint)
        reason: Literal["stopped", "finished"] = "finished" if advice or training.budget_share() >= 1 else "stopped"
        training.elapsed_s = self._clock.now_s()
        why = f"Ended early. {advice.why}" if advice else ""
        yield from retry_until_writable(control, write_state, training, reason, why)
        yield RunFinished(reason, training.step, training.elapsed_s, training.run.path, best)

    def close(self) -> None:
        """Stop measuring quality, which would keep the training in memory."""
        self._quality.close()

    def _last_work(self) -> Events:
        yield from self._adviser.follow(save(self._training, self._control))
        if not self._control.stop:
            yield from live_samples(self._training, self._control)
            yield from self._adviser.follow(self._quality.finish())
        yield from self._training.pop_notices()

    def _due_work(self) -> Events:
        training, control = self._training, self._control
        is_new_epoch = int(training.epoch()) > self._validated_epoch and self._validating.is_affordable()
        if is_new_epoch or self._validating.since_last_s() > MAX_UNVALIDATED_S:
            self._validated_epoch = int(training.epoch())
            yield from self._validating.timed(validate(training, control))
        wants_checkpoint = self._is_best_yet() or self._quality.wants_checkpoint(self._saving)
        if control.checkpoint_now or self._saving.is_due() or wants_checkpoint:
            control.checkpoint_now = False
            yield from self._saving.timed(save(training, control))
            self._note_saved()
        if control.sample_now or self._sampling.is_due():
            control.sample_now = False
            yield from self._sampling.timed(live_samples(training, control))
            yield SamplesSpaced(training.config.sample_every_s, self._sampling.interval_s(), self._sampling.cost_s)
        yield from self._quality.advance()  # one slice of a measurement
        yield from self._warn_unmeasured()
        training.side_work.give_back_memory()
        yield from training.pop_notices()

    def _is_best_yet(self) -> bool:
        training, saving = self._training, self._saving
        found, best_by, best = training.validated, training.recipe.best_by, self._best_saved
        if best_by is None or found is None or not training.is_validated() or training.saved_step == training.step:
            return False
        if not saving.is_affordable() or saving.since_last_s() < MIN_BEST_SPACING * training.planned_s():
            return False
        return best is None or best_by.is_better(found.metrics[best_by.name], best)

    def _note_saved(self) -> None:
        found, best_by = self._training.validated, self._training.recipe.best_by
        if best_by is not None and found is not None and found.step == self._training.saved_step:
            value = found.metrics[best_by.name]
            if self._best_saved is None or best_by.is_better(value, self._best_saved):
                self._best_saved = value

    def _warn_unmeasured(self) -> Events:
        """Yield a Notice, once, if the training can't stop early because its quality is not measured."""
        if not self._may_stop_early or self._has_warned:
            return
        why_not = "" if len(self._training.heldout) else f"The run has no validation {self._training.record.examples}."
        if self._training.recipe.makes == "sprites":
            why_not = "" if self._quality.is_measuring() else _UNMEASURED
        if why_not:
            self._has_warned = True
            yield Notice("info", "This run can't stop early, because its quality is not measured.", why_not)
