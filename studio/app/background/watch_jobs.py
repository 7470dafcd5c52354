"""Jobs that follow trainings in other processes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from studio.app.background.job_events import RunDescribed
from studio.app.background.worker import JobIdle
from studio.core.errors import RunError
from studio.core.events import Events, RunFinished
from studio.engine.control.watcher import RunWatcher, TrainingLost, TrainingSeen
from studio.engine.distributed.launching import TrainingProcesses
from studio.engine.runs.folder import RunDir
from studio.engine.runs.listing import remember


def watch(run: Path) -> Events:
    """Follow a training: yield its events from the run folder, and `JobIdle` after each read.

    Raises RunError if the training fails or is lost.
    """
    watcher = RunWatcher(run)
    remember(run)
    yield RunDescribed(watcher.record)
    while True:
        for event in watcher.poll():
            if isinstance(event, TrainingLost):
                raise RunError(event.title, event.hint)
            yield event
        if isinstance(event, RunFinished):
            return
        if isinstance(event, TrainingSeen) and event.live is None and _is_over(run):  # ended before its first heartbeat
            yield _end(run)
            return
        yield JobIdle()


def launch(processes: TrainingProcesses) -> Events:
    """Launch processes that train a run, and follow the run until they have ended.

    A lost heartbeat does not end the job, because torchrun may restart the processes.
    """
    watcher = RunWatcher(processes.run)
    processes.start()
    yield RunDescribed(watcher.record)
    is_alive, is_finished = False, False
    while not is_finished or processes.is_running():
        were_running = processes.is_running()  # read before the events, to see the last events
        for event in watcher.poll():
            is_alive = isinstance(event, TrainingSeen) and event.live is not None
            is_finished = is_finished or isinstance(event, RunFinished)
            if not isinstance(event, TrainingLost):
                yield event
        if not (were_running or is_alive or is_finished):
            if processes.has_failed():
                raise processes.failure()
            yield _end(processes.run)
            return
        yield JobIdle()


def _is_over(run: Path) -> bool:
    """Return whether a run has ended without an interruption."""
    return not RunDir(run).is_busy() and RunDir(run).progress().state != "training"


def _end(run: Path) -> RunFinished:
    """Return the final event of a run that ended without a heartbeat. Raises RunError if the run failed."""
    progress = RunDir(run).progress()
    if progress.state == "failed":
        raise RunError(f"{run.name} has failed.", progress.message)
    reason: Literal["finished", "stopped"] = "finished" if progress.state == "finished" else "stopped"
    return RunFinished(reason, progress.step, progress.elapsed_s, run)
