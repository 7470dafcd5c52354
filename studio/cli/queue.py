"""`studio queue`: list, add, move, remove and train queued runs. The window shares the queue."""

from __future__ import annotations

import argparse
import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from studio.cli.distributed import run_distributed
from studio.cli.inputs import find_device, find_run
from studio.cli.messages import DONE, FAILED, INTERRUPTED, finished
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.cli.train import new_run, run_argument, train_until_stopped
from studio.core.errors import BusyRunError, DeviceError, ProcessGoneError, RunError, StepTooLargeError, UsageError
from studio.core.events import Notice
from studio.core.formatting import count, describe_error, number
from studio.core.shell import command_line
from studio.engine.control.control import Control
from studio.engine.devices.types import Device
from studio.engine.runs import queue
from studio.engine.runs.folder import RunRecord
from studio.engine.runs.listing import (
    RunsListed,
    RunSummary,
    data_label,
    list_runs,
    remember,
    remembered_runs,
    summarise,
)

if TYPE_CHECKING:
    from studio.engine.distributed.ranks import Ranks

_log = logging.getLogger(__name__)

_RESUME_HINT = "Continue the queue with: studio queue run. 'torchrun --max-restarts 3' continues by itself."
_EMPTY = "The queue is empty. 'studio queue add FOLDER' adds a run."


def add(args: argparse.Namespace) -> int:
    """Create a new run and add it to the end of the queue."""
    from studio.engine.training.create import create_queued_run

    reporter = reporter_for(args)
    path = run_job(create_queued_run(new_run(args, reporter)), reporter, queue.RunQueued).path
    remember(path)
    waiting = _queued_runs()
    position = [run.path.resolve() for run in waiting].index(path.resolve()) + 1
    reporter.print(f"Queued {path.name} at position {position} of {len(waiting)}. The run is in {path}")
    reporter.print("Train all queued runs:  studio queue run")
    return DONE


def show(args: argparse.Namespace) -> int:
    """List the queue in order."""
    reporter, waiting = reporter_for(args), _queued_runs()
    for position, run in enumerate(waiting, 1):
        reporter.write_json({"type": "RunSummary", "place": position, **vars(run)})
    columns = (">position", "name", "recipe", "data", "device", ">steps", "state")
    if waiting:
        reporter.print_table(columns, [_row(position, run) for position, run in enumerate(waiting, 1)])
    else:
        reporter.print(_EMPTY)
    return DONE


def move(args: argparse.Namespace) -> int:
    """Move a run to another position, then list the queue. Raises UsageError."""
    waiting = _queued_runs()
    run = _find_queued(args.run_name, waiting)
    if not 1 <= args.position <= len(waiting):
        runs = count(len(waiting), "run")
        raise UsageError(f"There is no position {args.position}: the queue has {runs}.", "1 is the first position.")
    queue.move(run.path, args.position - 1, waiting)
    return show(args)


def remove(args: argparse.Namespace) -> int:
    """Remove runs from the queue. Their folders stay."""
    reporter, waiting = reporter_for(args), _queued_runs()
    for run in [_find_queued(name, waiting) for name in args.run_names]:
        queue.remove(run.path)
        again = command_line("studio", "resume", run_argument(run.path))
        reporter.print(f"Removed {run.title} from the queue. Train it later:  {again}")
    return DONE


def train_all(args: argparse.Namespace) -> int:
    """Train all queued runs in order; skip runs that fail and runs that another process trains."""
    return run_distributed(_train_all, args)


def _train_all(args: argparse.Namespace, ranks: Ranks) -> int:
    reporter = reporter_for(args)
    trained, failed, tried, stopped = list[Path](), list[Path](), set[Path](), False
    run = _interrupted_run(ranks) or queue.next_run(_queued_runs())
    while run is not None:
        tried.add(run.path)
        control = Control()
        ranks.set_current_run(run.path)
        try:
            if _train(run, control, reporter, args, ranks):
                trained.append(run.path)
        except Exception as error:  # any error, also a bug in a plug-in, must not keep the other runs from training
            if isinstance(error, ProcessGoneError | StepTooLargeError):  # torchrun restarts and resumes this run
                raise
            ranks.set_current_run(None)
            if isinstance(error, BusyRunError):
                reporter.show(Notice("info", f"Skipped {run.title}: another process trains it or has trained it."))
            else:
                failed.append(run.path)
                _report_failure(run.path, error, reporter)
            if not ranks.in_sync:
                raise ProcessGoneError("The other processes lost track of the queue.", _RESUME_HINT) from error
        stopped = control.stop
        run = None if stopped else queue.next_run(_queued_runs(), tried)
    left = _queued_runs()
    left_paths = [run.path for run in left]
    reporter.write_json({"type": "QueueEnded", "trained": trained, "failed": failed, "left": left_paths})
    _print_summary(trained, failed, left, reporter)
    return INTERRUPTED if stopped else FAILED if failed else DONE


def _interrupted_run(ranks: Ranks) -> RunSummary | None:
    """Return the run in training when torchrun restarted, even if marked as failed; None for a first start."""
    path = ranks.current_run()
    run = summarise(path) if path is not None else None
    return run if run is not None and run.standing not in ("finished", "damaged", "training") else None


def _train(run: RunSummary, control: Control, reporter: Reporter, args: argparse.Namespace, ranks: Ranks) -> bool:
    """Train a queued run; return False if Ctrl+C stopped the run. Raises the errors of the training."""
    from studio.engine.training.loop import train_resumed

    assert run.record is not None
    reporter.print(f"Next in the queue: {run.title}")
    device = _device_of(run.record, reporter) if ranks.is_alone else find_device(args)
    events = train_resumed(run.path, device, control, ranks=ranks)
    end, interrupted = train_until_stopped(events, run.path, control, reporter)
    reporter.print(finished(end))
    return not interrupted


def _device_of(record: RunRecord, reporter: Reporter) -> Device:
    """Return the device that a run asks for, or the fastest device if this machine lacks it. Raises DeviceError."""
    from studio.engine.devices import detection

    try:
        return detection.find_device(record.device)
    except (UsageError, DeviceError):
        device = detection.find_device(detection.AUTO)
        reporter.show(Notice("info", f"{record.device_name} is not available. Using {device.name}."))
        return device


def _report_failure(run: Path, error: Exception, reporter: Reporter) -> None:
    """Print why a run failed, and store the reason in its state.json unless the run has done so."""
    reason = " ".join(describe_error(error, otherwise="This is a bug in the studio.")).strip()
    _log.error("%s has failed.", run, exc_info=error)
    reporter.show(Notice("error", f"{run.name} has failed.", reason))
    with contextlib.suppress(RunError):  # the drive may be disconnected; the next run may be on another drive
        queue.mark_failed(run, reason)


def _print_summary(trained: list[Path], failed: list[Path], left: tuple[RunSummary, ...], reporter: Reporter) -> None:
    if not trained and not failed and not left:
        reporter.print(_EMPTY)
        return
    names = f": {', '.join(path.name for path in failed)}" if failed else ""
    reporter.print(f"{count(len(trained), 'run')} trained, {number(len(failed))} failed{names}.")
    elsewhere = sum(run.standing == "training" for run in left)
    if elsewhere:
        reporter.print(f"{count(elsewhere, 'run')} in training by another window or command.")
    if len(left) > elsewhere:
        reporter.print(f"{count(len(left) - elsewhere, 'run')} left in the queue. Continue:  studio queue run")


def _queued_runs() -> tuple[RunSummary, ...]:
    *_, listed = list_runs(remembered_runs())
    assert isinstance(listed, RunsListed)
    return queue.queued_runs(listed.runs)


def _find_queued(name: str, waiting: tuple[RunSummary, ...]) -> RunSummary:
    """Return the queued run with this name or folder. Raises UsageError."""
    path = find_run(name).resolve()
    for run in waiting:
        if run.path.resolve() == path:
            return run
    raise UsageError(f"{name} is not in the queue.", "'studio queue list' lists the queue.")


def _row(position: int, run: RunSummary) -> tuple[str, ...]:
    record = run.record
    assert record is not None
    return (str(position), run.title, record.recipe, data_label(record), record.device, number(run.step), run.standing)
