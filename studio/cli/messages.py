"""What the command line says: a sentence for each event, and an exit code at the end."""

from __future__ import annotations

from studio.core.events import Advised, Blocked, LossChunk, Notice, QualityMeasured, RunFinished, RunStarted, Validated
from studio.core.formatting import VERDICTS, best_checkpoint, count, decimal, duration, number, percent, rate, time_left
from studio.core.metrics import format_metric, metric_title

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130  # exit codes


def started(event: RunStarted) -> str:
    """What is being trained on what."""
    verb = f"Going on from step {number(event.first_step)} with" if event.first_step else "Training"
    heldout = f", {number(event.heldout_count)} held out" if event.heldout_count else ""
    start = f", starting from {event.started_from}" if event.started_from and not event.first_step else ""
    return (
        f"{verb} the {event.recipe} on {event.device} in {event.precision}: {parameters(event.parameters)}, "
        f"{count(event.train_count, 'sprite')}{heldout}{start}\nThe run is in {event.path}"
    )


def parameters(value: int) -> str:
    """4412345 -> '4.4 M parameters'."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:.1f} M parameters"
    return f"{value / 1000:.0f} k parameters" if value >= 1000 else count(value, "parameter")


def tick(event: LossChunk, loss: float, validated: Validated | None) -> str:
    """The readings of a training, `loss` the mean of the latest."""
    step = event.first_step + len(event.losses)
    heldout = f"held-out {_figures(validated)}" if validated else ""
    parts = [
        f"step {number(step)}", f"loss {decimal(loss)}", heldout, rate(event.sprites_per_s), time_left(event.eta_s),
    ]  # fmt: skip
    return " · ".join(part for part in parts if part)


def validated(event: Validated) -> str:
    """Figures on held-out sprites."""
    return f"step {number(event.step)} · held-out sprites: {_figures(event)}"


def _figures(event: Validated) -> str:
    return ", ".join(f"{metric_title(name)} {format_metric(name, value)}" for name, value in event.metrics.items())


def quality(event: QualityMeasured) -> str:
    """How good new sprites are."""
    found = event.quality
    distance = f"KID {found.kid:.3f} ± {found.kid_error:.3f} (real ones {found.kid_real:.3f})"
    copies = f"copies {percent(found.copies)} ({percent(found.copies_real)})"
    return f"step {number(event.step)} · new sprites against {event.against} ones: {distance}, {copies}"


def advised(event: Advised) -> str:
    """Whether to go on."""
    best = "" if event.verdict == "improving" else f" {best_checkpoint(event.best_step)}"
    return f"step {number(event.step)} · {VERDICTS[event.verdict]}: {event.why}{best}"


def finished(event: RunFinished) -> str:
    """How a training ended."""
    how = "Done" if event.reason == "finished" else "Stopped, and everything is saved"
    return f"{how}: {count(event.step, 'step')} in {duration(event.elapsed_s)}."


def notice(event: Notice) -> str:
    """A notice with its hint."""
    mark = {"info": "", "warning": "Warning: ", "error": "Error: "}[event.level]
    again = " It is tried again until it works; Ctrl+C twice gives up." if isinstance(event, Blocked) else ""
    return f"{mark}{event.title} {event.hint}{again}".strip()
