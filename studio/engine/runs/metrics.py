"""The lines of metrics.jsonl: how events are written, and what is read back. A line is what its fields make it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from studio.core import records
from studio.core.events import LossChunk, QualityMeasured, RolledBack, Validated
from studio.core.metrics import Quality

_TAIL_BYTES = 1 << 18  # room for the steps of a tick, and for the lines between two ticks


@dataclass(frozen=True)
class LossLine:
    """What LossChunk says."""

    step: records.Count
    loss: list[float]
    grad_norm: list[float]
    lr: float
    sprites_per_s: float
    elapsed_s: float
    memory_bytes: float

    def __post_init__(self) -> None:
        if len(self.loss) != len(self.grad_norm):
            raise ValueError("there are not as many losses as gradient norms")


@dataclass(frozen=True)
class ValidationLine:
    """What Validated says."""

    step: records.Count
    metrics: dict[str, float]


@dataclass(frozen=True)
class QualityLine:
    """What QualityMeasured says."""

    step: records.Count
    quality: Quality


LAYER_FIGURES = ("update", "gradient", "dead")  # as LayersSeen has them of each layer


@dataclass(frozen=True)
class LayerStats:
    """What the step before `step` did to each layer of the network, by the name of the layer (training/layer_stats.py).

    The length of the update to that of the weights, the length of the gradient, and the share of dead units among those
    that the layer is given; None where it is given none.
    """

    step: records.Count
    layers: dict[str, tuple[float, float, float | None]]


@dataclass(frozen=True)
class CheckpointLine:
    """A checkpoint was written."""

    checkpoint: records.Count


@dataclass(frozen=True)
class ResumeLine:
    """Training goes on from this step; what comes after it above is overtaken."""

    resumed: records.Count


MetricsLine = LossLine | ValidationLine | QualityLine | LayerStats | CheckpointLine | ResumeLine | RolledBack

_LINE_TYPES: dict[str, type[MetricsLine]] = {
    "resumed": ResumeLine, "loss": LossLine, "metrics": ValidationLine, "quality": QualityLine,
    "checkpoint": CheckpointLine, "failed_step": RolledBack, "layers": LayerStats,
}  # fmt: skip


def parse_line(text: bytes) -> MetricsLine | None:
    """What a line says; None where it is damaged, or of a kind that this version does not know."""
    try:
        values = records.parse(text, dict[str, Any])
        kind = next((kind for name, kind in _LINE_TYPES.items() if name in values), None)
        return None if kind is None else records.convert(values, kind)
    except ValueError:
        return None


def newest_loss_line(path: Path) -> LossLine | None:
    """Return the last training steps in a metrics.jsonl; None if it has no steps since the last resume.

    Reads only the end of the file. Raises OSError.
    """
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
        file.seek(start)
        lines = file.read().split(b"\n")
    for text in reversed(lines[1 if start else 0 : -1]):  # the first and the last line may be cut
        line = parse_line(text)
        if isinstance(line, LossLine):
            return line
        if isinstance(line, ResumeLine | RolledBack):
            return None
    return None


def line_of(event: LossChunk | Validated | QualityMeasured | LayerStats | Mapping[str, Any]) -> dict[str, Any]:
    """What is written of an event: numbers as short as float32 allows."""
    if isinstance(event, LossChunk):
        return {
            "step": event.first_step,
            "loss": [float(f"{value:.7g}") for value in event.losses],
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
