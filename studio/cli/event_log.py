"""`studio export --format tensorboard`: the history of a run, where other formats hold its model."""

from __future__ import annotations

import argparse

from studio.cli.arguments import find_run
from studio.cli.messages import DONE
from studio.cli.reporting import follow, reporter_for
from studio.core.errors import UsageError
from studio.core.shell import command_line
from studio.engine.runs.analysis.event_log import FORMAT, EventLogSaved, save_event_log
from studio.engine.runs.folder import EXPORTS_FOLDER


def export_log(args: argparse.Namespace) -> int:
    """Write the log of one run into a folder, beside those of others that are there."""
    if args.checkpoint != "best":
        raise UsageError("TensorBoard gets the history of a whole run.", "Leave out --checkpoint.")
    reporter, path = reporter_for(args), find_run(args.run_name)
    done = follow(save_event_log(path, args.out or path / EXPORTS_FOLDER / FORMAT), reporter, EventLogSaved)
    reporter.say(f"Wrote curves, samples and settings into {done.path}")
    reporter.say(f"View them:  {command_line('tensorboard', '--logdir', str(done.path.parent))}")
    return DONE
