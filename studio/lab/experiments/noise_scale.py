"""Noise scale: how large a batch still pays, told by how far the gradients of a run's batches are apart.

The simple noise scale of McCandlish et al. 2018 (An Empirical Model of Large-Batch Training): the trace of the
covariance of a sprite's gradient over the squared length of the gradient that all of them have in common, in sprites.
By their model a training with B sprites a step takes 1 + scale / B times the fewest steps, and looks at 1 + B / scale
times the fewest sprites. It is a model of plain gradient descent; they found it to hold for Adam within small factors.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.events import Events, Progress
from studio.core.formatting import count, number, percent
from studio.engine.devices import detection
from studio.engine.models.loading import find_checkpoint
from studio.engine.models.model import TrainedModel, load_training_set
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir, wrap_read_errors
from studio.engine.steps.batches import DeviceSprites, RawBatch, step_seed
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot, Table
from studio.recipes.base import Batch, BatchRng

_PARTS = 8  # of a batch, whose gradients are compared
_BLOCKS = 8  # of batches, each of which is left out in turn to tell the standard error
_SURE = 2.0  # standard errors that a gradient must be away from none
_DOUBLINGS = 3  # of the run's own batch size that are told of, at least, and as many halvings
_CODE = """\
import torch
from torch import nn

device, batch_size, parts = "{device}", {batch_size}, 8
torch.manual_seed(0)
network = nn.Sequential(nn.Flatten(), nn.Linear(4 * {size} * {size}, 1)).to(device)
weights = list(network.parameters())
small, whole = [], []  # squared lengths of gradients: of parts of batches, and of whole ones
for _ in range(64):
    x = torch.rand(parts * batch_size, 4, {size}, {size}, device=device)
    y = x.mean((1, 2, 3))[:, None] + 0.5 * torch.randn(len(x), 1, device=device)
    found = []
    for part, target in zip(x.chunk(parts), y.chunk(parts)):
        loss = nn.functional.mse_loss(network(part), target)
        found.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, weights)]))
    small.append(torch.stack([gradient.square().sum() for gradient in found]).mean())
    whole.append(torch.stack(found).mean(0).square().sum())

few, many = batch_size, parts * batch_size
small, whole = torch.stack(small).mean(), torch.stack(whole).mean()
noise = (small - whole) / (1 / few - 1 / many)  # the trace of the covariance
signal = (many * whole - few * small) / (many - few)  # the squared length of the gradient
print(f"noise scale: {{noise / signal:.3g}} samples a step")
"""


class NoiseScale(Experiment):
    """Works out gradients of many batches by the weights of one checkpoint, and compares them."""

    name = "noise-scale"
    title = "Noise scale"
    question = "How large a batch still pays?"
    order = 98
    seconds = 60.0
    subject = "run"
    read_on = ("torch.autograd.grad", "https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        model = yield from context.loaded_model()
        with detection.wrap_device_errors(model.device):
            gradients, start_s, passed_s = _Gradients(model), time.perf_counter(), 0.0
            while passed_s < context.seconds or gradients.batches < _BLOCKS:
                gradients.look()
                passed_s = time.perf_counter() - start_s
                yield Progress(
                    min(round(passed_s), round(context.seconds)), round(context.seconds), "seconds of gradients"
                )
            yield _outcome(gradients.noise.scale(), gradients, model)


@dataclass(frozen=True)
class Scale:
    """inverse: of the noise scale, 1/sprites, with its standard error; not above 0 where noise hides the gradient.

    sprites: in how many looks that was found.
    """

    inverse: float
    error: float
    sprites: int

    @property
    def is_sure(self) -> bool:
        """Whether the gradient stands out from the noise."""
        return self.inverse > _SURE * self.error

    @property
    def value(self) -> float:
        """The noise scale in sprites, where it `is_sure`."""
        return 1 / self.inverse

    @property
    def value_error(self) -> float:
        """Its standard error in sprites."""
        return self.error / self.inverse**2

    @property
    def least(self) -> float:
        """What it is above in all likelihood."""
        return 1 / (max(self.inverse, 0.0) + _SURE * self.error)

    def steps(self, batch_size: float) -> float:
        """Steps that a training with such batches takes, times the fewest."""
        return 1 + self.value / batch_size

    def looks(self, batch_size: float) -> float:
        """Sprites that it looks at, times the fewest."""
        return 1 + batch_size / self.value


class GradientNoise:
    """Adds up gradients of batches until the noise in them can be told from what they have in common."""

    def __init__(self, weights: int, device: torch.device) -> None:
        """weights: how many numbers a gradient has."""
        self._sums = torch.zeros(_BLOCKS, weights, device=device)  # of gradients, each times its sprites
        self._sprites, self._scatter, self._freedom = np.zeros((3, _BLOCKS))
        self._batches = 0

    def add(self, parts: Iterator[tuple[int, Tensor]]) -> None:
        """Take in a batch: of each part how many sprites it has, and the gradient of their mean loss, float32 [P]."""
        block = self._batches % _BLOCKS
        total, squares, sprites, seen = torch.zeros_like(self._sums[0]), 0.0, 0, 0
        for size, gradient in parts:
            total += size * gradient
            squares += size * float(gradient.square().sum())
            sprites, seen = sprites + size, seen + 1
        self._sums[block] += total
        self._sprites[block] += sprites
        self._scatter[block] += squares - float(total.square().sum()) / sprites
        self._freedom[block] += seen - 1
        self._batches += 1

    def scale(self) -> Scale:
        """The noise scale of all of them; its standard error by the jackknife over blocks."""
        products = (self._sums @ self._sums.T).cpu().double().numpy()
        blocks = np.arange(_BLOCKS)
        without = np.array([self._inverse(products, blocks != left_out) for left_out in blocks])
        error = math.sqrt((_BLOCKS - 1) * without.var())
        return Scale(self._inverse(products, blocks >= 0), error, int(self._sprites.sum()))

    def _inverse(self, products: NDArray[np.float64], kept: NDArray[np.bool_]) -> float:
        """Of the noise scale by these blocks. As in their appendix A.1, both parts of it are unbiased; but the gradient
        is that of all batches, not of each, as the weights stay where they are.
        """
        sprites = self._sprites[kept].sum()
        noise = self._scatter[kept].sum() / self._freedom[kept].sum()
        signal = products[np.ix_(kept, kept)].sum() / sprites**2 - noise / sprites
        return float(signal / noise)


class _Gradients:
    """Gradients of a run's loss at one of its checkpoints: by the weights that were trained, not by their average."""

    def __init__(self, model: TrainedModel) -> None:
        assert model.run is not None
        run = RunDir(model.run)
        path, info = find_checkpoint(model.run, str(model.step))
        network = model.recipe.build(model.config, model.spec)
        with wrap_read_errors(path):
            checkpoints.load_into(network, checkpoints.load_tensors(path, info, "model"), path.name)
        sprites, learnt = load_training_set(run)
        self._model, self._network = model, network.to(model.device).to(memory_format=torch.channels_last).train()
        self._weights = [weight for weight in network.parameters() if weight.requires_grad]
        self._data = _WithReplacement(sprites, model.device, model.config.seed, learnt)
        self._rng = torch.Generator(model.device)
        extended_min = run.progress().minutes
        steps = 0 if extended_min else model.config.budget_steps(len(learnt))
        planned_s = 60 * (extended_min or model.config.minutes)
        self._progress = min(1.0, info.step / steps if steps else info.elapsed_s / planned_s)
        self.noise = GradientNoise(sum(weight.numel() for weight in self._weights), model.device)
        self.batches = 0

    def look(self) -> None:
        """Work out the gradients of another batch. In fp32: no rounding is to add to the noise."""
        config = self._model.config
        self._rng.manual_seed(step_seed(config.seed, self.batches))
        batch = self._data.batch(
            self.batches, max(2, config.batch_size), flip=config.flip, shift_px=config.shift_px, rng=self._rng,
            progress=self._progress,
        )  # fmt: skip
        parts = batch.micro_batches(_PARTS, self._rng)
        self.noise.add((len(part.x), self._gradient(part, numbers)) for part, numbers in parts)
        self.batches += 1

    def _gradient(self, part: Batch, numbers: BatchRng) -> Tensor:
        """That of the loss: float32 [P]."""
        loss = self._model.recipe.loss(self._network, part, self._model.config, numbers)
        found = torch.autograd.grad(loss, self._weights, materialize_grads=True)
        return torch.cat([gradient.flatten() for gradient in found])


class _WithReplacement(DeviceSprites):
    """Batches whose sprites are drawn independently. In an epoch each comes once, which is less noise in the end."""

    def raw_batch(self, step: int, size: int, rows: slice) -> RawBatch:
        places = np.random.default_rng((self.seed, step)).integers(0, len(self), size)[rows]
        chosen = torch.from_numpy(places).to(self.device)
        return self.rgba[chosen], self.labels[chosen], self.targets[chosen]


def _outcome(scale: Scale, gradients: _Gradients, model: TrainedModel) -> Outcome:
    own = model.config.batch_size
    seen = (
        f"At step {number(model.step)}, by {count(gradients.batches, 'batch', 'batches')}, "
        f"{count(scale.sprites, 'look')} at sprites,"
    )
    if not scale.is_sure:
        sentence = (
            f"{seen} the gradient does not stand out from its noise: the noise scale is above "
            f"{count(round(scale.least), 'sprite')} in all likelihood. More seconds tell more."
        )
        row = number(gradients.batches), number(scale.sprites), number(round(scale.least))
        table = Table((">batches", ">looks at sprites", ">noise scale above"), (row,))
        return Outcome(tables=(table,), sentences=(sentence,), step=model.step)
    return Outcome((_plot(scale, own),), (_table(scale, own),), tuple(_sentences(scale, own, seen)), step=model.step)


def _sizes(scale: Scale, own: int) -> list[int]:
    """Batch sizes around the run's own, in doublings, to some beyond the noise scale."""
    doublings = max(_DOUBLINGS, math.ceil(math.log2(2 * scale.value / own)))
    sizes = (own * 2.0**power for power in range(-_DOUBLINGS, doublings + 1))
    return [int(size) for size in sizes if size == int(size)]


def _plot(scale: Scale, own: int) -> Plot:
    sizes = tuple(map(float, _sizes(scale, own)))
    lines = (
        Line("steps", sizes, tuple(map(scale.steps, sizes))),
        Line("looks at sprites", sizes, tuple(map(scale.looks, sizes))),
    )
    title = "What it takes to learn the same, by batch size"
    mark = Mark(scale.value, "noise scale")
    return Plot(title, Axis("sprites a step", log=True), Axis("times the least", log=True), lines, (mark,))


def _table(scale: Scale, own: int) -> Table:
    rows = tuple(
        (
            number(size),
            f"{scale.steps(size) / scale.steps(own):.2g} times",
            f"{scale.looks(size) / scale.looks(own):.2g} times",
        )
        for size in _sizes(scale, own)
    )
    return Table((">sprites a step", ">steps of this run's", ">looks at sprites"), rows)


def _sentences(scale: Scale, own: int, seen: str) -> Iterator[str]:
    yield f"{seen} the noise scale is {scale.value:,.0f} sprites, with a standard error of {scale.value_error:,.0f}."
    saved = 1 - scale.steps(2 * own) / scale.steps(own)
    more = scale.looks(2 * own) / scale.looks(own) - 1
    yield (
        f"This run took {count(own, 'sprite')} a step: by the model of McCandlish et al., twice as many would save "
        f"{percent(saved)} of its steps, and cost {percent(more)} more looks at sprites."
    )
    yield (
        f"At {scale.value:,.0f} sprites a step larger batches stop helping: twice as many save a quarter of the steps, "
        "and ever less beyond."
    )
    yield "What a step of so many sprites costs in time on a device, 'Batch size' tells."
