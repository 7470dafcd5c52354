"""`studio verify`: whether what was exported or saved is still as it was, and whose it is."""

from __future__ import annotations

import argparse

from studio.cli.arguments import find_run
from studio.cli.messages import DONE, FAILED
from studio.cli.reporting import follow, reporter_for
from studio.core.events import Verified
from studio.exports.cards import LIMITS

_MARKS = {True: "ok ", False: "NO ", None: "-  "}


def verify(args: argparse.Namespace) -> int:
    """Say of each thing that belongs to a file whether it is as it should be."""
    from studio.engine.models.provenance import verify

    reporter = reporter_for(args)
    run = None if args.run_name is None else find_run(args.run_name)
    found = follow(verify(args.file, run), reporter, Verified)
    for check in found.checks:
        reporter.say(f"{_MARKS[check.holds]} {check.words}")
    reporter.say(LIMITS)
    return DONE if found.holds else FAILED
