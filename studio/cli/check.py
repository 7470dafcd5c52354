"""`studio check`: find out whether this computer can train, and print remedies."""

from __future__ import annotations

import argparse
from contextlib import closing

from studio.cli.messages import FAILED
from studio.cli.reporting import reporter_for
from studio.core.shell import command_line
from studio.engine.check.checking import check_system
from studio.engine.check.findings import BuildChosen, CheckDone, Finding
from studio.engine.check.torch_change import change_commands


def check(args: argparse.Namespace) -> int:
    """Print each new finding; return 1 if training can't work."""
    reporter = reporter_for(args)
    done, chosen, changes = CheckDone(False, 0, 0), BuildChosen("", ""), False
    with closing(check_system()) as events:
        for event in events:
            reporter.show(event)
            if isinstance(event, BuildChosen):
                chosen = event
            elif isinstance(event, Finding):
                changes = changes or event.changes_build
                reporter.clear()
                reporter.print(event.as_text())
            elif isinstance(event, CheckDone):
                done = event
    reporter.clear()
    reporter.print(f"\n{done.as_text()}")
    if changes and chosen.suggested:
        reporter.print("\nTo change the build of PyTorch, close the studio and run:")
        for words in change_commands(chosen.suggested):
            reporter.print(f"  {command_line(*words)}")
    return 0 if done.can_train else FAILED
