"""`studio queue`: trainings that wait for their turn, in the same queue as the window's."""

from __future__ import annotations

import argparse
import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from studio.cli.arguments import find_device, find_run
from studio.cli.distributed import in_ranks
from studio.cli.messages import DONE, FAILED, INTERRUPTED, finished
from studio.cli.reporting import Reporter, follow, reporter_for
from studio.cli.train import name_of, new_run, to_the_end
from studio.core.errors import DeviceError, ProcessGoneError, RunError, StepTooLargeError, UsageError
from studio.core.events import Notice
from studio.core.formatting import count, describe_error, number
from studio.core.shell import command_line
from studio.engine.control.control import Control
from studio.engine.devices.types import Device
from studio.engine.runs import queue
from studio.engine.runs.folder import RunDir, RunRecord
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

_NEXT = "Go on with the queue: studio queue run. 'torchrun --max-restarts 3' does so by itself."
_EMPTY = "Nothing waits. 'studio queue add FOLDER' puts a training into the queue."


def add(args: argparse.Namespace) -> int:
    """Make a new run that waits in the queue."""
    from studio.engine.training.create import queue_new

    reporter = reporter_for(args)
    path = follow(queue_new(new_run(args, reporter)), reporter, queue.RunQueued).path
    remember(path)
    waiting = _waiting()
    place = [run.path.resolve() for run in waiting].index(path.resolve()) + 1
    reporter.say(f"{path.name} waits: number {place} of {len(waiting)}. Its sprites and settings are kept in {path}")
    reporter.say("Train all that waits:  studio queue run")
    return DONE


def show(args: argparse.Namespace) -> int:
    """List what waits, in its order."""
    reporter, waiting = reporter_for(args), _waiting()
    for place, run in enumerate(waiting, 1):
        reporter.record({"type": "RunSummary", "place": place, **vars(run)})
    if not waiting:
        reporter.say(_EMPTY)
        return DONE
    columns = (">place", "name", "recipe", "data", "device", ">steps", "state")
    reporter.table(columns, [_row(place, run) for place, run in enumerate(waiting, 1)])
    return DONE


def move(args: argparse.Namespace) -> int:
    """Give a run another place."""
    waiting = _waiting()
    run = _in_queue(args.run_name, waiting)
    if not 1 <= args.place <= len(waiting):
        raise UsageError(f"There is no place {args.place}: the queue has {count(len(waiting), 'run')}.", "1 is first.")
    queue.move(run.path, args.place - 1, waiting)
    return show(args)


def remove(args: argparse.Namespace) -> int:
    """Take runs out of the queue."""
    reporter, waiting = reporter_for(args), _waiting()
    for run in [_in_queue(name, waiting) for name in args.run_names]:
        queue.remove(run.path)
        again = command_line("studio", "resume", name_of(run.path))
        reporter.say(f"{run.title} waits no longer. It is kept; train it:  {again}")
    return DONE


def train_all(args: argparse.Namespace) -> int:
    """Train what waits, one run after the other, past those that fail or that another process trains."""
    return in_ranks(_train_all, args)


def _train_all(args: argparse.Namespace, ranks: Ranks) -> int:
    reporter = reporter_for(args)
    trained: list[Path] = []
    failed: list[Path] = []
    passed: set[Path] = set()
    stopped = False
    run = _begun_before(ranks) or queue.next_run(_waiting())
    while run is not None:
        passed.add(run.path)
        control = Control()
        ranks.remember(run.path)
        try:
            if _train(run, control, reporter, args, ranks):
                trained.append(run.path)
        except Exception as error:  # a boundary: whatever ends a run, a plug-in's bug too, the next one is trained
            if isinstance(error, ProcessGoneError | StepTooLargeError):  # torchrun's restart goes on with this run
                raise
            ranks.remember(None)
            if RunDir(run.path).is_busy():
                reporter.show(Notice("info", f"{run.title} is being trained elsewhere.", "The next one is taken."))
            else:
                failed.append(run.path)
                _say_failed(run.path, error, reporter)
            if not ranks.are_in_step:
                raise ProcessGoneError("The other processes can't go on from there.", _NEXT) from error
        stopped = control.stop
        run = None if stopped else queue.next_run(_waiting(), passed)
    left = _waiting()
    values = {"type": "QueueEnded", "trained": trained, "failed": failed, "left": [run.path for run in left]}
    reporter.record(values)
    _sum_up(trained, failed, left, reporter)
    return INTERRUPTED if stopped else FAILED if failed else DONE


def _begun_before(ranks: Ranks) -> RunSummary | None:
    """The run that torchrun's restart is to go on with, also where the end of a process has made it fail."""
    path = ranks.remembered()
    run = summarise(path) if path is not None else None
    return run if run is not None and run.standing not in ("finished", "damaged", "training") else None


def _train(run: RunSummary, control: Control, reporter: Reporter, args: argparse.Namespace, ranks: Ranks) -> bool:
    """Train one run; returns whether it came to its end, before Ctrl+C. Raises whatever goes wrong."""
    from studio.engine.training.loop import train_resumed

    assert run.record is not None
    reporter.say(f"Next in the queue: {run.title}")
    device = _device_of(run.record, reporter) if ranks.is_alone else find_device(args)
    events = train_resumed(run.path, device, control, ranks=ranks)
    end, interrupted = to_the_end(events, run.path, control, reporter)
    reporter.say(finished(end))
    return not interrupted


def _device_of(record: RunRecord, reporter: Reporter) -> Device:
    """The device that was chosen when the run was queued, or the fastest where that one is gone. Raises DeviceError."""
    from studio.engine.devices import detection

    try:
        return detection.find_device(record.device)
    except (UsageError, DeviceError):
        device = detection.find_device(detection.AUTO)
        reporter.show(Notice("info", f"{record.device_name} is not here; {device.name} is taken."))
        return device


def _say_failed(run: Path, error: Exception, reporter: Reporter) -> None:
    """Say why a run has failed, here and in its state.json, where it may not have got so far as to do so itself."""
    words = describe_error(error, otherwise="Something went wrong inside the studio.")
    _log.error("%s has failed.", run, exc_info=error)
    reporter.show(Notice("error", f"{run.name} has failed.", " ".join(words).strip()))
    with contextlib.suppress(RunError):  # a drive that is gone: it has been said, and the next run may be on another
        queue.mark_failed(run, " ".join(words).strip())


def _sum_up(trained: list[Path], failed: list[Path], left: tuple[RunSummary, ...], reporter: Reporter) -> None:
    if not trained and not failed and not left:
        reporter.say(_EMPTY)
        return
    names = f": {', '.join(path.name for path in failed)}" if failed else ""
    reporter.say(f"{count(len(trained), 'run')} trained, {number(len(failed))} failed{names}.")
    elsewhere = sum(run.standing == "training" for run in left)
    if elsewhere:
        reporter.say(f"{count(elsewhere, 'run')} of the queue: being trained by another window or command.")
    if len(left) > elsewhere:
        reporter.say(f"{count(len(left) - elsewhere, 'run')} left. Go on with the queue:  studio queue run")


def _waiting() -> tuple[RunSummary, ...]:
    *_, listed = list_runs(remembered_runs())
    assert isinstance(listed, RunsListed)
    return queue.queued_runs(listed.runs)


def _in_queue(name: str, waiting: tuple[RunSummary, ...]) -> RunSummary:
    """The run of that name or in that folder. Raises UsageError."""
    path = find_run(name).resolve()
    for run in waiting:
        if run.path.resolve() == path:
            return run
    raise UsageError(f"{name} is not in the queue.", "'studio queue list' lists what is.")


def _row(place: int, run: RunSummary) -> tuple[str, ...]:
    record = run.record
    assert record is not None
    return (str(place), run.title, record.recipe, data_label(record), record.device, number(run.step), run.standing)
