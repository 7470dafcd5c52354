"""Run a part of the system check in a child process. The parent kills a hanging process."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from typing import NamedTuple

from studio.core.events import Event, JobFailed
from studio.core.formatting import describe_error
from studio.core.process import prepare_for_training
from studio.core.worker_process import exit_with_parent, own_streams, receive, send


class PartDone(NamedTuple):
    """The last message to the parent process, after a part has ended."""


def main() -> None:
    """Receive the name of a part from the parent process, run the part, and send its events, then PartDone."""
    prepare_for_training()
    requests, answers = own_streams()
    try:
        part = receive(requests)
        exit_with_parent(requests)
        try:
            for event in part_function(part)():
                send(answers, event)
        except Exception as error:  # noqa: BLE001 - the boundary of a worker process
            title, hint = describe_error(error, otherwise="This part of the check failed.")
            send(answers, JobFailed(title, hint, traceback.format_exc()))
        send(answers, PartDone())
    finally:
        os._exit(0)  # at once: the other thread is blocked in a read


def part_function(part: str) -> Callable[[], Iterator[Event]]:
    """Return a part's function. part: 'module:function'."""
    import importlib

    module, _, function = part.partition(":")
    found: Callable[[], Iterator[Event]] = getattr(importlib.import_module(module), function)
    return found
