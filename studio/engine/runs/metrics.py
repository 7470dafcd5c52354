"""Write events as lines of metrics.jsonl, and parse lines. A line's keys determine its type."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from studio.core import records
from studio.core.events import LossChunk, QualityMeasured, RolledBack, Validated
from studio.core.metrics import Quality

_TAIL_BYTES = 1 << 18  # enough for the newest tick's losses and the lines after the tick


@dataclass(frozen=True)
class LossLine:
    """A line of metrics.jsonl with losses and gradient norms from a tick: a few training steps."""

    step: records.Count
    loss: list[float]
    grad_norm: list[float]
    lr: float
    sprites_per_s: float
    elapsed_s: float
    memory_bytes: float

    def __post_init__(self) -> None:
        if len(self.loss) != len(self.grad_norm):
            raise ValueError("the numbers of losses and gradient norms differ")


@dataclass(frozen=True)
class ValidationLine:
    """A line of metrics.jsonl from a Validated event: metrics on the validation set."""

    step: records.Count
    metrics: dict[str, float]


@dataclass(frozen=True)
class QualityLine:
    """A line of metrics.jsonl from a QualityMeasured event: quality of new sprites."""

    step: records.Count
    quality: Quality


LAYER_FIGURES = ("update", "gradient", "dead")  # a layer's values in LayerStats, in order


@dataclass(frozen=True)
class LayerStats:
    """A line of metrics.jsonl with three statistics by layer name, for the training step before `step`.

    Statistics: update norm / weight norm, gradient norm, share of dead (constant) inputs. None for an unmeasured share.
    """

    step: records.Count
    layers: dict[str, tuple[float, float, float | None]]


@dataclass(frozen=True)
class CheckpointLine:
    """A line of metrics.jsonl for a saved checkpoint."""

    checkpoint: records.Count


@dataclass(frozen=True)
class ResumeLine:
    """A line of metrics.jsonl for a resume. Earlier lines about later steps become invalid."""

    resumed: records.Count


MetricsLine = LossLine | ValidationLine | QualityLine | LayerStats | CheckpointLine | ResumeLine | RolledBack

_LINE_TYPES: dict[str, type[MetricsLine]] = {
    "resumed": ResumeLine, "loss": LossLine, "metrics": ValidationLine, "quality": QualityLine,
    "checkpoint": CheckpointLine, "failed_step": RolledBack, "layers": LayerStats,
}  # fmt: skip


def parse_line(text: bytes) -> MetricsLine | None:
    """Parse a line of metrics.jsonl; return None for a damaged line or an unknown kind."""
    try:
        values = records.parse(text, dict[str, Any])
        kind = next((kind for name, kind in _LINE_TYPES.items() if name in values), None)
        return None if kind is None else records.convert(values, kind)
    except ValueError:
        return None


def newest_loss_line(path: Path) -> LossLine | None:
    """Return the last LossLine of metrics.jsonl; None if a resume or rollback follows the line. Raises OSError."""
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
        file.seek(start)
        lines = file.read().split(b"\n")
    for text in reversed(lines[1 if start else 0 : -1]):  # the first and the last line may be incomplete
        line = parse_line(text)
        if isinstance(line, LossLine):
            return line
        if isinstance(line, ResumeLine | RolledBack):
            return None
    return None


def line_of(event: LossChunk | Validated | QualityMeasured | LayerStats | Mapping[str, Any]) -> dict[str, Any]:
    """Convert an event to a line of metrics.jsonl: JSON values by key, numbers rounded to float32 precision."""
    if isinstance(event, LossChunk):
        return {
            "step": event.first_step,
            "loss": [float(f"{value:.7g}") for value in event.losses],  # float32 has 7 significant digits
            "grad_norm": [float(f"{value:.5g}") for value in event.grad_norms],
            "lr": event.lr,
            "sprites_per_s": round(event.sprites_per_s, 1),
            "elapsed_s": round(event.elapsed_s, 3),
            "memory_bytes": event.memory_bytes,
        }
    if isinstance(event, Validated):
        return {"step": event.step, "metrics": dict(event.metrics)}
    if isinstance(event, QualityMeasured):
        return {"step": event.step, "quality": asdict(event.quality)}
    if isinstance(event, LayerStats):
        return {"step": event.step, "layers": dict(event.layers)}
    return dict(event)
