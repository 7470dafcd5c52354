"""`studio film`: the live samples of a run as an animation, a grid of them a frame."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from studio.cli.arguments import find_run
from studio.cli.reporting import reporter_for
from studio.core import files, pictures
from studio.core.errors import RunError, UsageError
from studio.core.events import Notice, Rgba, SamplesReady
from studio.core.wording import count, duration
from studio.engine.runs.folder import SAMPLE_COLUMNS, RunDir
from studio.engine.runs.history import read_samples
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.formats import sprite_export_for

_FRAME_MS = 250
_LAST_MS = 2000  # longer
_SHORTEST_MS, _LONGEST_MS = 20, 10_000  # a frame
_WIDTH = 512  # pixels of a frame, about
_MOST_PIXELS = 1 << 26  # of all frames together


def film(args: argparse.Namespace) -> int:
    """Save every sample that a run has kept as a frame."""
    reporter = reporter_for(args)
    path = find_run(args.run_name)
    name = path.resolve().name
    out = args.out or Path()
    if out.is_dir():
        out /= f"{files.safe_name(name)}.gif"
    form = sprite_export_for(out, plays=True)
    record = RunDir(path).record()
    samples = read_samples(path, record.size)
    if not samples:
        raise RunError(f"{name} has no samples to show.", "They are what a generator draws while it trains.")
    frames = _enlarged(_grids(samples), args.scale)
    frame_ms = _frame_ms(len(frames), args.seconds)
    about = {"model": record.name, "recipe": record.recipe, "steps": f"{samples[0].step} to {samples[-1].step}"}
    made = SpriteSet(frames, duration_ms=frame_ms, hold_ms=_LAST_MS, is_animation=True, about=about)
    written = form.write(made, out)
    for note in form.notes(made):
        reporter.show(Notice("info", note, ""))
    reporter.record({"type": "FilesSaved", "paths": written})
    took = duration(frame_ms * len(frames) / 1000)
    reporter.say(f"{count(len(frames), 'sample')} of {name} in {took}: {written[0]}")
    return 0


def _grids(samples: Sequence[SamplesReady]) -> Rgba:
    """The sprites of each sample beside one another as in its picture: uint8 [N, H, W, 4]."""
    most = max(len(sample.sprites) for sample in samples)
    grids = []
    for sample in samples:
        missing = ((0, most - len(sample.sprites)), (0, 0), (0, 0), (0, 0))
        grids.append(pictures.tile(np.pad(sample.sprites, missing), min(SAMPLE_COLUMNS, most)))
    return np.stack(grids)


def _enlarged(frames: Rgba, scale: int | None) -> Rgba:
    """Each pixel a block of `scale` x `scale`; without it as many as come near to _WIDTH. Raises UsageError."""
    if scale is None:
        scale = max(1, _WIDTH // frames.shape[2])
    most = max(1, int((_MOST_PIXELS / (frames.size // 4)) ** 0.5))
    if not 1 <= scale <= most:
        raise UsageError(f"--scale must be from 1 to {most}, not {scale}.", "Larger frames take too much memory.")
    return frames.repeat(scale, 1).repeat(scale, 2)


def _frame_ms(frames: int, seconds: float | None) -> int:
    """How long a frame is shown. Raises UsageError."""
    if seconds is None:
        return _FRAME_MS
    least, most = frames * _SHORTEST_MS / 1000, frames * _LONGEST_MS / 1000
    if not least <= seconds <= most:
        title = f"--seconds must be from {least:g} to {most:g}, not {seconds:g}."
        raise UsageError(title, f"There are {count(frames, 'frame')} to show.")
    return round(1000 * seconds / frames)
