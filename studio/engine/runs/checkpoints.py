"""Checkpoints: everything that a training needs to resume, written atomically. Never pickle.

    checkpoints/step-00000400/
        model.safetensors       the weights being trained
        average.safetensors     moving average of the weights (EMA), for samples and exports
        optimizer.safetensors   the optimizer state
        distilled.safetensors   optional: a few-step student of the averaged network
        checkpoint.json         step, time, metrics, SHA-256 of the tensor files, SHA-256 of checkpoint.json;
                                metrics and the distilled network may follow later

`save` writes into a temporary folder, then renames the folder. A resume renames a damaged checkpoint to
'damaged-step-...' and deletes the folder after the next checkpoint. Seed and step number determine a step's randomness,
so checkpoints store no generator state.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as as_bytes
from torch import Tensor, nn

from studio.core import files, records
from studio.core.errors import DamagedError, RunError
from studio.core.metrics import LOSS, Metric, Quality
from studio.engine.runs.analysis import advice
from studio.engine.runs.folder import CHECKPOINT_PREFIX

Tensors = dict[str, Tensor]
Checkpoints = list[tuple[Path, "CheckpointInfo"]]
PARTS = ("model", "average", "optimizer")
DISTILLED = "distilled"
_QUARANTINE_PREFIX, _RECORD = "damaged-", "checkpoint.json"
_MISSING_FILE_ERRORS = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True)
class CheckpointInfo:
    """The content of checkpoint.json."""

    step: records.Count
    number: records.Count  # 1 for the first checkpoint of a run, then 2, and so on
    elapsed_s: records.Seconds
    metrics: Mapping[str, float]  # on the validation set, at `step`
    sha256: Mapping[str, str]  # by tensor file's name without suffix
    seal: str = ""  # SHA-256 over the other fields; set while writing the file


def save(folder: Path, info: CheckpointInfo, parts: Mapping[str, Tensors]) -> Path:
    """Write a checkpoint into a run's checkpoints folder; return the checkpoint's path. Raises OSError, without files.

    info: `save` fills in `sha256` and `seal`. parts: tensors by the names in PARTS.
    """
    target = checkpoint_path(folder, info.step)
    with files.atomic_path(target) as temporary:
        temporary.mkdir()
        hashes = {}
        for part in PARTS:
            content = serialize(parts[part])
            (temporary / f"{part}.safetensors").write_bytes(content)  # save_file would hide the OSError
            hashes[part] = hashlib.sha256(content).hexdigest()  # of the bytes in memory: detects a bad disk later
        _write_record(temporary, dataclasses.replace(info, sha256=hashes))
        files.remove(target)  # a damaged checkpoint that a resume skipped
    return target


def checkpoint_path(folder: Path, step: int) -> Path:
    """Return the path for a step's checkpoint, whether or not the checkpoint exists."""
    return folder / f"{CHECKPOINT_PREFIX}{step:08d}"


def list_checkpoints(folder: Path) -> Checkpoints:
    """Return a run's checkpoints with valid checkpoint.json, in ascending order of steps. Raises OSError."""
    return scan(folder)[0]


def scan(folder: Path) -> tuple[Checkpoints, list[Path]]:
    """Return a run's valid checkpoints, ascending by step, and the paths of damaged checkpoints.

    Checks only checkpoint.json. Raises OSError for an unreadable file: a network drive may recover.
    """
    try:
        paths = [path for path in folder.iterdir() if path.name.startswith(CHECKPOINT_PREFIX)]
    except FileNotFoundError:
        return [], []
    found, damaged = Checkpoints(), []
    for path in paths:
        try:
            found.append((path, _read_record(path)))
        except DamagedError:
            if path.exists():  # else the training has just deleted it as outdated
                damaged.append(path)
    return sorted(found, key=lambda entry: entry[1].step), sorted(damaged)  # iterdir has no order


def no_valid_checkpoint_error(name: str) -> RunError:
    """Return the error for a run with only damaged checkpoints."""
    return RunError(f"All checkpoints of {name} are damaged.", "Retrain with the same settings.")


def quarantine(path: Path) -> None:
    """Rename a damaged checkpoint to hide it from the list of checkpoints. Raises OSError."""
    target = path.with_name(_QUARANTINE_PREFIX + path.name)
    files.remove(target)
    files.retry_in_use(lambda: path.rename(target))


def remove_quarantined(folder: Path) -> None:
    """Delete damaged checkpoints renamed by `quarantine`; call after saving a newer checkpoint. Raises OSError."""
    for path in folder.glob(f"{_QUARANTINE_PREFIX}*"):
        files.remove(path)


def leftovers(folder: Path) -> list[Path]:
    """Return damaged and half-written checkpoints, to delete while no training runs. Raises OSError."""
    found = folder.iterdir()
    return sorted(path for path in found if path.name.startswith(_QUARANTINE_PREFIX) or files.is_temporary(path))


def add_distilled(folder: Path, step: int, tensors: Tensors) -> None:
    """Add a distilled network to the checkpoint of `step`. Raises OSError, and RunError if the checkpoint is gone."""
    found = next(((path, info) for path, info in list_checkpoints(folder) if info.step == step), None)
    if found is None:
        raise RunError(f"The checkpoint at step {step:,} was deleted.", "Choose another checkpoint of this run.")
    (path, info), content = found, serialize(tensors)
    files.write_atomic(path / f"{DISTILLED}.safetensors", content)
    hashes = {**info.sha256, DISTILLED: hashlib.sha256(content).hexdigest()}
    _write_record(path, dataclasses.replace(info, sha256=hashes))


def add_metrics(folder: Path, step: int, metrics: Mapping[str, float]) -> None:
    """Add metrics to a saved checkpoint; do nothing for a deleted checkpoint. Raises OSError."""
    for path, info in list_checkpoints(folder):
        if info.step == step:
            _write_record(path, dataclasses.replace(info, metrics={**info.metrics, **metrics}))


def load_tensors(path: Path, info: CheckpointInfo, part: str) -> Tensors:
    """Load a checkpoint's part to the CPU. Raises OSError, and DamagedError for a wrong SHA-256."""
    content = _read_verified(path, info, part)
    try:
        return parse_tensors(content)
    except SafetensorError as error:
        raise DamagedError(f"Checkpoint {path.name} is damaged.", str(error)) from error


def verify(path: Path, info: CheckpointInfo) -> None:
    """Read a checkpoint's files and compare the SHA-256. Raises DamagedError, OSError."""
    for part in {*PARTS, *info.sha256}:
        _read_verified(path, info, part)


def _read_verified(path: Path, info: CheckpointInfo, part: str) -> bytes:
    """Read a part's file and compare the SHA-256. Raises DamagedError, OSError."""
    for _ in range(2):  # network drives sometimes return too few bytes: try twice
        try:
            content = (path / f"{part}.safetensors").read_bytes()  # not mmap: Windows can't replace a mapped file
        except _MISSING_FILE_ERRORS as error:
            raise DamagedError(f"Checkpoint {path.name} is incomplete.", f"{part}.safetensors is missing.") from error
        if hashlib.sha256(content).hexdigest() == info.sha256.get(part):  # also detects silent disk errors
            return content
    raise DamagedError(f"Checkpoint {path.name} is damaged.", f"{part}.safetensors was changed after it was written.")


def serialize(tensors: Tensors) -> bytes:
    """Encode tensors, on any device, as the bytes of a safetensors file."""
    # safetensors stores contiguous tensors only; channels_last weights are not contiguous.
    return as_bytes({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def load_into(network: nn.Module, tensors: Tensors, name: str) -> None:
    """Load weights into a network on any device. Raises RunError for NaN, infinite or unfitting weights."""
    check_finite(tensors, name)
    try:
        network.load_state_dict(tensors)  # strict: missing and extra names raise
    except RuntimeError as error:
        raise RunError(f"{name} does not fit this recipe.", str(error).splitlines()[0]) from error


def check_finite(tensors: Tensors, name: str) -> None:
    """Raise RunError for a NaN or infinite weight."""
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        raise RunError(f"{name} has weights that are NaN or infinite.", "Choose another checkpoint of this run.")


def rotate(folder: Path, best_by: Metric | None, *, in_use: Container[int | None] = ()) -> None:
    """Delete old checkpoints of a run. Raises OSError.

    Keeps `essential_checkpoints`, the newest two, the checkpoints numbered 1, 2, 4, 8, ..., and the steps `in_use`.
    best_by: validation metric for selecting the best checkpoint.
    """
    found = list_checkpoints(folder)
    keep = essential_checkpoints(found, best_by) | {path for path, _ in found[-2:]}
    keep |= {path for path, info in found if info.number & (info.number - 1) == 0}  # powers of two
    for path, info in found:
        if path not in keep and info.step not in in_use:
            files.remove(path)


def essential_checkpoints(found: Checkpoints, best_by: Metric | None) -> set[Path]:
    """Return the checkpoints to keep: the newest, the best, and candidates for the best after the next measurement.

    Candidates: best new sprites, lowest KID, newest measured checkpoint; without measurements, lowest validation loss.
    """
    steps = {found[-1][1].step} if found else set()
    if measured := _measurements(found):
        steps |= {advice.best_step(measured), advice.lowest_step(measured), measured[-1].step}
    elif found:
        steps.add(from_lowest_loss(found)[0][1].step)
    best = best_checkpoint(found, best_by)
    return {path for path, info in found if info.step in steps or path == best}


def best_checkpoint(found: Checkpoints, best_by: Metric | None) -> Path | None:
    """Return the best checkpoint's path, by quality of new sprites or the metric `best_by`; None without checkpoints.

    Without measurements, consider the checkpoint with the lowest validation loss and all later checkpoints: return the
    newest without too many copies, or else the checkpoint with the fewest copies.
    """
    paths = {info.step: path for path, info in found}
    name = best_by.name if best_by else ""
    curve = [(info.step, info.metrics[name]) for _, info in found if name in info.metrics]
    best = advice.best_saved_step(list(paths), _measurements(found), best_by, curve)
    if best is not None:
        return paths[best]
    newest_first = reversed(from_lowest_loss(found))
    return min(newest_first, key=lambda entry: _excess_copies(entry[1]), default=(None, None))[0]


def best_step(folder: Path, best_by: Metric | None) -> int | None:
    """Return the best checkpoint's step; None without checkpoints or for an unreadable folder."""
    try:
        found = list_checkpoints(folder)
    except OSError:
        return None
    best = best_checkpoint(found, best_by)
    return next((info.step for path, info in found if path == best), None)


def from_lowest_loss(found: Checkpoints) -> Checkpoints:
    """Return the checkpoints from the lowest validation loss on; every checkpoint if no loss was measured."""
    losses = [info.metrics.get(LOSS.name, math.inf) for _, info in found]
    return found[losses.index(min(losses)) :] if found else found


def _excess_copies(info: CheckpointInfo) -> float:
    """Return the share of new sprites that copy training sprites; 0 for an acceptable or unmeasured share."""
    copies, real = info.metrics.get("copies", 0.0), info.metrics.get("copies_real", 0.0)
    return copies if advice.copies_too_much(copies, real, advice.FINAL_SPRITES) else 0.0


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer]) -> Tensors:
    """Return the optimizers' state as tensors named '<optimizer class>/<weight index>/<name>'."""
    return {
        f"{type(optimizer).__name__}/{index}/{name}": value
        for optimizer in optimizers
        for index, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def load_optimizers(optimizers: Sequence[torch.optim.Optimizer], tensors: Tensors) -> None:
    """Load state from `optimizer_tensors` into the optimizers. Raises RunError for another run's state."""
    by_name = {type(optimizer).__name__: optimizer for optimizer in optimizers}
    parts: dict[str, Tensors] = {name: {} for name in by_name}
    for key, value in tensors.items():
        name, _, rest = key.partition("/")
        if name not in parts:
            hint = "The state belongs to another optimizer. Retrain with the same settings."
            raise RunError("The optimizer's state does not fit this run.", hint)
        parts[name][rest] = value
    for name, part in parts.items():
        _load_optimizer(by_name[name], part)


def _measurements(found: Checkpoints) -> list[advice.Measurement]:
    qualities = ((info.step, Quality.from_figures(info.metrics)) for _, info in found)
    return [advice.Measurement(step, quality) for step, quality in qualities if quality is not None]


def _write_record(path: Path, info: CheckpointInfo) -> None:
    """Write checkpoint.json. Converts integers to floats before the checksum, because reading returns floats."""
    metrics = {name: float(value) for name, value in info.metrics.items()}
    info = dataclasses.replace(info, elapsed_s=float(info.elapsed_s), metrics=metrics)
    values = dataclasses.asdict(dataclasses.replace(info, seal=_seal(info)))
    files.write_atomic(path / _RECORD, json.dumps(values, indent=2).encode())


def _read_record(path: Path) -> CheckpointInfo:
    """Read checkpoint.json. Raises DamagedError, and OSError if the file is unreadable."""
    try:
        info = records.parse((path / _RECORD).read_bytes(), CheckpointInfo)
    except _MISSING_FILE_ERRORS as error:
        raise DamagedError(f"Checkpoint {path.name} is incomplete.", f"{_RECORD} is missing.") from error
    except ValueError as error:
        raise DamagedError(f"Checkpoint {path.name} is damaged.", f"{_RECORD}: {error}.") from error
    if info.seal != _seal(info):
        raise DamagedError(f"Checkpoint {path.name} is damaged.", f"{_RECORD} was changed after it was written.")
    return info


def _seal(info: CheckpointInfo) -> str:
    """Return the SHA-256 over the fields without `seal`."""
    values = dataclasses.asdict(dataclasses.replace(info, seal=""))
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()  # independent of field order


def _load_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    """Load saved state into an optimizer; weights without saved state keep their current state.

    tensors: state named '<weight index>/<name>'. Raises RunError for unfitting state.
    """
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]  # in the order of the keys
    state: dict[int, Tensors] = {index: dict(values) for index, values in optimizer.state_dict()["state"].items()}
    try:
        for key, value in tensors.items():
            index, _, name = key.partition("/")
            # The fused optimizer needs state in the memory format of the weight (channels_last for convolutions).
            alike = torch.empty_like(weights[int(index)]).copy_(value) if value.ndim else value
            state.setdefault(int(index), {})[name] = alike  # 'step', 'exp_avg', 'exp_avg_sq' for AdamW
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    except (ValueError, KeyError, IndexError, RuntimeError) as error:
        raise RunError("The optimizer's state does not fit this run.", str(error)) from error
