"""Runs an experiment in a child process, from the process of the window or the command line."""

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
from studio.lab.results import ExperimentDone, Result, save_result

_log = logging.getLogger(__name__)

_WAIT_S = 0.025
_SHUTDOWN_S = 0.1


def run_experiment(experiment: Experiment, context: ExperimentContext) -> Events:
    """Run an experiment in a child process and store its result; closing the generator kills it within 100 ms.

    Yields Progress, an Outcome whenever there are new results, and ExperimentDone at the end. Raises UsageError if the
    device or the run does not suit the experiment, and StudioError.
    """
    if obstacle := experiment.obstacle(context.device) or experiment.unsupported_reason(context.recipe):
        raise UsageError(f"'{experiment.title}' can't run here.", obstacle)
    outcome, start_s = Outcome(), time.perf_counter()
    with closing(_Process(experiment, context)) as process:
        for event in process.events():
            outcome = event if isinstance(event, Outcome) else outcome
            yield event
    result = result_of(experiment, context, outcome, time.perf_counter() - start_s)
    try:
        path = save_result(result)
    except OSError as error:
        path = None
        yield Notice("warning", "The result could not be saved.", f"{error.strerror or error}.")
    yield ExperimentDone(result, path)


def examine_run(experiment: Experiment, run: Path, checkpoint: str, device: Device, seconds: float) -> Events:
    """Run an experiment on a run's checkpoint, for about `seconds`. Raises UsageError, RunError, StudioError."""
    context = yield from ExperimentContext.of_run(run, checkpoint, device, seconds)
    yield from run_experiment(experiment, context)


class _Process:
    """The child process of an experiment. Raises StudioError if it can't be started."""

    def __init__(self, experiment: Experiment, context: ExperimentContext) -> None:
        if not worker_process.can_start():
            raise StudioError("Experiments need a Python interpreter that this program can start.")
        self._messages: queue.SimpleQueue[Event | Done | None] = queue.SimpleQueue()  # None: the process has ended
        self._scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # a killed process leaves files behind
        try:
            self._process = worker_process.start("studio.lab.child", {"TMPDIR": self._scratch.name})
        except OSError as error:
            self._scratch.cleanup()
            raise StudioError("The experiment's process can't be started.", f"{error}.") from error
        self._requests, self._answers = worker_process.streams_of(self._process)
        arguments = (experiment, context)
        self._thread = threading.Thread(target=self._exchange, args=arguments, name="experiment", daemon=True)
        self._thread.start()

    def events(self) -> Iterator[Event]:
        """Yield the events of the child process, and repeat the last Progress while waiting. Raises StudioError."""
        last = Progress(0, 0, "starting")
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
                    raise StudioError("The experiment's process ended unexpectedly.", self._death_reason())
                case JobFailed():
                    _log.error("%s", message.details)
                    raise StudioError(message.title, message.hint) from _Remote(message.details)
                case Progress():
                    last = message
            yield message

    def close(self) -> None:
        """Kill the process and its children, and delete its temporary files."""
        with suppress(psutil.Error):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    process.kill()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SHUTDOWN_S)
        self._thread.join(_SHUTDOWN_S)
        self._scratch.cleanup()

    def _exchange(self, experiment: Experiment, context: ExperimentContext) -> None:
        """Send the experiment to the child process and queue the events that arrive; runs on a thread."""
        try:
            worker_process.send(self._requests, (experiment, context))
            while True:
                self._messages.put(worker_process.receive(self._answers))
        except CONNECTION_ERRORS:
            self._messages.put(None)
        finally:
            self._answers.close()
            with suppress(OSError):
                self._requests.close()

    def _death_reason(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1.0)
            if code < 0:
                return f"The system killed it with signal {-code}; perhaps the memory ran out."
        return "Run the experiment again. If it fails again, use fewer sprites or a smaller network."


class _Remote(Exception):  # noqa: N818 - a cause, never caught
    """Carries the traceback of an error in the child process, as the cause of a StudioError."""


def result_of(experiment: Experiment, context: ExperimentContext, outcome: Outcome, took_s: float) -> Result:
    """Create the result of an experiment from its context and outcome. took_s: duration in seconds."""
    device, sprites, run = context.device, context.sprites, context.run
    return Result(
        experiment=experiment.name, title=experiment.title, question=experiment.question, outcome=outcome,
        code=experiment.code(context), read_on=experiment.read_on, recipe=context.recipe.name,
        settings=context.config.to_json(), data_title=sprites.title, data_count=len(sprites), size=sprites.size,
        device=device.id, device_name=device.name, took_s=took_s,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        run="" if run is None else run.name, checkpoint="" if run is None else context.checkpoint,
        versions={"studio": studio.__version__, "torch": torch.__version__, "python": platform.python_version()},
    )  # fmt: skip
