"""Feature maps: what each stage of a network makes of one sprite."""

from __future__ import annotations

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
from studio.engine.steps.batches import DeviceSprites, to_rgba
from studio.lab.experiments.base import Experiment, ExperimentContext, evenly
from studio.lab.outcome import Outcome, Picture, Table
from studio.recipes.base import Batch

_STAGES = 12
_CHANNELS = 8
_TIME = 0.5  # of a generator: half noise, half sprite
_SEED = 7
_ROW_PX = 160  # wide; maps that don't fit into it side by side take two rows
_GAP_PX = 1
_CODE = """\
import torch
from torch import nn

device = "{device}"
network = nn.Sequential(
    nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()
).to(device)
maps = dict[str, torch.Tensor]()


def keep(name):
    return lambda module, inputs, output: maps.update({{name: output.detach()}})


hooks = [layer.register_forward_hook(keep(name)) for name, layer in network.named_children()]
with torch.no_grad():
    network(torch.rand(1, 4, {size}, {size}, device=device))
for hook in hooks:
    hook.remove()
for name, found in maps.items():
    strongest = found[0].std((1, 2)).topk(8).indices
    print(name, tuple(found.shape), "strongest channels:", strongest.tolist())
"""


class FeatureMaps(Experiment):
    """Shows one sprite to the network, and the strongest channels of each of its stages."""

    name = "feature-maps"
    title = "Feature maps"
    question = "What do the layers see in a sprite?"
    order = 92
    seconds = 3.0
    subject = "run"
    read_on = (
        "Module.register_forward_hook",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook",
    )
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        model = yield from context.loaded_model()
        commonest = int(context.sprites.class_counts().argmax())
        shown = context.sprites.take([int(np.argmax(context.sprites.labels == commonest))])
        (batch,) = DeviceSprites(shown, model.device).plain_batches(1, 1)
        with detection.wrap_device_errors(model.device):
            seen, look = _looked_at(model, batch)
            stages = list(_stages(model.network, look))
            stages = [stages[place] for place in evenly(len(stages), _STAGES)]
        if not stages:
            raise UsageError(
                "This network makes no feature maps: none of its layers keeps the places of pixels.",
                "Choose a run whose network has convolutions.",
            )
        yield Progress(len(stages), len(stages), "stages seen")
        pictures = [_shown(shown.rgba[0], seen, shown.names[0])]
        pictures += [_picture(name, maps) for name, maps in stages]
        named = shown.class_names[commonest].rpartition("/")[2]
        sentences = tuple(_sentences(stages, shown.names[0], named))
        yield Outcome((), (_table(stages),), sentences, pictures=tuple(pictures), step=model.step)


Looks = dict[nn.Module, Tensor]


@torch.no_grad()
def _looked_at(model: TrainedModel, batch: Batch) -> tuple[Tensor | None, Looks]:
    """What a generator is shown of the sprite, x at a middle time, and what each module makes of it first, in order.

    A network whose velocity is asked is asked at that time. Any other sees what its recipe shows it in an evaluation.
    """
    found: Looks = {}

    def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: object) -> None:
        if isinstance(output, Tensor) and module not in found:
            found[module] = output.detach().float().clone()  # what comes next may change it in place

    network, shown = model.network, None
    hooks = [module.register_forward_hook(keep) for module in network.modules()]
    try:
        with autocast(model.device.type, model.precision):
            if "flow" in model.recipe.capabilities:
                rng = torch.Generator().manual_seed(_SEED)
                noise = torch.randn(batch.x.shape, generator=rng).to(batch.x.device)
                shown = torch.lerp(noise, batch.x, _TIME)
                network(shown, torch.full((1,), _TIME, device=shown.device), batch.y)
            else:
                model.recipe.evaluate(network, [batch], model.config, model.spec)
    finally:
        for hook in hooks:
            hook.remove()
    return shown, found


def _stages(network: nn.Module, look: Looks) -> Iterator[tuple[str, Tensor]]:
    """The stages in the order in which they were done, with their maps float32 [C, H, W].

    A stage is a module that makes maps by convolutions, as large as can be: what holds stages in a row is opened.
    """
    chosen: dict[nn.Module, str] = {}

    def open_up(module: nn.Module, path: str) -> None:
        for name, child in module.named_children():
            full = f"{path}{name}"
            if type(child) is not nn.Sequential and _makes_maps(child, look):
                chosen[child] = full
            else:
                open_up(child, f"{full}.")

    open_up(network, "")
    return ((chosen[module], maps[0]) for module, maps in look.items() if module in chosen)


def _makes_maps(module: nn.Module, look: Looks) -> bool:
    convolves = any(isinstance(part, _ConvNd) for part in module.modules())
    return convolves and module in look and look[module].ndim == 4 and min(look[module].shape[2:]) > 1


def _strongest(maps: Tensor) -> NDArray[np.float32]:
    """Of float32 [C, H, W] the channels that differ most from place to place, that with the most first."""
    spread = maps.flatten(1).std(1, correction=0)
    return maps[spread.argsort(descending=True)[:_CHANNELS]].cpu().numpy()


def _as_grey(maps: NDArray[np.float32]) -> Rgba:
    """float32 [N, H, W], each from its lowest value to its highest -> uint8 [N, H, W, 4]; one that is flat is black."""
    low, high = maps.min((1, 2), keepdims=True), maps.max((1, 2), keepdims=True)
    grey = 255 * (maps - low) / np.maximum(high - low, 1e-12)
    return np.stack([*[grey.astype(np.uint8)] * 3, np.full(maps.shape, 255, np.uint8)], -1)


def _shown(sprite: Rgba, seen: Tensor | None, name: str) -> Picture:
    """The sprite, uint8 [S, S, 4], and beside it what a generator is shown of it, if it is one."""
    if seen is None:
        return Picture.of("The sprite", sprite, f"The sprite that the network is shown: {name}.")
    about = f"{name}, and beside it the same half way to noise."
    return Picture.of(
        f"The sprite, and what the network is shown of it at time {_TIME:g}: half noise, half sprite",
        tile(np.stack([sprite, to_rgba(seen)[0].numpy()]), 2),
        about,
    )


def _picture(name: str, maps: Tensor) -> Picture:
    """The strongest channels side by side, with a gap between them."""
    cells = np.pad(_as_grey(_strongest(maps)), ((0, 0), (0, _GAP_PX), (0, _GAP_PX), (0, 0)))
    width = cells.shape[2]
    columns = len(cells) if len(cells) * width <= _ROW_PX else -(-len(cells) // 2)
    about = f"The {len(cells)} strongest of {maps.shape[0]} channels after {name}, the brighter the higher its value."
    return Picture.of(_title(name, maps), tile(cells, columns)[:-_GAP_PX, :-_GAP_PX], about)


def _title(name: str, maps: Tensor) -> str:
    channels, height, width = maps.shape
    return f"{name}: {channels} channels of {width} x {height}"


def _table(stages: list[tuple[str, Tensor]]) -> Table:
    """What there is in all of each stage."""
    rows = tuple(
        (name, " x ".join(map(str, maps.shape)), f"{maps.mean():.3g}", f"{maps.std():.3g}", number(_flat(maps)))
        for name, maps in stages
    )
    return Table(("stage", "channels x places", ">mean", ">deviation", ">flat channels"), rows)


def _flat(maps: Tensor) -> int:
    """How many of the channels, float32 [C, H, W], say the same at every place."""
    return int((maps.flatten(1).amax(1) == maps.flatten(1).amin(1)).sum())


def _sentences(stages: list[tuple[str, Tensor]], sprite: str, named: str) -> Iterator[str]:
    (first, entered), *_ = stages
    smallest, maps = min(stages, key=lambda stage: stage[1][0].numel())
    yield (
        f"{sprite} ({named}) goes through {count(len(stages), 'stage')} that are shown, from {first} with "
        f"{entered.shape[0]} channels of {entered.shape[2]} x {entered.shape[1]} on; the coarsest is {smallest}, "
        f"{maps.shape[2]} x {maps.shape[1]}."
    )
    yield (
        f"Of each stage the {_CHANNELS} channels are shown that differ most from place to place, each from its lowest "
        "value, black, to its highest, white."
    )
