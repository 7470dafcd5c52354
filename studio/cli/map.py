"""`studio map`: the sprites of a run in one image, with similar sprites side by side."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from studio.cli.inputs import find_device, find_run, load_model
from studio.cli.reporting import Reporter, reporter_for
from studio.core import files
from studio.core.errors import UsageError
from studio.core.events import Events
from studio.core.formatting import count, number, percent
from studio.engine.devices.types import MapReady
from studio.exports.png import encode_png

_MOST_PX = 16_384
_MOST_OUTLIERS = 5  # printed


def draw_map(args: argparse.Namespace) -> int:
    """Save the sprite map of a run as an image; --json also writes each sprite's position and neighbours."""
    from studio.engine.quality.embedding_map import make_map, render_map

    reporter, path = reporter_for(args), find_run(args.run_name)
    target = _output_path(args.out, path)
    device = find_device(args)
    model = load_model(path, args, device, reporter)
    if not 2 * model.spec.size <= args.size <= _MOST_PX:
        raise UsageError(f"--size must be from {2 * model.spec.size} to {_MOST_PX} pixels, not {args.size}.", "")
    sprite_map = _run_map_job(make_map(model, path), reporter)
    picture, drawn = render_map(sprite_map, args.size)
    files.export_together({target: encode_png(picture, {"model": sprite_map.model})})
    _write_json(sprite_map, reporter)
    reporter.write_json({"type": "FilesSaved", "paths": [target]})
    total = f" of {number(sprite_map.total)}" if sprite_map.total > len(sprite_map.sprites) else ""
    sprites = f"{count(len(sprite_map.sprites), 'sprite')}{total}"
    explained = percent(sprite_map.explained)
    reporter.print(f"{sprites} by {sprite_map.model}: the two axes explain {explained} of the variance.")
    reporter.print(f"{number(drawn)} fit into {target}\n\nOutliers, by the distance to their nearest neighbours:")
    outliers = sprite_map.odd[:_MOST_OUTLIERS]
    rows = [(sprite_map.sprites.names[index], f"{sprite_map.apart[index]:.1f}") for index in outliers]
    reporter.print_table(("sprite", ">times the usual distance"), rows)
    return 0


def _run_map_job(events: Events, reporter: Reporter) -> MapReady:
    """Run the job that computes a sprite map, report its progress, and return the map."""
    with contextlib.closing(events):
        try:
            for event in events:
                if isinstance(event, MapReady):
                    return event
                reporter.show(event)
        finally:
            reporter.clear()
    raise AssertionError("the job ended without a map")


def _write_json(sprite_map: MapReady, reporter: Reporter) -> None:
    """Write a JSON line for each sprite of the map, then a line for the whole map."""
    sprites = sprite_map.sprites
    for index, name in enumerate(sprites.names):
        values = {
            "type": "MapSprite", "name": name, "class": sprites.class_names[sprites.labels[index]],
            "position": sprite_map.positions[index], "apart": sprite_map.apart[index],
            "neighbours": [sprites.names[other] for other in sprite_map.neighbours[index]],
        }  # fmt: skip
        reporter.write_json(values)
    odd = [sprites.names[index] for index in sprite_map.odd]
    total, explained = sprite_map.total, sprite_map.explained
    about = {"model": sprite_map.model, "sprites": len(sprites), "total": total, "explained": explained}
    reporter.write_json({"type": "MapReady", **about, "odd": odd})


def _output_path(out: Path | None, run: Path) -> Path:
    """Return a free file name for the map. Raises UsageError if --out doesn't end in .png."""
    out = out or Path()
    if out.is_dir():
        out /= f"{files.output_name(run.resolve().name)}-map.png"
    if out.suffix.lower() != ".png":
        raise UsageError(f"A map can't be saved as {out.suffix or out.name!r}.", "Use a name that ends in .png.")
    return files.free_path(out)
