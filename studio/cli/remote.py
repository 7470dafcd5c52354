"""--on: a run that is trained on another machine and followed from here."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from studio.cli.interrupts import stopping
from studio.cli.reporting import Reporter, follow
from studio.core.errors import UsageError
from studio.core.events import RunFinished
from studio.core.shell import command_line
from studio.engine.control.control import Control
from studio.engine.remote import marker
from studio.engine.remote.ssh import RemoteTarget
from studio.engine.remote.training import train_remotely
from studio.engine.runs import queue
from studio.engine.runs.listing import remember


def place_of(args: argparse.Namespace) -> RemoteTarget:
    """Where --on says to train. Raises UsageError."""
    from studio.engine.distributed.ranks import is_launched

    if is_launched():
        raise UsageError("torchrun and --on don't go together.", "Start torchrun on the other machine.")
    return RemoteTarget.parse(args.on)


def to_the_end(
    path: Path, place: RemoteTarget, device: str, more_min: float, reporter: Reporter
) -> tuple[RunFinished, bool]:
    """Train a run elsewhere until it has ended and is home; the second value says that Ctrl+C has stopped it there.

    Raises KeyboardInterrupt for a second Ctrl+C, and for other signals at once: the training goes on there.
    """
    control = Control()
    again = f"Take it up again: {command_line('studio', 'resume', str(path), '--on', str(place))}"
    words = (
        f"Asking {place} to stop and save the training, as soon as the link allows it.\n"
        f"Ctrl+C again ends this command alone: a training that runs there goes on. {again}"
    )
    try:
        with stopping(control, words=words, numbers=[signal.SIGINT]) as interruption:
            events = train_remotely(path, place, control, device=device, more_min=more_min)
            end = follow(events, reporter, RunFinished)
    except KeyboardInterrupt:
        if not marker.remote_target_of(path):
            what = "It was not started there."
        elif control.stop:
            what = "It may not have heard there that it is to stop."
        else:
            what = "The training goes on there."
        sys.stderr.write(f"{what} {again}\n")
        raise
    finally:
        remember(path)
        queue.remove_if_ended(path)
    return end, interruption.asked and end.reason == "stopped"
