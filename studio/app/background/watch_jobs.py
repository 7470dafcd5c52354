"""The window's jobs on runs that other processes train, its own among them."""

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
    """What a training says in its run's folder, from the first word that is there to the end, with a rest after each
    look. Raises RunError when it ends otherwise.
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
        if isinstance(event, TrainingSeen) and event.live is None and _is_over(run):  # before anything was heard of it
            yield _end(run)
            return
        yield JobIdle()


def launch(processes: TrainingProcesses) -> Events:
    """Have processes train a run, and watch it: as `watch` does, but until they have ended. They may be started again
    in between, so that a training which is lost begins again.
    """
    watcher = RunWatcher(processes.run)
    processes.start()
    yield RunDescribed(watcher.record)
    is_heard, is_finished = False, False
    while not is_finished or processes.is_running():
        were_running = processes.is_running()  # before the look: it shows what they have done last
        for event in watcher.poll():
            is_heard = isinstance(event, TrainingSeen) and event.live is not None
            is_finished = is_finished or isinstance(event, RunFinished)
            if not isinstance(event, TrainingLost):
                yield event
        if not (were_running or is_heard or is_finished):
            if processes.has_failed():
                raise processes.failure()
            yield _end(processes.run)
            return
        yield JobIdle()


def _is_over(run: Path) -> bool:
    """Whether nobody trains a run, and it was not interrupted."""
    return not RunDir(run).is_busy() and RunDir(run).progress().state != "training"


def _end(run: Path) -> RunFinished:
    """How a run has ended that nothing was heard of. Raises RunError where it has failed."""
    progress = RunDir(run).progress()
    if progress.state == "failed":
        raise RunError(f"{run.name} has failed.", progress.message)
    reason: Literal["finished", "stopped"] = "finished" if progress.state == "finished" else "stopped"
    return RunFinished(reason, progress.step, progress.elapsed_s, run)
