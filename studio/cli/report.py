"""`studio report`: runs as one page of HTML that needs nothing else."""

from __future__ import annotations

import argparse
from pathlib import Path

from studio.cli.arguments import find_runs
from studio.cli.messages import DONE
from studio.cli.reporting import follow, reporter_for
from studio.core import files
from studio.core.errors import UsageError
from studio.core.formatting import count
from studio.engine.runs.analysis.report import ReportSaved
from studio.engine.runs.analysis.report import report as write_report

SUFFIXES = (".html", ".htm")


def report(args: argparse.Namespace) -> int:
    """Write the report of all the runs that were named."""
    reporter, out = reporter_for(args), check_report(args.out)
    runs = find_runs(args.run_names)
    if out is None or out.is_dir():
        name = next(iter(runs)) if len(runs) == 1 else count(len(runs), "run")
        out = (out or Path()) / f"{files.safe_name(name)}.html"
    done = follow(write_report(runs, out), reporter, ReportSaved)
    reporter.say(f"The report is in {done.path}")
    return DONE


def check_report(out: Path | None) -> Path | None:
    """Where a report is to go. Raises UsageError for an ending that is not HTML's."""
    if out is not None and not out.is_dir() and out.suffix.lower() not in SUFFIXES:
        raise UsageError(f"A report can't be saved as {out.suffix or out.name!r}.", "Let --out end in .html.")
    return out
