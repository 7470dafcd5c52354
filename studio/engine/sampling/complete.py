"""Complete sets with a trained model: draw the missing cells of characters, or whole new characters."""

from collections.abc import Generator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Mask, Rgba
from studio.core.errors import SetsError, UsageError
from studio.core.events import Events, Progress, SetsDrawn
from studio.data.images.canvas import as_uint32
from studio.data.sets.layout import list_cells
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.models.model import TrainedModel
from studio.engine.sampling.generate import model_label, run_in_precision
from studio.engine.sampling.settings import CompleteSettings, GivenSets
from studio.engine.steps.batches import premultiply, unpremultiply
from studio.recipes.capabilities import CompletesSets, SetCondition
from studio.recipes.flow import normal_rows
from studio.recipes.set_colours import TRANSPARENT, UNUSED
from studio.recipes.set_drawing import mirror_sides, palettes_of

_DRAW_BATCH = 16  # sets; few enough to stop quickly


def complete(model: TrainedModel, settings: CompleteSettings, sets: GivenSets | None = None, first: int = 0) -> Events:
    """Draw the missing cells of sets, or new sets: yields Progress, then one SetsDrawn.

    The candidates of a set follow each other; candidate 0 has the most likely colours. first: number of the first
    candidate. Only the seed and the number determine a candidate.
    Raises UsageError for another kind of model, too many colours, or nothing to draw; DeviceError.
    """
    recipe, count, cells, size = model.recipe, settings.count, len(model.spec.cells), model.spec.size
    check_completes(model)
    assert isinstance(recipe, CompletesSets)
    numbers = first + np.arange(count)  # number of each candidate
    if sets is None:
        names = tuple(str(number + 1) for number in numbers.tolist())
        sets = GivenSets(names, np.zeros((count, cells, size, size, 4), np.uint8), np.zeros((count, cells), np.bool_))
        rows = np.arange(count)  # [N], the set of each candidate
    else:
        _check(sets, model)
        rows, numbers = np.repeat(np.arange(len(sets.names)), count), np.tile(numbers, len(sets.names))
    given, own = sets.given[rows], sets.cells[rows]
    index, palettes = _palettes(sets, model, settings)
    index, palettes = index[rows], palettes[rows]  # int64 [N, C, S, S], uint8 [N, P, 4]
    _use_training_palettes(palettes, given, model, settings, numbers)
    with detection.wrap_device_errors(model.device):
        drawn = yield from _draw(model, recipe, settings, index, palettes, given, numbers)
    made = palettes[np.arange(len(rows))[:, None, None, None], drawn]  # [N, C, S, S, 4]
    made = _mirror(model, settings, made, given)
    made[given] = own[given]  # bit for bit
    names = tuple(sets.names[row] for row in rows.tolist())
    yield SetsDrawn(made, given, model.spec.cells, names, model_label(model), settings.seed)


def check_completes(model: TrainedModel) -> None:
    """Raise UsageError for a model that can't complete sets."""
    if not isinstance(model.recipe, CompletesSets):
        title = f"{model.title} is {model.recipe.kind} and can't complete characters."
        raise UsageError(title, "Choose a model of sets.")


def _check(sets: GivenSets, model: TrainedModel) -> None:
    """Raise SetsError unless the given cells suit the model."""
    size, (height, width) = model.spec.size, sets.cells.shape[2:4]
    if (height, width) != (size, size):
        title = f"The given cells have {width} x {height} pixels, but the model draws {size} x {size}."
        raise SetsError(title, "Scale or crop them to this size.")
    for name, cells, given in zip(sets.names, sets.cells, sets.given, strict=True):
        if not given.any():
            raise SetsError(f"{name}: no cell is given.", f"Give at least one of: {list_cells(model.spec.cells)}.")
        if not cells[given][..., 3].any():
            raise SetsError(f"{name}: the given cells are empty.", "Give a cell with visible pixels.")
        if given.all():
            raise SetsError(f"{name}: all cells are given. There is nothing to draw.", "Leave out at least one cell.")


def _palettes(
    sets: GivenSets, model: TrainedModel, settings: CompleteSettings
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the palette index of each pixel, int64 [M, C, S, S], and the palettes, straight RGBA, uint8 [M, P, 4].

    Unused entries repeat the transparent entry 0. Raises SetsError for too many colours.
    """
    most = model.network.get_buffer("palettes").shape[1]
    for name, cells, given in zip(sets.names, sets.cells, sets.given, strict=True):
        pixels = as_uint32(cells[given])
        if (count := len(np.unique(pixels[cells[given][..., 3] > 0]))) >= most:
            title = f"The given cells of {name} have {count} colours; the model takes {most - 1}."
            raise SetsError(title, "Reduce the colours, or train with a larger palette.")
    index, own = palettes_of(torch.from_numpy(sets.cells), torch.from_numpy(sets.given), most)
    palettes: NDArray[np.uint8] = own.numpy()
    if settings.palette == "data":
        known = np.concatenate([model.style.palette, np.full((len(model.style.palette), 1), 255, np.uint8)], 1)
        for palette in palettes:
            first = 1 + int((palette[:, 3] > 0).sum())
            new = known[~np.isin(as_uint32(known), as_uint32(palette))][: most - first]
            palette[first : first + len(new)] = new
    return index.numpy(), palettes


def _use_training_palettes(
    palettes: NDArray[np.uint8], given: Mask, model: TrainedModel, settings: CompleteSettings,
    numbers: NDArray[np.int64],
) -> None:  # fmt: skip
    """Overwrite the palettes of candidates without given cells by random training sets' palettes.

    palettes: uint8 [N, P, 4], changed in place. numbers: index by candidate, part of the random seed.
    """
    of_training = to_straight(model.network.get_buffer("palettes"))  # uint8 [G, P, 4]
    for row in np.flatnonzero(~given.any(1)).tolist():
        chosen = np.random.default_rng((settings.seed, int(numbers[row]))).integers(len(of_training))
        palettes[row] = of_training[chosen]


def to_straight(palettes: Tensor) -> NDArray[np.uint8]:
    """Convert palettes float32 [..., P, 4], premultiplied, to straight uint8; unused entries become transparent."""
    rgba = unpremultiply(palettes.reshape(-1, 4)[:, :, None, None])[:, :, 0, 0]
    return (rgba * 255).round().byte().view(palettes.shape).cpu().numpy()


def _to_network(palettes: NDArray[np.uint8]) -> Tensor:
    """Convert palettes uint8 [N, P, 4] to float32 as in SetCondition, on the CPU."""
    rgba = torch.from_numpy(palettes.reshape(-1, 4)).float() / 255
    x = premultiply(rgba[:, :, None, None])[:, :, 0, 0].view(palettes.shape)
    is_unused = (x[..., 3] == -1) & (torch.arange(x.shape[1]) != TRANSPARENT)
    return torch.where(is_unused[..., None], UNUSED, x)


def _draw(
    model: TrainedModel, recipe: CompletesSets, settings: CompleteSettings, index: NDArray[np.int64],
    palettes: NDArray[np.uint8], given: Mask, numbers: NDArray[np.int64],
) -> Generator[Progress, None, NDArray[np.int64]]:  # fmt: skip
    """Draw in batches that fit the device: yields Progress after each round, returns indices int64 [N, C, S, S]."""
    made, device = list[NDArray[np.int64]](), model.device
    batch_size, limited = AutoBatchSize(device, _DRAW_BATCH, model.spec.size), _to_network(palettes)
    for part in batch_size.slices(len(index)):
        with batch_size.halve_if_full():
            variety = torch.from_numpy(np.where(numbers[part] > 0, settings.variety, 0.0)).float()
            rounds = settings.rounds if variety.any() or not given[part].any(1).all() else 1
            shape = (rounds, 2, *index.shape[1:])
            normal = [normal_rows(1, shape, settings.seed, number) for number in numbers[part].tolist()]
            chances = torch.special.ndtr(torch.cat(normal))  # uniform; drawn on the CPU, to be equal on every device
            held = (torch.from_numpy(index[part]), limited[part], torch.from_numpy(given[part]))
            condition = SetCondition(*(tensor.to(device) for tensor in held))
            states = recipe.complete(model.network, condition, chances.to(device), variety.to(device))
            for number, indices in enumerate(run_in_precision(model, states), 1):
                latest, done = indices, part.start + number / rounds * (part.stop - part.start)
                yield Progress(round(done), len(index), "characters drawn")
            made.append(latest.cpu().numpy())
    return np.concatenate(made)


def _mirror(model: TrainedModel, settings: CompleteSettings, cells: Rgba, given: Mask) -> Rgba:
    """Replace drawn side views by mirror images of the opposite views. cells: uint8 [N, C, S, S, 4].

    Raises UsageError if the settings ask for mirror images, but no views of the training sets mirror each other.
    """
    partners, shares = (model.network.get_buffer(name).cpu() for name in ("partners", "mirrored"))
    if settings.mirror == "off":
        return cells
    if settings.mirror == "on":  # between different views; cells within a view stay independent
        rows = [cell.partition("/")[0] for cell in model.spec.cells]
        others = [other >= 0 and rows[other] != row for row, other in zip(rows, partners.tolist(), strict=True)]
        if not any(others):
            title = "No view of the training sprites mirrors another."
            raise UsageError(title, "Set 'Right mirrors left' to off.")
        shares = torch.tensor(others).float()
    return mirror_sides(torch.from_numpy(cells), torch.from_numpy(given), partners, shares).numpy()
