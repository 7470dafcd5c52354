"""Jobs that use a model, and jobs that save sprites."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from studio.app.background.job_events import RunCheckpoints, SpritesColoured
from studio.app.background.late_import import LateModule
from studio.core import files
from studio.core.arrays import Rgba
from studio.core.errors import StudioError
from studio.core.events import Distilled, Event, Events, Notice, Progress, SpritesGenerated
from studio.core.pictures import are_filled
from studio.data.colour.constraints import NONE, Constraints, evaluate_constraints
from studio.data.colour.pixel_art import PixelStyle, allowed_alphas
from studio.data.colour.recolouring import ColourMode, recolour_sprites
from studio.data.sprites import Sprites
from studio.data.tiles.tile_set import TileSet
from studio.engine.control.control import Control
from studio.engine.devices.types import Device
from studio.engine.runs.analysis.timelapse import timelapse
from studio.engine.runs.folder import RunDir
from studio.engine.sampling.settings import GenerateSettings
from studio.exports import png
from studio.exports.model_cards import provenance_metadata
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.cells import Cells
from studio.exports.sprites.png_files import save_png_files

if TYPE_CHECKING:
    from studio.engine.models import loading
    from studio.engine.models.model import TrainedModel
else:
    loading = LateModule("studio.engine.models.loading")

_FILES_PER_PROGRESS = 32
_NEIGHBOURS = 3
MOST_RECENT, MOST_RECENT_MB = 20, 64
T = TypeVar("T")


@dataclass(frozen=True)
class SavedModel:
    """A checkpoint of a run."""

    path: Path  # the run folder
    checkpoint: str  # 'best', 'last' or a step number


Model = SavedModel | Control  # a saved checkpoint, or the live model of a training


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Generated sprites before recolouring, with everything that is needed to recolour them."""

    made: SpritesGenerated
    style: PixelStyle  # of the training sprites
    constraints: Constraints  # rules for the recoloured sprites
    source: str  # provenance as JSON
    note: str  # a message for the user


def recent(items: Sequence[T], size_bytes: Callable[[T], int]) -> list[T]:
    """Return the newest items within MOST_RECENT and MOST_RECENT_MB, oldest first; always keep the last item."""
    kept: list[T] = []
    room = MOST_RECENT_MB * 2**20
    for item in reversed(items):
        room -= size_bytes(item)
        if kept and (room < 0 or len(kept) == MOST_RECENT):
            break
        kept.append(item)
    return kept[::-1]


class ModelCache:
    """Caches the last loaded model and recently generated sprites. Used on the engine thread only."""

    def __init__(self) -> None:
        self.drawn: list[_Drawn] = []  # recently generated sprites, newest last
        self._inpainting_checkpoint: dict[str, str] = {}  # checkpoint that inpaints, by the hashes of 'best' and 'last'
        self._key: tuple[Path, str, str, str] | None = None  # run, hashes of the weights, device, checkpoint
        self._model: TrainedModel | None = None
        self._training_sprites: tuple[Path, Sprites, NDArray[np.int64]] | None = None

    def learnt_by(self, run: Path) -> tuple[Sprites, NDArray[np.int64]]:
        """Return a run's sprites and the indices of its training sprites. Raises RunError, BadInputError."""
        from studio.engine.models.model import load_training_set

        if self._training_sprites is None or self._training_sprites[0] != run:
            self._training_sprites = (run, *load_training_set(RunDir(run)))
        return self._training_sprites[1:]

    def load(self, source: Model, device: Device) -> Generator[Notice, None, TrainedModel]:
        """Return the live model of a training, or load a checkpoint and yield its notices. Raises StudioError."""
        if not isinstance(source, SavedModel):
            if source.live is None:
                title = "The model is not available: the training has ended or is restarting."
                raise StudioError(title, "Try again shortly, or choose the run and a checkpoint.")
            return source.live
        info = loading.find_checkpoint(source.path, source.checkpoint)[
            1
        ]  # a measurement can make another checkpoint 'best'
        weights = (source.path, "".join(info.sha256.values()), device.id)
        exact, requested = (*weights, str(info.step)), (*weights, source.checkpoint)
        if self._model is None or self._key not in (exact, requested):
            self._model = loading.load_model(source.path, source.checkpoint, device)
            # A substitute for a damaged checkpoint is cached under the requested name, not under a step.
            self._key = exact if self._model.step == info.step else requested
            yield from self._model.notices
        return self._model

    def load_for_inpainting(self, source: Model, device: Device) -> Generator[Notice, None, TrainedModel]:
        """Load a model for inpainting; use 'last' in place of 'best' if only 'last' has learnt inpainting."""
        if not isinstance(source, SavedModel) or source.checkpoint != "best":
            return (yield from self.load(source, device))
        hashes = (loading.find_checkpoint(source.path, name)[1].sha256 for name in ("best", "last"))
        key = "".join(part for named in hashes for part in named.values())
        if key not in self._inpainting_checkpoint:
            last = dataclasses.replace(source, checkpoint="last")
            best_can = _knows_inpainting((yield from self.load(source, device)))
            last_can = not best_can and _knows_inpainting((yield from self.load(last, device)))
            self._inpainting_checkpoint[key] = "last" if last_can else "best"
        return (yield from self.load(dataclasses.replace(source, checkpoint=self._inpainting_checkpoint[key]), device))


def _knows_inpainting(model: TrainedModel) -> bool:
    from studio.recipes.capabilities import EditsSprites

    return isinstance(model.recipe, EditsSprites) and model.recipe.knows_inpainting(model.network)


@dataclass(frozen=True, eq=False)
class SpriteSelection:
    """Sprites to save, with their file names."""

    sprites: Rgba
    names: Sequence[str]
    about: Mapping[str, str]  # metadata for the files, by key
    classes: Sequence[str] = ()  # class name of each sprite, or empty
    palette: NDArray[np.uint8] | None = None  # uint8 [K, 3], the colours of the sprites
    is_animation: bool = False  # the sprites are frames
    sources: Sequence[str] = ()  # provenance of each sprite as JSON, or empty
    duration_ms: int = 100  # of each frame
    cells: Cells | None = None  # views and frames of characters
    tile_set: TileSet | None = None  # the sprites are its tiles

    def without_details(self) -> SpriteSelection:
        """Return the selection without generation details."""
        return dataclasses.replace(self, about={}, sources=())

    def texts_of(self, chosen: slice) -> dict[str, str]:
        """Return the metadata for a file that contains the sprites in `chosen`."""
        return {**self.about, **provenance_metadata(self.sources[chosen])}


@dataclass(frozen=True, eq=False)
class EditRequest:
    """A request to edit sprites, to rank new sprites by the user's sprites ('best_of'), or to finish a tile set.

    'given_tiles': the sprites are all tiles of the set, transparent where missing.
    """

    kind: Literal["redraw", "between", "more_like", "best_of", "given_tiles"]
    sprites: Rgba  # uint8 [M, S, S, 4]
    class_names: tuple[str, ...]  # of each sprite, empty if unknown
    keep: NDArray[np.bool_] | None = None  # bool [S, S], the pixels to keep when inpainting
    silhouette: NDArray[np.uint8] | None = None  # uint8 [S, S], each pixel's alpha; None for tweens


def generate(
    cache: ModelCache, source: Model, device: Device, settings: GenerateSettings, colours: ColourMode,
    request: EditRequest | None = None,
) -> Events:  # fmt: skip
    """Generate sprites, recolour them and cache them. request: edit sprites instead of starting from noise."""
    from studio.engine.models.provenance import provenance_json

    fills = request is not None and request.keep is not None
    model = yield from (cache.load_for_inpainting if fills else cache.load)(source, device)
    as_drawn = settings.replace(true_pixels=False)
    constraints = settings.constraints(None if request is None else request.silhouette)
    begun = request.sprites if request is not None and request.kind == "given_tiles" else None
    drawing = (
        _edit(model, as_drawn, request) if request is not None and begun is None else _draw(model, as_drawn, begun)
    )
    with contextlib.closing(drawing) as events:
        for event in events:
            if isinstance(event, SpritesGenerated):
                note = _inpainting_note(source, model) if fills else ""
                drawn = _Drawn(event, model.style, constraints, provenance_json(model), note)
                cache.drawn = recent([*cache.drawn, drawn], lambda each: each.made.sprites.nbytes)
                yield from recolour(cache, colours)
            else:
                yield event


def _inpainting_note(source: Model, model: TrainedModel) -> str:
    """Return a note if the model has not learnt inpainting or replaces the chosen checkpoint; else an empty text."""
    if not _knows_inpainting(model):
        return "This checkpoint has not learnt to redraw selections. Try a later checkpoint."
    if isinstance(source, SavedModel) and source.checkpoint == "best":
        best = loading.find_checkpoint(source.path, "best")[1]
        if model.step != best.step:
            return f"The last checkpoint, step {model.step:,}, filled in the sprites. 'Best' has not learnt to fill in."
    return ""


def _draw(model: TrainedModel, settings: GenerateSettings, given_tiles: Rgba | None) -> Events:
    from studio.engine.sampling.generate import generate
    from studio.engine.sampling.tile_sets import draw_tile_set

    return generate(model, settings) if settings.tiles == NONE else draw_tile_set(model, settings, given_tiles)


def _edit(model: TrainedModel, settings: GenerateSettings, request: EditRequest) -> Events:
    from studio.engine.sampling.edit import EditInput, draw_similar, redraw, tween

    known = {name: label for label, name in enumerate(model.spec.class_names)}
    source = EditInput(request.sprites, np.array([known.get(name, -1) for name in request.class_names]))
    if request.kind == "best_of":
        from studio.engine.quality.rerank import best_of

        return best_of(model, settings, source)
    if request.kind == "redraw":
        return redraw(model, settings, source, request.keep, request.silhouette)
    return tween(model, settings, source) if request.kind == "between" else draw_similar(model, settings, source)


def recolour(cache: ModelCache, colours: ColourMode, labels: NDArray[np.int64] | None = None) -> Events:
    """Recolour cached sprites. labels: the labels array of the sprites, by identity; None for the latest sprites."""
    for made in [each for each in cache.drawn if labels is None or each.made.labels is labels][-1:]:
        drawn, style, constraints = made.made, made.style, made.constraints
        sprites = yield from recolour_sprites(drawn.sprites, drawn.labels, style, colours, drawn.keep, constraints)
        alphas = allowed_alphas(drawn.labels, style) if colours.true_pixels else None
        name, palette = "", style.palette if colours.true_pixels else None
        if colours.true_pixels and colours.palette is not None:
            name, palette = colours.palette.name, colours.palette.visible()
        checked = tuple(evaluate_constraints(sprites, constraints, palette, drawn.keep, alphas))
        yield SpritesColoured(
            sprites, drawn.labels, drawn.model, drawn.seed, drawn.keep, drawn.titles, name, palette, checked,
            made.source, made.note or _empty_note(sprites, constraints),
        )  # fmt: skip


def _empty_note(sprites: Rgba, constraints: Constraints) -> str:
    """Return a note if seamless drawing, for instance of objects, made empty sprites; else an empty text."""
    empty = int((~are_filled(sprites)).sum())
    if not empty or not any(constraints.seamless_axes):
        return ""
    return f"{empty:,} of {len(sprites):,} sprites are empty. For Seamless, use a model of tiles."


@dataclass(frozen=True, eq=False)
class NearestSprites:
    """The training sprites nearest to a sprite, nearest first."""

    sprites: Rgba  # uint8 [n, S, S, 4]
    names: tuple[str, ...]
    is_copy: bool  # the sprite is a copy of the nearest training sprite


def find_neighbours(cache: ModelCache, run: Path, sprite: Rgba) -> Generator[Event, None, NearestSprites]:
    """Return the training sprites of a run nearest to `sprite`, uint8 [S, S, 4]."""
    import torch

    from studio.engine.quality.copies import find_copies, nearest_sprites

    learnt, indices = cache.learnt_by(run)
    device = torch.device("cpu")
    found = yield from find_copies(sprite[None], learnt, indices, device)
    nearest = nearest_sprites(sprite, learnt, indices, _NEIGHBOURS, device)
    names = tuple(learnt.names[index] for index in nearest)
    return NearestSprites(learnt.rgba[nearest], names, bool(found.is_copy[0]))


def with_model(cache: ModelCache, source: Model, device: Device, use: Callable[[TrainedModel], Events]) -> Events:
    """Load a model and yield the events of `use(model)`."""
    model = yield from cache.load(source, device)
    yield from use(model)


def list_checkpoints(run: Path) -> RunCheckpoints:
    names, distilled = loading.checkpoint_names(run), loading.checkpoint_names(run, distilled=True)
    return RunCheckpoints(run, tuple(names), tuple(distilled))


def distil(source: SavedModel, device: Device) -> Events:
    """Distil a checkpoint into a network that draws faster; yield the run's checkpoints before `Distilled`."""
    from studio.engine.sampling.distil import DistilSettings, distil

    with contextlib.closing(distil(source.path, source.checkpoint, device, DistilSettings())) as events:
        for event in events:
            if isinstance(event, Distilled):
                yield list_checkpoints(source.path)
            yield event


def save_files(folder: Path, picked: SpriteSelection) -> Generator[Event, None, list[Path]]:
    """Write a PNG file for each sprite, or with cells for each filled cell, and return the files."""
    if picked.cells is not None:
        texts = picked.texts_of(slice(None))
        return save_png_files(folder, SpriteSet(picked.sprites, about=texts, cells=picked.cells))
    paths: list[Path] = []
    for index in range(len(picked.sprites)):
        one = slice(index, index + 1)
        names = [files.output_name(name) for name in picked.names[one]]
        paths += png.save_files(folder, picked.sprites[one], names, picked.texts_of(one))
        if len(paths) % _FILES_PER_PROGRESS == 0:
            yield Progress(len(paths), len(picked.sprites), "files written")
    return paths


def save_file(path: Path, picked: SpriteSelection) -> list[Path]:
    """Write the first sprite as the PNG file `path`."""
    files.export_together({path: png.encode_png(picked.sprites[0], picked.texts_of(slice(0, 1)))})
    return [path]


def save_text(path: Path, text: str) -> list[Path]:
    """Write `text` as the UTF-8 file `path`."""
    files.export_together({path: text.encode("utf-8", "replace")})
    return [path]


def save_film(run: Path, path: Path, form: SpriteExport, saves_details: bool) -> Generator[Event, None, list[Path]]:
    """Write a timelapse of a run's samples and return the files. saves_details: include generation details."""
    film = timelapse(run)
    return (yield from _write(film if saves_details else dataclasses.replace(film, about={}), path, form))


def save_samples(
    run: Path, step: int, path: Path, form: SpriteExport, picked: SpriteSelection, columns: int | None,
    drawing_recipes: Collection[str],
) -> Generator[Event, None, list[Path]]:  # fmt: skip
    """Write samples of a run from `step` and return the files; with their provenance if the model drew them.

    drawing_recipes: names of the recipes whose samples are drawn; others show sprites of the validation set.
    """
    from studio.engine.runs.source import provenance_at

    source = provenance_at(RunDir(run), step)
    is_drawn = source.recipe in drawing_recipes
    known = dataclasses.replace(picked, sources=[source.to_json()]) if is_drawn else picked.without_details()
    return (yield from save_sprites(path, form, known, columns))


def save_sprites(
    path: Path, form: SpriteExport, picked: SpriteSelection, columns: int | None
) -> Generator[Event, None, list[Path]]:
    """Write all sprites in one format and return the files."""
    sprites = SpriteSet(
        picked.sprites, picked.names, picked.classes, picked.palette, is_animation=picked.is_animation,
        about=picked.texts_of(slice(None)), columns=columns, duration_ms=picked.duration_ms, cells=picked.cells,
        tile_set=picked.tile_set,
    )  # fmt: skip
    return (yield from _write(sprites, path, form))


def _write(sprites: SpriteSet, path: Path, form: SpriteExport) -> Generator[Event, None, list[Path]]:
    written = form.write(sprites, path, replace=True)
    for note in form.notes(sprites):
        yield Notice("info", note)
    return list(written)
