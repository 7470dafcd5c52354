"""Texts about runs and trainings for several pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.state.training.trainers import State, WatchedRun
from studio.app.state.training.training import CurrentTraining
from studio.core import formatting
from studio.core.events import LossChunk
from studio.core.metrics import ACCURACY, EXACT, LOSS, R2, Quality
from studio.engine.devices.types import STARTER, Device, ParentSource
from studio.engine.runs.history import PLOTTED_CURVES, budget_used

if TYPE_CHECKING:
    from studio.engine.runs.listing import RunSummary

# Tooltips by label in the line of readings. {examples}: 'sprites' or 'characters'.
_READINGS = {
    "Step": "Weight updates so far. A step uses one batch of {examples}.",
    "Epoch": "Passes over the whole training set.",
    "Loss": "Error on the training {examples}; lower is better.",
    "Validation": "Result on the validation {examples}, which are never trained on.",
    "Speed": "Training {examples} per second.",
    "Time left": "Estimated time until the training ends.",
    "Memory": "Memory that the training uses on its device.",
}
COPIES = "Share of generated sprites that copy training sprites. By chance: the share among your own sprites."
# Quality figures on show: key and curve title.
QUALITY = {figure.key: figure.title for figure in PLOTTED_CURVES if figure.kind == "quality"}

_LONG_SILENCE_S = 15.0  # a watched training sends a heartbeat every 2 s


@dataclass(frozen=True)
class QueueProgress:
    """The progress of the queued run that trains.

    share: used share of its budget, 0 to 1. text: share and time left.
    """

    run: Path
    share: float
    text: str


def queue_progress(runs: Sequence[RunSummary], training: CurrentTraining) -> QueueProgress | None:
    """Return the progress of the queued run that trains, in this window or elsewhere; None if no queued run trains."""
    run = next((run for run in runs if run.standing == "training" and run.record is not None), None)
    if run is None or run.record is None:
        return None
    chunk = training.chunk if training.path == run.path else None
    if chunk is None:
        share, left = budget_used(run.record, run.step, run.elapsed_s), ""
    else:
        share = budget_used(run.record, chunk.first_step + len(chunk.losses), chunk.elapsed_s)
        left = f", {formatting.time_left(chunk.eta_s)}" if math.isfinite(chunk.eta_s) else ""
        left = ", paused" if training.state == "paused" else left
    return QueueProgress(run.path, share, f"{100 * share:.0f} %{left}")


def queue_entry(run: RunSummary, progress: QueueProgress | None) -> str:
    """Return a queue row's text: the run's title, with the progress or the status unless queued."""
    if progress is not None and progress.run == run.path:
        return f"{run.title}: {100 * progress.share:.0f} %"
    return run.title if run.standing == "queued" else f"{run.title}: {run.standing}"


def queue_state(runs: Sequence[RunSummary], *, is_on: bool, is_training: bool) -> str:
    if not is_on:
        return f"{formatting.count(len(runs), 'run')}. Drag to reorder."
    return "The next run starts when this run ends." if is_training else "Starting the next run…"


def queue_line(runs: Sequence[RunSummary], *, is_on: bool) -> str:
    """Return a sentence about the queued runs; '' for an empty queue. is_on: the queue starts runs by itself."""
    waiting = sum(run.standing != "training" for run in runs)
    how = "starts when this run ends." if is_on else "start on the Runs page."
    return f"{formatting.count(waiting, 'run')} in the queue: {how}" if waiting else ""


def readings(chunk: LossChunk, training: CurrentTraining) -> dict[str, str]:
    """Return a running training's figures as texts, by label."""
    device = training.device
    total = device.memory_total_bytes if device else 0
    left = {"idle": "–", "paused": "Paused"}.get(training.state, formatting.duration(chunk.eta_s))
    return {
        "Step": formatting.number(chunk.first_step + len(chunk.losses)),
        "Epoch": f"{chunk.epoch:.1f}" if chunk.epoch < 100 else formatting.number(int(chunk.epoch)),
        "Loss": formatting.decimal(float(chunk.losses.mean())),
        "Validation": figures(training.heldout),
        "Speed": formatting.rate(chunk.sprites_per_s, examples_of(training)),
        "Time left": left,
        "Memory": formatting.memory(chunk.memory_bytes, total),
    }


def examples_of(training: CurrentTraining) -> str:
    """Return the noun for the training examples: 'sprites' or 'characters'."""
    return training.record.examples if training.record is not None else "sprites"


def reading_tips(training: CurrentTraining) -> dict[str, str]:
    """Return the tooltips of the readings by label."""
    tips = {label: tip.format(examples=examples_of(training)) for label, tip in _READINGS.items()}
    return {**tips, "Memory": memory_tip(training.device)} if training.device is not None else tips


def memory_tip(device: Device | None) -> str:
    """Return a text on what the memory reading counts, for a training on `device`."""
    kind = device.kind if device is not None else ""
    if kind == "cpu":
        return "Memory of the training: what this process uses above its level before the training."
    return "GPU memory of the training." if kind == "mps" else "Peak GPU memory of the training so far."


def parent(source: ParentSource, titles: Mapping[Path, str]) -> str:
    """Return the display name of a training's start weights. titles: display names by run folder."""
    if source is None:
        return "From scratch"
    return "Bundled starter model" if source == STARTER else titles.get(source, source.name)


def parent_summary(source: ParentSource, suggested: ParentSource, examples: str, parts: str) -> str:
    """Return a sentence about the chosen start weights.

    suggested: the best choice for the open sprites. examples: the training examples as text, for example '60 sprites'.
    parts: the names by which the studio matches the weights, for example 'Classes'.
    """
    is_small = suggested == STARTER
    if source is None:
        small = f"Trains only on your {examples}. Small sets are soon copied."
        return small if is_small else f"Trains only on your {examples or 'sprites'}."
    if source == STARTER:
        better = "Better for small sets: fewer copies, cleaner pixels." if is_small else "Best for small sets."
        return f"Pretrained on CC0 art. {better}"
    return f"Continues from this model's weights. {parts} are matched by name."


def copies(quality: Quality) -> str:
    """Return the share of generated sprites that copy training sprites, as text."""
    return f"{formatting.percent(quality.copies)} ({formatting.percent(quality.copies_real)} by chance)"


def figures(metrics: Mapping[str, float]) -> str:
    """Return the most important figure as text: accuracy, R² or exact pixels if present, else the loss."""
    if ACCURACY.name in metrics:
        return f"{ACCURACY.format(metrics[ACCURACY.name])} correct"
    if R2.name in metrics:
        return f"{R2.title} {R2.format(metrics[R2.name])}"
    if EXACT.name in metrics:
        return f"{EXACT.format(metrics[EXACT.name])} {EXACT.title}"
    return LOSS.format(metrics[LOSS.name]) if LOSS.name in metrics else "–"


def result(training: CurrentTraining) -> tuple[str, str] | None:
    """Return headline and text for the result of the run that has ended; None while it trains or after an error."""
    end, advice = training.end, training.advice
    if training.is_busy() or end is None:
        return None
    how = "Finished" if end.reason == "finished" else "Stopped"
    trained = f"{formatting.count(end.step, 'step')} in {formatting.duration(end.elapsed_s)}"
    has_result = not training.heldout.keys().isdisjoint({ACCURACY.name, R2.name, EXACT.name})
    headline = f"{how}: {figures(training.heldout)} after {trained}" if has_result else f"{how}: {trained}"
    if advice is None:
        return headline, "Too short to judge. Look at the samples."
    is_older = end.best_step is not None and end.best_step < end.step
    best = f" {formatting.best_checkpoint(end.best_step)}" if end.best_step is not None and is_older else ""
    return headline, f"{formatting.VERDICTS[advice.verdict]}: {_lower(advice.why)}{best}"


def state(training: CurrentTraining) -> str:
    """Return the training's status, with advice on stopping, for the page's head."""
    advice = training.advice
    verdict = f". {formatting.VERDICTS[advice.verdict]}: {_lower(advice.why)}" if advice else ""
    if training.state == "idle":
        return _end(training, verdict)
    if training.watched is not None:
        return _watched(training.watched, training.state, verdict)
    blocked, paused = training.blocked, "You can generate now or resume."
    if blocked:
        paused = f"{blocked.title} {blocked.hint.partition('. ')[0]}"
    text = {"starting": "Starting…", "training": f"Training{verdict}", "stopping": "Saving…"}
    return text.get(training.state, f"Paused. {paused}" if training.state == "paused" else "")


def _watched(watched: WatchedRun, state: State, verdict: str) -> str:
    """Return the status text for a training in another process or on another machine."""
    if watched.live is not None and watched.silent_s > _LONG_SILENCE_S:
        return f"No heartbeat for {formatting.duration(watched.silent_s)}"
    count, halted = watched.processes, watched.live.halted if watched.live is not None else ""
    if state == "starting":
        return f"Starting {count} processes…" if count else "Watching: waiting for the training's first heartbeat"
    if state == "training":
        training = f"Training by {count} processes" if count else "Watching: another process trains this run"
        return f"{training}{verdict}"
    return {"pausing": "Pausing…", "stopping": "Saving…"}.get(state, f"Paused. {halted or 'Resume when you like.'}")


def _end(training: CurrentTraining, verdict: str) -> str:
    """Return a sentence on how the last training ended; '' without a training."""
    if training.end is not None:
        step, elapsed_s = training.end.step, training.end.elapsed_s
    elif training.chunk is not None:
        step, elapsed_s = training.chunk.first_step + len(training.chunk.losses), training.chunk.elapsed_s
    else:
        failed = training.path is not None and training.failure
        return f"Failed: {_lower(failed.title)}" if failed else ""
    ended = "Ended" if training.end or training.failure else "No longer watched. Last seen"
    return f"{ended} at step {formatting.number(step)} after {formatting.duration(elapsed_s)}{verdict}"


def _lower(sentence: str) -> str:
    """Return the sentence with a lower-case first letter, for use after a colon."""
    return sentence[:1].lower() + sentence[1:]
