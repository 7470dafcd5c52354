"""Run a command that torchrun has started in several processes: rank 0 prints and writes, the others train along."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from studio.cli.inputs import find_device
from studio.cli.messages import DONE, FAILED, INTERRUPTED
from studio.cli.signal_handlers import stop_on_signal
from studio.core.errors import BadInputError, ProcessGoneError, RunError, TrainingError, UsageError
from studio.engine.control.control import Control

if TYPE_CHECKING:
    from studio.engine.distributed.ranks import Group, Ranks


def run_distributed(work: Callable[[argparse.Namespace, Ranks], int], args: argparse.Namespace) -> int:
    """Call `work` on rank 0 and take part in its training on the other ranks; return the exit code.

    Without torchrun, only calls `work`. torchrun restarts all processes after any exit code but 0. Therefore a training
    stopped by the user returns 0. After an error that a restart can't fix, restarted processes end at once. Raises
    UsageError.
    """
    from studio.engine.distributed.ranks import ALONE, is_torchrun_launched, process_group

    if not is_torchrun_launched():
        return work(args, ALONE)
    with process_group(args.device) as group:
        args.device = group.device
        if group.has_ended():
            return FAILED
        if not group.is_first:
            return _train_as_worker(args, group)
        try:
            code = work(args, group)
        except (BadInputError, RunError, TrainingError, UsageError) as error:
            if not (isinstance(error, ProcessGoneError) or has_run_folder(group)):
                group.mark_ended()
            raise
        if code == FAILED:
            group.mark_ended()
    return DONE if code == INTERRUPTED else code


def has_run_folder(ranks: Ranks) -> bool:
    """Return whether an earlier start by torchrun has created a run folder, which can be resumed."""
    path = ranks.current_run()
    return path is not None and (path / "run.json").is_file()


def _train_as_worker(args: argparse.Namespace, group: Group) -> int:
    """Train under the control of rank 0 until it ends; return the exit code."""
    from studio.engine.training.loop import train_worker

    control = Control()
    try:
        with stop_on_signal(control, message=""):
            train_worker(find_device(args), control, group)
    except (KeyboardInterrupt, ProcessGoneError):  # rank 0 or torchrun prints the reason
        return FAILED
    return DONE
