"""The run folder: the record of one training, read and written alike by the window, the command line and people.

    run.json            what was trained, on what, with which settings; written once, when all else is there
    state.json          how far it is: replaced at every checkpoint and at the end
    metrics.jsonl       one line a tick and one an evaluation; only ever appended to
    confusion.json      which classes were taken for which at the newest checkpoint; of what tells classes apart
    evaluation.json     what 'studio evaluate' found of checkpoints; see evaluation.py
    notes.json          what people say of it, in notes.py: a name, a note, a star, tags
    elsewhere.json      while it is trained on another machine: see away.py
    data.safetensors    the sprites as they were when the run was made
    start.safetensors   where it starts from another model: its weights before the first step
    live.json, asked.json   while it is trained: see engine/control/protocol.py
    process.log         what the processes wrote that the window had train it, in launching.py
    samples/00000400.png   live samples of the fixed seed; of very many some, evenly spread over the run
    checkpoints/        see checkpoints.py
    exports/

No torch here: the list of runs must not wait for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from filelock import BaseFileLock

from studio.core import file_systems, files, records
from studio.core.errors import DamagedError, RunError, RunGoneError, UnwritableError
from studio.core.events import LossChunk, QualityMeasured, Validated
from studio.engine.runs.metrics import LayerStats, line_of

FORMAT = 1
METRICS_FILE = "metrics.jsonl"
REMOTE_FILE = "elsewhere.json"
CONFUSION_FILE = "confusion.json"
STYLE_FILE = "style.json"
HEARTBEAT_FILE, REQUEST_FILE = "live.json", "asked.json"
PROCESS_LOG = "process.log"
EXPORTS_FOLDER = "exports"

RunState = Literal["queued", "training", "finished", "stopped", "failed"]
T = TypeVar("T")

MAX_ROLLBACKS = 3
Rollbacks = Annotated[int, msgspec.Meta(ge=0, le=MAX_ROLLBACKS)]  # after losses that were not finite

RECORD_FILE, PROGRESS_FILE, _LOCK_FILE = "run.json", "state.json", ".lock"
LOCK_FILES = (_LOCK_FILE, f"{_LOCK_FILE}-file")  # the second stands for one where the file system has none
CHECKPOINT_PREFIX = "step-"  # a checkpoint's folder name, before the number of the step
START_MARK = ".run-being-made"  # is there while a new run's folder is filled: see creating.py
_LOCK_WAIT_S = 1.0  # for the lock: who lists runs holds it for a moment, who trains for good


@dataclass(frozen=True)
class Ancestor:
    """A model whose weights a run started from, or one that this model had started from itself.

    data_title, data_fingerprint, licence: of the sprites that it learnt from, as in RunRecord and `data.rights`.
    sha256: of its weights' file.
    """

    title: str
    step: records.Count
    data_title: str
    data_fingerprint: str
    sha256: str
    licence: str = ""


@dataclass(frozen=True)
class RunRecord:
    """run.json: what was trained, on what, with which settings. `config` is the recipe's own, as JSON."""

    name: str
    recipe: str
    config: Mapping[str, Any]
    size: Annotated[int, msgspec.Meta(ge=1, lt=2**16)]  # of a sprite's side, in pixels
    class_names: tuple[str, ...]
    data_title: str
    data_count: records.Count
    data_fingerprint: str
    device: str
    device_name: str
    precision: str
    parameters: records.Count
    created: str  # ISO 8601, UTC
    versions: Mapping[str, str]
    split: str  # the rule by which sprites are held out: see split.py
    format: records.Positive = FORMAT
    target_names: tuple[str, ...] = ()
    data_origin: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # as in Sprites
    ancestors: tuple[Ancestor, ...] = ()  # the model that it started from, then that one's own; none: from nothing
    start_sha256: str = ""  # of start.safetensors; empty where there is none

    @property
    def parent(self) -> str:
        """The title of the model that it started from; empty for nothing."""
        return self.ancestors[0].title if self.ancestors else ""


class RunProgress(msgspec.Struct, frozen=True, rename={"nan_rollbacks": "setbacks", "micro_batches": "pieces"}):
    """state.json: how far a run is. `headline` is its latest figure on held-out sprites, by name."""

    state: RunState
    step: records.Count
    elapsed_s: records.Seconds
    headline: Mapping[str, float]
    message: str = ""  # why it failed, or ended early
    nan_rollbacks: Rollbacks = 0  # without those that were forgiven
    micro_batches: records.Positive = 1  # that make a batch, where it does not fit the device at once
    device_name: str = ""  # where it was trained last
    minutes: records.Seconds = 0.0  # that it trains in all, since more were asked for; 0: as long as its settings say


class RunDir:
    """One run folder. Reading needs nothing; writing needs the lock, which `acquire` takes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.samples = path / "samples"
        self.checkpoints = path / "checkpoints"
        self.data = path / "data.safetensors"
        self.start = path / "start.safetensors"
        self._lock: BaseFileLock | None = None  # while it is held

    def create(self, record: RunRecord) -> None:
        """Write run.json, which makes the folder a run: all else that a run needs is there. Raises UnwritableError."""
        with wrap_write_errors(self.path):
            self._write_json(RECORD_FILE, dataclasses.asdict(record))

    def acquire(self, wait_s: float = _LOCK_WAIT_S, *, is_new: bool = False) -> None:
        """Take the lock; the system frees it when the process ends.

        is_new: create a missing folder; otherwise the folder must hold a run. Raises RunError if another process holds
        the lock, and RunGoneError if the run is gone.
        """
        with wrap_write_errors(self.path), contextlib.ExitStack() as on_error:
            if not is_new:
                self._raise_if_gone()
            elif not self.path.exists():
                self.path.mkdir(parents=True)
                on_error.callback(self.path.rmdir)
            lock = file_systems.acquire_lock(self.path / _LOCK_FILE, wait_s)
            on_error.pop_all()
        if lock is None:
            raise RunError(f"{self.path.name} is being trained elsewhere.", "Close the other window or command first.")
        self._lock = lock

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextlib.contextmanager
    def held_on_success(self, *, is_new: bool = False) -> Iterator[contextlib.ExitStack]:
        """Take the lock and keep it when the block ends well; an error gives it back. Raises RunError.

        Gives a stack of callbacks for an error, to which the block can add. is_new: as in `acquire`.
        """
        self.acquire(is_new=is_new)
        with contextlib.ExitStack() as on_error:
            on_error.callback(self.release)
            yield on_error
            on_error.pop_all()

    def is_busy(self) -> bool:
        """Whether some process is writing to this run."""
        return self._lock is not None or file_systems.is_locked(self.path / _LOCK_FILE)

    def record(self) -> RunRecord:
        """Read run.json. Raises RunError when it is missing, damaged, of another version, or can't be read."""
        try:
            values = self._read(RECORD_FILE, dict[str, Any])
        except FileNotFoundError:
            raise RunError(f"{self.path} is not a run.", f"A run is a folder with a {RECORD_FILE} in it.") from None
        if isinstance(made := values.get("format"), int) and made > FORMAT:
            raise newer_version_error(self.path.name)
        if "split" not in values:  # version 0.1.0 wrote none
            raise RunError(
                f"{self.path.name} was made by an older version of the studio.", "Train anew to use it here."
            )
        with self._wrap_parse_errors(RECORD_FILE):
            return records.convert(values, RunRecord)

    def progress(self) -> RunProgress:
        """Read state.json; a run that never got to its first checkpoint is at step 0. Raises RunError."""
        try:
            return self._read(PROGRESS_FILE, RunProgress)
        except FileNotFoundError:
            return RunProgress("training", 0, 0.0, {})

    @contextlib.contextmanager
    def wrap_write_errors(self) -> Iterator[None]:
        """Turn disk errors into UnwritableError while the block writes to this folder.

        Raises RunGoneError if the run is gone, because a write would bring back a folder that no list of runs shows.
        """
        with wrap_write_errors(self.path):
            self._raise_if_gone()
            yield

    def write_progress(self, progress: RunProgress) -> None:
        """Replace state.json. Raises UnwritableError."""
        with self.wrap_write_errors():
            self._write_json(PROGRESS_FILE, msgspec.to_builtins(progress))

    def append(self, event: LossChunk | Validated | QualityMeasured | LayerStats | Mapping[str, Any]) -> None:
        """Add a line to metrics.jsonl. Raises UnwritableError."""
        with self.wrap_write_errors():
            files.append_line(self.path / METRICS_FILE, json.dumps(line_of(event), separators=(",", ":")))

    def mark_resume(self, step: int, device: str) -> None:
        """Note in metrics.jsonl that training goes on from `step`, on a line of its own. Raises UnwritableError."""
        with self.wrap_write_errors():
            files.append_line(self.path / METRICS_FILE, "")  # a crash may have cut the last line short
        self.append({"resumed": step, "device": device})

    def save_confusion(self, validated: Validated) -> None:
        """Replace confusion.json, if there is a matrix: in metrics.jsonl they'd add up. Raises UnwritableError."""
        if validated.confusion is not None:
            values = {"step": validated.step, "counts": validated.confusion.tolist()}
            with self.wrap_write_errors():
                files.write_atomic(self.path / CONFUSION_FILE, json.dumps(values, separators=(",", ":")).encode())

    def remove_leftovers(self) -> None:
        """Remove what a crash left half-written."""
        for folder in (self.path, self.samples, self.checkpoints, *self.checkpoints.glob("*/")):
            files.sweep_temporaries(folder)
        files.remove(self.path / START_MARK)

    def saved_step(self) -> int:
        """Return the step of the newest checkpoint by folder name; 0 without a checkpoint."""
        names = (path.name.removeprefix(CHECKPOINT_PREFIX) for path in self.checkpoints.glob(f"{CHECKPOINT_PREFIX}*"))
        return max((int(name) for name in names if name.isdecimal()), default=0)

    def _raise_if_gone(self) -> None:
        """Raise RunGoneError unless the folder holds a run, or a run is being made there. Raises OSError."""
        if not (file_exists(self.path / RECORD_FILE) or file_exists(self.path / START_MARK)):
            raise RunGoneError(self.path)

    def _write_json(self, name: str, values: Mapping[str, Any]) -> None:
        files.write_atomic(self.path / name, json.dumps(values, indent=2).encode())

    def _read(self, name: str, kind: type[T]) -> T:
        """A record of this folder. Raises FileNotFoundError, DamagedError, and RunError when it can't be read."""
        with wrap_read_errors(self.path / name):
            text = files.retry_in_use((self.path / name).read_bytes)
        with self._wrap_parse_errors(name):
            return records.parse(text, kind)

    @contextlib.contextmanager
    def _wrap_parse_errors(self, name: str) -> Iterator[None]:
        """Turn what is wrong with a record into a DamagedError that names it."""
        try:
            yield
        except ValueError as error:
            hint = f"{str(error)[:1].upper()}{str(error)[1:]}."
            if name == PROGRESS_FILE:
                hint += " Remove the file, and the run goes on from its newest checkpoint."
            raise DamagedError(f"{name} of {self.path.name} is damaged.", hint) from None


def file_exists(path: Path) -> bool:
    """Return whether a file exists. Raises OSError if the drive can't tell, where Path.exists would return False."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def newer_version_error(name: str) -> RunError:
    """What to say of a run of which this version does not know all."""
    return RunError(f"{name} was made by a newer version of the studio.", "Update the studio to open it.")


@contextlib.contextmanager
def wrap_read_errors(path: Path) -> Iterator[None]:
    """Turn what the disk says while `path` is read into a RunError: a file that can't be read for now is not missing.

    FileNotFoundError stays what it is.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        hint = "Nothing was changed. Try again; if that does not help, look after the drive and who may read the file."
        raise RunError(f"Can't read {error.filename or path}: {error.strerror or error}.", hint) from error


@contextlib.contextmanager
def wrap_write_errors(path: Path) -> Iterator[None]:
    """Turn what the disk says while a run's folder is written into an UnwritableError."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(path, str(error.strerror or error)) from error
