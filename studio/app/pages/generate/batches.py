"""The content of the results grid: generated batches, kept sprites and rejections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import EditRequest, SpriteSelection, recent
from studio.app.state.models.kept_sprites import KeptSprites
from studio.core import files, formatting
from studio.core.arrays import Rgba
from studio.data.pixels.editing import NamedSprite, SavedEdit
from studio.data.sources.base import DRAWING_SUFFIXES
from studio.data.tiles.tile_set import TileSet
from studio.engine.sampling.settings import GenerateSettings

_NUMBERS = re.compile(r"([ -]\d{1,10})?([ -]\d{4})+$")  # seed and index in the names of generated sprites


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


class ResultBatch:
    """A generated batch: the request, the drawn and the shown sprites, and indices of rejected sprites."""

    def __init__(self, request: DrawRequest, result: SpritesColoured) -> None:
        self.request, self.result, self.shown = request, result, _as_shown(result, request)
        self.rejected: set[int] = set()

    def recolour(self, result: SpritesColoured) -> None:
        """Replace the sprites with a recoloured version."""
        self.result, self.shown = result, _as_shown(result, self.request)

    def title(self) -> str:
        """Return the batch's title, with the number of rejected sprites."""
        text = self.request.title or formatting.count(len(self.result.sprites), "sprite")
        return f"{text}, {len(self.rejected):,} rejected" if self.rejected else text

    def file_name(self) -> str:
        """Return the name to propose for a file of the sprites."""
        return files.output_name(self.request.origin or f"{self.result.model.replace(',', '')} seed {self.result.seed}")


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
    """An undoable rejection: sprites of `batch` by index, or kept sprites, each with its list position."""

    batch: ResultBatch | None
    numbers: Sequence[int] = ()
    kept: Sequence[tuple[int, SavedEdit]] = ()


class GridContent:
    """The content of the results grid: a generated batch, or the kept sprites of the chosen model's size.

    shows_new: show the batch, not the kept sprites. size: side of the model's sprites in pixels.
    """

    def __init__(self, kept: KeptSprites) -> None:
        self.kept = kept
        self.history = ResultHistory()
        self.shows_new, self.size = True, 0

    def batch(self) -> ResultBatch | None:
        """Return the shown batch; None while kept sprites are shown, and before the first batch."""
        return self.history.current if self.shows_new else None

    def sprites(self) -> SpriteSelection | None:
        """Return the sprites in the grid, with rejected ones; None for an empty grid."""
        if self.shows_new:
            return self.history.current.shown if self.history.current is not None else None
        kept = self.kept.of_size(self.size)
        return _shown_kept(kept) if kept else None

    def sprite(self, number: int) -> NamedSprite:
        """Return the shown sprite at this index."""
        shown = self.sprites()
        assert shown is not None
        return NamedSprite(shown.sprites[number], shown.names[number], shown.classes[number], shown.sources[number])

    def remaining(self) -> list[int]:
        """Return the indices of the sprites in the grid, without rejected ones."""
        shown, batch = self.sprites(), self.batch()
        count, rejected = len(shown.sprites) if shown is not None else 0, batch.rejected if batch is not None else ()
        return [number for number in range(count) if number not in rejected]

    def selection(self, chosen: Sequence[int]) -> SpriteSelection | None:
        """Return the chosen sprites, or without a choice every sprite except rejected ones. None for an empty grid."""
        shown, chosen = self.sprites(), chosen or self.remaining()
        if shown is None or not chosen:
            return None
        texts = (shown.names, shown.classes, shown.sources)
        names, classes, sources = ([of_each[index] for index in chosen] for of_each in texts)
        tile_set = shown.tile_set if [*chosen] == [*range(len(shown.sprites))] else None  # some tiles are no set
        sprites = shown.sprites[chosen]
        return replace(shown, sprites=sprites, names=names, classes=classes, sources=sources, tile_set=tile_set)

    def tile_set(self) -> TileSet | None:
        """Return the shown tile set; None for other sprites."""
        batch = self.batch()
        return batch.shown.tile_set if batch is not None else None

    def frames(self, chosen: Sequence[int]) -> Rgba | None:
        """Return the shown animation's frames at these indices, or all its frames: uint8 [N, S, S, 4]; else None."""
        batch, selection = self.batch(), self.selection(chosen)
        is_animation = batch is not None and batch.shown.is_animation
        return selection.sprites if is_animation and selection is not None and len(selection.sprites) > 1 else None

    def rejection(self, chosen: Sequence[int]) -> Rejection:
        """Return a rejection of the sprites in the grid at these indices."""
        batch = self.batch()
        if batch is not None:
            return Rejection(batch, chosen)
        kept = self.kept.of_size(self.size)
        return Rejection(None, kept=self.kept.indexed([kept[number] for number in chosen]))

    def reject(self, rejection: Rejection) -> None:
        """Hide sprites of a batch, or remove kept sprites."""
        if rejection.batch is not None:
            rejection.batch.rejected |= set(rejection.numbers)
        else:
            self.kept.remove([kept for _, kept in rejection.kept])

    def restore(self, rejection: Rejection) -> Sequence[int]:
        """Restore rejected sprites. Show them and return their indices; empty if their batch is dropped."""
        if rejection.batch is not None:
            rejection.batch.rejected -= set(rejection.numbers)
            shown = rejection.numbers if self.history.show(rejection.batch) else ()
        else:
            self.kept.restore(rejection.kept)
            back = [kept for _, kept in rejection.kept]
            shown = [number for number, kept in enumerate(self.kept.of_size(self.size)) if kept in back]
        if shown:
            self.shows_new = rejection.batch is not None
        return shown


def _as_shown(result: SpritesColoured, request: DrawRequest) -> SpriteSelection:
    """Give each sprite of a drawn batch its name, class and metadata for the grid and for saved files."""
    known = request.class_names
    classes = [known[label] if 0 <= label < len(known) else "" for label in result.labels]
    if result.titles:
        names = [f"{files.output_name(title)}-{result.seed}" for title in result.titles]
    elif request.origin:
        names = [f"{files.output_name(request.origin)}-{number:04d}" for number in range(len(classes))]
    else:
        stems = [name.rpartition("/")[2] or request.model for name in classes]
        names = [f"{files.output_name(stem)}-{result.seed}-{number:04d}" for number, stem in enumerate(stems)]
    about = {"Model": result.model, "Seed": str(result.seed), **({"Palette": result.palette} if result.palette else {})}
    sources, is_animation = [result.source] * len(names), request.kind == "between"
    spec = request.settings.tile_set_spec()
    tile_set = spec.tile_set(result.sprites) if spec is not None else None
    return SpriteSelection(
        result.sprites, names, about, classes, result.colours, is_animation, sources, tile_set=tile_set
    )


def _shown_kept(kept: Sequence[SavedEdit]) -> SpriteSelection:
    """Return kept sprites of one size for the grid. kept: not empty."""
    sprites = np.stack([each.edit.sprite for each in kept])
    names, classes, sources = zip(*((each.name, each.class_name, each.source) for each in kept), strict=True)
    return SpriteSelection(sprites, names, {}, classes, sources=sources)


def origin_of(chosen: Sequence[NamedSprite]) -> str:
    """Return a name for new sprites that start from `chosen`: 'orc', 'orc to ogre', 'orc and 3 others'."""
    first, *others = map(_stem, (one.name for one in chosen))
    if len(others) > 1:
        return f"{first} and {formatting.count(len(others), 'other')}"
    return f"{first} to {others[0]}" if others else first


def _stem(name: str) -> str:
    """Return the name without suffix, seed and number: 'orc.png' -> 'orc', 'orc-0003-0007' -> 'orc'."""
    path = PurePath(name)
    return _NUMBERS.sub("", path.stem if path.suffix.lower() in DRAWING_SUFFIXES else path.name) or "sprite"
