"""Load a model from a checkpoint of a run, or from another checkpoint if the first is damaged."""

from pathlib import Path

import torch

from studio.core.errors import DamagedError, RunError, UsageError
from studio.core.events import Notice
from studio.engine import catalog
from studio.engine.devices import detection
from studio.engine.devices.types import Device
from studio.engine.models.model import TrainedModel, load_style
from studio.engine.runs import checkpoints
from studio.engine.runs.checkpoints import DISTILLED, CheckpointInfo
from studio.engine.runs.folder import RunDir, RunRecord, wrap_read_errors
from studio.recipes.base import Recipe, Spec
from studio.recipes.capabilities import Distils


def precision_for(record: RunRecord, device: Device, wanted: str) -> str:
    """Return the precision for a run on a device: the training's on an equal device, else `wanted`, but never fp16."""
    if (device.id, device.name) == (record.device, record.device_name):
        return record.precision  # also if a new probe prefers another precision: equal seeds give equal runs
    return detection.resolve_precision(device, detection.AUTO if wanted == "fp16" else wanted)


def load_model(path: Path, checkpoint: str, device: Device) -> TrainedModel:
    """Load the model of a run at a checkpoint: 'best', 'last' or a step. Raises RunError, UsageError, DeviceError.

    If the best or last checkpoint is damaged, loads another one and says so in the model's `notices`.
    """
    run = RunDir(path)
    record = run.record()
    recipe = catalog.recipe(record.recipe)
    config = recipe.Config.from_json(record.config)
    spec = Spec(record.size, record.class_names, record.target_names, record.cells, record.attributes)
    chosen, info, tensors, notices = load_average_weights(run, checkpoint, recipe)
    network = recipe.build(config, spec).eval().requires_grad_(False)  # float32 on the CPU
    checkpoints.load_into(network, tensors, chosen.name)
    target = device.torch
    precision = precision_for(record, device, config.precision)
    distilled = None
    if DISTILLED in info.sha256 and isinstance(recipe, Distils):
        try:
            with wrap_read_errors(chosen):
                tensors = checkpoints.load_tensors(chosen, info, DISTILLED)
            distilled = recipe.student(network).eval().requires_grad_(False)
            checkpoints.load_into(distilled, tensors, chosen.name)
        except DamagedError as error:
            notices.append(Notice("warning", f"The distilled network was skipped. {error.title}", error.hint))
    with detection.wrap_device_errors(target):
        network = network.to(target).to(memory_format=torch.channels_last)  # NHWC: faster convolutions on GPUs
        distilled = None if distilled is None else distilled.to(target).to(memory_format=torch.channels_last)
    return TrainedModel(
        recipe, config, spec, network, target, precision, info.step, record.name, load_style(run, record),
        record.ancestors, tuple(notices), distilled, run.path,
    )  # fmt: skip


def load_average_weights(
    run: RunDir, wanted: str, recipe: Recipe
) -> tuple[Path, CheckpointInfo, checkpoints.Tensors, list[Notice]]:
    """Load the EMA weights of 'best', 'last' or a step. 'best' and 'last' skip damaged checkpoints.

    Returns path, checkpoint.json, weights, and notices on damage. Raises DamagedError, RunError, UsageError.
    """
    found, damaged = _require_checkpoints(run)
    notices = [_fallback_notice(f"Checkpoint {path.name} is damaged.") for path in damaged]
    while True:
        chosen, info = _pick_checkpoint(run, found, wanted, recipe)
        try:
            with wrap_read_errors(chosen):
                return chosen, info, checkpoints.load_tensors(chosen, info, "average"), notices  # the EMA weights
        except DamagedError as error:
            if wanted not in ("best", "last"):
                raise
            if chosen.exists():  # otherwise the training has just deleted the outdated file
                notices.append(_fallback_notice(error.title))
            found.remove((chosen, info))
            if not found:
                raise checkpoints.no_valid_checkpoint_error(run.path.name) from error


def find_checkpoint(path: Path, checkpoint: str) -> tuple[Path, CheckpointInfo]:
    """Return the checkpoint that 'best', 'last' or a step currently refers to. Raises RunError, UsageError."""
    run = RunDir(path)
    return _pick_checkpoint(run, _require_checkpoints(run)[0], checkpoint, catalog.recipe(run.record().recipe))


def checkpoint_names(path: Path, *, distilled: bool = False) -> list[str]:
    """Return 'best', 'last' and the steps. distilled: only with a distilled network. Raises RunError."""
    run = RunDir(path)
    with wrap_read_errors(run.checkpoints):
        found = checkpoints.list_checkpoints(run.checkpoints)
    names = ["best", "last", *(str(info.step) for _, info in reversed(found))] if found else []
    if not distilled:
        return names
    recipe = catalog.recipe(run.record().recipe)
    return [name for name in names if DISTILLED in _pick_checkpoint(run, found, name, recipe)[1].sha256]


def _require_checkpoints(run: RunDir) -> tuple[checkpoints.Checkpoints, list[Path]]:
    """Return the valid checkpoints of a run, and the paths of damaged ones. Raises RunError without valid ones."""
    with wrap_read_errors(run.checkpoints):
        found, damaged = checkpoints.scan(run.checkpoints)
    if not found and damaged:
        raise checkpoints.no_valid_checkpoint_error(run.path.name)
    if not found:
        raise RunError(f"{run.path.name} has no checkpoint yet.", "Train until the first checkpoint is saved.")
    return found, damaged


def _fallback_notice(title: str) -> Notice:
    return Notice("warning", title, "Using another checkpoint.")


def _pick_checkpoint(
    run: RunDir, found: checkpoints.Checkpoints, wanted: str, recipe: Recipe
) -> tuple[Path, CheckpointInfo]:
    """Return the checkpoint for 'best', 'last' or a step. Raises UsageError for a step without a checkpoint."""
    if wanted == "last":
        return found[-1]
    if wanted == "best":
        best = checkpoints.best_checkpoint(found, recipe.best_by)
        return next(entry for entry in found if entry[0] == best)
    for path, info in found:
        if str(info.step) == wanted:
            return path, info
    steps = ", ".join(str(info.step) for _, info in found)
    raise UsageError(f"{run.path.name} has no checkpoint at step {wanted}.", f"Choose one of: best, last, {steps}.")
