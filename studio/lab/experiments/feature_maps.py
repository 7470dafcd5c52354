"""Feature maps: the outputs of a network's stages for one sprite."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.events import Events, Progress
from studio.core.formatting import count, number
from studio.core.pictures import tile
from studio.engine.devices import detection
from studio.engine.devices.precision import autocast
from studio.engine.models.model import TrainedModel
from studio.engine.steps.batches import device_examples, to_rgba
from studio.lab.experiments.base import IMPORTS, Experiment, ExperimentContext, evenly_spaced
from studio.lab.outcome import Outcome, Picture, Table
from studio.recipes.base import Batch

_STAGES = 12
_CHANNELS = 8
_TIME = 0.5  # for generators: half noise, half sprite
_SEED = 7
_ROW_PX = 160  # longer rows of maps become two rows
_GAP_PX = 1
_CODE = IMPORTS + """\
device = "{device}"
network = nn.Sequential(
    nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()
).to(device)
maps = dict[str, torch.Tensor]()


def record(name):
    return lambda module, inputs, output: maps.update({{name: output.detach()}})


hooks = [layer.register_forward_hook(record(name)) for name, layer in network.named_children()]
with torch.no_grad():
    network(torch.rand(1, 4, {size}, {size}, device=device))
for hook in hooks:
    hook.remove()
for name, output in maps.items():
    strongest = output[0].std((1, 2)).topk(8).indices
    print(name, tuple(output.shape), "strongest channels:", strongest.tolist())
"""  # fmt: skip


class FeatureMaps(Experiment):
    """Runs the network on one sprite, and shows the strongest channels by stage."""

    name = "feature-maps"
    title = "Feature maps"
    question = "What do the network's layers see in a sprite?"
    order = 92
    sets_obstacle = "The network is shown one sprite; a network of sets needs all cells of a character."
    seconds = 3.0
    subject = "run"
    _page = "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html"
    read_on = ("Module.register_forward_hook", f"{_page}#torch.nn.Module.register_forward_hook")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        model = yield from context.load_model()
        most_frequent = int(context.sprites.class_counts().argmax())
        shown = context.sprites.take([int(np.argmax(context.sprites.labels == most_frequent))])
        (batch,) = device_examples(model.recipe, shown, model.device).plain_batches(1, 1)
        with detection.wrap_device_errors(model.device):
            noisy, outputs = _record_outputs(model, batch)
            stages = list(_stages(model.network, outputs))
            stages = [stages[index] for index in evenly_spaced(len(stages), _STAGES)]
        if not stages:
            title = "This network has no feature maps, because it has no convolutions."
            raise UsageError(title, "Choose a run with a convolutional network.")
        yield Progress(len(stages), len(stages), "stages")
        pictures = [_input_picture(shown.rgba[0], noisy, shown.names[0])]
        pictures += [_picture(name, maps) for name, maps in stages]
        named = shown.class_names[most_frequent].rpartition("/")[2]
        sentences = tuple(_sentences(stages, shown.names[0], named))
        yield Outcome((), (_table(stages),), sentences, pictures=tuple(pictures), step=model.step)


Outputs = dict[nn.Module, Tensor]  # first output by module, in order of execution


@torch.no_grad()
def _record_outputs(model: TrainedModel, batch: Batch) -> tuple[Tensor | None, Outputs]:
    """Run the network on the batch; return the noisy input and the outputs by module.

    A generator gets the batch mixed with noise, x_t at a middle time. For other models, the noisy input is None.
    """
    recorded: Outputs = {}

    def record(module: nn.Module, inputs: tuple[Tensor, ...], output: object) -> None:
        if isinstance(output, Tensor) and module not in recorded:
            recorded[module] = output.detach().float().clone()  # the next module may change `output` in place

    network, noisy = model.network, None
    hooks = [module.register_forward_hook(record) for module in network.modules()]
    try:
        with autocast(model.device.type, model.precision):
            if "flow" in model.recipe.capabilities:
                rng = torch.Generator().manual_seed(_SEED)
                noise = torch.randn(batch.x.shape, generator=rng).to(batch.x.device)
                noisy = torch.lerp(noise, batch.x, _TIME)  # x_t [1, 4, S, S]
                network(noisy, torch.full((1,), _TIME, device=noisy.device), batch.y)
            else:
                model.recipe.evaluate(network, [batch], model.config, model.spec)
    finally:
        for hook in hooks:
            hook.remove()
    return noisy, recorded


def _stages(network: nn.Module, outputs: Outputs) -> Iterator[tuple[str, Tensor]]:
    """Yield the network's stages in order of execution: name and feature maps float32 [C, H, W].

    A stage is the largest module with convolutions and feature maps as output. Sequences of modules count separately.
    """
    chosen: dict[nn.Module, str] = {}

    def open_up(module: nn.Module, path: str) -> None:
        for name, child in module.named_children():
            full = f"{path}{name}"
            if type(child) is not nn.Sequential and _makes_maps(child, outputs):
                chosen[child] = full
            else:
                open_up(child, f"{full}.")

    open_up(network, "")
    return ((chosen[module], maps[0]) for module, maps in outputs.items() if module in chosen)


def _makes_maps(module: nn.Module, outputs: Outputs) -> bool:
    convolves = any(isinstance(part, _ConvNd) for part in module.modules())
    return convolves and module in outputs and outputs[module].ndim == 4 and min(outputs[module].shape[2:]) > 1


def _strongest(maps: Tensor) -> NDArray[np.float32]:
    """Return the 8 channels of feature maps float32 [C, H, W] with the highest variance, highest first."""
    spread = maps.flatten(1).std(1, correction=0)
    return maps[spread.argsort(descending=True)[:_CHANNELS]].cpu().numpy()


def _as_grey(maps: NDArray[np.float32]) -> Rgba:
    """Convert maps float32 [N, H, W] to grey, uint8 [N, H, W, 4]: lowest value black, highest white."""
    low, high = maps.min((1, 2), keepdims=True), maps.max((1, 2), keepdims=True)
    grey = 255 * (maps - low) / np.maximum(high - low, 1e-12)
    return np.stack([*[grey.astype(np.uint8)] * 3, np.full(maps.shape, 255, np.uint8)], -1)


def _input_picture(sprite: Rgba, noisy: Tensor | None, name: str) -> Picture:
    """Draw the sprite uint8 [S, S, 4], next to the noisy version [1, 4, S, S] if given."""
    if noisy is None:
        return Picture.of("The sprite", sprite, f"The input of the network: {name}.")
    title = f"The sprite, and the network's input at time {_TIME:g}: half noise, half sprite"
    both = tile(np.stack([sprite, to_rgba(noisy)[0].numpy()]), 2)
    return Picture.of(title, both, f"{name}, and the same sprite half way to noise.")


def _picture(name: str, maps: Tensor) -> Picture:
    """Draw a stage's strongest channels as tiles. maps: float32 [C, H, W]."""
    cells = np.pad(_as_grey(_strongest(maps)), ((0, 0), (0, _GAP_PX), (0, _GAP_PX), (0, 0)))
    width = cells.shape[2]
    columns = len(cells) if len(cells) * width <= _ROW_PX else -(-len(cells) // 2)
    about = f"The {len(cells)} strongest of {maps.shape[0]} channels of {name}; bright pixels are high values."
    title = f"{name}: {maps.shape[0]} channels of {maps.shape[2]} x {maps.shape[1]}"
    return Picture.of(title, tile(cells, columns)[:-_GAP_PX, :-_GAP_PX], about)


def _table(stages: list[tuple[str, Tensor]]) -> Table:
    rows = []
    for name, maps in stages:
        shape, flat = " x ".join(map(str, maps.shape)), maps.flatten(1)
        constant = int((flat.amax(1) == flat.amin(1)).sum())  # channels with a single value
        rows.append((name, shape, f"{maps.mean():.3g}", f"{maps.std():.3g}", number(constant)))
    return Table(("stage", "channels x height x width", ">mean", ">deviation", ">constant channels"), tuple(rows))


def _sentences(stages: list[tuple[str, Tensor]], sprite: str, named: str) -> Iterator[str]:
    (first, entered), *_ = stages
    smallest, maps = min(stages, key=lambda stage: stage[1][0].numel())
    begin = f"{first} with {entered.shape[0]} channels of {entered.shape[2]} x {entered.shape[1]}"
    yield (
        f"The pictures show {count(len(stages), 'stage')} for {sprite} ({named}), from {begin} on. The coarsest stage "
        f"is {smallest}, {maps.shape[2]} x {maps.shape[1]}."
    )
    shades = "from their lowest value (black) to their highest (white)"
    yield f"Each picture has the {_CHANNELS} channels with the highest variance, {shades}."
