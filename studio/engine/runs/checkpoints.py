"""Checkpoints: everything that training needs to go on, whole or not there at all, and never pickle.

    checkpoints/step-00000400/
        model.safetensors       the weights being trained
        average.safetensors     their moving average, which samples and exports use
        optimizer.safetensors   the optimizer's state
        distilled.safetensors   where one was taught: a network that draws in few looks what the averaged one draws
        checkpoint.json         step, time, figures, and the SHA-256 of the other files and of what it says itself;
                                figures, and the distilled network, may be added later

A checkpoint is written into a temporary folder that is then renamed. One that is found to be damaged when a run is
resumed is set aside under another name, and removed when there is a newer one. Their order is that of their steps. All
randomness of a step follows from the seed and the step, so there is no generator state to keep.
"""

from __future__ import annotations

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
    """checkpoint.json. `number` counts a run's checkpoints from 1; `metrics` are the held-out figures at this step."""

    step: records.Count
    number: records.Count
    elapsed_s: records.Seconds
    metrics: Mapping[str, float]
    sha256: Mapping[str, str]
    seal: str = ""  # SHA-256 of the rest; filled in when it is written


def save(folder: Path, info: CheckpointInfo, parts: Mapping[str, Tensors]) -> Path:
    """Write a checkpoint into `folder`; `info.sha256` is filled in here. Raises OSError and leaves nothing behind."""
    target = checkpoint_path(folder, info.step)
    with files.atomic_path(target) as temporary:
        temporary.mkdir()
        hashes = {}
        for part in PARTS:
            content = serialize(parts[part])
            (temporary / f"{part}.safetensors").write_bytes(content)  # save_file hides what the system says
            hashes[part] = hashlib.sha256(content).hexdigest()
        _write_record(temporary, dataclasses.replace(info, sha256=hashes))
        files.remove(target)  # a damaged one that a resume went past; sound ones are never written again
    return target


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is, or would be."""
    return folder / f"{CHECKPOINT_PREFIX}{step:08d}"


def list_checkpoints(folder: Path) -> Checkpoints:
    """The checkpoints in a run's folder whose records are sound, the oldest first. Raises OSError."""
    return scan(folder)[0]


def scan(folder: Path) -> tuple[Checkpoints, list[Path]]:
    """What `list_checkpoints` finds, and the folders of checkpoints whose records are damaged. Raises OSError.

    That a record can't be read for now says nothing of a checkpoint, so that it is no damage.
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
            if path.exists():  # else it has just been removed, as it was no longer needed
                damaged.append(path)
    return sorted(found, key=lambda entry: entry[1].step), sorted(damaged)


def no_valid_checkpoint_error(name: str) -> RunError:
    """What to say of a run whose checkpoints are all damaged."""
    return RunError(f"{name} has no sound checkpoint left.", "Train anew with the same settings.")


def quarantine(path: Path) -> None:
    """Take a damaged checkpoint out of the way of the sound ones. Raises OSError."""
    target = path.with_name(_QUARANTINE_PREFIX + path.name)
    files.remove(target)
    files.retry_in_use(lambda: path.rename(target))


def remove_quarantined(folder: Path) -> None:
    """Remove the damaged checkpoints: there is a sound one that is newer. Raises OSError."""
    for path in folder.glob(f"{_QUARANTINE_PREFIX}*"):
        files.remove(path)


def leftovers(folder: Path) -> list[Path]:
    """What is of no use where no training is going on: damaged checkpoints that were set aside, and half-written ones.

    Raises OSError.
    """
    return sorted(
        path for path in folder.iterdir() if path.name.startswith(_QUARANTINE_PREFIX) or files.is_temporary(path)
    )


def add_distilled(folder: Path, step: int, tensors: Tensors) -> None:
    """Add a distilled network to the checkpoint of this step. Raises RunError when that has gone, and OSError."""
    for path, info in list_checkpoints(folder):
        if info.step == step:
            content = serialize(tensors)
            files.write_atomic(path / f"{DISTILLED}.safetensors", content)
            hashes = {**info.sha256, DISTILLED: hashlib.sha256(content).hexdigest()}
            _write_record(path, dataclasses.replace(info, sha256=hashes))
            return
    raise RunError(f"The checkpoint at step {step:,} has gone.", "Choose another checkpoint of this run.")


def add_metrics(folder: Path, step: int, metrics: Mapping[str, float]) -> None:
    """Add figures, measured later, to the checkpoint of this step, if it is still there. Raises OSError."""
    for path, info in list_checkpoints(folder):
        if info.step == step:
            _write_record(path, dataclasses.replace(info, metrics={**info.metrics, **metrics}))


def load_tensors(path: Path, info: CheckpointInfo, part: str) -> Tensors:
    """One part of a checkpoint, on the CPU. Raises DamagedError when its bytes are not those that were written, and
    OSError when they can't be read.
    """
    content = _read_verified(path, info, part)
    try:
        return parse_tensors(content)
    except SafetensorError as error:
        raise DamagedError(f"Checkpoint {path.name} is damaged.", str(error)) from error


def verify(path: Path, info: CheckpointInfo) -> None:
    """Read a checkpoint from end to end. Raises DamagedError, OSError."""
    for part in {*PARTS, *info.sha256}:
        _read_verified(path, info, part)


def _read_verified(path: Path, info: CheckpointInfo, part: str) -> bytes:
    """The bytes of a part, which are those that were written. Raises DamagedError, OSError."""
    for _ in range(2):  # again after a short read of a network drive
        try:
            content = (path / f"{part}.safetensors").read_bytes()  # Windows can't replace a mapped file
        except _MISSING_FILE_ERRORS as error:
            raise DamagedError(f"Checkpoint {path.name} is incomplete.", f"{part}.safetensors is missing.") from error
        if hashlib.sha256(content).hexdigest() == info.sha256.get(part):
            return content
    raise DamagedError(f"Checkpoint {path.name} is damaged.", f"{part}.safetensors is not what was written.")


def serialize(tensors: Tensors) -> bytes:
    """The content of a safetensors file; on whatever device the tensors are."""
    return as_bytes({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def load_into(network: nn.Module, tensors: Tensors, name: str) -> None:
    """Put weights into a network, on whatever device it is. Raises RunError when they don't fit or are not numbers."""
    check_finite(tensors, name)
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise RunError(f"{name} does not fit this recipe.", str(error).splitlines()[0]) from error


def check_finite(tensors: Tensors, name: str) -> None:
    """Raise RunError when weights are not numbers."""
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        raise RunError(f"{name} holds weights that are not numbers.", "Choose another checkpoint of this run.")


def rotate(folder: Path, best_by: Metric | None, *, in_use: Container[int | None] = ()) -> None:
    """Remove old checkpoints. Raises OSError.

    Keep the checkpoints of `essential_checkpoints`, the last two, the numbers 1, 2, 4, 8, ... and the steps `in_use`.
    """
    found = list_checkpoints(folder)
    keep = essential_checkpoints(found, best_by) | {path for path, _ in found[-2:]}
    keep |= {path for path, info in found if info.number & (info.number - 1) == 0}
    for path, info in found:
        if path not in keep and info.step not in in_use:
            files.remove(path)


def essential_checkpoints(found: Checkpoints, best_by: Metric | None) -> set[Path]:
    """The checkpoints that a run can't do without: the newest and the best.

    So are, of the measured ones, the best, which a later measurement may show to be the best of all, and those without
    which that could not be told: the one of the lowest distance and the newest. Where none is measured, so is the first
    that has learnt enough.
    """
    steps = {found[-1][1].step} if found else set()
    if measured := _measurements(found):
        steps |= {advice.best_step(measured), advice.lowest_step(measured), measured[-1].step}
    elif found:
        steps.add(from_lowest_loss(found)[0][1].step)
    best = best_checkpoint(found, best_by)
    return {path for path, info in found if info.step in steps or path == best}


def best_checkpoint(found: Checkpoints, best_by: Metric | None) -> Path | None:
    """Return the checkpoint to use; None without a checkpoint.

    `advice.best_saved_step` chooses by the measurements of new sprites, or by the figure `best_by` on held-out sprites.
    Without both, take the newest of the `from_lowest_loss` checkpoints that is not known to copy; if all copy, the
    checkpoint that copies least.
    """
    paths = {info.step: path for path, info in found}
    name = best_by.name if best_by else ""
    curve = [(info.step, info.metrics[name]) for _, info in found if name in info.metrics]
    best = advice.best_saved_step(list(paths), _measurements(found), best_by, curve)
    if best is not None:
        return paths[best]
    newest_first = reversed(from_lowest_loss(found))
    return min(newest_first, key=lambda entry: _excess_copies(entry[1]), default=(None, None))[0]


def from_lowest_loss(found: Checkpoints) -> Checkpoints:
    """The checkpoints from that with the lowest loss on held-out sprites on; all where none is known."""
    losses = [info.metrics.get(LOSS.name, math.inf) for _, info in found]
    return found[losses.index(min(losses)) :] if found else found


def _excess_copies(info: CheckpointInfo) -> float:
    """The share of copies in what a checkpoint draws where they are too many; 0 where they are not, or none knows."""
    copies, real = info.metrics.get("copies", 0.0), info.metrics.get("copies_real", 0.0)
    return copies if advice.copies_too_much(copies, real, advice.FINAL_SPRITES) else 0.0


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer]) -> Tensors:
    """The optimizers' state by '<class of the optimizer>/<number of the weight>/<name>'."""
    return {
        f"{type(optimizer).__name__}/{index}/{name}": value
        for optimizer in optimizers
        for index, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def load_optimizers(optimizers: Sequence[torch.optim.Optimizer], tensors: Tensors) -> None:
    """Put back what `optimizer_tensors` gave. Raises RunError when it belongs to another network or optimizer."""
    by_name = {type(optimizer).__name__: optimizer for optimizer in optimizers}
    parts: dict[str, Tensors] = {name: {} for name in by_name}
    for key, value in tensors.items():
        name, _, rest = key.partition("/")
        if name not in parts:
            raise RunError(
                "The optimizer's state does not fit this run.",
                "It comes from other optimizers: train anew with the same settings.",
            )
        parts[name][rest] = value
    for name, part in parts.items():
        _load_optimizer(by_name[name], part)


def _measurements(found: Checkpoints) -> list[advice.Measurement]:
    qualities = ((info.step, Quality.from_figures(info.metrics)) for _, info in found)
    return [advice.Measurement(step, quality) for step, quality in qualities if quality is not None]


def _write_record(path: Path, info: CheckpointInfo) -> None:
    """Write or replace checkpoint.json. Whole numbers among the figures are sealed as they will be read: as floats."""
    metrics = {name: float(value) for name, value in info.metrics.items()}
    info = dataclasses.replace(info, elapsed_s=float(info.elapsed_s), metrics=metrics)
    values = dataclasses.asdict(dataclasses.replace(info, seal=_seal(info)))
    files.write_atomic(path / _RECORD, json.dumps(values, indent=2).encode())


def _read_record(path: Path) -> CheckpointInfo:
    """What checkpoint.json says. Raises DamagedError, and OSError when it can't be read."""
    try:
        info = records.parse((path / _RECORD).read_bytes(), CheckpointInfo)
    except _MISSING_FILE_ERRORS as error:
        raise DamagedError(f"Checkpoint {path.name} is incomplete.", f"{_RECORD} is missing.") from error
    except ValueError as error:
        raise DamagedError(f"Checkpoint {path.name} is damaged.", f"{_RECORD}: {error}.") from error
    if info.seal != _seal(info):
        raise DamagedError(f"Checkpoint {path.name} is damaged.", f"{_RECORD} is not what was written.")
    return info


def _seal(info: CheckpointInfo) -> str:
    values = dataclasses.asdict(dataclasses.replace(info, seal=""))
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _load_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    # Weights that the network did not have then keep the state that they have.
    state: dict[int, Tensors] = {index: dict(values) for index, values in optimizer.state_dict()["state"].items()}
    try:
        for key, value in tensors.items():
            index, _, name = key.partition("/")
            # The fused optimizer walks weights and state side by side in memory: they must be laid out alike.
            alike = torch.empty_like(weights[int(index)]).copy_(value) if value.ndim else value
            state.setdefault(int(index), {})[name] = alike
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    except (ValueError, KeyError, IndexError, RuntimeError) as error:
        raise RunError("The optimizer's state does not fit this run.", str(error)) from error
