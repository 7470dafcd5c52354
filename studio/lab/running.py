"""Run an experiment in a child process, from the window's process or the command line's process."""

import datetime
import logging
import platform
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import torch

import studio
from studio.core import worker_process
from studio.core.errors import StudioError, UsageError
from studio.core.events import Event, Events, JobFailed, Notice, Progress
from studio.core.worker_process import ChildProcess
from studio.engine.devices.types import Device
from studio.lab.child import Done
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Outcome
from studio.lab.results import ExperimentDone, Result, save_result

_log = logging.getLogger(__name__)


def run_experiment(experiment: Experiment, context: ExperimentContext) -> Events:
    """Run an experiment in a child process and store the result.

    Yields Progress, an Outcome after new results, and ExperimentDone at the end. Closing the generator kills the child
    process within 100 ms. Raises UsageError for a device or a run unsuitable for the experiment, and StudioError.
    """
    outcome, start_s = Outcome(), time.perf_counter()
    with closing(measure(experiment, context)) as events:
        for event in events:
            outcome = event if isinstance(event, Outcome) else outcome
            yield event
    result = result_of(experiment, context, outcome, time.perf_counter() - start_s)
    try:
        path = save_result(result)
    except OSError as error:
        path = None
        yield Notice("warning", "The result could not be saved.", f"{error.strerror or error}.")
    yield ExperimentDone(result, path)


def measure(experiment: Experiment, context: ExperimentContext) -> Events:
    """Run an experiment in a child process; yields its events. Raises UsageError, StudioError."""
    if obstacle := experiment.obstacle(context.device) or experiment.unsupported_reason(context.recipe):
        raise UsageError(f"'{experiment.title}' can't run here.", obstacle)
    with closing(_Process(experiment, context)) as process:
        yield from process.events()


def examine_run(experiment: Experiment, run: Path, checkpoint: str, device: Device, seconds: float) -> Events:
    """Run an experiment on a run's checkpoint, for about `seconds`. Raises UsageError, RunError, StudioError."""
    context = yield from ExperimentContext.of_run(run, checkpoint, device, seconds)
    yield from run_experiment(experiment, context)


class _Process:
    """An experiment's child process. Raises StudioError if the process can't start."""

    def __init__(self, experiment: Experiment, context: ExperimentContext) -> None:
        if not worker_process.can_start():
            raise StudioError("Experiments need a Python interpreter that this program can start.")
        try:
            self._process = ChildProcess("studio.lab.child", (experiment, context))
        except OSError as error:
            raise StudioError("The experiment's process can't be started.", f"{error}.") from error
        self.close = self._process.close

    def events(self) -> Iterator[Event]:
        """Yield the events of the child process, and repeat the last Progress while waiting. Raises StudioError."""
        last = Progress(0, 0, "loading PyTorch")
        for message in self._process.messages():
            match message:
                case None:
                    yield last
                case Done():
                    return
                case JobFailed():
                    _log.error("%s", message.details)
                    raise StudioError(message.title, message.hint) from _Remote(message.details)
                case Event():
                    last = message if isinstance(message, Progress) else last
                    yield message
        raise StudioError("The experiment's process ended unexpectedly.", self._death_reason())

    def _death_reason(self) -> str:
        if number := self._process.death_signal():
            return f"The system killed it with signal {number}; perhaps the memory ran out."
        return "Run the experiment again. If it fails again, use fewer sprites or a smaller network."


class _Remote(Exception):  # noqa: N818 - a cause, never caught
    """Carries an error's traceback from the child process, as the cause of a StudioError."""


def result_of(experiment: Experiment, context: ExperimentContext, outcome: Outcome, took_s: float) -> Result:
    """Create an experiment's result from the context and the outcome. took_s: duration in seconds."""
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
