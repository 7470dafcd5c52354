"""`studio verify`: whether an exported or saved file was changed, and which run made it."""

from __future__ import annotations

import argparse

from studio.cli.inputs import find_run
from studio.cli.messages import DONE, FAILED
from studio.cli.reporting import reporter_for, run_job
from studio.core.events import Verified
from studio.exports.model_cards import LIMITS

_MARKS = {True: "ok ", False: "NO ", None: "-  "}


def verify(args: argparse.Namespace) -> int:
    """Check a file, and print the result of each check; return FAILED if a check fails."""
    from studio.engine.models.provenance import verify

    reporter = reporter_for(args)
    run = None if args.run_name is None else find_run(args.run_name)
    found = run_job(verify(args.file, run), reporter, Verified)
    for check in found.checks:
        reporter.print(f"{_MARKS[check.holds]} {check.words}")
    reporter.print(LIMITS)
    return DONE if found.holds else FAILED
