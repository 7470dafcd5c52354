"""Run an experiment in a child process. Killing the process at any time frees the device's memory."""

import os
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from studio.core.events import Event, JobFailed
from studio.core.formatting import describe_error
from studio.core.process import prepare_for_training
from studio.core.worker_process import exit_with_parent, own_streams, receive, send
from studio.lab.experiments.base import Experiment, ExperimentContext


@dataclass(frozen=True)
class Done:
    """The last message of a successful experiment to the parent process."""


def main() -> None:
    """Receive an experiment from the parent process, run the experiment, and send events, then Done or JobFailed."""
    prepare_for_training()
    requests, answers = own_streams()
    try:
        experiment, context = receive(requests)
        exit_with_parent(requests)
        for message in _messages(experiment, context):
            send(answers, message)
    finally:
        os._exit(0)  # at once: the other thread is blocked in a read


def _messages(experiment: Experiment, context: ExperimentContext) -> Iterator[Event | Done]:
    import torch

    from studio.engine.devices import detection

    if context.device.kind == "cpu":
        torch.set_num_threads(context.config.threads or context.device.threads or torch.get_num_threads())
    try:
        with detection.wrap_device_errors(context.target):
            yield from experiment.run(context)
        yield Done()
    except Exception as error:  # noqa: BLE001 - the boundary of a worker process
        title, hint = describe_error(error, otherwise=f"The experiment '{experiment.title}' failed.")
        yield JobFailed(title, hint, traceback.format_exc())
