"""`studio note` and `studio free`: label runs, and delete files that runs no longer need."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from studio.cli.inputs import find_run
from studio.cli.messages import DONE
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core.errors import UsageError
from studio.core.formatting import count, memory
from studio.engine.runs.listing import remembered_runs, run_folders
from studio.engine.runs.maintenance.disk_use import CLEANUP_KINDS, Removable, SpaceFound, SpaceFreed
from studio.engine.runs.notes import RunNotes, change_notes, display_name, read_notes, split_tags


def note(args: argparse.Namespace) -> int:
    """Edit a run's name, note, star and tags, then print the result."""
    reporter, run = reporter_for(args), find_run(args.run_name)
    tags = None
    if args.tag or args.untag:
        gone = {tag.casefold() for tag in split_tags(args.untag)}
        tags = [tag for tag in (*read_notes(run).tags, *split_tags(args.tag)) if tag.casefold() not in gone]
    notes = change_notes(run, name=args.name, note=args.note, starred=args.star, tags=tags)
    reporter.write_json({"type": "RunNotes", "path": run, **vars(notes)})
    for line in _describe(run, notes):
        reporter.print(line)
    return DONE


def add_free_flags(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Add the flags for choosing what to delete."""
    usual = ", ".join(kind.name for kind in CLEANUP_KINDS if kind.is_usual)
    optional = ", ".join(kind.name for kind in CLEANUP_KINDS if not kind.is_usual)
    parser.add_argument("--also", default="", metavar="A,B", help=f"also delete: {optional}")
    parser.add_argument("--keep", default="", metavar="A,B", help=f"don't delete: {usual}")


def free(args: argparse.Namespace) -> int:
    """List deletable files; delete the files with --yes."""
    from studio.engine.runs.maintenance.free_space import find_space, free_space

    reporter, wanted = reporter_for(args), _kinds_to_delete(args)
    runs = [find_run(name) for name in args.run_names] or run_folders(remembered_runs())
    found = run_job(find_space(runs, with_cache=not args.run_names or "cache" in wanted), reporter, SpaceFound)
    for run in found.busy:
        reporter.print(f"Skipped {display_name(run)}: it is training.")
    chosen = [item for item in found.items if item.kind in wanted]
    _print_kinds(found.items, wanted, reporter)
    if not chosen:
        reporter.print("Nothing to delete.")
    elif args.yes:
        freed = run_job(free_space(chosen), reporter, SpaceFreed)
        reporter.print(f"Freed {memory(freed.size_bytes)}.")
    else:
        kinds = ", ".join(dict.fromkeys(item.kind for item in chosen))
        reporter.print(f"Nothing was deleted. --yes deletes {memory(_total_bytes(chosen))}: {kinds}.")
    return DONE


def _describe(run: Path, notes: RunNotes) -> Iterable[str]:
    """Yield the lines that show a run's name, star, tags, folder and note."""
    star = "★ " if notes.starred else ""
    tags = f"  [{', '.join(notes.tags)}]" if notes.tags else ""
    yield f"{star}{display_name(run)}{tags}"
    if notes.name:
        yield str(run)
    if notes.note:
        yield notes.note


def _kinds_to_delete(args: argparse.Namespace) -> set[str]:
    """Return the names of the kinds of files to delete. Raises UsageError for an unknown kind."""
    known = {kind.name: kind for kind in CLEANUP_KINDS}
    also, keep = split_tags(args.also), split_tags(args.keep)
    for name in (*also, *keep):
        if name not in known:
            raise UsageError(f"Unknown kind of files: {name!r}.", f"Choose from: {', '.join(known)}.")
    return {name for name, kind in known.items() if kind.is_usual or name in also} - set(keep)


def _print_kinds(items: Sequence[Removable], wanted: set[str], reporter: Reporter) -> None:
    rows = []
    for kind in CLEANUP_KINDS:
        own = [item for item in items if item.kind == kind.name]
        runs = len({item.run for item in own if item.run is not None})
        where = f" in {count(runs, 'run')}" if runs else ""
        size, goes = memory(_total_bytes(own)), "delete" if kind.name in wanted else "keep"
        if own:
            rows.append((kind.name, size, goes, f"{kind.title}: {len(own):,}{where}. {kind.loses}"))
    if rows:
        reporter.print_table(("kind", ">size", "", "files, and what you lose"), rows)


def _total_bytes(items: Iterable[Removable]) -> int:
    return sum(item.size_bytes for item in items)
