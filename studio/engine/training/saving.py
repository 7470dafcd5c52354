"""Write a training to its run folder: checkpoints, validation metrics, state.json."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from studio.core.events import CheckpointSaved, Events, RolledBack
from studio.engine.control.control import Control, retry_until_writable
from studio.engine.quality.evaluate import evaluate_heldout
from studio.engine.runs import checkpoints
from studio.engine.runs.checkpoints import CheckpointInfo
from studio.engine.runs.folder import RunProgress, RunState
from studio.engine.training.state import Training


def validate(training: Training, control: Control) -> Events:
    """Evaluate the EMA weights on the validation set, unless it is empty; yields one Validated."""
    if not len(training.heldout):
        return
    with training.side_work.skip_if_full("validation"):
        training.validated = evaluate_heldout(
            training.model(), training.heldout, training.heldout_batch_size, training.heldout_indices
        )
        yield from retry_until_writable(control, training.run.append, training.validated)
        yield training.validated


def save(training: Training, control: Control) -> Events:
    """Write a checkpoint, unless this step has one, and then validate the model, unless this step is validated.

    Yields Validated and CheckpointSaved. The weights are written first, because validation may fail.
    """
    if training.saved_step == training.step:
        return
    path = yield from retry_until_writable(control, write_checkpoint, training)
    if not training.is_validated():
        yield from validate(training, control)
        yield from retry_until_writable(control, _add_metrics, training)
    yield CheckpointSaved(training.step, path)


def write_checkpoint(training: Training) -> Path:
    """Write a checkpoint and state.json, remove old checkpoints, and return the new folder.

    After an UnwritableError, older checkpoints are untouched, and another call continues where this one failed.
    """
    run = training.run
    if training.saved_step != training.step:
        _write_tensors(training)
        training.notices += training.recovery.on_checkpoint_saved()  # a valid checkpoint may undo a rollback
    if training.validated is not None:
        run.save_confusion(training.validated)
    write_state(training, "training")
    if training.logged_step != training.step:
        run.append({"checkpoint": training.step, "elapsed_s": round(training.elapsed_s, 3)})  # a line of metrics.jsonl
        training.logged_step = training.step
    with run.wrap_write_errors():
        checkpoints.remove_quarantined(run.checkpoints)  # a valid checkpoint now replaces the damaged ones
        checkpoints.rotate(run.checkpoints, training.recipe.best_by, in_use=(training.measuring_step,))
    return checkpoints.checkpoint_path(run.checkpoints, training.step)


def _write_tensors(training: Training) -> None:
    """Write the weights, the EMA weights and the optimizers' state of this step. Raises UnwritableError."""
    metrics = dict(training.validated.metrics) if training.validated and training.is_validated() else {}
    info = CheckpointInfo(training.step, training.checkpoint_number + 1, training.elapsed_s, metrics, {})
    parts = {
        "model": training.network.state_dict(),  # weights that training continues from
        "average": training.ema.network.state_dict(),  # EMA weights, which draw better sprites
        "optimizer": checkpoints.optimizer_tensors(training.optimizers) | training.scaler.state_tensors(),
    }
    with training.run.wrap_write_errors():
        checkpoints.save(training.run.checkpoints, info, parts)
    training.checkpoint_number, training.saved_step = training.checkpoint_number + 1, training.step


def _add_metrics(training: Training) -> None:
    """Add this step's validation metrics to its checkpoint. Raises UnwritableError."""
    if training.is_validated():
        assert training.validated is not None
        with training.run.wrap_write_errors():
            checkpoints.add_metrics(training.run.checkpoints, training.step, training.validated.metrics)
        training.run.save_confusion(training.validated)
        write_state(training, "training")


def write_state(training: Training, state: RunState, message: str = "") -> None:
    """Write the training's progress to state.json. Raises UnwritableError."""
    if training.validated is not None:
        set_headline(training, training.validated.metrics)
    recovery, elapsed_s = training.recovery, training.elapsed_s
    training.run.write_progress(RunProgress(
        state, training.step, elapsed_s, training.headline, message, recovery.nan_rollbacks,
        recovery.micro_batches.count, training.device_name, training.extended_min,
    ))  # fmt: skip


def set_headline(training: Training, metrics: Mapping[str, float]) -> None:
    """Store the recipe's headline metric in the training; lists of runs show it."""
    training.headline = {name: value for name, value in metrics.items() if name == training.recipe.headline.name}


def roll_back(training: Training, why: str, failed_step: int) -> None:
    """Halve the learning rate after a NaN loss in `failed_step`. why: for the notice. Raises UnwritableError."""
    training.recovery.count_rollback()
    rollback = RolledBack(failed_step, training.step, training.recovery.lr_scale())
    training.run.append(asdict(rollback))
    training.notices += [rollback, training.continue_notice(why, "at half the learning rate")]
    write_state(training, "training")
