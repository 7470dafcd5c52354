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
from studio.core import formatting
from studio.core.arrays import Rgba
from studio.data.pixels.editing import NamedSprite, SavedEdit
from studio.data.sources.base import DRAWING_SUFFIXES
from studio.engine.devices.types import GenerateSettings

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

    def __init__(self, asked: DrawRequest, made: SpritesColoured) -> None:
        self.asked = asked
        self.made, self.shown = made, _as_shown(made, asked)
        self.rejected: set[int] = set()

    def recolour(self, made: SpritesColoured) -> None:
        """The same sprites have come in other colours."""
        self.made, self.shown = made, _as_shown(made, self.asked)

    def title(self) -> str:
        """What they are, and how many of them were rejected."""
        words = self.asked.title or formatting.count(len(self.made.sprites), "new sprite")
        return f"{words}, {len(self.rejected):,} rejected" if self.rejected else words


class ResultHistory:
    """Those that memory is meant to hold, the oldest first. current: the one on show; None before there is any."""

    def __init__(self) -> None:
        self.current: ResultBatch | None = None
        self._batches: list[ResultBatch] = []

    def add(self, made: SpritesColoured, asked: DrawRequest) -> ResultBatch:
        """The batch of these sprites: a new one, which is on show then, or one that has come in other colours."""
        for batch in self._batches:
            if batch.made.labels is made.labels:
                batch.recolour(made)
                return batch
        self.current = ResultBatch(asked, made)
        self._batches = recent([*self._batches, self.current], lambda batch: batch.made.sprites.nbytes)
        return self.current

    def can_go(self, steps: int) -> bool:
        """Whether there is a batch so many after the one on show; before it, where negative."""
        return 0 <= self._place() + steps < len(self._batches)

    def go(self, steps: int) -> None:
        """Go to it."""
        self.current = self._batches[self._place() + steps]

    def show(self, batch: ResultBatch) -> bool:
        """Go to this one; False where it is no longer held."""
        if batch in self._batches:
            self.current = batch
        return batch in self._batches

    def _place(self) -> int:
        return self._batches.index(self.current) if self.current is not None else -1


def _as_shown(made: SpritesColoured, asked: DrawRequest) -> ShownSprites:
    """New sprites, named after what they came from, else after their classes."""
    known = asked.class_names
    classes = [known[label] if 0 <= label < len(known) else "" for label in made.labels]
    if made.titles:
        names = [f"{title} {made.seed}" for title in made.titles]
    elif asked.origin:
        names = [f"{asked.origin} {number:04d}" for number in range(len(classes))]
    else:
        stems = [name.rpartition("/")[2] or asked.model for name in classes]
        names = [f"{stem} {made.seed} {number:04d}" for number, stem in enumerate(stems)]
    about = {"Model": made.model, "Seed": str(made.seed), **({"Palette": made.palette} if made.palette else {})}
    name = asked.origin or f"{made.model.replace(',', '')} seed {made.seed}"
    sources, is_animation = [made.source] * len(names), asked.kind == "between"
    return ShownSprites(made.sprites, names, classes, sources, about, name, made.colours, is_animation)


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
