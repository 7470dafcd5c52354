"""A timelapse of a training: an animation of its live samples, one grid of sprites per frame."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from studio.core.arrays import Rgba
from studio.core.errors import RunError, UsageError
from studio.core.events import SamplesReady
from studio.core.formatting import count
from studio.engine.runs.folder import RunDir
from studio.engine.runs.samples import read_samples, samples_picture
from studio.engine.runs.source import provenance_at
from studio.exports.model_cards import provenance_metadata
from studio.exports.sprites.base import SpriteSet

_FRAME_MS = 250
_LAST_MS = 2000  # the last frame stays longer
_SHORTEST_MS, _LONGEST_MS = 20, 10_000  # limits of a frame's duration
_WIDTH = 512  # target width of a frame, in pixels
_MOST_PIXELS = 1 << 26  # limit of the pixels in an animation


def timelapse(run: Path, scale: int | None = None, seconds: float | None = None) -> SpriteSet:
    """Return an animation of a run's live samples, one frame per sample.

    scale: enlargement; None: at most 512 pixels wide. seconds: length without the longer last frame; None: 0.25 s a
    frame. Raises UsageError, and RunError if the run has no samples or they never change.
    """
    record = RunDir(run).record()
    samples = read_samples(run, record.size)
    name = run.resolve().name
    if not samples:
        raise RunError(f"{name} has no live samples.", "Resume the run: training saves live samples.")
    if not samples_change(samples):
        title = f"The samples of {name} never change, so a timelapse would show nothing."
        raise RunError(title, "A classifier or regression shows the same validation sprites in all samples.")
    frames = _enlarge(_grids(samples), scale)
    about = {"model": record.name, "recipe": record.recipe, "steps": f"{samples[0].step} to {samples[-1].step}"}
    about |= provenance_metadata([provenance_at(RunDir(run), samples[-1].step).to_json()])
    frame_ms = _frame_ms(len(frames), seconds)
    return SpriteSet(frames, duration_ms=frame_ms, hold_ms=_LAST_MS, is_animation=True, about=about)


def samples_change(samples: Sequence[SamplesReady]) -> bool:
    """Return whether sprites differ between samples: True for generators, and for a single sample."""
    others = reversed(samples[1:])
    return len(samples) == 1 or not all(np.array_equal(samples[0].sprites, other.sprites) for other in others)


def _grids(samples: Sequence[SamplesReady]) -> Rgba:
    """Tile each sample's sprites into an image; return uint8 [N, H, W, 4]."""
    most = max(len(sample.cells()) for sample in samples)
    return np.stack([samples_picture(sample, most) for sample in samples])


def _enlarge(frames: Rgba, scale: int | None) -> Rgba:
    """Repeat each pixel `scale` times in both directions; None fits the target width. Raises UsageError."""
    most = max(1, int((_MOST_PIXELS / (frames.size // 4)) ** 0.5))
    if scale is None:
        scale = min(most, max(1, _WIDTH // frames.shape[2]))
    if not 1 <= scale <= most:
        raise UsageError(f"--scale must be from 1 to {most}, not {scale}.", "Larger frames need too much memory.")
    return frames.repeat(scale, 1).repeat(scale, 2)  # [N, H * scale, W * scale, 4]


def _frame_ms(frames: int, seconds: float | None) -> int:
    """Return milliseconds per frame. seconds: total duration; None for the default pace. Raises UsageError."""
    if seconds is None:
        return _FRAME_MS
    least, most = frames * _SHORTEST_MS / 1000, frames * _LONGEST_MS / 1000
    if not least <= seconds <= most:
        title = f"--seconds must be from {least:g} to {most:g}, not {seconds:g}."
        raise UsageError(title, f"The timelapse has {count(frames, 'frame')}.")
    return round(1000 * seconds / frames)
