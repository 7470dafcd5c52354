"""`studio report`: one or more runs as a self-contained HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path

from studio.cli.inputs import find_runs
from studio.cli.messages import DONE
from studio.cli.reporting import reporter_for, run_job
from studio.core import files
from studio.core.errors import UsageError
from studio.core.formatting import count
from studio.engine.runs.analysis.report import ReportSaved
from studio.engine.runs.analysis.report import report as write_report

SUFFIXES = (".html", ".htm")


def report(args: argparse.Namespace) -> int:
    """Write a report of the named runs."""
    reporter, out = reporter_for(args), check_report(args.out)
    runs = find_runs(args.run_names)
    if out is None or out.is_dir():
        name = next(iter(runs)) if len(runs) == 1 else count(len(runs), "run")
        out = (out or Path()) / f"{files.output_name(name)}.html"
    done = run_job(write_report(runs, out), reporter, ReportSaved)
    reporter.print(f"The report is in {done.path}")
    return DONE


def check_report(out: Path | None) -> Path | None:
    """Check the path of --out and return it. Raises UsageError if it is neither a folder nor an HTML file."""
    if out is not None and not out.is_dir() and out.suffix.lower() not in SUFFIXES:
        raise UsageError(f"A report can't be saved as {out.suffix or out.name!r}.", "Use a name that ends in .html.")
    return out
