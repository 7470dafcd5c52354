"""Train a run on another machine (--on) and report its progress here."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from studio.cli.reporting import Reporter, run_job
from studio.cli.signal_handlers import stop_on_signal
from studio.core.errors import UsageError
from studio.core.events import RunFinished
from studio.core.shell import command_line
from studio.engine.control.control import Control
from studio.engine.remote import marker
from studio.engine.remote.ssh import RemoteTarget
from studio.engine.remote.training import train_remotely
from studio.engine.runs import queue
from studio.engine.runs.listing import remember


def target_of(args: argparse.Namespace) -> RemoteTarget:
    """Return the machine and folder of --on. Raises UsageError, also under torchrun."""
    from studio.engine.distributed.ranks import is_torchrun_launched

    if is_torchrun_launched():
        raise UsageError("torchrun can't be combined with --on.", "Start torchrun on the other machine.")
    return RemoteTarget.parse(args.on)


def follow_remote_training(
    path: Path, target: RemoteTarget, device: str, more_min: float, reporter: Reporter
) -> tuple[RunFinished, bool]:
    """Train a run on `target` until it ends and its folder is copied back; also return whether Ctrl+C stopped the run.

    A second Ctrl+C and other signals raise KeyboardInterrupt; the training then continues on `target`.
    """
    control = Control()
    again = f"Reconnect with: {command_line('studio', 'resume', str(path), '--on', str(target))}"
    message = f"Asking {target} to stop and save the run.\nCtrl+C again quits this command only; the run continues on "
    message += f"{target}. {again}"
    try:
        with stop_on_signal(control, message=message, signals=[signal.SIGINT]) as stop_request:
            events = train_remotely(path, target, control, device=device, more_min=more_min)
            end = run_job(events, reporter, RunFinished)
    except KeyboardInterrupt:
        if not marker.remote_target_of(path):
            state = f"The run was not started on {target}."
        elif control.stop:
            state = f"{target} may not have received the request to stop."
        else:
            state = f"The run continues on {target}."
        sys.stderr.write(f"{state} {again}\n")
        raise
    finally:
        remember(path)
        queue.remove_if_ended(path)
    return end, stop_request.received and end.reason == "stopped"
