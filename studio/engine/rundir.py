"""The run folder: the record of one training, read and written alike by the window, the command line and people.

    run.json            what was trained, on what, with which settings; written once
    state.json          how far it is: replaced at every checkpoint and at the end
    metrics.jsonl       one line a tick and one an evaluation; only ever appended to
    confusion.json      which classes were taken for which at the newest checkpoint; of what tells classes apart
    data.safetensors    the sprites as they were when training began
    samples/00000400.png   live samples of the fixed seed
    checkpoints/        see checkpoints.py
    exports/

No torch here: the list of runs must not wait for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from studio.core import files, pictures
from studio.core.errors import RunError, UnwritableError
from studio.core.events import LossChunk, QualityMeasured, SamplesReady, Validated

FORMAT = 1
SAMPLE_COLUMNS = 8
METRICS = "metrics.jsonl"
CONFUSION = "confusion.json"
CAPTIONS = "Captions"  # of the text in a picture of samples: a JSON list

RunState = Literal["training", "finished", "stopped", "failed"]


@dataclass(frozen=True)
class RunRecord:
    """run.json: what was trained, on what, with which settings. `config` is the recipe's own, as JSON."""

    name: str
    recipe: str
    config: Mapping[str, Any]
    size: int
    class_names: tuple[str, ...]
    data_title: str
    data_count: int
    data_fingerprint: str
    device: str
    device_name: str
    precision: str
    parameters: int
    created: str  # ISO 8601, UTC
    versions: Mapping[str, str]
    format: int = FORMAT
    target_names: tuple[str, ...] = ()
    data_origin: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # as in Sprites
    split: str = ""  # the rule by which sprites are held out (see split.py); older runs have none
    singles_kept: bool = False  # of a run without such a rule: whether the only sprite of a class is never held out


@dataclass(frozen=True)
class Progress:
    """state.json: how far a run is. `headline` is its latest figure on held-out sprites, by name."""

    state: RunState
    step: int
    elapsed_s: float
    headline: Mapping[str, float]
    message: str = ""  # why it failed
    setbacks: int = 0  # how often it has stepped back from a loss that was no number
    pieces: int = 1  # that a batch is taken in, where it does not fit the device at once


class RunDir:
    """One run folder. Reading needs nothing; writing needs the lock, which `acquire` takes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.samples = path / "samples"
        self.checkpoints = path / "checkpoints"
        self.data = path / "data.safetensors"
        self._lock = FileLock(path / ".lock", timeout=0)

    def create(self, record: RunRecord) -> None:
        """Make the folder and write run.json. Raises RunError when something is there or it can't be written."""
        if self.path.exists() and any(child.name != ".lock" for child in self.path.iterdir()):
            raise RunError(f"{self.path} is not empty.", "Choose another folder for the run, or resume the run in it.")
        with writing(self.path):
            self.samples.mkdir(parents=True, exist_ok=True)
            self.checkpoints.mkdir(exist_ok=True)
            self._write_json("run.json", dataclasses.asdict(record))

    def acquire(self) -> None:
        """Take the lock, which the system frees when the process ends. Raises RunError when another holds it."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except Timeout:
                raise RunError(
                    f"{self.path.name} is being trained elsewhere.", "Close the other window or command first."
                ) from None

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()

    @contextlib.contextmanager
    def held_on_success(self) -> Iterator[None]:
        """Take the lock and keep it when the block ends well; an error gives it back. Raises RunError."""
        self.acquire()
        with contextlib.ExitStack() as on_error:
            on_error.callback(self.release)
            yield
            on_error.pop_all()

    def is_busy(self) -> bool:
        """Whether some process is writing to this run."""
        if self._lock.is_locked:
            return True
        if not (self.path / ".lock").exists() or not os.access(self.path, os.W_OK):
            return False
        probe = FileLock(self.path / ".lock", timeout=0, is_singleton=False)
        try:
            probe.acquire()
        except Timeout:
            return True
        probe.release()
        return False

    def record(self) -> RunRecord:
        """Read run.json. Raises RunError when it is missing, damaged or from a newer version."""
        values = self._read_json("run.json")
        if values.get("format", 0) > FORMAT:
            raise RunError(
                f"{self.path.name} was made by a newer version of the studio.", "Update the studio to open it."
            )
        try:
            record = RunRecord(**values)
        except TypeError as error:
            raise RunError(f"run.json of {self.path.name} is damaged.", str(error)) from error
        class_names, target_names = tuple(record.class_names), tuple(record.target_names)
        return dataclasses.replace(record, class_names=class_names, target_names=target_names)

    def progress(self) -> Progress:
        """Read state.json; a run that never got to its first checkpoint is at step 0."""
        if not (self.path / "state.json").exists():
            return Progress("training", 0, 0.0, {})
        values = self._read_json("state.json")
        try:
            return Progress(**values)
        except TypeError as error:
            raise RunError(f"state.json of {self.path.name} is damaged.", str(error)) from error

    def write_progress(self, progress: Progress) -> None:
        """Replace state.json. Raises UnwritableError."""
        with writing(self.path):
            self._write_json("state.json", dataclasses.asdict(progress))

    def append(self, event: LossChunk | Validated | QualityMeasured | Mapping[str, Any]) -> None:
        """Add a line to metrics.jsonl. Raises UnwritableError."""
        with writing(self.path):
            files.append_line(self.path / METRICS, json.dumps(_as_line(event), separators=(",", ":")))

    def mark_resume(self, step: int, device: str) -> None:
        """Note in metrics.jsonl that training goes on from `step`, on a line of its own. Raises UnwritableError."""
        with writing(self.path):
            files.append_line(self.path / METRICS, "")  # a crash may have cut the last line short
        self.append({"resumed": step, "device": device})

    def save_confusion(self, validated: Validated) -> None:
        """Replace confusion.json, if there is a matrix: in metrics.jsonl they'd add up. Raises UnwritableError."""
        if validated.confusion is not None:
            values = {"step": validated.step, "counts": validated.confusion.tolist()}
            with writing(self.path):
                files.write_atomic(self.path / CONFUSION, json.dumps(values, separators=(",", ":")).encode())

    def save_samples(self, samples: SamplesReady) -> Path:
        """Write live samples as one picture, with their captions as text in it. Raises UnwritableError."""
        target = self.samples / f"{samples.step:08d}.png"
        text = PngInfo()
        text.add_text(CAPTIONS, json.dumps(samples.captions))
        with writing(self.path), files.atomic_path(target) as temporary:
            picture = Image.fromarray(pictures.tile(samples.sprites, SAMPLE_COLUMNS))
            picture.save(temporary, format="PNG", pnginfo=text)
        return target

    def _write_json(self, name: str, values: Mapping[str, Any]) -> None:
        files.write_atomic(self.path / name, json.dumps(values, indent=2).encode())

    def _read_json(self, name: str) -> dict[str, Any]:
        try:
            values = json.loads((self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunError(f"{self.path} is not a run.", "A run is a folder with a run.json in it.") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{name} of {self.path.name} can't be read.", str(error)) from error
        if not isinstance(values, dict):
            raise RunError(f"{name} of {self.path.name} is damaged.", "It does not hold what the studio writes.")
        return values


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the disk says while a run's folder is written into an UnwritableError."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(path, str(error.strerror or error)) from error


def _as_line(event: LossChunk | Validated | QualityMeasured | Mapping[str, Any]) -> dict[str, Any]:
    """One JSON line: numbers as short as float32 allows."""
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
        return {"step": event.step, "quality": dict(event.figures)}
    return dict(event)
