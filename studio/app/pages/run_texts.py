"""How a run is put into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.app.state.training.trainers import State, WatchedRun
from studio.app.state.training.training import CurrentTraining
from studio.core import formatting
from studio.core.events import LossChunk
from studio.core.metrics import ACCURACY, LOSS, R2, Quality
from studio.engine.devices.types import STARTER, ParentSource
from studio.engine.runs.history import PLOTTED_CURVES

if TYPE_CHECKING:
    from studio.engine.runs.listing import RunStatus, RunSummary

# The line of readings: each with the sentence that explains it.
READINGS = {
    "Step": "How often the model has been corrected; each step looks at one batch of sprites.",
    "Epoch": "How often every sprite has been seen.",
    "Loss": "How wrong the model is on the sprites it learns from; lower is better.",
    "Held out": "How it does on sprites that were kept aside and that it never learns from.",
    "Speed": "Sprites learnt from in a second.",
    "Time left": "Until the time or the steps that you set are used up.",
    "Memory": "In use on the device.",
}

COPIES = "New sprites that are copies of sprites learnt from. By chance: as many as there are among your own."

UNITS = {"sprites_per_s": "sprites/s", "memory_bytes": "GB"}

# What the quality meter measures that is shown: the figure's name, and what its curve is called.
QUALITY = {figure.key: figure.title for figure in PLOTTED_CURVES if figure.kind == "quality"}

_LONG_SILENCE_S = 15.0  # of a training that is watched: it speaks every other second

STANDINGS: Mapping[RunStatus, str] = {
    "queued": "Queued",
    "training": "Training",
    "interrupted": "Interrupted",
    "finished": "Finished",
    "stopped": "Stopped",
    "failed": "Failed",
    "damaged": "Damaged",
}


def queue_entry(run: RunSummary) -> str:
    """A run of the queue; of one that has been begun, how it stands."""
    return run.title if run.standing == "queued" else f"{run.title}: {_lower(STANDINGS[run.standing])}"


def queue_state(runs: Sequence[RunSummary], *, is_on: bool, is_training: bool) -> str:
    """What becomes of the runs in the queue."""
    if not is_on:
        return f"{formatting.count(len(runs), 'run')}. Drag to change the order."
    return "When a run ends, the next one begins." if is_training else "The next run is being begun."


def queue_line(runs: Sequence[RunSummary], *, is_on: bool) -> str:
    """What waits, for a page that does not show the queue; empty where nothing does."""
    waiting = sum(run.standing != "training" for run in runs)
    how = "the next one begins when this one ends." if is_on else "start it on the Runs page."
    return f"{formatting.count(waiting, 'run')} in the queue: {how}" if waiting else ""


def readings(chunk: LossChunk, training: CurrentTraining) -> dict[str, str]:
    """The readings of a training after a tick."""
    device = training.device
    total = device.memory_total_bytes if device else 0
    left = {"idle": "–", "paused": "Paused"}.get(training.state, formatting.duration(chunk.eta_s))
    return {
        "Step": formatting.number(chunk.first_step + len(chunk.losses)),
        "Epoch": f"{chunk.epoch:.1f}" if chunk.epoch < 100 else formatting.number(int(chunk.epoch)),
        "Loss": formatting.decimal(float(chunk.losses.mean())),
        "Held out": figures(training.heldout),
        "Speed": formatting.rate(chunk.sprites_per_s),
        "Time left": left,
        "Memory": formatting.memory(chunk.memory_bytes, total),
    }


def parent(source: ParentSource, titles: Mapping[Path, str]) -> str:
    """What a training starts from. titles: what runs are called."""
    if source is None:
        return "Nothing"
    return "The starter" if source == STARTER else titles.get(source, source.name)


def parent_summary(source: ParentSource, suggested: ParentSource, sprites: int) -> str:
    """What it means to start from that, with so many sprites, which something else may suit better."""
    if source is None and suggested == STARTER:
        return f"It learns from your sprites alone: {sprites} are soon learnt by heart, and copied."
    if source is None:
        return "It learns from your sprites alone."
    if source == STARTER == suggested:
        return "It knows what sprites are like, from CC0 art only: few of your own are copied less, and drawn cleaner."
    if source == STARTER:
        return "It knows what sprites are like, from CC0 art only. For small sets of your own."
    return "It goes on from what that model has learnt; classes of the same name are found again."


def copies(quality: Quality) -> str:
    """The copy meter."""
    return f"{formatting.percent(quality.copies)} ({formatting.percent(quality.copies_real)} by chance)"


def figures(metrics: Mapping[str, float]) -> str:
    """The figure that matters most: an accuracy or R² where there is one, else the loss."""
    if ACCURACY.name in metrics:
        return f"{ACCURACY.format(metrics[ACCURACY.name])} right"
    if R2.name in metrics:
        return f"{R2.title} {R2.format(metrics[R2.name])}"
    return LOSS.format(metrics[LOSS.name]) if LOSS.name in metrics else "–"


def state(training: CurrentTraining) -> str:
    """What the training is doing, and whether to go on, for the head of the page."""
    advice = training.advice
    verdict = f". {formatting.VERDICTS[advice.verdict]}: {_lower(advice.why)}" if advice else ""
    if training.state == "idle":
        return _end(training, verdict)
    if training.watched is not None:
        return _watched(training.watched, training.state, verdict)
    paused = "the model can be used, and goes on whenever you like"
    if training.halted:
        paused = f"{training.halted.title} {training.halted.hint.partition('. ')[0]}"
    text: dict[State, str] = {
        "starting": "Getting ready…",
        "training": f"Training{verdict}",
        "paused": f"Paused: {_lower(paused)}",
        "stopping": "Saving…",
    }
    return text.get(training.state, "")


def _watched(watched: WatchedRun, state: State, verdict: str) -> str:
    """What a training is doing that is not this window's own."""
    if watched.live is not None and watched.silent_s > _LONG_SILENCE_S:
        return f"Nothing has been heard of it for {formatting.duration(watched.silent_s)}"
    starting = "Watching: nothing has been heard of this training yet"
    training = "Watching: another process trains this run"
    if watched.processes:
        starting = f"Starting {watched.processes} processes…"
        training = f"Training by {watched.processes} processes"
    halted = watched.live.halted if watched.live is not None else ""
    text: dict[State, str] = {
        "starting": starting,
        "training": f"{training}{verdict}",
        "pausing": "Pausing…",
        "paused": f"Paused: {_lower(halted or 'it goes on whenever you like')}",
        "stopping": "Saving…",
    }
    return text[state]


def _end(training: CurrentTraining, verdict: str) -> str:
    """How a run has ended; empty where none has."""
    if training.end is not None:
        step, elapsed_s = training.end.step, training.end.elapsed_s
    elif training.chunk is not None:
        step, elapsed_s = training.chunk.first_step + len(training.chunk.losses), training.chunk.elapsed_s
    else:
        failed = training.path is not None and training.failure
        return f"Failed: {_lower(failed.title)}" if failed else ""
    ended = "Ended" if training.end or training.failure else "No longer watched: it was"
    return f"{ended} at step {formatting.number(step)} after {formatting.duration(elapsed_s)}{verdict}"


def _lower(sentence: str) -> str:
    """To go on after a colon."""
    return sentence[:1].lower() + sentence[1:]
