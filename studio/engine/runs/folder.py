"""The run folder: all files of one training run. The window and the command line read and write the same files.

run.json            recipe, sprites and settings; written once, after all other files of a new run
state.json          step and state of the run; replaced at every checkpoint and at the end
metrics.jsonl       one line per tick, validation and quality measurement; append-only
confusion.json      confusion matrix at the newest checkpoint of a classifier
evaluation.json     results of 'studio evaluate', see evaluation.py
notes.json          the user's name, note, star and tags, see notes.py
elsewhere.json      present while the run trains on another machine, see remote/marker.py
data.safetensors    the sprites at the start of the run
start.safetensors   initial weights, if the run starts from another model
live.json, asked.json   heartbeat and control requests of a running training, see control/protocol.py
process.log         output of the training processes that the window started, see distributed/launching.py
samples/00000400.png   live samples, always of the same seed; thinned evenly in long runs
checkpoints/        see checkpoints.py
exports/
"""

import contextlib
import dataclasses
import errno
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from filelock import BaseFileLock

from studio.core import file_systems, files, former_names, records
from studio.core.errors import BusyRunError, DamagedError, RunError, RunGoneError, UnwritableError, os_error_reason
from studio.core.events import LossChunk, QualityMeasured, Validated, ValueConfusion
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

MAX_ROLLBACKS = 3  # to an earlier checkpoint, after a NaN or infinite loss
Rollbacks = Annotated[int, msgspec.Meta(ge=0, le=MAX_ROLLBACKS)]

RECORD_FILE, PROGRESS_FILE, _LOCK_FILE = "run.json", "state.json", ".lock"
LOCK_FILES = (_LOCK_FILE, f"{_LOCK_FILE}-file")  # the second is used on file systems without locks
CHECKPOINT_PREFIX = "step-"  # of a checkpoint's folder name; the step follows
START_MARK = ".run-being-made"  # present until a new run folder is complete, see creating.py
_LOCK_WAIT_S = 1.0  # longer than listing runs holds the lock; a training holds the lock until the end


@dataclass(frozen=True)
class Ancestor:
    """A model in a run's ancestry: the parent whose weights the run started from, the parent's parent, and so on."""

    title: str  # the model's run
    step: records.Count
    data_title: str  # title, fingerprint and licence belong to the model's training sprites
    data_fingerprint: str
    sha256: str  # of the model's weights file
    licence: str = ""


@dataclass(frozen=True)
class RunRecord:
    """The content of run.json. config: the training and recipe settings as JSON values."""

    name: str
    recipe: str
    config: Mapping[str, Any]
    size: Annotated[int, msgspec.Meta(ge=1, lt=2**16)]  # width and height of a sprite, in pixels
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
    split: str  # rule for the validation set, see split.py
    format: records.Positive = FORMAT
    target_names: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()  # of a set, as in Spec
    attributes: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)  # as in Spec
    noun: str = "sprite"  # for a training example
    set_count: records.Count = 0  # sets as training examples, with validation sets; 0 if examples are single sprites
    data_origin: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # as in Sprites
    ancestors: tuple[Ancestor, ...] = ()  # nearest first; empty for a run from scratch
    start_sha256: str = ""  # of start.safetensors; empty without the file
    # By setting that was on Auto: the value for *Auto*. `config` has the value that the studio chose.
    automatic: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def chosen_config(self) -> Mapping[str, Any]:
        """The settings as the user chose them, with *Auto* where the studio chose the value for the run's sprites."""
        return {**self.config, **self.automatic}

    @property
    def examples(self) -> str:
        """The noun for several training examples: 'sprites' or 'characters'."""
        return f"{self.noun}s"

    @property
    def example_count(self) -> int:
        """The number of examples (sprites, or sets of sprites) for training and validation."""
        return self.set_count or self.data_count

    @property
    def parent(self) -> str:
        """The parent model's title, whose weights the run started from; '' for a run from scratch."""
        return self.ancestors[0].title if self.ancestors else ""


class RunProgress(msgspec.Struct, frozen=True, rename={"nan_rollbacks": "setbacks", "micro_batches": "pieces"}):
    """The content of state.json: how far a run has trained. headline: latest validation metrics by name."""

    state: RunState
    step: records.Count
    elapsed_s: records.Seconds
    headline: Mapping[str, float]
    message: str = ""  # why the run failed or ended early
    nan_rollbacks: Rollbacks = 0  # minus one for every 10 checkpoints in a row without a rollback
    micro_batches: records.Positive = 1  # per batch, if a batch does not fit into device memory
    device_name: str = ""  # of the last training
    minutes: records.Seconds = 0.0  # total training time after --more-minutes; 0: the time in the settings


class RunDir:
    """A run's folder: paths, lock and files. Read at any time; take the lock with `acquire` before you write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.samples = path / "samples"
        self.checkpoints = path / "checkpoints"
        self.data = path / "data.safetensors"
        self.start = path / "start.safetensors"
        self._lock: BaseFileLock | None = None  # None while this object does not hold the lock

    def create(self, record: RunRecord) -> None:
        """Write run.json and turn the folder into a run. Write the run's other files first. Raises UnwritableError."""
        with wrap_write_errors(self.path):
            self.write_file(RECORD_FILE, _to_json(dataclasses.asdict(record)))  # atomic: run.json is always complete

    def acquire(self, wait_s: float = _LOCK_WAIT_S, *, is_new: bool = False) -> None:
        """Lock the run for this process. The operating system releases the lock if the process dies.

        is_new: create a missing folder. Raises BusyRunError while another process holds the lock, and RunGoneError
        without a run.
        """
        with wrap_write_errors(self.path), contextlib.ExitStack() as on_error:
            if not is_new:
                self._raise_if_gone()
            elif not self.path.exists():
                self.path.mkdir(parents=True)  # the lock file needs the folder
                on_error.callback(self.path.rmdir)
            lock = file_systems.acquire_lock(self.path / _LOCK_FILE, wait_s)
            on_error.pop_all()
        if lock is None:
            title = f"{self.path.name} is being trained elsewhere."
            raise BusyRunError(title, "Close the other window or command first.")
        self._lock = lock

    def release(self) -> None:
        """Release the lock if this object holds it."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextlib.contextmanager
    def held(self, wait_s: float = _LOCK_WAIT_S) -> Iterator[None]:
        """Hold the lock during a `with` block. Raises RunError."""
        self.acquire(wait_s)
        try:
            yield
        finally:
            self.release()

    @contextlib.contextmanager
    def held_on_success(self, *, is_new: bool = False) -> Iterator[contextlib.ExitStack]:
        """Lock the run before a `with` block; release the lock only if the block fails. Raises RunError.

        Yields an ExitStack for callbacks that run if the block fails. is_new: as in `acquire`.
        """
        self.acquire(is_new=is_new)
        with contextlib.ExitStack() as on_error:
            on_error.callback(self.release)
            yield on_error
            on_error.pop_all()

    def is_busy(self) -> bool:
        """Return whether a process, for example a training, holds the run's lock."""
        return self._lock is not None or file_systems.is_locked(self.path / _LOCK_FILE)

    def record(self) -> RunRecord:
        """Read run.json, settings by their current names. Raises RunError, also for another version's file."""
        try:
            values = self._read(RECORD_FILE, dict[str, Any])
        except FileNotFoundError:
            raise RunError(f"{self.path} is not a run.", f"A run is a folder with a {RECORD_FILE} in it.") from None
        if isinstance(made := values.get("format"), int) and made > FORMAT:
            raise newer_version_error(self.path.name)
        if "split" not in values:  # version 0.1.0 wrote none
            title = f"{self.path.name} was made by an older version of the studio."
            raise RunError(title, "Retrain with the same settings.")
        with self._wrap_parse_errors(RECORD_FILE):
            record = records.convert(values, RunRecord)
        current = former_names.SETTINGS[""] | former_names.SETTINGS.get(record.recipe, {})
        config, automatic = (
            {current.get(name, name): value for name, value in settings.items()}
            for settings in (record.config, record.automatic)
        )
        return dataclasses.replace(record, config=config, automatic=automatic)

    def progress(self) -> RunProgress:
        """Read state.json; return step 0 before the file exists. Raises RunError."""
        try:
            return self._read(PROGRESS_FILE, RunProgress)
        except FileNotFoundError:
            return RunProgress("training", 0, 0.0, {})

    @contextlib.contextmanager
    def wrap_write_errors(self) -> Iterator[None]:
        """Turn an OSError from a `with` block that writes into the run folder into an UnwritableError.

        Raises RunGoneError before the block if the run was deleted, so the block can't create the folder again.
        """
        with wrap_write_errors(self.path):
            self._raise_if_gone()
            yield

    def write_progress(self, progress: RunProgress) -> None:
        """Replace state.json with new progress. Raises UnwritableError."""
        with self.wrap_write_errors():
            self.write_file(PROGRESS_FILE, _to_json(msgspec.to_builtins(progress)))

    def write_file(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Write or replace a file in the run folder. durable: as in `files.atomic_path`. Raises OSError, RunGoneError.

        Never creates a deleted run folder again, nor writes into another folder in the run's place.
        """
        with files.atomic_path(self.path / name, durable=durable, create_folder=False) as temporary:
            temporary.write_bytes(data)
            self._raise_if_gone()  # if the folder is exchanged after this line, the rename of the temporary fails

    def append(self, event: LossChunk | Validated | QualityMeasured | LayerStats | Mapping[str, Any]) -> None:
        """Append an event as a line to metrics.jsonl. Raises UnwritableError."""
        with self.wrap_write_errors():
            # Compact JSON: a night of training writes millions of losses.
            files.append_line(self.path / METRICS_FILE, json.dumps(line_of(event), separators=(",", ":")))

    def mark_resume(self, step: int, device: str) -> None:
        """Record in metrics.jsonl that training resumes from `step` on `device`. Raises UnwritableError."""
        with self.wrap_write_errors():
            files.append_line(self.path / METRICS_FILE, "")  # end a line cut off by a crash
        self.append({"resumed": step, "device": device})

    def save_confusion(self, validated: Validated) -> None:
        """Replace confusion.json by the validation's confusion matrix, if recorded. Raises UnwritableError."""
        if validated.confusion is not None:
            values: dict[str, Any] = {"step": validated.step, "counts": validated.confusion.tolist()}
            if validated.predictions is not None:
                values["sprites"] = validated.predictions.sprites.tolist()
                values["predicted"] = validated.predictions.classes.tolist()
            if validated.attributes:
                values["attributes"] = {name: _values_of(found) for name, found in validated.attributes.items()}
            with self.wrap_write_errors():
                self.write_file(CONFUSION_FILE, json.dumps(values, separators=(",", ":")).encode())

    def remove_leftovers(self) -> None:
        """Delete a crashed process's temporary files."""
        for folder in (self.path, self.samples, self.checkpoints, *self.checkpoints.glob("*/")):
            files.sweep_temporaries(folder)
        files.remove(self.path / START_MARK)

    def saved_step(self) -> int:
        """Return the step of the newest checkpoint, 0 without a checkpoint. Reads only folder names."""
        names = (path.name.removeprefix(CHECKPOINT_PREFIX) for path in self.checkpoints.glob(f"{CHECKPOINT_PREFIX}*"))
        return max((int(name) for name in names if name.isdecimal()), default=0)

    def _raise_if_gone(self) -> None:
        """Raise RunGoneError unless the folder holds a run, complete or in creation. Raises OSError."""
        if not (file_exists(self.path / RECORD_FILE) or file_exists(self.path / START_MARK)):
            raise RunGoneError(self.path)

    def _read(self, name: str, kind: type[T]) -> T:
        """Read and parse a JSON file in the run folder. Raises FileNotFoundError, DamagedError, RunError."""
        with wrap_read_errors(self.path / name):
            text = files.retry_in_use((self.path / name).read_bytes)
        with self._wrap_parse_errors(name):
            return records.parse(text, kind)

    @contextlib.contextmanager
    def _wrap_parse_errors(self, name: str) -> Iterator[None]:
        """Turn a ValueError from a `with` block into a DamagedError naming the file."""
        try:
            yield
        except ValueError as error:
            hint = f"{str(error)[:1].upper()}{str(error)[1:]}."
            if name == PROGRESS_FILE:
                hint += " Delete the file to continue from the newest checkpoint."
            raise DamagedError(f"{name} of {self.path.name} is damaged.", hint) from None


def _values_of(found: ValueConfusion) -> dict[str, Any]:
    predicted = [] if found.predictions is None else found.predictions.classes.tolist()
    return {"counts": found.counts.tolist(), "predicted": predicted}


def _to_json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, indent=2).encode()


def file_exists(path: Path) -> bool:
    """Return whether a file exists; False for a loop of links. Raises OSError if an unreachable drive can't tell."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return False
    return True


def read_json(path: Path, kind: type[T], repair: str) -> T | None:
    """Read and parse a JSON file of a run; return None for a missing file.

    Raises DamagedError with the hint `repair` for content that doesn't fit `kind`; RunError for an unreadable file.
    """
    try:
        with wrap_read_errors(path):
            return records.parse(files.retry_in_use(path.read_bytes), kind)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DamagedError(f"{path.name} of {path.parent.name} is damaged: {error}.", repair) from None


def newer_version_error(name: str) -> RunError:
    """Return the error for a run from a newer version of the studio."""
    return RunError(f"{name} was made by a newer version of the studio.", "Update the studio to open it.")


@contextlib.contextmanager
def wrap_read_errors(path: Path) -> Iterator[None]:
    """Turn an OSError from a `with` block that reads `path` into a RunError, except FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        hint = "Nothing was changed. Try again, then check the drive and the file's permissions."
        raise RunError(f"Can't read {error.filename or path}: {error.strerror or error}.", hint) from error


@contextlib.contextmanager
def wrap_write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError from a `with` block that writes into the run folder `path` into an UnwritableError."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(path, os_error_reason(error, path)) from error
