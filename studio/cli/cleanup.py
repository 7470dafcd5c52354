"""The commands that keep runs in order: note, free."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from studio.cli.arguments import find_run
from studio.cli.messages import DONE
from studio.cli.reporting import Reporter, follow, reporter_for
from studio.core.errors import UsageError
from studio.core.formatting import count, memory
from studio.engine.runs.listing import remembered_runs, run_folders
from studio.engine.runs.maintenance.disk_use import CLEANUP_KINDS, Removable, SpaceFound, SpaceFreed
from studio.engine.runs.notes import RunNotes, change_notes, display_name, read_notes, split_tags


def note(args: argparse.Namespace) -> int:
    """Say something of a run; without a flag, tell what was said."""
    reporter, run = reporter_for(args), find_run(args.run_name)
    tags = None
    if args.tag or args.untag:
        gone = {tag.casefold() for tag in split_tags(args.untag)}
        tags = [tag for tag in (*read_notes(run).tags, *split_tags(args.tag)) if tag.casefold() not in gone]
    notes = change_notes(run, name=args.name, note=args.note, starred=args.star, tags=tags)
    reporter.record({"type": "RunNotes", "path": run, **vars(notes)})
    for line in _said(run, notes):
        reporter.say(line)
    return DONE


def free(args: argparse.Namespace) -> int:
    """List what of runs can go; with --yes, remove it."""
    from studio.engine.runs.maintenance.free_space import find_space, free_space

    reporter, wanted = reporter_for(args), _kinds(args)
    runs = [find_run(name) for name in args.run_names] or run_folders(remembered_runs())
    found = follow(find_space(runs, with_cache=not args.run_names or "cache" in wanted), reporter, SpaceFound)
    for run in found.busy:
        reporter.say(f"{display_name(run)} is being trained: it is left alone.")
    chosen = [item for item in found.items if item.kind in wanted]
    _list_kinds(found.items, wanted, reporter)
    if not chosen:
        reporter.say("Nothing is to go.")
    elif args.yes:
        freed = follow(free_space(chosen), reporter, SpaceFreed)
        reporter.say(f"{memory(freed.size_bytes)} freed.")
    else:
        kinds = ", ".join(dict.fromkeys(item.kind for item in chosen))
        reporter.say(f"Nothing was removed. --yes removes {memory(_bytes(chosen))}: {kinds}.")
    return DONE


def _said(run: Path, notes: RunNotes) -> Iterable[str]:
    star = "★ " if notes.starred else ""
    tags = f"  [{', '.join(notes.tags)}]" if notes.tags else ""
    yield f"{star}{display_name(run)}{tags}"
    if notes.name:
        yield str(run)
    if notes.note:
        yield notes.note


def _kinds(args: argparse.Namespace) -> set[str]:
    """The kinds of things that are to go. Raises UsageError."""
    known = {kind.name: kind for kind in CLEANUP_KINDS}
    also, keep = split_tags(args.also), split_tags(args.keep)
    for name in (*also, *keep):
        if name not in known:
            raise UsageError(f"There is no kind {name!r} of things in runs.", f"There are: {', '.join(known)}.")
    return {name for name, kind in known.items() if kind.is_usual or name in also} - set(keep)


def _list_kinds(items: Sequence[Removable], wanted: set[str], reporter: Reporter) -> None:
    rows = []
    for kind in CLEANUP_KINDS:
        own = [item for item in items if item.kind == kind.name]
        if own:
            runs = len({item.run for item in own if item.run is not None})
            where = f" in {count(runs, 'run')}" if runs else ""
            goes = "goes" if kind.name in wanted else "stays"
            size = memory(_bytes(own))
            rows.append((kind.name, size, goes, f"{kind.title}: {len(own):,}{where}. {kind.loses}"))
    if rows:
        reporter.table(("kind", ">size", "", "what, and what is lost with it"), rows)


def _bytes(items: Iterable[Removable]) -> int:
    return sum(item.size_bytes for item in items)
