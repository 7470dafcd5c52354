"""The history of generated batches, and the rejected sprites."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import EditRequest, recent
from studio.app.state.models.kept_sprites import KeptSprites
from studio.core import formatting
from studio.core.arrays import Rgba
from studio.data.pixels.editing import NamedSprite, SavedEdit
from studio.data.sources.base import DRAWING_SUFFIXES
from studio.engine.sampling.settings import GenerateSettings

_NUMBERS = re.compile(r"( \d{1,10})?( \d{4})+$")  # seed and index in the names of generated sprites


@dataclass(frozen=True, eq=False)
class DrawRequest:
    """A request to draw a batch of sprites with a model.

    request: other sprites to draw from; None to start from noise. title: the batch's title; '' for the default. origin:
    a name for the other sprites; '' for noise. model, class_names: the model's name and classes.
    """

    settings: GenerateSettings
    request: EditRequest | None
    title: str
    origin: str
    model: str
    class_names: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Return 'redraw', 'between', 'more_like' or 'best_of'; '' to start from noise."""
        return self.request.kind if self.request is not None else ""


@dataclass(frozen=True, eq=False)
class ShownSprites:
    """The sprites in the results grid: uint8 [N, S, S, 4], with the name and class of each.

    sources: JSON of the model that drew each sprite; '' if unknown. about: metadata for saved files. name: the proposed
    file name. palette: uint8 [K, 3], the sprites' colours. is_animation: the sprites are frames of an animation.
    """

    sprites: Rgba
    names: Sequence[str]
    classes: Sequence[str]
    sources: Sequence[str]
    about: dict[str, str]
    name: str
    palette: NDArray[np.uint8] | None = None
    is_animation: bool = False


class ResultBatch:
    """A generated batch: the request, the drawn and the shown sprites, and indices of rejected sprites."""

    def __init__(self, request: DrawRequest, result: SpritesColoured) -> None:
        self.request = request
        self.result, self.shown = result, _as_shown(result, request)
        self.rejected: set[int] = set()

    def recolour(self, result: SpritesColoured) -> None:
        """Replace the sprites with a recoloured version."""
        self.result, self.shown = result, _as_shown(result, self.request)

    def title(self) -> str:
        """Return the batch's title, with the number of rejected sprites."""
        text = self.request.title or formatting.count(len(self.result.sprites), "new sprite")
        return f"{text}, {len(self.rejected):,} rejected" if self.rejected else text


class ResultHistory:
    """The last batches, oldest first, within a memory limit. current: the shown batch; None before the first."""

    def __init__(self) -> None:
        self.current: ResultBatch | None = None
        self._batches: list[ResultBatch] = []

    def add(self, result: SpritesColoured, request: DrawRequest) -> ResultBatch:
        """Add new sprites as the shown batch, or recolour the batch that has these sprites. Return the batch."""
        for batch in self._batches:
            if batch.result.labels is result.labels:
                batch.recolour(result)
                return batch
        self.current = ResultBatch(request, result)
        self._batches = recent([*self._batches, self.current], lambda batch: batch.result.sprites.nbytes)
        return self.current

    def can_go(self, steps: int) -> bool:
        """Return whether the history has a batch `steps` after the shown batch. Negative steps go back."""
        return 0 <= self._index() + steps < len(self._batches)

    def go(self, steps: int) -> None:
        """Show the batch `steps` after the shown batch. Negative steps go back."""
        self.current = self._batches[self._index() + steps]

    def show(self, batch: ResultBatch) -> bool:
        """Show this batch. Return False if the history has dropped it."""
        if batch in self._batches:
            self.current = batch
        return batch in self._batches

    def _index(self) -> int:
        return self._batches.index(self.current) if self.current is not None else -1


@dataclass(frozen=True, eq=False)
class Rejection:
    """An undoable rejection of sprites.

    numbers: indices of the rejected sprites in `batch`. kept: rejected kept sprites, each with its list position.
    """

    batch: ResultBatch | None
    numbers: tuple[int, ...]
    kept: tuple[tuple[int, SavedEdit], ...] = ()

    def title(self) -> str:
        """Return the title of the Undo step."""
        return f"Reject {formatting.count(len(self.numbers) + len(self.kept), 'sprite')}"


class RejectionHistory:
    """All rejections since the window was opened, the newest last."""

    def __init__(self, kept: KeptSprites) -> None:
        self._kept = kept
        self._done: list[Rejection] = []

    def title(self) -> str:
        """Return the title of the next Undo step; '' without rejections."""
        return self._done[-1].title() if self._done else ""

    def reject(self, batch: ResultBatch, numbers: Sequence[int]) -> None:
        """Hide sprites of a batch in the grid. numbers: their indices."""
        batch.rejected |= set(numbers)
        self._done.append(Rejection(batch, tuple(numbers)))

    def reject_kept(self, kept: list[SavedEdit]) -> None:
        self._done.append(Rejection(None, (), self._kept.indexed(kept)))
        self._kept.remove(kept)

    def undo(self) -> Rejection:
        """Undo the last rejection and return it."""
        last = self._done.pop()
        if last.batch is not None:
            last.batch.rejected -= set(last.numbers)
        else:
            self._kept.restore(last.kept)
        return last


def _as_shown(result: SpritesColoured, request: DrawRequest) -> ShownSprites:
    """Return new sprites for the grid, each with a name, class and metadata."""
    known = request.class_names
    classes = [known[label] if 0 <= label < len(known) else "" for label in result.labels]
    if result.titles:
        names = [f"{title} {result.seed}" for title in result.titles]
    elif request.origin:
        names = [f"{request.origin} {number:04d}" for number in range(len(classes))]
    else:
        stems = [name.rpartition("/")[2] or request.model for name in classes]
        names = [f"{stem} {result.seed} {number:04d}" for number, stem in enumerate(stems)]
    about = {"Model": result.model, "Seed": str(result.seed), **({"Palette": result.palette} if result.palette else {})}
    name = request.origin or f"{result.model.replace(',', '')} seed {result.seed}"
    sources, is_animation = [result.source] * len(names), request.kind == "between"
    return ShownSprites(result.sprites, names, classes, sources, about, name, result.colours, is_animation)


def shown_kept(kept: Sequence[SavedEdit]) -> ShownSprites:
    """Return kept sprites for the grid. kept: at least one sprite, all of one size."""
    sprites = np.stack([each.edit.sprite for each in kept])
    names, classes, sources = zip(*((each.name, each.class_name, each.source) for each in kept), strict=True)
    return ShownSprites(sprites, names, classes, sources, {}, "kept sprites")


def origin_of(chosen: Sequence[NamedSprite]) -> str:
    """Return a name for new sprites that start from `chosen`: 'orc', 'orc to ogre', 'orc and 3 others'."""
    first, *others = map(_stem, (one.name for one in chosen))
    if len(others) > 1:
        return f"{first} and {formatting.count(len(others), 'other')}"
    return f"{first} to {others[0]}" if others else first


def _stem(name: str) -> str:
    """Return the name without suffix, seed and number: 'orc.png' -> 'orc', 'orc 0003 0007' -> 'orc'."""
    path = PurePath(name)
    return _NUMBERS.sub("", path.stem if path.suffix.lower() in DRAWING_SUFFIXES else path.name) or "sprite"
