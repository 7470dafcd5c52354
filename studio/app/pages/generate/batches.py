"""What was drawn lately: the batch on show, and those before and after it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import EditRequest, recent
from studio.app.state.models.kept import KeptSprites
from studio.core import formatting
from studio.core.arrays import Rgba
from studio.data.pixels.editing import NamedSprite, SavedEdit
from studio.data.sources.base import DRAWING_SUFFIXES
from studio.engine.sampling.settings import GenerateSettings

_NUMBERS = re.compile(r"( \d{1,10})?( \d{4})+$")  # seed and numbers of sprites that were drawn here


@dataclass(frozen=True, eq=False)
class DrawRequest:
    """What was to be drawn: the settings, and what it begins with; None for noise.

    title: of the results; empty for the usual one. origin: what they begin with is called so; empty for noise.
    model, class_names: of the model that draws, whichever is chosen by then.
    """

    settings: GenerateSettings
    request: EditRequest | None
    title: str
    origin: str
    model: str
    class_names: tuple[str, ...]

    @property
    def kind(self) -> str:
        """As in EditRequest; empty for noise."""
        return self.request.kind if self.request is not None else ""


@dataclass(frozen=True, eq=False)
class ShownSprites:
    """Sprites in the grid: uint8 [N, S, S, 4], a name, a class and a source of each (as in NamedSprite), and what is
    said of them all.

    name: what to call a file of them. palette, is_animation: as in SpriteSelection.
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
    """Sprites that were drawn together, as they were made and as they are shown, and which were rejected since."""

    def __init__(self, request: DrawRequest, result: SpritesColoured) -> None:
        self.request = request
        self.result, self.shown = result, _as_shown(result, request)
        self.rejected: set[int] = set()

    def recolour(self, result: SpritesColoured) -> None:
        """The same sprites have come in other colours."""
        self.result, self.shown = result, _as_shown(result, self.request)

    def title(self) -> str:
        """What they are, and how many of them were rejected."""
        text = self.request.title or formatting.count(len(self.result.sprites), "new sprite")
        return f"{text}, {len(self.rejected):,} rejected" if self.rejected else text


class ResultHistory:
    """Those that memory is meant to hold, the oldest first. current: the one on show; None before there is any."""

    def __init__(self) -> None:
        self.current: ResultBatch | None = None
        self._batches: list[ResultBatch] = []

    def add(self, result: SpritesColoured, request: DrawRequest) -> ResultBatch:
        """The batch of these sprites: a new one, which is on show then, or one that has come in other colours."""
        for batch in self._batches:
            if batch.result.labels is result.labels:
                batch.recolour(result)
                return batch
        self.current = ResultBatch(request, result)
        self._batches = recent([*self._batches, self.current], lambda batch: batch.result.sprites.nbytes)
        return self.current

    def can_go(self, steps: int) -> bool:
        """Whether there is a batch so many after the one on show; before it, where negative."""
        return 0 <= self._index() + steps < len(self._batches)

    def go(self, steps: int) -> None:
        """Go to it."""
        self.current = self._batches[self._index() + steps]

    def show(self, batch: ResultBatch) -> bool:
        """Go to this one; False where it is no longer held."""
        if batch in self._batches:
            self.current = batch
        return batch in self._batches

    def _index(self) -> int:
        return self._batches.index(self.current) if self.current is not None else -1


@dataclass(frozen=True, eq=False)
class Rejection:
    """Sprites that were taken away at once: numbers of a batch, or kept ones with their places."""

    batch: ResultBatch | None
    numbers: tuple[int, ...]
    kept: tuple[tuple[int, SavedEdit], ...] = ()

    def title(self) -> str:
        """What Undo takes back."""
        return f"Reject {formatting.count(len(self.numbers) + len(self.kept), 'sprite')}"


class RejectionHistory:
    """All of them since the window was opened, the newest last."""

    def __init__(self, kept: KeptSprites) -> None:
        self._kept = kept
        self._done: list[Rejection] = []

    def title(self) -> str:
        """What Undo takes back; empty when there is nothing."""
        return self._done[-1].title() if self._done else ""

    def reject(self, batch: ResultBatch, numbers: Sequence[int]) -> None:
        """Hide these of a batch."""
        batch.rejected |= set(numbers)
        self._done.append(Rejection(batch, tuple(numbers)))

    def reject_kept(self, kept: list[SavedEdit]) -> None:
        """Keep these no longer."""
        self._done.append(Rejection(None, (), self._kept.indexed(kept)))
        self._kept.remove(kept)

    def undo(self) -> Rejection:
        """Bring back what was rejected last."""
        last = self._done.pop()
        if last.batch is not None:
            last.batch.rejected -= set(last.numbers)
        else:
            self._kept.restore(last.kept)
        return last


def _as_shown(result: SpritesColoured, request: DrawRequest) -> ShownSprites:
    """New sprites, named after what they came from, else after their classes."""
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
    """Kept sprites of one size, at least one."""
    sprites = np.stack([each.edit.sprite for each in kept])
    names, classes, sources = zip(*((each.name, each.class_name, each.source) for each in kept), strict=True)
    return ShownSprites(sprites, names, classes, sources, {}, "kept sprites")


def origin_of(chosen: Sequence[NamedSprite]) -> str:
    """What to call sprites that come from these: 'orc', 'orc to ogre', 'orc and 3 others'."""
    first, *others = map(_stem, (one.name for one in chosen))
    if len(others) > 1:
        return f"{first} and {formatting.count(len(others), 'other')}"
    return f"{first} to {others[0]}" if others else first


def _stem(name: str) -> str:
    """'orc.png' -> 'orc', and 'orc 0003 0007' -> 'orc'."""
    path = PurePath(name)
    return _NUMBERS.sub("", path.stem if path.suffix.lower() in DRAWING_SUFFIXES else path.name) or "sprite"
