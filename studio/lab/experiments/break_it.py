"""Break it: trainings with one thing wrong beside one with nothing wrong, from the same seed."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig
from studio.core.errors import TrainingError
from studio.core.events import Events, Progress
from studio.core.formatting import count, decimal, memory, percent
from studio.core.metrics import LOSS
from studio.core.pictures import tile
from studio.engine.devices.precision import autocast
from studio.engine.runs.split import split_by_group
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import DeviceSprites, stride_subsample, to_rgba
from studio.engine.steps.bench_steps import BenchmarkTrainer
from studio.engine.training.loop import TICK_S
from studio.lab.experiments.base import (
    Experiment,
    ExperimentContext,
    kept_bytes,
    loss_curve,
    loss_plot,
    seconds_in_turns,
)
from studio.lab.outcome import Line, Outcome, Picture, Plot, Table

_AT_MOST = {"batch_size": 32, "width": 32, "colours": 32}  # of the settings: several networks share the time
_HELD_OUT = 1 / 8  # of the sprites
_FEW, _FEWEST_TIMES = 20, 3  # sprites, where there are so many times as many
_TIMES = 100  # the learning rate: a factor of 10 can even help in a training this short
_LEAST_STEPS = 12
_LOOKS = 5  # at the held-out sprites on the way
_LOOKED_AT = 128  # sprites a look; at most; a generator is shown few of them again, with other noise
_SHARE = 0.85  # of the time is for training and looks on the way; the rest for the last one
_SMOOTHED = 1 / 10  # of all steps
_DRAWN, _DRAWING = 8, GenerateSettings(seed=7)
_OF_THE_SAME_NOISE = "New sprites, drawn of the same noise as all others here."
_SAME = 0.03  # losses that differ by less are called the same
_SOUND, _RATE, _UNZEROED, _FEW_SPRITES = "nothing wrong", f"learning rate x {_TIMES}", "no zero_grad", f"{_FEW} sprites"
_UNAVERAGED = "weights not averaged"
_CODE = """\
import torch
from torch import nn

device = "{device}"
torch.manual_seed(0)
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)

for wrong in ("nothing", "the rate", "zero_grad"):
    torch.manual_seed(0)  # the same beginning for all
    layers = nn.Conv2d(4, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1)
    network = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1 if wrong == "the rate" else 0.01)
    for step in range(100):
        loss = nn.functional.mse_loss(network(x), x)
        if wrong != "zero_grad":
            optimizer.zero_grad()  # without it each step adds to the gradients of all steps before
        loss.backward()
        optimizer.step()
    network.eval()
    with torch.no_grad():  # without it what a backward pass would need is kept for nothing
        loss = nn.functional.mse_loss(network(x), x)
    print(f"{{wrong}} wrong: loss {{loss:.4f}}")
"""


class BreakIt(Experiment):
    """Trains small networks in turns: one as it should be, and others in which one thing is wrong."""

    name = "break-it"
    title = "Break it"
    question = "What happens when one thing in training is wrong?"
    order = 70
    seconds = 110.0
    read_on = (
        "Optimizing model parameters",
        "https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html",
    )
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        learnt, heldout = _split(context)
        runs = _runs(learnt)
        seconds, start_s = _SHARE * context.seconds, time.perf_counter()
        looks, passed_s, said_s = 0, 0.0, 0.0
        while passed_s < seconds or len(runs[0].losses) < _LEAST_STEPS:
            for run in runs:  # in turns: all take as many steps
                run.take()
            passed_s = time.perf_counter() - start_s
            if passed_s - said_s > TICK_S:
                said_s = passed_s
                yield seconds_in_turns(passed_s, seconds)
            if looks < _LOOKS and passed_s >= seconds * (looks + 1) / (_LOOKS + 1):
                looks += 1
                for run in runs:
                    run.look(run.training.ema.network, heldout)
                yield Outcome(_plots(runs), (_table(runs),), pictures=tuple(_pictures(runs)))
        yield Progress(0, 0, "evaluation and drawing")
        for run in runs:
            run.look(run.training.ema.network, heldout)
        pictures = tuple(_pictures(runs))
        raw = _Run(_UNAVERAGED, runs[0].training, runs[0].rate, losses=runs[0].losses)
        network = raw.training.network.eval()
        raw.look(network, heldout)
        pictures += tuple(_pictures([raw], network))
        costs = _evaluated(raw.training, network, heldout)
        sentences = (*_sentences([*runs, raw], costs), *_about_size(context.config, learnt.config))
        yield Outcome(_plots(runs), (_table([*runs, raw]),), sentences, pictures=pictures)


@dataclass(eq=False)
class _Run:
    """A training; `looks` are the recipe's figures on held-out sprites, by step."""

    title: str
    training: BenchmarkTrainer
    rate: float
    losses: list[Tensor] = field(default_factory=list)  # float32 [] on the device
    looks: dict[int, Mapping[str, float]] = field(default_factory=dict)

    def take(self) -> None:
        """A step."""
        self.training.set_learning_rate(self.rate)
        self.losses.append(self.training.train_step().clone())

    @torch.no_grad()
    def look(self, network: nn.Module, heldout: DeviceSprites) -> None:
        """Note what a network, in eval mode, makes of the held-out sprites."""
        self.looks[len(self.losses)] = _figures(self.training, network, heldout)

    def curve(self) -> Line:
        """The smoothed losses up to the first that is no number."""
        return loss_curve(self.title, self.losses, _SMOOTHED)

    def looked(self) -> Line:
        """The held-out losses that are numbers."""
        losses = {step: figures["loss"] for step, figures in self.looks.items() if math.isfinite(figures["loss"])}
        return Line(self.title, tuple(map(float, losses)), tuple(losses.values()))

    def ends(self) -> tuple[float, float]:
        """The loss in training at the end, and that of held-out sprites; NaN where it stopped being a number."""
        curve = self.curve().y
        return curve[-1] if len(curve) == len(self.losses) else math.nan, list(self.looks.values())[-1]["loss"]


class _Unzeroed(BenchmarkTrainer):
    """Steps without zero_grad: each adds its gradients to those of all steps before."""

    def __init__(self, training: BenchmarkTrainer) -> None:
        super().__init__(training.recipe, training.config, training.sprites, training.device, training.precision)
        self._kept: dict[Tensor, Tensor] = {}
        for weight in self.network.parameters():
            weight.register_post_accumulate_grad_hook(self._add_kept)

    def _add_kept(self, weight: Tensor) -> None:
        assert weight.grad is not None
        if weight in self._kept:
            weight.grad += self._kept[weight]
        self._kept[weight] = weight.grad.clone()  # optimizers overwrite theirs


def _split(context: ExperimentContext) -> tuple[ExperimentContext, DeviceSprites]:
    """A bench of small networks without the sprites that are held out, and these. Raises TrainingError."""
    values = context.config.to_json()
    small = {name: min(values[name], most) for name, most in _AT_MOST.items() if name in values}
    split = split_by_group(context.sprites, _HELD_OUT, context.config.seed)
    if not len(split.validation):
        raise TrainingError("These are too few sprites: none can be held out.", "Open more, of at least two sources.")
    heldout = DeviceSprites(context.sprites.take(stride_subsample(split.validation, _LOOKED_AT)), context.target)
    return replace(
        context, config=context.config.replace(**small), sprites=context.sprites.take(split.training)
    ), heldout


def _runs(context: ExperimentContext) -> list[_Run]:
    """The training as it should be, then the wrong ones that these sprites allow."""
    precision, rate = context.precision(), context.config.learning_rate
    sound = context.training(precision)
    runs = [
        _Run(_SOUND, sound, rate),
        _Run(_RATE, context.training(precision), _TIMES * rate),
        _Run(_UNZEROED, _Unzeroed(sound), rate),
    ]
    if len(context.sprites) >= _FEWEST_TIMES * _FEW:
        runs.append(_Run(_FEW_SPRITES, context.training(precision), rate))
        few = np.linspace(0, len(context.sprites) - 1, _FEW, dtype=np.int64)
        runs[-1].training.set_sprites(context.sprites.take(few))
    return runs


def _figures(training: BenchmarkTrainer, network: nn.Module, heldout: DeviceSprites) -> Mapping[str, float]:
    looked_at = _LOOKED_AT if training.recipe.makes == "sprites" else len(heldout)
    with autocast(training.device.type, training.precision):
        batches = heldout.plain_batches(training.config.batch_size, looked_at)
        return training.recipe.evaluate(network, batches, training.config, training.spec).metrics


def _evaluated(training: BenchmarkTrainer, network: nn.Module, heldout: DeviceSprites) -> tuple[float, float, int]:
    """Seconds of an evaluation without gradients and with them, and the bytes that a batch of the latter keeps."""
    warnings.filterwarnings("ignore", "Converting a tensor with requires_grad", UserWarning)  # that is what is shown
    seconds = []
    for keeps in (False, True, False, True):  # the first of each pays for the start
        start_s = time.perf_counter()
        with torch.set_grad_enabled(keeps):
            _figures(training, network, heldout)
        training.wait()
        seconds.append(time.perf_counter() - start_s)
    batch = list(heldout.plain_batches(training.config.batch_size, training.config.batch_size))

    def one_batch() -> None:
        with autocast(training.device.type, training.precision):
            training.recipe.evaluate(network, batch, training.config, training.spec)

    return seconds[2], seconds[3], kept_bytes(one_batch)


@torch.no_grad()
def _pictures(runs: Iterable[_Run], network: nn.Module | None = None) -> Iterator[Picture]:
    """New sprites of each run, of the same noise; by its averaged weights where no network is given."""
    for run in runs:
        training = run.training
        if training.recipe.makes != "sprites":
            return
        labels = torch.arange(_DRAWN, device=training.device) % len(training.spec.class_names)
        with autocast(training.device.type, training.precision):
            of = training.ema.network if network is None else network
            *_, drawn = training.recipe.draw(of, labels, _DRAWING.guidance, _DRAWING.steps, _DRAWING.seed)
        yield Picture.of(run.title, tile(to_rgba(drawn.nan_to_num()).numpy(), _DRAWN), _OF_THE_SAME_NOISE)


def _plots(runs: list[_Run]) -> tuple[Plot, ...]:
    return (
        loss_plot("Loss on held-out sprites", tuple(run.looked() for run in runs)),
        loss_plot("Loss in training", tuple(run.curve() for run in runs)),
    )


def _table(runs: list[_Run]) -> Table:
    headline = runs[0].training.recipe.headline
    columns = ("what is wrong", ">loss in training", ">loss on held-out sprites")
    rows = [(run.title, *map(decimal, run.ends())) for run in runs]
    if headline is LOSS:
        return Table(columns, tuple(rows))
    best = (headline.format(list(run.looks.values())[-1].get(headline.name, math.nan)) for run in runs)
    return Table(
        (*columns, f">{headline.title}"), tuple((*row, figure) for row, figure in zip(rows, best, strict=True))
    )


def _sentences(runs: list[_Run], costs: tuple[float, float, int]) -> Iterator[str]:
    sound, *others = runs
    in_training, usual = sound.ends()
    steps = count(len(sound.losses), "step")
    yield (
        f"Without a fault the loss is {decimal(in_training)} after {steps}, and {decimal(usual)} on held-out sprites."
    )
    for run in others:
        in_training, loss = run.ends()
        said = f"{run.title[0].upper()}{run.title[1:]}: "
        if not math.isfinite(in_training):
            yield f"{said}the loss stopped being a number after {count(len(run.curve().x), 'step')}."
        elif run.title == _FEW_SPRITES:
            yield f"{said}{decimal(in_training)} on them, {decimal(loss)} on others, {_beside(loss, usual, steps)}."
        else:
            yield f"{said}{decimal(loss)} on held-out sprites, {_beside(loss, usual, steps)}."
    without_s, with_s, kept = costs
    times = "as long" if abs(with_s / without_s - 1) < _SAME else f"{with_s / without_s:.2g} times as long"
    yield (
        f"An evaluation without torch.no_grad() takes {times} here, and keeps {memory(kept)} of each batch for a "
        "backward pass that never comes."
    )


def _about_size(asked: TrainingConfig, used: TrainingConfig) -> Iterator[str]:
    """Which settings were made smaller, if any."""
    values, before = used.to_json(), asked.to_json()
    less = [f"{name.replace('_', ' ')} {values[name]}" for name in _AT_MOST if values.get(name) != before.get(name)]
    if less:
        yield f"All share the time, so they were kept small: {', '.join(less)}."


def _beside(loss: float, usual: float, steps: str) -> str:
    """Compare a loss with the sound run's loss, which may be negative. steps: length of the training: '30 steps'."""
    if abs(loss - usual) <= _SAME * abs(usual):
        return "no different in so short a training"
    by = f"{percent(abs(loss - usual) / abs(usual))} " if usual else ""
    return f"{by}worse" if loss > usual else f"{by}better: {steps} are too few to show the harm"
