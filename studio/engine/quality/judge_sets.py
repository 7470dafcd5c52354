"""Judge drawn cells in sets: pixel art, copies of training sprites, and frames of a walk."""

from collections.abc import Generator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from studio.core.arrays import Mask, Rgba
from studio.core.events import Event, SetsDrawn, Validated
from studio.core.metrics import CLOSED, COPIES, FEET, SURPRISAL
from studio.data.sprites import Sprites, unstack
from studio.engine.models.model import TrainedModel
from studio.engine.quality.copies import find_copies
from studio.engine.quality.surprisal import PatchSurprisal
from studio.engine.sampling.complete import complete
from studio.engine.sampling.settings import CompleteSettings, GivenSets
from studio.recipes.set_tasks import first_of_rows

_FEWEST_CELLS = 4  # training sprites needed for patch counts
_FEWEST_FRAMES = 3  # frames of a view needed to judge a closed walk


def judge_sets(
    model: TrainedModel, found: Validated, heldout: Sprites, training: Sprites
) -> Generator[Event, None, Validated]:
    """Complete the validation sets; add figures for drawn and true cells to `found`, and return it. Yields Progress.

    From cells drawn after the set's first cell: `surprisal`, mean bits per pixel by patches of training sprites, and
    `copies`, share of copies of training sprites. From frames drawn after a view's first frame: `feet`, how far the
    lowest opaque row moves within a view, in pixels, and `closed`, share of views whose change from the last frame to
    the first is no larger than the largest change between neighbouring frames.
    """
    stacked = heldout.stacked_sets(np.arange(len(heldout)))
    cells, there, names = unstack(stacked.rgba), stacked.targets > 0, model.spec.cells
    first, leads = np.arange(len(names)) == 0, np.array(first_of_rows(names))  # bool [C] each
    figures, baseline = dict[str, float](), dict[str, float]()
    drawn = yield from _completed(model, cells, there, first)
    judged = there & ~first & there[:, :1]
    new, true = drawn[judged], cells[judged]  # uint8 [n, S, S, 4] each
    if len(new) and len(training) >= _FEWEST_CELLS:
        # Count patches in training sprites alone: patches of true cells would favour true cells over drawn cells.
        surprisal = PatchSurprisal(training.rgba, training.groups, training.rgba)
        for some, into in ((new, figures), (true, baseline)):
            nearest = yield from find_copies(some, training, None, model.device)
            into.update({SURPRISAL.name: float(surprisal.of(some).mean()), COPIES.name: float(nearest.is_copy.mean())})
    if 1 < leads.sum() < len(leads):
        drawn = yield from _completed(model, cells, there, leads)
        for some, into in ((drawn, figures), (cells, baseline)):
            into.update(walk_figures(some, there, leads))
    return replace(found, metrics={**found.metrics, **figures}, baseline={**found.baseline, **baseline})


def _completed(model: TrainedModel, cells: Rgba, there: Mask, given: Mask) -> Generator[Event, None, Rgba]:
    """Draw missing cells from given cells; returns uint8 [M, C, S, S, 4]. given: bool [C]. Yields Progress.

    Sets without a given cell stay unchanged.
    """
    known = there & given
    usable = known.any(1)
    result = cells.copy()
    if usable.any():
        names = ("",) * int(usable.sum())
        for event in complete(model, CompleteSettings(), GivenSets(names, cells[usable], known[usable])):
            if isinstance(event, SetsDrawn):
                result[usable] = event.cells
            else:
                yield event
    return result


def walk_figures(cells: Rgba, there: Mask, leads: Mask) -> dict[str, float]:
    """Compute the figures 'feet' and 'closed' over the rows (views) of sets, see `judge_sets`.

    cells: uint8 [M, C, S, S, 4]. there: bool [M, C], existing cells. leads: bool [C], first cell of a row.
    """
    ranges, closed = list[int](), list[bool]()
    starts = [*np.flatnonzero(leads).tolist(), len(leads)]
    for own, has in zip(cells, there, strict=True):
        for start, stop in pairwise(starts):
            frames = own[start:stop][has[start:stop]]  # [F, S, S, 4]
            opaque = frames[..., 3].any(2)  # bool [F, S], pixel rows with a visible pixel
            if len(frames) > 1 and opaque.any(1).all():
                lowest = opaque.shape[1] - 1 - opaque[:, ::-1].argmax(1)
                ranges.append(int(np.ptp(lowest)))
            if len(frames) >= _FEWEST_FRAMES:
                # Changed pixels by frame, [F]; changes[0] compares the first frame with the last.
                changes = (frames != np.roll(frames, 1, 0)).any(3).sum((1, 2))
                closed.append(bool(changes[0] <= changes[1:].max()))
    figures = {FEET.name: float(np.mean(ranges))} if ranges else {}
    return {**figures, CLOSED.name: float(np.mean(closed))} if closed else figures
