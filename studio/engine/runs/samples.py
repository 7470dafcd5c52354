"""Live samples: a PNG per step at which the training drew or predicted sprites."""

import contextlib
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from studio.core import files, pictures
from studio.core.arrays import Rgba
from studio.core.events import SamplesReady
from studio.engine.runs.folder import RunDir, wrap_read_errors

SAMPLE_COLUMNS = 8
MAX_SAMPLE_IMAGES = 512  # PNG files per run
_CAPTIONS_KEY = "Captions"  # PNG text chunk: a JSON list
_PAIRS_KEY = "Pairs"  # PNG text chunk: the number of reconstructions; in the image, originals follow reconstructions
_GIVEN_KEY = "Given"  # PNG text chunk of sets: '1000' if the first of four cells is given
_MAX_LOADED_BYTES = 96 << 20  # limit for a run's samples in memory: large sprites are loaded at fewer steps
_SPRITES_PER_SAMPLE = 16
_MOST_CELLS = 64  # limit per set
_MAX_SIDE_PX = 8192  # `_load` ignores larger PNGs

_Key = tuple[int, int, int]  # step, modification time in ns, and size in bytes of a PNG


def save_samples(run: RunDir, samples: SamplesReady) -> Path:
    """Write live samples as a PNG with captions in a text chunk; return the PNG's path. Raises UnwritableError.

    Deletes images beyond MAX_SAMPLE_IMAGES. Atomic but not durable: a power failure may lose the newest image.
    """
    target = run.samples / f"{samples.step:08d}.png"
    text = PngInfo()
    text.add_text(_CAPTIONS_KEY, json.dumps(samples.captions))
    if samples.given:
        text.add_text(_GIVEN_KEY, "".join(str(int(given)) for given in samples.given))
    elif samples.originals is not None:
        text.add_text(_PAIRS_KEY, str(len(samples.sprites)))
    with run.wrap_write_errors():
        with files.atomic_path(target, durable=False) as temporary:
            image = Image.fromarray(pictures.tile(samples.cells(), sum(samples.parts()) or SAMPLE_COLUMNS))
            image.save(temporary, format="PNG", pnginfo=text)
        thin_samples(run)
    return target


def samples_picture(samples: SamplesReady, count: int = 0) -> Rgba:
    """Tile live samples into a picture, uint8 [H, W, 4]. In sets, gaps separate given, true and drawn cells.

    count: minimum number of cells; empty cells fill the picture up, for an equal size of several pictures.
    """
    cells, parts = samples.cells(), samples.parts()
    missing = max(0, count - len(cells))
    cells = np.pad(cells, ((0, missing), (0, 0), (0, 0), (0, 0)))
    picture = pictures.tile(cells, sum(parts) or min(SAMPLE_COLUMNS, len(cells)))
    size = cells.shape[1]
    gaps = np.repeat(np.cumsum(parts, dtype=np.int64)[:-1] * size, max(2, size // 4))
    return np.insert(picture, gaps, 0, axis=1)


def thin_samples(run: RunDir, in_use: Collection[int] = ()) -> None:
    """Thin the sample images to MAX_SAMPLE_IMAGES evenly spaced steps, besides the steps `in_use`. Raises OSError."""
    found = sample_paths(run)
    for step in found.keys() - {*thin_steps(list(found), MAX_SAMPLE_IMAGES), *in_use}:
        files.remove(found[step])


def sample_paths(run: RunDir) -> dict[int, Path]:
    """Return the sample images' paths by step, in ascending order. Raises OSError."""
    try:
        paths = list(run.samples.iterdir())
    except FileNotFoundError:
        return {}
    found = {int(path.stem): path for path in paths if path.suffix == ".png" and path.stem.isdecimal()}
    return dict(sorted(found.items()))


def thin_steps(steps: Sequence[int], most: int) -> list[int]:
    """Thin ascending steps to at most `most`: the first, the last, and evenly spaced steps in between.

    Repeatedly drops the step with the closest neighbours; gaps differ at most by about a factor of two.
    """
    kept: NDArray[np.int64] = np.array(steps, dtype=np.int64)
    if len(kept) > 2 * most:
        kept = kept[np.linspace(0, len(kept) - 1, 2 * most).round().astype(int)]  # limits the loop below
    while len(kept) > max(2, most):
        kept = np.delete(kept, 1 + np.argmin(kept[2:] - kept[:-2]))  # distance between the two neighbours
    return [int(step) for step in kept]


def read_samples(path: Path, size: int) -> tuple[SamplesReady, ...]:
    """Return a run's live samples, oldest first; fewer for large sprites. size: sprite width. Raises RunError."""
    return SampleReader(path, size).read()


class SampleReader:
    """Reads a run's live samples repeatedly; loads only new images. size: sprite width in pixels."""

    def __init__(self, path: Path, size: int) -> None:
        self._run, self._size = RunDir(path), size
        self._most = max(2, min(MAX_SAMPLE_IMAGES, _MAX_LOADED_BYTES // (_SPRITES_PER_SAMPLE * size * size * 4)))
        self._loaded: dict[_Key, SamplesReady | None] = {}

    def read(self) -> tuple[SamplesReady, ...]:
        """Load new images and return all live samples, oldest first. Raises RunError."""
        with wrap_read_errors(self._run.samples):
            paths = sample_paths(self._run)
        found: dict[_Key, SamplesReady | None] = {}
        for step in thin_steps(list(paths), self._most):
            with contextlib.suppress(OSError):  # skip an image that was deleted meanwhile or can't be read
                about = paths[step].stat()
                key = (step, about.st_mtime_ns, about.st_size)
                found[key] = self._loaded[key] if key in self._loaded else _load(paths[step], step, self._size)
        self._loaded = found
        return tuple(samples for samples in found.values() if samples is not None)


def _load(path: Path, step: int, size: int) -> SamplesReady | None:
    """Load a step's samples from a PNG. size: sprite width. A damaged PNG raises OSError or returns None."""
    try:
        with Image.open(path) as image:
            if max(image.size) > _MAX_SIDE_PX:
                return None
            sprites = pictures.untile(np.asarray(image.convert("RGBA")), size)
            captions = _parse_captions(image.info.get(_CAPTIONS_KEY))
            pairs = _parse_pairs(image.info.get(_PAIRS_KEY))
            given = _parse_given(image.info.get(_GIVEN_KEY))
    except OSError:
        raise
    except pictures.PILLOW_ERRORS:
        return None
    if given:
        return _sets_from(SamplesReady(step, sprites, captions, given=given))
    if pairs and 2 * pairs <= len(sprites):
        return SamplesReady(step, sprites[:pairs], captions[:pairs], originals=sprites[pairs : 2 * pairs])
    if captions and len(captions) <= len(sprites):  # the last row of the image may have empty cells
        return SamplesReady(step, sprites[: len(captions)], captions)
    return SamplesReady(step, sprites)


def _sets_from(stored: SamplesReady) -> SamplesReady | None:
    """Convert stored samples of sets: `stored.sprites` are cells; the result has whole sets. None if damaged."""
    given, (known, missing, _), shape = np.array(stored.given), stored.parts(), stored.sprites.shape[1:]
    if len(stored.sprites) % (known + 2 * missing):
        return None
    rows = stored.sprites.reshape(-1, known + 2 * missing, *shape)  # [M, columns, S, S, 4]
    true = np.zeros((len(rows), len(given), *shape), np.uint8)
    true[:, given], true[:, ~given] = rows[:, :known], rows[:, known : known + missing]
    drawn = true.copy()
    drawn[:, ~given] = rows[:, known + missing :]
    captions = stored.captions if len(stored.captions) == true[:, :, 0, 0, 0].size else ()
    return replace(stored, sprites=drawn.reshape(-1, *shape), captions=captions, originals=true.reshape(-1, *shape))


def _parse_captions(text: object) -> tuple[str, ...]:
    """Parse the captions in a PNG text chunk; return no captions for any other content."""
    try:
        found = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _parse_pairs(text: object) -> int:
    """Parse the number of reconstructions in a PNG text chunk; return 0 for any other content."""
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 4 else 0


def _parse_given(text: object) -> tuple[bool, ...]:
    """Parse the given cells in a PNG text chunk; return an empty tuple for any other content."""
    is_known = isinstance(text, str) and 0 < len(text) <= _MOST_CELLS and not text.strip("01")
    return tuple(digit == "1" for digit in str(text)) if is_known else ()
