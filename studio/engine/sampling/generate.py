"""Draw sprites with a generator; predict classes or numbers with other models."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.events import Classified, Events, NumbersPredicted, Progress, SpritesGenerated
from studio.data.colour.constraints import NONE, UNCONSTRAINED, Constraints
from studio.data.colour.pixel_art import to_pixel_art
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import autocast
from studio.engine.models.model import TrainedModel
from studio.engine.sampling.class_choice import find_class, read_attributes, read_mixture
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import to_device, to_input, to_rgba
from studio.recipes.base import Recipe, evenly_spread
from studio.recipes.capabilities import Capability, Decodes, Distils, EditCondition, EditsSprites, Encodes

Labels = NDArray[np.int64]
Drawing = Generator[Progress, None, Rgba]  # returns sprites, uint8 [N, S, S, 4]

_DRAW_BATCH = 64  # maximum; enough to fill a GPU, few enough to stop quickly
PROGRESS_UNIT = "sprites drawn"
_PREDICT_BATCH = 256
_CAPABILITY_TEXTS: dict[Capability, str] = {
    "vary": "start from a sprite", "fill": "fill in part of a sprite", "blend": "draw between sprites",
    "map": "draw tile sets", "mirror": "draw symmetric sprites", "seamless": "draw seamless tiles",
    "silhouette": "draw inside a silhouette",
}  # fmt: skip


class SolverSettings(Protocol):
    """The settings that every way of drawing needs: seed, guidance, steps, fast mode and colour cleanup."""

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

    silhouette: uint8 [S, S], the alpha of each pixel; None leaves the shape free. first: index of the first sprite; a
    sprite depends only on the seed and its index. Raises UsageError, DeviceError.
    """
    if model.recipe.makes != "sprites":
        title = f"{model.title} is {model.recipe.kind} and can't draw sprites."
        raise UsageError(title, "Choose a generator.")
    assert settings.tiles == NONE, "draw_tile_set draws tile sets"
    wanted = chosen_classes(model, settings, first)
    in_turn = (first + np.arange(settings.count)) % len(model.spec.class_names)  # int64 [N]
    labels = in_turn if wanted is None else wanted.labels
    with detection.wrap_device_errors(model.device):
        shares, constraints = None if wanted is None else wanted.shares, settings.constraints(silhouette)
        made = yield from draw(model, labels, settings, shares=shares, constraints=constraints, first=first)
    yield SpritesGenerated(made, labels, model_label(model), settings.seed)


def model_label(model: TrainedModel) -> str:
    """Return a label for results of a model: its title and step, 'items, step 4,000'."""
    return f"{model.title}, step {model.step:,}"


def draw(
    model: TrainedModel, labels: Labels, solver: SolverSettings, stop_after: int | None = None,
    shares: NDArray[np.float32] | None = None, constraints: Constraints = UNCONSTRAINED, first: int = 0,
) -> Drawing:  # fmt: skip
    """Draw a sprite for each class in `labels`: yields Progress after each solver step, returns uint8 [N, S, S, 4].

    labels: int64 [N]. stop_after: stop after this step and return unfinished sprites. shares: float32 [K], a mixture of
    classes and attributes for all sprites, instead of `labels`. first: index of the first sprite, which selects its
    noise. Raises UsageError for fast mode without a distilled network, and for constraints beyond the model's
    capabilities.
    """
    if solver.quick:
        _require_student(model, solver)
    is_constructed = check_constraints(model, constraints)
    if is_constructed and solver.quick:
        raise UsageError("Fast mode can't draw symmetric, seamless or silhouette sprites.", "Turn off fast mode.")
    # An empty sprite with the alpha of the silhouette.
    nothing = constraints.apply(np.zeros((1, model.spec.size, model.spec.size, 4), np.uint8))
    recipe = model.recipe

    def states_of(part: slice) -> Iterator[Tensor]:
        classes = class_tensor(model, labels[part], shares)
        if not is_constructed or not isinstance(recipe, EditsSprites):
            return solver_states(model, classes, solver, first + part.start)
        condition, start = edit_condition(model, nothing.repeat(len(classes), 0), 1.0, constraints), first + part.start
        return recipe.redraw(model.network, condition, classes, solver.guidance, solver.steps, solver.seed, start)

    def postprocess(drawn: Rgba, part: slice) -> Rgba:
        made = to_pixel_art(drawn, labels[part], model.style) if solver.true_pixels else drawn
        return constraints.apply(made)

    steps = model.distilled.steps if solver.quick and model.distilled is not None else solver.steps
    return (yield from draw_in_batches(model, len(labels), steps, states_of, postprocess, stop_after))


def check_constraints(model: TrainedModel, constraints: Constraints) -> bool:
    """Return whether the solver must apply the constraints. Raises UsageError if the model can't draw with them."""
    alpha = constraints.alpha
    if is_mirrored := any(constraints.mirror_axes):
        require_capability(model, "mirror")
    if is_seamless := any(constraints.seamless_axes):
        require_capability(model, "seamless")
    if alpha is not None:
        require_capability(model, "silhouette")
        require_model_size(model, "silhouette", alpha.shape)
        if not alpha.any():
            raise UsageError("The silhouette is empty.", "Choose an image with visible pixels.")
    return is_mirrored or is_seamless or alpha is not None


def require_capability(model: TrainedModel, capability: Capability) -> None:
    """Raise UsageError if the model's recipe lacks a capability."""
    if capability not in model.recipe.capabilities:
        raise UsageError(f"{model.title} can't {_CAPABILITY_TEXTS[capability]}.", "Choose a model of another recipe.")


def require_model_size(model: TrainedModel, what: str, shape: tuple[int, ...]) -> None:
    """Raise UsageError unless an image of this shape, (height, width), has the size of the model's sprites."""
    (height, width), side = shape, model.spec.size
    if (height, width) != (side, side):
        raise UsageError(f"The {what} has {width} x {height} pixels, but the model draws {side} x {side}.", "")


def edit_condition(
    model: TrainedModel, sprites: Rgba, strength: float, constraints: Constraints, keep: NDArray[np.bool_] | None = None
) -> EditCondition:
    """Return the condition that a recipe needs for an edit: sprites, strength, mask and constraints as tensors.

    sprites: uint8 [N, S, S, 4], constrained. keep: bool [N, S, S], or None; pixels outside the silhouette are kept.
    """
    alpha, shape = constraints.alpha, (len(sprites), 1, *sprites.shape[1:3])
    known = np.zeros(sprites.shape[:3], bool) if keep is None else keep
    known = known if alpha is None else known | (alpha == 0)
    x = to_input(to_device(sprites, model.device))  # float32 [N, 4, S, S]
    mask = torch.from_numpy(known).to(model.device).view(shape).float() if known.any() else None  # [N, 1, S, S]
    fixed = None if alpha is None else x[:, 3:]  # [N, 1, S, S], alpha in [-1, 1]
    return EditCondition(x, strength, mask, constraints.mirror_axes, constraints.seamless_axes, fixed)


def class_tensor(model: TrainedModel, labels: Labels, shares: NDArray[np.float32] | None) -> Tensor:
    """Return the classes on the model's device: int64 [N], or float32 [N, K] for shares of all K labels."""
    if shares is not None:
        return torch.from_numpy(shares).expand(len(labels), -1).to(model.device)  # [K] -> [N, K]
    return torch.from_numpy(labels).to(model.device)


def draw_in_batches(
    model: TrainedModel, count: int, steps: int, states_of: Callable[[slice], Iterator[Tensor]],
    postprocess: Callable[[Rgba, slice], Rgba], stop_after: int | None = None,
) -> Drawing:  # fmt: skip
    """Draw `count` sprites in batches that fit the device: yields Progress after each step, returns uint8 [N, S, S, 4].

    states_of: yields the unfinished sprites of a slice after each step; steps beyond `steps` count as the last.
    postprocess: finishes the drawn sprites uint8 [n, S, S, 4] of a slice. stop_after: ends each batch after this step.
    """
    made: list[Rgba] = []
    batch_size = AutoBatchSize(model.device, _DRAW_BATCH, model.spec.size)
    for part in batch_size.slices(count):
        with batch_size.halve_if_full():
            for step, x in enumerate(run_in_precision(model, states_of(part)), 1):
                share = min(step, steps) / steps
                yield Progress(round(part.start + share * len(x)), count, PROGRESS_UNIT)
                if step == stop_after:
                    break
            if step < steps:  # stopped early
                yield Progress(part.stop, count, PROGRESS_UNIT)
            made.append(postprocess(to_rgba(x).numpy(), part))  # float32 [n, 4, S, S] -> uint8 [n, S, S, 4]
    return np.concatenate(made)


def solver_states(model: TrainedModel, labels: Tensor, solver: SolverSettings, first: int) -> Iterator[Tensor]:
    """Yield sprites float32 [N, 4, S, S] after each solver step, at last finished ones. first: selects the noise."""
    if not solver.quick or model.distilled is None:
        yield from model.recipe.draw(model.network, labels, solver.guidance, solver.steps, solver.seed, first)
        return
    assert isinstance(model.recipe, Distils)
    x = model.recipe.noise(model.network, len(labels), solver.seed, first).to(model.device)  # [N, 4, S, S]
    for number in range(model.distilled.steps):
        x = model.distilled(x, number, labels)
        yield x


def run_in_precision(model: TrainedModel, steps: Iterator[Tensor]) -> Iterator[Tensor]:
    """Yield the tensors of a recipe's generator, computed without gradients in the model's precision."""
    while True:
        # Grad mode and autocast belong to the thread. Entered outside the loop, both would also apply to the caller.
        with torch.no_grad(), autocast(model.device.type, model.precision):
            try:
                x = next(steps)
            except StopIteration:
                return
        yield x


def check_predicts(model: TrainedModel) -> None:
    """Raise UsageError for a model without predictions, such as a generator."""
    if model.recipe.makes not in ("labels", "numbers"):
        title = f"{model.title} is {model.recipe.kind} and can't predict."
        raise UsageError(title, "Choose a classifier or a regression.")


def predict(model: TrainedModel, rgba: Rgba) -> Events:
    """Predict for sprites uint8 [N, S, S, 4]: Progress, then Classified or NumbersPredicted. Raises UsageError."""
    check_predicts(model)
    if rgba.shape[1:] != (model.spec.size, model.spec.size, 4):
        title = f"The model needs sprites of {model.spec.size} x {model.spec.size} pixels."
        raise UsageError(title, "Import them at this size.")
    found: list[Tensor] = []
    batch_size = AutoBatchSize(model.device, _PREDICT_BATCH, model.spec.size)
    for part in batch_size.slices(len(rgba)):
        with batch_size.halve_if_full(), torch.no_grad(), autocast(model.device.type, model.precision):
            x = to_input(to_device(rgba[part], model.device))  # float32 [n, 4, S, S] in [-1, 1]
            found.append(model.recipe.predictor_of(model.spec)(model.network, x).cpu())
        yield Progress(sum(map(len, found)), len(rgba), "sprites predicted")
    if model.recipe.makes == "numbers":
        names = model.spec.target_names
        yield NumbersPredicted(torch.cat(found).numpy() if found else np.zeros((0, len(names)), np.float32), names)
        return
    known = {"": model.spec.class_names, **model_attributes(model)}  # the class and the attributes
    width = sum(map(len, known.values()))
    outputs = torch.cat(found).numpy() if found else np.zeros((0, width), np.float32)  # [N, K]
    parts = np.split(outputs, np.cumsum([len(names) for names in known.values()])[:-1], axis=1)
    of_class, *others = (Classified(part, tuple(names)) for part, names in zip(parts, known.values(), strict=True))
    yield replace(of_class, attributes=dict(zip([*known][1:], others, strict=True)))


def can_reconstruct(recipe: Recipe) -> bool:
    """Return whether models of the recipe turn sprites into codes and back, as autoencoders do."""
    return isinstance(recipe, Encodes) and isinstance(recipe, Decodes)


def reconstruct(model: TrainedModel, sprites: Rgba, labels: Labels, *, true_pixels: bool) -> Drawing:
    """Encode and decode sprites uint8 [N, S, S, 4]: yields Progress, returns the reconstructions.

    labels: int64 [N], the sprites' classes. true_pixels: clean up colours and alpha.
    """
    recipe = model.recipe

    def states_of(part: slice) -> Iterator[Tensor]:
        x = to_input(to_device(sprites[part], model.device))  # float32 [n, 4, S, S] in [-1, 1]
        assert isinstance(recipe, Encodes) and isinstance(recipe, Decodes)
        yield recipe.decode(model.network, recipe.encode(model.network, x))

    def postprocess(drawn: Rgba, part: slice) -> Rgba:
        return to_pixel_art(drawn, labels[part], model.style) if true_pixels else drawn

    return (yield from draw_in_batches(model, len(sprites), 1, states_of, postprocess))


def _require_student(model: TrainedModel, solver: SolverSettings) -> None:
    """Raise UsageError unless the model has a distilled network for these solver settings."""
    usual = GenerateSettings()
    if model.distilled is None:
        title = f"{model.title} has no distilled network at step {model.step:,}."
        raise UsageError(title, "Prepare fast mode ('studio distil'), or turn it off.")
    if (solver.guidance, solver.steps) != (usual.guidance, usual.steps):
        title = f"Fast mode always draws with a guidance of {usual.guidance:g} in {model.distilled.steps} steps."
        raise UsageError(title, "Leave out --guidance and --steps, or draw without --quick.")


def proportional_labels(class_counts: Sequence[int], count: int, first: int = 0) -> Labels:
    """Return classes for sprites from index `first` on, in proportion to `class_counts`: int64 [count]."""
    shares = np.cumsum(class_counts) / sum(class_counts)  # [K], upper ends of the class intervals in [0, 1]
    return np.searchsorted(shares, evenly_spread(first, count).numpy(), side="right")


@dataclass(frozen=True, eq=False)
class ChosenClasses:
    """The classes to draw, as chosen in the settings."""

    labels: Labels  # [N], class of each sprite, or -1 for any class; in a mixture, the class with the largest share
    # [K], for all sprites: shares of the classes, then 1 for each chosen attribute value; None: `labels` decides alone.
    shares: NDArray[np.float32] | None = None


def chosen_classes(model: TrainedModel, settings: GenerateSettings, first: int = 0) -> ChosenClasses | None:
    """Return the classes chosen in the settings; None if the settings leave the classes open.

    first: index of the first sprite. Raises UsageError for unknown classes, and for mixtures and attributes beyond
    the model's capabilities.
    """
    chosen, values = _chosen_classes(model, settings, first), _attribute_shares(model, settings.attributes)
    if values is None:
        return chosen
    classes = np.zeros(len(model.spec.class_names), np.float32)
    labels = np.full(settings.count, -1)
    if chosen is not None and not settings.in_proportion:  # otherwise open: attributes may determine a class
        labels = chosen.labels
        classes = classes + np.eye(len(classes))[labels[0]] if chosen.shares is None else chosen.shares[: len(classes)]
    return ChosenClasses(labels, np.concatenate([classes, values]).astype(np.float32))


def _chosen_classes(model: TrainedModel, settings: GenerateSettings, first: int) -> ChosenClasses | None:
    """Return the classes of the mixture, the class name or the proportions; None without such a choice."""
    if settings.mix:
        shares = _mixture(model, settings.mix)
        return ChosenClasses(np.full(settings.count, shares.argmax()), shares)
    if settings.class_name:
        return ChosenClasses(np.full(settings.count, find_class(model.spec.class_names, settings.class_name), np.int64))
    if settings.in_proportion:
        return ChosenClasses(proportional_labels(model.style.class_counts, settings.count, first))
    return None


def model_attributes(model: TrainedModel) -> Mapping[str, Sequence[str]]:
    """Return the attributes that the model can draw, with their values."""
    return model.spec.attributes if "attributes" in model.recipe.capabilities else {}


def _attribute_shares(model: TrainedModel, text: str) -> NDArray[np.float32] | None:
    """Parse 'element=fire,kind=shield' into float32 [V], 1 for chosen values; None without a choice.

    V: number of values of all attributes. Raises UsageError.
    """
    known = model_attributes(model)
    if text and not known:
        raise UsageError(f"{model.title} has no attributes.", "Choose a model whose sprites had attributes.")
    chosen = read_attributes(text, known) if text else {}
    shares = [chosen.get(name) == value for name, values in known.items() for value in values]
    return np.array(shares, np.float32) if chosen else None


def _mixture(model: TrainedModel, text: str) -> NDArray[np.float32]:
    """Parse 'sword:0.6,potion:0.4' into shares of all labels with sum 1: float32 [K]. Raises UsageError."""
    if "mix" not in model.recipe.capabilities:
        raise UsageError(f"{model.title} can't mix classes.", "Choose a single class.")
    values = sum(map(len, model_attributes(model).values()))
    shares = np.zeros(len(model.spec.class_names) + values, np.float32)
    for name, share in read_mixture(text):
        shares[find_class(model.spec.class_names, name)] += share
    if not shares.any():
        raise UsageError("The mixture has only shares of 0.", "Give at least one class a share.")
    return np.asarray(shares / shares.sum(), np.float32)
