"""Using a model: new sprites from a generator, classes or numbers from others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.events import Classified, Events, NumbersPredicted, Progress, SpritesGenerated
from studio.core.generators import run_to_end
from studio.data.colour.constraints import UNCONSTRAINED, Constraints
from studio.data.colour.pixel_art import to_pixel_art
from studio.data.colour.recolouring import ColourMode, recolour_sprites
from studio.data.pixels import corner_tiles
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import autocast
from studio.engine.models.model import TrainedModel
from studio.engine.sampling.class_choice import find_class, read_mixture
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import to_device, to_input, to_rgba
from studio.recipes.base import evenly_spread
from studio.recipes.capabilities import Distils, DrawsMaps, EditCondition, EditsSprites, Student

Labels = NDArray[np.int64]

_DRAW_BATCH = 64  # sprites drawn in one pass, at most: enough to fill a device, few enough to stop soon
_PROGRESS_UNIT = "sprites drawn"
_PREDICT_BATCH = 256


class SolverSettings(Protocol):
    """What all ways of drawing sprites have in common."""

    @property
    def seed(self) -> int: ...
    @property
    def guidance(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def quick(self) -> bool: ...
    @property
    def true_pixels(self) -> bool: ...


def generate(
    model: TrainedModel, settings: GenerateSettings, silhouette: NDArray[np.uint8] | None = None, first: int = 0
) -> Events:
    """Draw new sprites: yields Progress after each solver step, then one SpritesGenerated.

    A sprite depends on the seed and its index, not on the number of sprites; corner tiles are always 16.
    silhouette: uint8 [S, S], the alpha of each pixel; None leaves the shape free. first: index of the first sprite,
    where a part of a longer list is drawn. Raises UsageError, DeviceError.
    """
    if model.recipe.makes != "sprites":
        raise UsageError(
            f"{model.title} is a {model.recipe.title.lower()}: it draws no sprites.", "Choose a generator."
        )
    if settings.corner_tiles:
        if silhouette is not None:
            raise UsageError("Corner tiles go on beyond their borders: they have no silhouette.", "Draw one of both.")
        yield from _corner_tiles(model, settings)
        return
    wanted = chosen_classes(model, settings, first)
    in_turn = (first + np.arange(settings.count)) % len(model.spec.class_names)
    labels = in_turn if wanted is None else wanted.labels
    with detection.wrap_device_errors(model.device):
        shares, constraints = None if wanted is None else wanted.shares, settings.constraints(silhouette)
        made = yield from draw(model, labels, settings, shares=shares, constraints=constraints, first=first)
    yield SpritesGenerated(made, labels, model_label(model), settings.seed)


def _corner_tiles(model: TrainedModel, settings: GenerateSettings) -> Events:
    """Tiles of which each corner is of one of two classes: yields Progress after each step, then SpritesGenerated.

    They are drawn as one picture without borders, in which those pixels are tied that meet several tiles' pixels.
    """
    recipe = model.recipe
    if not isinstance(recipe, DrawsMaps):
        raise UsageError(f"{model.title} can't draw tiles that fit each other.", "Choose a model of another kind.")
    classes = _corner_classes(model, settings)
    picture, kinds = corner_tiles.TileMap.of(model.spec.size), corner_tiles.corner_kinds()
    second, ties = (torch.from_numpy(array).to(model.device) for array in (picture.share, picture.ties))
    shares = {classes[0]: 1 - second, classes[1]: second}
    with detection.wrap_device_errors(model.device):
        states = recipe.draw_map(model.network, shares, ties, settings.guidance, settings.steps, settings.seed)
        for step, state in enumerate(run_in_precision(model, states), 1):
            yield Progress(
                min(step, settings.steps) * corner_tiles.TILE_COUNT // settings.steps,
                corner_tiles.TILE_COUNT,
                _PROGRESS_UNIT,
            )
            x = state
        made = to_rgba(x).numpy()
    labels = np.array(classes)[(kinds.mean(1) > 0.5).astype(int)]
    drawn, choice = corner_tiles.split_tiles(made), ColourMode(settings.true_pixels)
    tiles = run_to_end(recolour_sprites(drawn, labels, model.style, choice, constraints=settings.constraints()))
    first, other = (model.spec.class_names[label].rpartition("/")[2] for label in classes)
    titles = tuple(f"{first}-{other} {''.join(map(str, row))}" for row in kinds.astype(int).tolist())
    yield SpritesGenerated(tiles, labels, model_label(model), settings.seed, titles=titles)


def _corner_classes(model: TrainedModel, settings: GenerateSettings) -> list[int]:
    """The two classes. Raises UsageError where there are not two, and for what corner tiles can't be."""
    wanted = chosen_classes(model, settings)
    shares = None if wanted is None else wanted.shares
    if shares is None or np.count_nonzero(shares) != 2:
        raise UsageError("The corners of tiles are of two classes.", "Mix two, such as 'grass:1,water:1'.")
    usual = GenerateSettings()
    if (settings.mirror, settings.seamless, settings.outline) != (usual.mirror, usual.seamless, usual.outline):
        raise UsageError(
            "A set of 16 tiles can't be mirrored, seamless or outlined: each side is to fit other tiles.",
            "Set mirror, seamless and outline to 'none'.",
        )
    if settings.quick:
        raise UsageError("The distilled network draws no corner tiles.", "Draw without it.")
    return [int(label) for label in np.flatnonzero(shares)]


def model_label(model: TrainedModel) -> str:
    """What a model is called beside what it drew."""
    return f"{model.title}, step {model.step:,}"


def draw(
    model: TrainedModel,
    labels: Labels,
    how: SolverSettings,
    stop_after: int | None = None,
    shares: NDArray[np.float32] | None = None,
    constraints: Constraints = UNCONSTRAINED,
    first: int = 0,
) -> Generator[Progress, None, Rgba]:
    """Draw a sprite of each class in `labels`: yields Progress after each solver step, returns uint8 [N, S, S, 4].

    labels: int64 [N]. stop_after: number of steps after which to stop, with unfinished sprites. shares: float32 [K],
    a mixture of classes for all sprites, in place of `labels`. first: as in `generate`. Raises UsageError for quick
    drawing with a model that has no distilled network, and for a construction that the model can't draw.
    """
    if how.quick:
        _require_student(model, how)
    is_constructed = check_constraints(model, constraints)
    if is_constructed and how.quick:
        raise UsageError("The distilled network draws nothing by construction.", "Draw without it.")
    nothing = constraints.apply(np.zeros((1, model.spec.size, model.spec.size, 4), np.uint8))
    recipe = model.recipe

    def steps_of(part: slice) -> Iterator[Tensor]:
        classes = class_tensor(model, labels[part], shares)
        if not is_constructed or not isinstance(recipe, EditsSprites):
            return solver_states(model, classes, how, first + part.start)
        given = edit_condition(model, nothing.repeat(len(classes), 0), 1.0, constraints)
        return recipe.redraw(model.network, given, classes, how.guidance, how.steps, how.seed, first + part.start)

    def finished(drawn: Rgba, part: slice) -> Rgba:
        made = to_pixel_art(drawn, labels[part], model.style) if how.true_pixels else drawn
        return constraints.apply(made)

    steps = model.distilled.steps if how.quick and model.distilled is not None else how.steps
    return (yield from draw_in_batches(model, len(labels), steps, steps_of, finished, stop_after))


def check_constraints(model: TrainedModel, constraints: Constraints) -> bool:
    """Whether the way of drawing has to keep to it. Raises UsageError where the model can't."""
    mirrors, meets = any(constraints.mirror_axes), any(constraints.seamless_axes)
    if mirrors and "mirror" not in model.recipe.capabilities:
        raise UsageError(f"{model.title} can't draw mirrored sprites.", "Choose a model of another kind.")
    if meets and "seamless" not in model.recipe.capabilities:
        raise UsageError(f"{model.title} can't draw seamless tiles.", "Choose a model of another kind.")
    alpha, side = constraints.alpha, model.spec.size
    if alpha is not None and "silhouette" not in model.recipe.capabilities:
        raise UsageError(f"{model.title} can't keep to a silhouette.", "Choose a model of another kind.")
    if alpha is not None and alpha.shape != (side, side):
        height, width = alpha.shape
        raise UsageError(f"The silhouette has {width} x {height} pixels, the model's sprites {side} x {side}.", "")
    if alpha is not None and not alpha.any():
        raise UsageError("Nothing can be seen in the silhouette.", "Name a picture with a shape in it.")
    return mirrors or meets or alpha is not None


def edit_condition(
    model: TrainedModel,
    sprites: Rgba,
    strength: float,
    constraints: Constraints,
    keep: NDArray[np.bool_] | None = None,
) -> EditCondition:
    """What new sprites are to keep to, on the model's device; sprites: uint8 [N, S, S, 4], constructed as well.

    keep: bool [N, S, S], or None for nowhere. Where nothing is to be seen in a silhouette, pixels are known.
    """
    alpha, shape = constraints.alpha, (len(sprites), 1, *sprites.shape[1:3])
    known = np.zeros(sprites.shape[:3], bool) if keep is None else keep
    known = known if alpha is None else known | (alpha == 0)
    x = to_input(to_device(sprites, model.device))
    mask = torch.from_numpy(known).to(model.device).view(shape).float() if known.any() else None
    fixed = None if alpha is None else x[:, 3:]
    return EditCondition(x, strength, mask, constraints.mirror_axes, constraints.seamless_axes, fixed)


def class_tensor(model: TrainedModel, labels: Labels, shares: NDArray[np.float32] | None) -> Tensor:
    """What a recipe draws by, on the model's device: classes int64 [N], or shares of them float32 [N, K]."""
    if shares is not None:
        return torch.from_numpy(shares).expand(len(labels), -1).to(model.device)
    return torch.from_numpy(labels).to(model.device)


def draw_in_batches(
    model: TrainedModel,
    count: int,
    steps: int,
    steps_of: Callable[[slice], Iterator[Tensor]],
    finished: Callable[[Rgba, slice], Rgba],
    stop_after: int | None = None,
) -> Generator[Progress, None, Rgba]:
    """So many sprites, part by part as the device has room: yields Progress after each step, returns them.

    steps_of: x after each step, for the sprites of a part; more than so many steps count as all. finished: what becomes
    of those as they were drawn, uint8 [n, S, S, 4]. stop_after: as in `draw`.
    """
    made: list[Rgba] = []
    batch_size = AutoBatchSize(model.device, _DRAW_BATCH, model.spec.size)
    for part in batch_size.slices(count):
        with batch_size.halve_if_full():
            for step, x in enumerate(run_in_precision(model, steps_of(part)), 1):
                share = min(step, steps) / steps
                yield Progress(round(part.start + share * len(x)), count, _PROGRESS_UNIT)
                if step == stop_after:
                    break
            if step < steps:  # no more are to be taken
                yield Progress(part.stop, count, _PROGRESS_UNIT)
            made.append(finished(to_rgba(x).numpy(), part))
    return np.concatenate(made)


def solver_states(model: TrainedModel, labels: Tensor, how: SolverSettings, first: int) -> Iterator[Tensor]:
    """The recipe's `draw`: x after each of its steps, the sprites last."""
    if how.quick and model.distilled is not None:
        return _student_states(model, model.distilled, labels, how.seed, first)
    return model.recipe.draw(model.network, labels, how.guidance, how.steps, how.seed, first)


def _student_states(model: TrainedModel, student: Student, labels: Tensor, seed: int, first: int) -> Iterator[Tensor]:
    assert isinstance(model.recipe, Distils)
    x = model.recipe.noise(model.network, len(labels), seed, first).to(model.device)
    for number in range(student.steps):
        x = student(x, number, labels)
        yield x


def run_in_precision(model: TrainedModel, steps: Iterator[Tensor]) -> Iterator[Tensor]:
    """What a recipe's generator yields, computed without gradients in the model's precision."""
    while True:
        # Grad mode and autocast belong to the thread, not to this generator: enter them anew at each step.
        with torch.no_grad(), autocast(model.device.type, model.precision):
            try:
                x = next(steps)
            except StopIteration:
                return
        yield x


def predict(model: TrainedModel, rgba: Rgba) -> Events:
    """What a model says of sprites uint8 [N, S, S, 4], S the model's size: yields Progress, then one Classified, or
    one NumbersPredicted of a model of numbers. Raises UsageError, DeviceError.
    """
    if model.recipe.makes == "sprites":
        title = f"{model.title} is a {model.recipe.title.lower()}: it names no classes and predicts no numbers."
        raise UsageError(title, "Choose a classifier or a regression.")
    if rgba.shape[1:] != (model.spec.size, model.spec.size, 4):
        raise UsageError(
            f"These sprites are not {model.spec.size} pixels wide and high.", "Import them at the model's size."
        )
    found: list[Tensor] = []
    batch_size = AutoBatchSize(model.device, _PREDICT_BATCH, model.spec.size)
    for part in batch_size.slices(len(rgba)):
        with batch_size.halve_if_full(), torch.no_grad(), autocast(model.device.type, model.precision):
            x = to_input(to_device(rgba[part], model.device))
            found.append(model.recipe.predict(model.network, x).cpu())
        yield Progress(sum(map(len, found)), len(rgba), "sprites looked at")
    names = model.spec.class_names if model.recipe.makes == "labels" else model.spec.target_names
    said = torch.cat(found).numpy() if found else np.zeros((0, len(names)), np.float32)
    yield Classified(said, names) if model.recipe.makes == "labels" else NumbersPredicted(said, names)


def _require_student(model: TrainedModel, how: SolverSettings) -> None:
    """Raise UsageError where the model has no distilled network, or one that was taught otherwise."""
    usual = GenerateSettings()
    if model.distilled is None:
        title = f"{model.title} has no distilled network at step {model.step:,}."
        raise UsageError(title, "Teach one ('studio distil'), or draw without it.")
    if (how.guidance, how.steps) != (usual.guidance, usual.steps):
        title = f"The distilled network knows a guidance of {usual.guidance:g} and {model.distilled.steps} looks only."
        raise UsageError(title, "Leave out --guidance and --steps, or draw without --quick.")


def proportional_labels(class_counts: Sequence[int], count: int, first: int = 0) -> Labels:
    """Classes int64 [count] as often as these counts say, spread evenly, from the place `first` on."""
    shares = np.cumsum(class_counts) / sum(class_counts)
    return np.searchsorted(shares, evenly_spread(first, count).numpy(), side="right")


@dataclass(frozen=True, eq=False)
class ChosenClasses:
    """The class of each sprite that was asked for, int64 [N], and where they are mixed, the share of all: float32 [K].

    The labels of mixtures are those of the class that has the most of it.
    """

    labels: Labels
    shares: NDArray[np.float32] | None = None


def chosen_classes(model: TrainedModel, settings: GenerateSettings, first: int = 0) -> ChosenClasses | None:
    """Return the classes that the settings name; None if they name no class. first: as in `generate`.

    Raises UsageError for an unknown class, a malformed mixture, and a mixture that the model can't draw.
    """
    if settings.mix:
        shares = _mixture(model, settings.mix)
        return ChosenClasses(np.full(settings.count, shares.argmax()), shares)
    if settings.class_name:
        return ChosenClasses(np.full(settings.count, find_class(model.spec.class_names, settings.class_name), np.int64))
    if settings.in_proportion:
        return ChosenClasses(proportional_labels(model.style.class_counts, settings.count, first))
    return None


def _mixture(model: TrainedModel, text: str) -> NDArray[np.float32]:
    """'sword:0.6,potion:0.4' as shares of all classes, which sum to 1: float32 [K]. Raises UsageError."""
    if "mix" not in model.recipe.capabilities:
        raise UsageError(f"{model.title} can't mix classes.", "Name one class.")
    shares = np.zeros(len(model.spec.class_names), np.float32)
    for name, share in read_mixture(text):
        shares[find_class(model.spec.class_names, name)] += share
    if not shares.any():
        raise UsageError("The shares of the mixture are all 0.", "Let one of them be more.")
    return np.asarray(shares / shares.sum(), np.float32)
