"""Jobs that complete characters with a model of sets, read their cells from files, and pick an example."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from studio.app.background.model_jobs import Model, ModelCache
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.events import Event, Events, Progress, SetsDrawn
from studio.core.names import escape_unprintable
from studio.data.importing.single_sprite import load_frames
from studio.data.sets.layout import GAP
from studio.engine.devices.types import Device
from studio.engine.sampling.settings import CompleteSettings, GivenSets


@dataclass(frozen=True, eq=False)
class SetRequest:
    """A request to draw the missing cells of a character, or new characters.

    sets: the given cells; None for new characters. first: number of the first candidate's random numbers.
    """

    settings: CompleteSettings
    sets: GivenSets | None
    first: int = 0


@dataclass(frozen=True, eq=False)
class SetsCompleted(Event):
    """The drawn characters of a job, a result per request."""

    drawn: tuple[SetsDrawn, ...]
    source: str  # provenance as JSON (`ModelSource`); empty if unknown


def complete_sets(cache: ModelCache, source: Model, device: Device, requests: Sequence[SetRequest]) -> Events:
    """Draw the characters of each request with a model: yields Progress, then SetsCompleted."""
    from studio.engine.models.provenance import provenance_json
    from studio.engine.sampling.complete import complete

    model = yield from cache.load(source, device)
    total, done, drawn = sum(request.settings.count for request in requests), 0, list[SetsDrawn]()
    for request in requests:
        with contextlib.closing(complete(model, request.settings, request.sets, request.first)) as events:
            for event in events:
                if isinstance(event, SetsDrawn):
                    drawn.append(event)
                elif isinstance(event, Progress):
                    yield dataclasses.replace(event, done=done + event.done, total=total)
                else:
                    yield event
        done += request.settings.count
    yield SetsCompleted(tuple(drawn), provenance_json(model))


class CellFile(NamedTuple):
    """An image file for cells. frames: by image, the name inside the file and the pixels, uint8 [H, W, 4]."""

    name: str
    frames: tuple[tuple[str, Rgba], ...]


def read_cells(paths: Sequence[Path]) -> tuple[list[CellFile], BadInputError | None]:
    """Read image files, sheets whole; return them with the error of the first unreadable file."""
    found = list[CellFile]()
    for path in paths:
        try:
            frames = tuple((image.part, image.rgba) for image in load_frames(path, whole=True))
        except BadInputError as error:
            return found, error
        found.append(CellFile(escape_unprintable(path.name), frames))
    return found, None


def example_set(cache: ModelCache, run: Path, number: int) -> tuple[str, Rgba]:
    """Return a character of a run's sprites: name, and cells uint8 [C, S, S, 4], transparent if missing.

    Prefers characters of the validation set, unseen by the model. number: counts through the characters.
    """
    sprites, training = cache.learnt_by(run)
    layout = sprites.sets
    unseen = np.flatnonzero(~np.isin(layout.table, training).any(1))
    numbers = unseen if len(unseen) else np.arange(len(layout))
    chosen = int(numbers[number % len(numbers)])
    row = layout.table[chosen]
    is_missing = (row == GAP)[:, None, None, None]
    return layout.sets[chosen], np.where(is_missing, 0, sprites.rgba[row]).astype(np.uint8)
