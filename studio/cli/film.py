"""`studio film`: a timelapse of a run's samples, one frame per sample grid."""

from __future__ import annotations

import argparse
from pathlib import Path

from studio.cli.inputs import find_run
from studio.cli.reporting import reporter_for
from studio.core import files
from studio.core.events import Notice
from studio.core.formatting import count, duration
from studio.engine.runs.analysis.timelapse import timelapse
from studio.exports.sprites.formats import sprite_export_for


def film(args: argparse.Namespace) -> int:
    """Save the sample grids of a run as an animation, a frame per grid."""
    reporter = reporter_for(args)
    path = find_run(args.run_name)
    name = path.resolve().name
    out = args.out or Path()
    if out.is_dir():
        out /= f"{files.output_name(name)}.gif"
    form = sprite_export_for(out, plays=True)
    made = timelapse(path, args.scale, args.seconds)
    written = form.write(made, out)
    for note in form.notes(made):
        reporter.show(Notice("info", note, ""))
    reporter.write_json({"type": "FilesSaved", "paths": written})
    took = duration(made.duration_ms * len(made) / 1000)
    reporter.print(f"Saved {count(len(made), 'sample')} of {name} ({took}): {written[0]}")
    return 0
