"""Running an experiment in a process of its own, from where it was asked for."""

from __future__ import annotations

import datetime
import logging
import platform
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

import psutil
import torch

import studio
from studio.core import worker_process
from studio.core.errors import StudioError, UsageError
from studio.core.events import Event, Events, JobFailed, Notice, Progress
from studio.core.worker_process import CONNECTION_ERRORS
from studio.engine.devices.types import Device
from studio.lab.child import Done
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Outcome
from studio.lab.results import ExperimentDone, Result, keep

_log = logging.getLogger(__name__)

_WAIT_S = 0.025
_FAREWELL_S = 0.1


def run_experiment(experiment: Experiment, context: ExperimentContext) -> Events:
    """Run it, keep what was found out: yields Progress, Outcomes as they grow, and in the end one ExperimentDone.

    Closing this kills the experiment, its child processes too, and waits at most 100 ms for it. Raises UsageError where
    the device or the run can't do it, StudioError.
    """
    if obstacle := experiment.obstacle(context.device) or experiment.unsupported_reason(context.recipe):
        raise UsageError(f"'{experiment.title}' can't be done here.", obstacle)
    outcome, start_s = Outcome(), time.perf_counter()
    with closing(_Process(experiment, context)) as process:
        for event in process.events():
            outcome = event if isinstance(event, Outcome) else outcome
            yield event
    result = result_of(experiment, context, outcome, time.perf_counter() - start_s)
    try:
        path = keep(result)
    except OSError as error:
        path = None
        yield Notice("warning", "The result could not be kept.", f"The system says: {error.strerror or error}.")
    yield ExperimentDone(result, path)


def look_inside(experiment: Experiment, run: Path, checkpoint: str, device: Device, seconds: float) -> Events:
    """Run one whose subject is a run on this run at a checkpoint ('best', 'last' or a step), as `run_experiment` does.

    Raises UsageError, RunError, StudioError.
    """
    context = yield from ExperimentContext.of_run(run, checkpoint, device, seconds)
    yield from run_experiment(experiment, context)


class _Process:
    """The process of an experiment. Raises StudioError if it can't be started."""

    def __init__(self, experiment: Experiment, context: ExperimentContext) -> None:
        if not worker_process.can_start():
            raise StudioError("Experiments need a Python that can be started once more; this program is none.")
        self._messages: queue.SimpleQueue[Event | Done | None] = queue.SimpleQueue()  # None: it is gone
        self._scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # it can be killed before it tidies up
        try:
            self._process = worker_process.start("studio.lab.child", {"TMPDIR": self._scratch.name})
        except OSError as error:
            self._scratch.cleanup()
            raise StudioError("The experiment's process can't be started.", f"The system says: {error}.") from error
        self._requests, self._answers = worker_process.streams_of(self._process)
        self._thread = threading.Thread(target=self._talk, args=(experiment, context), name="experiment", daemon=True)
        self._thread.start()

    def events(self) -> Iterator[Event]:
        """What it sends until it is done, and the last progress again while it sends nothing. Raises StudioError."""
        last = Progress(0, 0, "the experiment's process is starting")
        while True:
            try:
                message = self._messages.get(timeout=_WAIT_S)
            except queue.Empty:
                yield last
                continue
            match message:
                case Done():
                    return
                case None:
                    raise StudioError("The experiment's process has died.", self._why())
                case JobFailed():
                    _log.error("%s", message.details)
                    raise StudioError(message.title, message.hint) from _Remote(message.details)
                case Progress():
                    last = message
            yield message

    def close(self) -> None:
        """Kill it and what it has started, and delete its temporary files."""
        with suppress(psutil.Error):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    process.kill()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_FAREWELL_S)
        self._thread.join(_FAREWELL_S)
        self._scratch.cleanup()

    def _talk(self, experiment: Experiment, context: ExperimentContext) -> None:
        """On a thread: ask for the experiment and pass on what comes."""
        requests: BinaryIO = self._requests
        try:
            worker_process.send(requests, (experiment, context))
            while True:
                self._messages.put(worker_process.receive(self._answers))
        except CONNECTION_ERRORS:
            self._messages.put(None)
        finally:
            self._answers.close()
            with suppress(OSError):
                requests.close()

    def _why(self) -> str:
        """What is known of its end."""
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1.0)
            if code < 0:
                return f"The system ended it with signal {-code}: perhaps the memory ran out."
        return "Start it again; should it die again, try fewer sprites or a smaller network."


class _Remote(Exception):  # noqa: N818 - no error of its own: it shows the traceback of another process
    """The traceback of what went wrong in the experiment's process."""


def result_of(experiment: Experiment, context: ExperimentContext, outcome: Outcome, took_s: float) -> Result:
    """An outcome with all that one must know to understand it later; took_s: seconds."""
    return Result(
        experiment=experiment.name,
        title=experiment.title,
        question=experiment.question,
        outcome=outcome,
        code=experiment.code(context),
        read_on=experiment.read_on,
        recipe=context.recipe.name,
        settings=context.config.to_json(),
        data_title=context.sprites.title,
        data_count=len(context.sprites),
        size=context.sprites.size,
        device=context.device.id,
        device_name=context.device.name,
        took_s=took_s,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        run="" if context.run is None else context.run.name,
        checkpoint="" if context.run is None else context.checkpoint,
        versions={"studio": studio.__version__, "torch": torch.__version__, "python": platform.python_version()},
    )
