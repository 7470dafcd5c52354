"""Reading runs back: their curves, their samples, and the list of all of them. No torch here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.core import pictures, places
from studio.core.errors import RunError
from studio.core.events import Event, Events, Rgba
from studio.engine.rundir import Progress, RunDir, RunRecord

Standing = Literal["training", "interrupted", "finished", "stopped", "failed", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    """One row of the list of runs. `problem` says why a damaged run can't be read."""

    path: Path
    record: RunRecord | None
    progress: Progress | None
    standing: Standing
    problem: str = ""


@dataclass(frozen=True)
class RunsListed(Event):
    runs: tuple[RunSummary, ...]


@dataclass
class Curve:
    """Values over steps."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass
class History:
    """The curves of a run. 'loss' and 'grad_norm' have a value a step; the others one a tick."""

    series: dict[str, Curve] = field(default_factory=dict)
    validation: dict[str, Curve] = field(default_factory=dict)
    quality: dict[str, Curve] = field(default_factory=dict)
    confusion: NDArray[np.int64] | None = None
    checkpoints: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class HistoryRead(Event):
    """The curves of one run, and its live samples as (step, uint8 [N, S, S, 4]), the oldest first."""

    path: Path
    history: History
    samples: tuple[tuple[int, Rgba], ...]


def list_runs(extra: Iterable[Path] = ()) -> Events:
    """Every run in the studio's folder and at the `extra` paths, the newest first; yields one RunsListed."""
    inside = [path.parent for path in places.runs().glob("*/run.json")]
    paths = {path.resolve(): path for path in [*extra, *inside] if (path / "run.json").is_file()}
    runs = [summarise(path) for path in paths.values()]
    runs.sort(key=lambda run: run.record.created if run.record else "", reverse=True)
    yield RunsListed(tuple(runs))


def summarise(path: Path) -> RunSummary:
    """What the list of runs says of one; a damaged run is listed as such."""
    run = RunDir(path)
    try:
        record, progress = run.record(), run.progress()
    except RunError as error:
        return RunSummary(path, None, None, "damaged", str(error))
    standing: Standing = progress.state
    if run.is_busy():
        standing = "training"
    elif progress.state == "training":
        standing = "interrupted"
    return RunSummary(path, record, progress, standing)


def read_run(path: Path) -> Events:
    """Read a run's curves and samples; yields one HistoryRead. Raises RunError."""
    record = RunDir(path).record()
    yield HistoryRead(path, read_history(path), tuple(read_samples(path, record.size)))


def read_samples(path: Path, size: int) -> Iterator[tuple[int, Rgba]]:
    """The live samples that a run has on disk, the oldest first; unreadable ones are passed over."""
    for picture_path in sorted((path / "samples").glob("[0-9]*.png")):
        try:
            with Image.open(picture_path) as picture:
                yield int(picture_path.stem), pictures.untile(np.asarray(picture.convert("RGBA")), size)
        except (OSError, ValueError, SyntaxError):
            continue


def read_history(path: Path) -> History:
    """The curves in metrics.jsonl. What a resume has overtaken is left out, and a last line cut short by a crash."""
    ticks: list[dict[str, Any]] = []
    validations: list[dict[str, Any]] = []
    qualities: list[dict[str, Any]] = []
    checkpoints: list[int] = []
    for line in _lines(path / "metrics.jsonl"):
        if "resumed" in line:
            step = line["resumed"]
            ticks = [kept for tick in ticks if (kept := _until(tick, step))]
            validations = [entry for entry in validations if entry["step"] <= step]
            qualities = [entry for entry in qualities if entry["step"] <= step]
            checkpoints = [saved for saved in checkpoints if saved <= step]
        elif "loss" in line:
            ticks.append(line)
        elif "metrics" in line:
            validations.append(line)
        elif "quality" in line:
            qualities.append(line)
        elif "checkpoint" in line:
            checkpoints.append(line["checkpoint"])
    history = _gather(ticks, checkpoints)
    history.validation = _figures(validations, "metrics")
    history.quality = _figures(qualities, "quality")
    confusions = [entry["confusion"] for entry in validations if "confusion" in entry]
    if confusions:
        history.confusion = np.array(confusions[-1], dtype=np.int64)
    return history


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for line in text.splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        if isinstance(values, dict):
            yield values


def _until(tick: dict[str, Any], step: int) -> dict[str, Any] | None:
    """The part of a tick that lies before `step`, the first step that is trained anew."""
    count = step - tick["step"]
    if count <= 0:
        return None
    return {**tick, "loss": tick["loss"][:count], "grad_norm": tick["grad_norm"][:count]}


def _gather(ticks: list[dict[str, Any]], checkpoints: list[int]) -> History:
    history = History(checkpoints=checkpoints)
    if ticks:
        steps = np.concatenate([tick["step"] + np.arange(len(tick["loss"])) for tick in ticks]).astype(np.int64)
        ends = np.array([tick["step"] + len(tick["loss"]) for tick in ticks], dtype=np.int64)
        for name in ("loss", "grad_norm"):
            history.series[name] = Curve(steps, np.concatenate([tick[name] for tick in ticks]).astype(np.float64))
        for name in ("lr", "sprites_per_s", "elapsed_s", "memory_bytes"):
            history.series[name] = Curve(ends, np.array([tick[name] for tick in ticks], dtype=np.float64))
    return history


def _figures(entries: list[dict[str, Any]], kind: str) -> dict[str, Curve]:
    """A curve for each figure that the last of these lines of the `kind` has."""
    curves = {}
    for name in entries[-1][kind] if entries else ():
        having = [entry for entry in entries if name in entry[kind]]
        steps = np.array([entry["step"] for entry in having], dtype=np.int64)
        curves[name] = Curve(steps, np.array([entry[kind][name] for entry in having], dtype=np.float64))
    return curves
