"""Using a model: new sprites from a generator, classes or numbers from others, and loading each from a run."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.errors import DamagedError, RunError, UsageError
from studio.core.events import Classified, Events, Notice, NumbersPredicted, Progress, Rgba, SpritesGenerated
from studio.data.colour.construction import PLAIN, Construction
from studio.data.colour.true_pixels import true_pixels
from studio.engine import catalog, devices
from studio.engine.batch_size import AutoBatchSize
from studio.engine.batches import on_device, to_input, to_rgba
from studio.engine.model import TrainedModel, load_style
from studio.engine.runs import checkpoints
from studio.engine.runs.checkpoints import DISTILLED, CheckpointInfo
from studio.engine.runs.folder import RunDir, reading
from studio.engine.types import Device, GenerateSettings
from studio.recipes.base import Given, Recipe, Spec, evenly_spread

Labels = NDArray[np.int64]

_AT_ONCE = 64  # sprites drawn in one pass, at most: enough to fill a device, few enough to stop soon
_SEEN_AT_ONCE = 256
_MOST_CLASSES_SAID = 30


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


def load_model(path: Path, checkpoint: str, device: Device) -> TrainedModel:
    """The model of a run at a checkpoint ('best', 'last' or a step). Raises RunError, UsageError, DeviceError.

    Where the best one or the last one is damaged, it is that of the others; `notices` of the model says so.
    """
    run = RunDir(path)
    record = run.record()
    recipe = catalog.recipe(record.recipe)
    config = recipe.Config.from_json(record.config)
    spec = Spec(record.size, record.class_names, record.target_names)
    chosen, info, tensors, notices = load_weights(run, checkpoint, recipe)
    network = recipe.build(config, spec).eval().requires_grad_(False)
    checkpoints.load_into(network, tensors, chosen.name)
    target = torch.device(device.id)
    precision = devices.precision_of(record, device, config.precision)
    distilled = None
    if DISTILLED in info.sha256:
        try:
            with reading(chosen):
                tensors = checkpoints.load_part(chosen, info, DISTILLED)
            distilled = copy.deepcopy(network)
            checkpoints.load_into(distilled, tensors, chosen.name)
        except DamagedError as error:
            notices.append(Notice("warning", f"The distilled network is left out. {error.title}", error.hint))
    with devices.faults(target):
        network = network.to(target).to(memory_format=torch.channels_last)
        distilled = None if distilled is None else distilled.to(target).to(memory_format=torch.channels_last)
    return TrainedModel(
        recipe, config, spec, network, target, precision, info.step, record.name, load_style(run, record),
        record.ancestors, tuple(notices), distilled,
    )  # fmt: skip


def load_weights(
    run: RunDir, wanted: str, recipe: Recipe
) -> tuple[Path, CheckpointInfo, checkpoints.Tensors, list[Notice]]:
    """The averaged weights of a checkpoint; a damaged one is passed over unless it was asked for by its step."""
    found, damaged = _look_over(run)
    notices = [_passed_over(f"Checkpoint {path.name} is damaged.") for path in damaged]
    while True:
        chosen, info = _choose(run, found, wanted, recipe)
        try:
            with reading(chosen):
                return chosen, info, checkpoints.load_part(chosen, info, "average"), notices
        except DamagedError as error:
            if wanted not in ("best", "last"):
                raise
            if chosen.exists():  # else it has just been removed, as there is a newer one
                notices.append(_passed_over(error.title))
            found.remove((chosen, info))
            if not found:
                raise checkpoints.none_sound(run.path.name) from error


def find_checkpoint(path: Path, checkpoint: str) -> tuple[Path, CheckpointInfo]:
    """The checkpoint of a run that 'best', 'last' or a step stands for at present. Raises RunError, UsageError."""
    run = RunDir(path)
    return _choose(run, _look_over(run)[0], checkpoint, catalog.recipe(run.record().recipe))


def checkpoint_names(path: Path) -> list[str]:
    """What `load_model` takes for this run: 'best', 'last', then the steps; empty when there is no checkpoint yet.

    Raises RunError.
    """
    run = RunDir(path)
    with reading(run.checkpoints):
        steps = [str(info.step) for _, info in checkpoints.find(run.checkpoints)]
    return ["best", "last", *reversed(steps)] if steps else []


def distilled_names(path: Path) -> list[str]:
    """Those of `checkpoint_names` that have a distilled network. Raises RunError."""
    run = RunDir(path)
    with reading(run.checkpoints):
        found = checkpoints.find(run.checkpoints)
    recipe = catalog.recipe(run.record().recipe)
    wanted = ["best", "last", *(str(info.step) for _, info in found)] if found else []
    return [name for name in wanted if DISTILLED in _choose(run, found, name, recipe)[1].sha256]


def generate(model: TrainedModel, settings: GenerateSettings, silhouette: NDArray[np.uint8] | None = None) -> Events:
    """New sprites: yields Progress after each solver step, then one SpritesGenerated.

    A sprite depends on the seed and its place in the list, not on how many are made. silhouette: uint8 [S, S], the
    alpha of each pixel, or any. Raises UsageError, DeviceError.
    """
    if model.recipe.makes != "sprites":
        raise UsageError(
            f"{model.title} is a {model.recipe.title.lower()}: it draws no sprites.", "Choose a generator."
        )
    wanted = wanted_classes(model, settings)
    labels = np.arange(settings.count) % len(model.spec.class_names) if wanted is None else wanted.labels
    with devices.faults(model.device):
        shares, construction = None if wanted is None else wanted.shares, settings.construction(silhouette)
        made = yield from draw(model, labels, settings, shares=shares, construction=construction)
    yield SpritesGenerated(made, labels, name_of(model), settings.seed)


def name_of(model: TrainedModel) -> str:
    """What a model is called beside what it drew."""
    return f"{model.title}, step {model.step:,}"


def draw(
    model: TrainedModel,
    labels: Labels,
    how: SolverSettings,
    stop_after: int | None = None,
    shares: NDArray[np.float32] | None = None,
    construction: Construction = PLAIN,
) -> Generator[Progress, None, Rgba]:
    """A sprite of each class in int64 [N]: yields Progress after each solver step, returns uint8 [N, S, S, 4].

    stop_after: the number of steps after which to stop, with what has become of the noise by then. shares: of classes,
    float32 [K], which all sprites are to have instead. Raises UsageError where it is to be quick and the model can't.
    """
    if how.quick:
        _check_quick(model, how)
    is_constructed = check_construction(model, construction)
    if is_constructed and how.quick:
        raise UsageError("The distilled network draws nothing by construction.", "Draw without it.")
    nothing = construction.applied(np.zeros((1, model.spec.size, model.spec.size, 4), np.uint8))

    def steps_of(part: slice) -> Iterator[Tensor]:
        classes = as_conditions(model, labels[part], shares)
        if not is_constructed:
            return drawing_steps(model, classes, how, part.start)
        given = as_given(model, nothing.repeat(len(classes), 0), 1.0, construction)
        return model.recipe.redraw(model.network, given, classes, how.guidance, how.steps, how.seed, part.start)

    def finished(drawn: Rgba, part: slice) -> Rgba:
        made = true_pixels(drawn, labels[part], model.style) if how.true_pixels else drawn
        return construction.applied(made)

    steps = model.recipe.strides if how.quick else how.steps
    return (yield from in_parts(model, len(labels), steps, steps_of, finished, stop_after))


def check_construction(model: TrainedModel, construction: Construction) -> bool:
    """Whether the way of drawing has to keep to it. Raises UsageError where the model can't."""
    mirrors, meets = any(construction.mirrors), any(construction.meets)
    if mirrors and "mirror" not in model.recipe.can:
        raise UsageError(f"{model.title} can't draw mirrored sprites.", "Choose a model of another kind.")
    if meets and "seamless" not in model.recipe.can:
        raise UsageError(f"{model.title} can't draw seamless tiles.", "Choose a model of another kind.")
    alpha, side = construction.alpha, model.spec.size
    if alpha is not None and "silhouette" not in model.recipe.can:
        raise UsageError(f"{model.title} can't keep to a silhouette.", "Choose a model of another kind.")
    if alpha is not None and alpha.shape != (side, side):
        height, width = alpha.shape
        raise UsageError(f"The silhouette has {width} x {height} pixels, the model's sprites {side} x {side}.", "")
    if alpha is not None and not alpha.any():
        raise UsageError("Nothing can be seen in the silhouette.", "Name a picture with a shape in it.")
    return mirrors or meets or alpha is not None


def as_given(
    model: TrainedModel,
    sprites: Rgba,
    strength: float,
    construction: Construction,
    keep: NDArray[np.bool_] | None = None,
) -> Given:
    """What new sprites are to keep to, on the model's device; sprites: uint8 [N, S, S, 4], constructed as well.

    keep: bool [N, S, S], or None for nowhere. Where nothing is to be seen in a silhouette, pixels are known.
    """
    alpha, shape = construction.alpha, (len(sprites), 1, *sprites.shape[1:3])
    known = np.zeros(sprites.shape[:3], bool) if keep is None else keep
    known = known if alpha is None else known | (alpha == 0)
    x = to_input(on_device(sprites, model.device))
    mask = torch.from_numpy(known).to(model.device).view(shape).float() if known.any() else None
    fixed = None if alpha is None else x[:, 3:]
    return Given(x, strength, mask, construction.mirrors, construction.meets, fixed)


def as_conditions(model: TrainedModel, labels: Labels, shares: NDArray[np.float32] | None) -> Tensor:
    """What a recipe draws by, on the model's device: classes int64 [N], or shares of them float32 [N, K]."""
    if shares is not None:
        return torch.from_numpy(shares).expand(len(labels), -1).to(model.device)
    return torch.from_numpy(labels).to(model.device)


def in_parts(
    model: TrainedModel,
    count: int,
    steps: int,
    steps_of: Callable[[slice], Iterator[Tensor]],
    finished: Callable[[Rgba, slice], Rgba],
    stop_after: int | None = None,
) -> Generator[Progress, None, Rgba]:
    """So many sprites, part by part as the device has room: yields Progress after each step, returns them.

    steps_of: x after each of at most so many steps, for the sprites of a part. finished: what becomes of those as they
    were drawn, uint8 [n, S, S, 4]. stop_after: as in `draw`.
    """
    made: list[Rgba] = []
    batch_size = AutoBatchSize(model.device, _AT_ONCE, model.spec.size)
    for part in batch_size.slices(count):
        with batch_size.room():
            for step, x in enumerate(in_precision(model, steps_of(part)), 1):
                share = min(step, steps) / steps
                yield Progress(round(part.start + share * len(x)), count, "sprites drawn")
                if step == stop_after:
                    break
            if step < steps:  # no more are to be taken
                yield Progress(part.stop, count, "sprites drawn")
            made.append(finished(to_rgba(x).numpy(), part))
    return np.concatenate(made)


def drawing_steps(model: TrainedModel, labels: Tensor, how: SolverSettings, first: int) -> Iterator[Tensor]:
    """The recipe's `draw`: x after each of its steps, the sprites last."""
    if how.quick and model.distilled is not None:
        return model.recipe.draw_in_strides(model.distilled, labels, how.seed, first)
    return model.recipe.draw(model.network, labels, how.guidance, how.steps, how.seed, first)


def in_precision(model: TrainedModel, steps: Iterator[Tensor]) -> Iterator[Tensor]:
    """What a recipe's generator yields, computed without gradients in the model's precision."""
    while True:
        # Grad mode and autocast belong to the thread, not to this generator: enter them anew at each step.
        with torch.no_grad(), devices.autocast(model.device.type, model.precision):
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
    batch_size = AutoBatchSize(model.device, _SEEN_AT_ONCE, model.spec.size)
    for part in batch_size.slices(len(rgba)):
        with batch_size.room(), torch.no_grad(), devices.autocast(model.device.type, model.precision):
            x = to_input(on_device(rgba[part], model.device))
            found.append(model.recipe.predict(model.network, x).cpu())
        yield Progress(sum(map(len, found)), len(rgba), "sprites looked at")
    names = model.spec.class_names if model.recipe.makes == "labels" else model.spec.target_names
    said = torch.cat(found).numpy() if found else np.zeros((0, len(names)), np.float32)
    yield Classified(said, names) if model.recipe.makes == "labels" else NumbersPredicted(said, names)


def _check_quick(model: TrainedModel, how: SolverSettings) -> None:
    """Raise UsageError where the model has no distilled network, or one that was taught otherwise."""
    usual = GenerateSettings()
    if model.distilled is None:
        title = f"{model.title} has no distilled network at step {model.step:,}."
        raise UsageError(title, "Teach one ('studio distil'), or draw without it.")
    if (how.guidance, how.steps) != (usual.guidance, usual.steps):
        title = f"The distilled network knows a guidance of {usual.guidance:g} and {model.recipe.strides} looks only."
        raise UsageError(title, "Leave out --guidance and --steps, or draw without --quick.")


def in_proportion(class_counts: Sequence[int], count: int, first: int = 0) -> Labels:
    """Classes int64 [count] as often as these counts say, spread evenly, from the place `first` on."""
    shares = np.cumsum(class_counts) / sum(class_counts)
    return np.searchsorted(shares, evenly_spread(first, count).numpy(), side="right")


@dataclass(frozen=True, eq=False)
class WantedClasses:
    """The class of each sprite that was asked for, int64 [N], and where they are mixed, the share of all: float32 [K].

    The labels of mixtures are those of the class that has the most of it.
    """

    labels: Labels
    shares: NDArray[np.float32] | None = None


def wanted_classes(model: TrainedModel, settings: GenerateSettings) -> WantedClasses | None:
    """The classes that the settings name; None where they leave it open.

    Raises UsageError for an unknown class, and for a mixture that is none or that the model can't draw.
    """
    if settings.mix:
        shares = _mixture(model, settings.mix)
        return WantedClasses(np.full(settings.count, shares.argmax()), shares)
    if settings.class_name:
        return WantedClasses(np.full(settings.count, _class_called(model, settings.class_name), np.int64))
    if settings.in_proportion:
        return WantedClasses(in_proportion(model.style.class_counts, settings.count))
    return None


def _class_called(model: TrainedModel, name: str) -> int:
    """The class of that name, or whose last folder has it. Raises UsageError."""
    names = model.spec.class_names
    matches = [i for i, known in enumerate(names) if name in (known, known.rpartition("/")[2])]
    if not matches:
        known = ", ".join(names[:_MOST_CLASSES_SAID])
        more = len(names) - _MOST_CLASSES_SAID
        hint = f"It knows: {known}{f' and {more} more' if more > 0 else ''}."
        raise UsageError(f"The model knows no class {name!r}.", hint)
    return matches[0]


def _mixture(model: TrainedModel, text: str) -> NDArray[np.float32]:
    """'sword:0.6,potion:0.4' as shares of all classes, which sum to 1: float32 [K]. Raises UsageError."""
    if "mix" not in model.recipe.can:
        raise UsageError(f"{model.title} can't mix classes.", "Name one class.")
    shares = np.zeros(len(model.spec.class_names), np.float32)
    for part in text.split(","):
        name, _, share = part.strip().rpartition(":")
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value < math.inf:
            hint = "Write classes with their shares, such as 'sword:0.6,potion:0.4'."
            raise UsageError(f"Mixture: {part.strip()!r} is not a class and its share.", hint)
        shares[_class_called(model, name)] += value
    if not shares.any():
        raise UsageError("The shares of the mixture are all 0.", "Let one of them be more.")
    return np.asarray(shares / shares.sum(), np.float32)


def _look_over(run: RunDir) -> tuple[checkpoints.Found, list[Path]]:
    """The checkpoints of a run, of which there is one at least, and those that are damaged. Raises RunError."""
    with reading(run.checkpoints):
        found, damaged = checkpoints.look_over(run.checkpoints)
    if not found and damaged:
        raise checkpoints.none_sound(run.path.name)
    if not found:
        raise RunError(f"{run.path.name} has no checkpoint yet.", "Let it train until its first checkpoint.")
    return found, damaged


def _passed_over(title: str) -> Notice:
    return Notice("warning", title, "Another checkpoint is used.")


def _choose(run: RunDir, found: checkpoints.Found, wanted: str, recipe: Recipe) -> tuple[Path, CheckpointInfo]:
    if wanted == "last":
        return found[-1]
    if wanted == "best":
        best = checkpoints.best_of(found, recipe.headline)
        return next(entry for entry in found if entry[0] == best)
    for path, info in found:
        if str(info.step) == wanted:
            return path, info
    steps = ", ".join(str(info.step) for _, info in found)
    raise UsageError(f"{run.path.name} has no checkpoint at step {wanted}.", f"It has: best, last, {steps}.")
