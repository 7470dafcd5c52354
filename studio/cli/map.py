"""`studio map`: the sprites of a run as one picture, like ones near to one another."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from studio.cli.arguments import find_device, find_run, load_model
from studio.cli.reporting import Reporter, reporter_for
from studio.core import files
from studio.core.errors import UsageError
from studio.core.events import Events
from studio.core.formatting import count, number, percent
from studio.engine.devices.types import MapReady
from studio.exports.png import encoded

_MOST_PX = 16_384
_MOST_SAID = 5  # odd ones


def draw_map(args: argparse.Namespace) -> int:
    """Save the picture; with --json also say where each sprite lies and what is most like it."""
    from studio.engine.quality.embedding_map import make_map, picture_of

    reporter, path = reporter_for(args), find_run(args.run_name)
    target = _target(args.out, path)
    device = find_device(args)
    model = load_model(path, args, device, reporter)
    if not 2 * model.spec.size <= args.size <= _MOST_PX:
        raise UsageError(f"--size must be from {2 * model.spec.size} to {_MOST_PX} pixels, not {args.size}.", "")
    shown = _followed(make_map(model, path), reporter)
    picture, drawn = picture_of(shown, args.size)
    files.export_together({target: encoded(picture, {"model": shown.model})})
    _record(shown, reporter)
    reporter.record({"type": "FilesSaved", "paths": [target]})
    some = f" of {number(shown.total)}" if shown.total > len(shown.sprites) else ""
    how_many = f"{count(len(shown.sprites), 'sprite')}{some}"
    reporter.say(f"{how_many} by {shown.model}: the two axes show {percent(shown.explained)} of how they differ.")
    reporter.say(f"{number(drawn)} have room in {target}\n\nOdd ones out, by how far those most like them are:")
    rows = [(shown.sprites.names[index], f"{shown.apart[index]:.1f}") for index in shown.odd[:_MOST_SAID]]
    reporter.table(("sprite", ">times as far as usual"), rows)
    return 0


def _followed(events: Events, reporter: Reporter) -> MapReady:
    """Drive the job to its end; the map is told sprite by sprite, without its features."""
    with contextlib.closing(events):
        try:
            for event in events:
                if isinstance(event, MapReady):
                    return event
                reporter.show(event)
        finally:
            reporter.clear()
    raise AssertionError("the job ended without a map")


def _record(shown: MapReady, reporter: Reporter) -> None:
    """A line for each sprite, then one for all."""
    sprites = shown.sprites
    for index, name in enumerate(sprites.names):
        values = {
            "type": "MapSprite", "name": name, "class": sprites.class_names[sprites.labels[index]],
            "position": shown.positions[index], "apart": shown.apart[index],
            "neighbours": [sprites.names[other] for other in shown.neighbours[index]],
        }  # fmt: skip
        reporter.record(values)
    odd = [sprites.names[index] for index in shown.odd]
    about = {"model": shown.model, "sprites": len(sprites), "total": shown.total, "explained": shown.explained}
    reporter.record({"type": "MapReady", **about, "odd": odd})


def _target(out: Path | None, run: Path) -> Path:
    """Where the picture goes: a name that is free. Raises UsageError for an ending that is not .png."""
    out = out or Path()
    if out.is_dir():
        out /= f"{files.safe_name(run.resolve().name)} map.png"
    if out.suffix.lower() != ".png":
        raise UsageError(f"A map can't be saved as {out.suffix or out.name!r}.", "Let --out end in .png.")
    return files.free_path(out)
