"""`studio runs`: a list of all runs."""

from __future__ import annotations

import argparse

from studio.cli.reporting import reporter_for
from studio.core.formatting import count, duration, memory, number
from studio.core.metrics import format_metric, metric_title
from studio.core.names import nfc
from studio.engine.runs.listing import RunsListed, RunSummary, data_label, list_runs, remembered_runs
from studio.engine.runs.maintenance.disk_use import disk_use, total_bytes


def runs(args: argparse.Namespace) -> int:
    """List the runs, newest first; with flags, only runs with the given tags or a star."""
    reporter = reporter_for(args)
    listed = list(list_runs(extra=remembered_runs()))[-1]
    assert isinstance(listed, RunsListed)
    chosen = [run for run in listed.runs if _is_wanted(run, args)]
    uses = {run.path: disk_use(run.path) for run in chosen} if args.disk else {}
    for run in chosen:
        size = {"size_bytes": uses[run.path].size_bytes} if args.disk else {}
        reporter.write_json({"type": "RunSummary", **vars(run), **size})
    if not listed.runs:
        reporter.print("There are no runs yet. 'studio train FOLDER' creates one.")
        return 0
    if not chosen:
        reporter.print(f"No match among {count(len(listed.runs), 'run')}.")
        return 0
    more: dict[str, list[str]] = {}
    if any(run.notes.tags for run in chosen):
        more["tags"] = [", ".join(run.notes.tags) for run in chosen]
    if args.disk:
        more[">on disk"] = [memory(uses[run.path].size_bytes) for run in chosen]
    columns = ("name", "recipe", "data", "device", ">steps", ">validation", ">time", "state", *more)
    reporter.print_table(columns, [(*_run_row(run), *rest) for run, *rest in zip(chosen, *more.values(), strict=True)])
    if args.disk:
        total = memory(total_bytes(uses.values()))
        reporter.print(f"{count(len(chosen), 'run')}: {total}. 'studio free' lists files that can be deleted.")
    return 0


def _is_wanted(run: RunSummary, args: argparse.Namespace) -> bool:
    tags = {tag.casefold() for tag in run.notes.tags}
    return {nfc(tag).casefold() for tag in args.tag} <= tags and (run.notes.starred or not args.starred)


def _run_row(run: RunSummary) -> tuple[str, ...]:
    record, progress = run.record, run.progress
    name = f"★ {run.title}" if run.notes.starred else run.title
    if record is None or progress is None:
        return (name, "", "", "", "", "", "", f"{run.standing}: {run.problem}")
    metrics = progress.headline.items()
    validation = ", ".join(f"{metric_title(name)} {format_metric(name, value)}" for name, value in metrics)
    state = f"{run.standing}: {progress.message}" if progress.message else run.standing
    steps, took = number(run.step), duration(run.elapsed_s)
    return (name, record.recipe, data_label(record), record.device, steps, validation, took, state)
