"""Noise scale: the largest useful batch size, estimated from how much the gradients of a run's batches differ.

The simple noise scale of McCandlish et al. 2018 (An Empirical Model of Large-Batch Training), in sprites: the trace of
the covariance of a sprite's gradient divided by the squared norm of the mean gradient. In their model, a training with
B sprites per step takes 1 + scale / B times the fewest possible steps and sees 1 + B / scale times the fewest possible
sprites. The model assumes plain gradient descent; for Adam they found it accurate within small factors.
"""

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
from studio.lab.experiments.base import IMPORTS, Experiment, ExperimentContext
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot, Table
from studio.recipes.base import Batch, BatchRng

_PARTS = 8  # micro-batches per batch; the experiment compares their gradients
_BLOCKS = 8  # groups of batches for the jackknife
_SURE = 2.0  # standard errors above 0 for a significant gradient
_DOUBLINGS = 3  # of the run's batch size in plot and table, at least, and as many halvings
_CODE = IMPORTS + """\
device, batch_size, parts = "{device}", {batch_size}, 8
torch.manual_seed(0)
network = nn.Sequential(nn.Flatten(), nn.Linear(4 * {size} * {size}, 1)).to(device)
weights = list(network.parameters())
small, whole = [], []  # squared gradient norms, of parts of batches and of whole batches
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
signal = (many * whole - few * small) / (many - few)  # the squared norm of the mean gradient
print(f"noise scale: {{noise / signal:.3g}} samples a step")
"""  # fmt: skip


class NoiseScale(Experiment):
    """Estimates the noise scale from the gradients of many batches at one checkpoint."""

    name = "noise-scale"
    title = "Noise scale"
    question = "What is the largest useful batch size for this run?"
    order = 98
    sets_obstacle = "The gradients are measured on single sprites; a model of sets learns from whole characters."
    seconds = 60.0
    subject = "run"
    read_on = ("torch.autograd.grad", "https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        model = yield from context.load_model()
        with detection.wrap_device_errors(model.device):
            gradients, start_s, passed_s = _Gradients(model), time.perf_counter(), 0.0
            while passed_s < context.seconds or gradients.batches < _BLOCKS:
                gradients.add_batch()
                passed_s, seconds = time.perf_counter() - start_s, round(context.seconds)
                yield Progress(min(round(passed_s), seconds), seconds, "seconds of gradients")
            yield _conclusion(gradients.noise.scale(), gradients, model)


@dataclass(frozen=True)
class Scale:
    """An estimate of the noise scale."""

    inverse: float  # 1 / noise scale, at most 0 if noise hides the gradient
    error: float  # standard error of `inverse`
    sprites: int  # in all batches, with repetitions

    @property
    def is_sure(self) -> bool:
        """Whether the gradient is significantly larger than its noise."""
        return self.inverse > _SURE * self.error

    @property
    def value(self) -> float:
        """The noise scale in sprites, if `is_sure`."""
        return 1 / self.inverse

    @property
    def value_error(self) -> float:
        """The standard error of the noise scale, in sprites."""
        return self.error / self.inverse**2

    @property
    def least(self) -> float:
        """A lower bound of the noise scale, in sprites."""
        return 1 / (max(self.inverse, 0.0) + _SURE * self.error)

    def steps(self, batch_size: float) -> float:
        """Return the steps that a training needs at a batch size, as a multiple of the fewest possible."""
        return 1 + self.value / batch_size

    def sprites_seen(self, batch_size: float) -> float:
        """Return the sprites that a training sees at a batch size, as a multiple of the fewest possible."""
        return 1 + batch_size / self.value


class GradientNoise:
    """Accumulates gradients of batches and estimates the noise scale."""

    def __init__(self, weights: int, device: torch.device) -> None:
        """Start with no batches. weights: number of elements of a gradient."""
        self._sums = torch.zeros(_BLOCKS, weights, device=device)  # of gradients, weighted by sprites; [_BLOCKS, P]
        self._sprites, self._scatter, self._freedom = np.zeros((3, _BLOCKS))
        self._batches = 0

    def add(self, parts: Iterator[tuple[int, Tensor]]) -> None:
        """Add a batch's gradients: of each micro-batch its size, and its mean loss's gradient float32 [P]."""
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
        """Estimate the noise scale from all batches, with a standard error by the jackknife over blocks."""
        products = (self._sums @ self._sums.T).cpu().double().numpy()
        blocks = np.arange(_BLOCKS)
        without = np.array([self._inverse(products, blocks != left_out) for left_out in blocks])
        error = math.sqrt((_BLOCKS - 1) * without.var())
        return Scale(self._inverse(products, blocks >= 0), error, int(self._sprites.sum()))

    def _inverse(self, products: NDArray[np.float64], kept: NDArray[np.bool_]) -> float:
        """Estimate 1 / noise scale from the kept blocks of batches (McCandlish et al. 2018, appendix A.1).

        products: [blocks, blocks], of gradient sums. The mean gradient is of all batches: the weights do not change.
        """
        sprites = self._sprites[kept].sum()
        noise = self._scatter[kept].sum() / self._freedom[kept].sum()
        signal = products[np.ix_(kept, kept)].sum() / sprites**2 - noise / sprites
        return float(signal / noise)


class _Gradients:
    """Computes gradients of a run's training loss at one checkpoint, for the weights without averaging."""

    def __init__(self, model: TrainedModel) -> None:
        assert model.run is not None
        run = RunDir(model.run)
        path, info = find_checkpoint(model.run, str(model.step))
        network = model.recipe.build(model.config, model.spec)
        with wrap_read_errors(path):
            checkpoints.load_into(network, checkpoints.load_tensors(path, info, "model"), path.name)
        sprites, learnt = model.recipe.examples(*load_training_set(run))
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

    def add_batch(self) -> None:
        """Draw another batch and add its gradients to `noise`, in fp32 to avoid rounding noise."""
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
        """Return the gradient of a micro-batch's training loss, float32 [P]."""
        loss_of = self._model.recipe.loss_of(self._model.spec)
        loss = loss_of(self._network, part, self._model.config, numbers)
        found = torch.autograd.grad(loss, self._weights, materialize_grads=True)
        return torch.cat([gradient.flatten() for gradient in found])


class _WithReplacement(DeviceSprites):
    """Training sprites drawn with replacement: an epoch's last batches would have less noise otherwise."""

    def raw_batch(self, step: int, size: int, rows: slice) -> RawBatch:
        places = np.random.default_rng((self.seed, step)).integers(0, len(self), size)[rows]
        chosen = torch.from_numpy(places).to(self.device)
        return self.rgba[chosen], self.labels[chosen], self.targets[chosen]


def _conclusion(scale: Scale, gradients: _Gradients, model: TrainedModel) -> Outcome:
    own, batches = model.config.batch_size, count(gradients.batches, "batch", "batches")
    seen = f"At step {number(model.step)}, from {batches} with {count(scale.sprites, 'sprite')} in total,"
    if not scale.is_sure:
        sentence = f"{seen} noise hides the mean gradient: the noise scale is probably above "
        sentence += f"{count(round(scale.least), 'sprite')}. A longer measurement is more precise."
        row = number(gradients.batches), number(scale.sprites), number(round(scale.least))
        table = Table((">batches", ">sprites", ">noise scale above"), (row,))
        return Outcome(tables=(table,), sentences=(sentence,), step=model.step)
    return Outcome((_plot(scale, own),), (_table(scale, own),), tuple(_sentences(scale, own, seen)), step=model.step)


def _sizes(scale: Scale, own: int) -> list[int]:
    """Return halvings and doublings of the run's batch size `own`, up to twice the noise scale or more."""
    doublings = max(_DOUBLINGS, math.ceil(math.log2(2 * scale.value / own)))
    sizes = (own * 2.0**power for power in range(-_DOUBLINGS, doublings + 1))
    return [int(size) for size in sizes if size == int(size)]


def _plot(scale: Scale, own: int) -> Plot:
    sizes = tuple(map(float, _sizes(scale, own)))
    steps = Line("steps", sizes, tuple(map(scale.steps, sizes)))
    seen = Line("sprites seen", sizes, tuple(map(scale.sprites_seen, sizes)))
    title, mark = "Cost of the same progress, by batch size", Mark(scale.value, "noise scale")
    return Plot(title, Axis("batch size", log=True), Axis("times the minimum", log=True), (steps, seen), (mark,))


def _table(scale: Scale, own: int) -> Table:
    rows = []
    for size in _sizes(scale, own):
        steps, seen = scale.steps(size) / scale.steps(own), scale.sprites_seen(size) / scale.sprites_seen(own)
        rows.append((number(size), f"{steps:.2g} times", f"{seen:.2g} times"))
    return Table((">batch size", ">steps, compared with this run", ">sprites seen"), tuple(rows))


def _sentences(scale: Scale, own: int, seen: str) -> Iterator[str]:
    yield f"{seen} the noise scale is {scale.value:,.0f} sprites, with a standard error of {scale.value_error:,.0f}."
    saved = 1 - scale.steps(2 * own) / scale.steps(own)
    more = scale.sprites_seen(2 * own) / scale.sprites_seen(own) - 1
    yield (
        f"This run used {count(own, 'sprite')} per step. By the model of McCandlish et al., twice the batch size would "
        f"save {percent(saved)} of the steps, and train on {percent(more)} more sprites."
    )
    yield f"At a batch size of {scale.value:,.0f}, doubling it saves only a quarter of the steps, and less beyond."
    yield "For the time per step on a device, run the experiment 'Batch size'."
