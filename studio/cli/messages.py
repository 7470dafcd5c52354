"""Format events as lines of text; the exit codes of the command line."""

from __future__ import annotations

from studio.core.events import Advised, Blocked, LossChunk, Notice, QualityMeasured, RunFinished, RunStarted, Validated
from studio.core.formatting import VERDICTS, best_checkpoint, count, decimal, duration, number, percent, rate, time_left
from studio.core.metrics import format_metric, metric_title

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130  # exit codes


def started(event: RunStarted) -> str:
    """Format the start of a training: recipe, device, size and data."""
    verb = f"Resuming at step {number(event.first_step)}:" if event.first_step else "Training"
    heldout = f", {number(event.heldout_count)} for validation" if event.heldout_count else ""
    start = f", starting from {event.started_from}" if event.started_from and not event.first_step else ""
    kind = "model of sets" if event.examples != "sprites" else event.recipe
    return (
        f"{verb} the {kind} on {event.device} in {event.precision}: {parameters(event.parameters)}, "
        f"{count(event.train_count, event.examples.removesuffix('s'))}{heldout}{start}\nThe run is in {event.path}"
    )


def parameters(value: int) -> str:
    """Format a parameter count: 4412345 -> '4.4 M parameters'."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:.1f} M parameters"
    return f"{value / 1000:.0f} k parameters" if value >= 1000 else count(value, "parameter")


def progress(event: LossChunk, loss: float, validated: Validated | None, noun: str = "sprites") -> str:
    """Format the progress of a training. loss: mean of the latest losses. noun: of the training examples."""
    heldout = f"validation {_metrics(validated)}" if validated else ""
    parts = (f"step {number(event.first_step + len(event.losses))}", f"loss {decimal(loss)}", heldout)
    return " · ".join(filter(None, (*parts, rate(event.sprites_per_s, noun), time_left(event.eta_s))))


def validated(event: Validated) -> str:
    """Format the metrics on the validation set."""
    return f"step {number(event.step)} · validation: {_metrics(event)}"


def _metrics(event: Validated) -> str:
    return ", ".join(f"{metric_title(name)} {format_metric(name, value)}" for name, value in event.metrics.items())


def quality(event: QualityMeasured) -> str:
    """Format the quality metrics of generated sprites, with the values of real sprites in brackets."""
    found = event.quality
    distance = f"KID {found.kid:.3f} ± {found.kid_error:.3f} (real sprites {found.kid_real:.3f})"
    copies = f"copies {percent(found.copies)} ({percent(found.copies_real)})"
    against = "validation" if event.against == "held-out" else event.against
    return f"step {number(event.step)} · new sprites against {against} sprites: {distance}, {copies}"


def advised(event: Advised) -> str:
    """Format the advice to continue or stop a training."""
    best = "" if event.verdict == "improving" else f" {best_checkpoint(event.best_step)}"
    return f"step {number(event.step)} · {VERDICTS[event.verdict]}: {event.why}{best}"


def finished(event: RunFinished) -> str:
    """Format the end of a training."""
    how = "Done" if event.reason == "finished" else "Stopped and saved"
    return f"{how}: {count(event.step, 'step')} in {duration(event.elapsed_s)}."


def notice(event: Notice) -> str:
    """Format a notice with its hint."""
    mark = {"info": "", "warning": "Warning: ", "error": "Error: "}[event.level]
    again = " Retrying until it works; press Ctrl+C twice to give up." if isinstance(event, Blocked) else ""
    return f"{mark}{event.title} {event.hint}{again}".strip()
