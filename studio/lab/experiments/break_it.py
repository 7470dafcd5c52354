"""Break it: several trainings from one seed, a correct one and others with a single fault."""

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
from studio.engine.steps.batches import DeviceSprites, device_examples, stride_subsample, to_rgba
from studio.engine.steps.benchmark import BenchmarkTrainer
from studio.engine.training.loop import TICK_S
from studio.lab.experiments import base
from studio.lab.experiments.base import IMPORTS, Experiment, ExperimentContext, loss_plot
from studio.lab.outcome import Line, Outcome, Picture, Plot, Table

_LIMITS = {"batch_size": 32, "width": 32, "colours": 32}  # of settings: several networks share the time
_HELD_OUT = 1 / 8  # share of the sprites
_FEW, _FEWEST_TIMES = 20, 3  # sprites to overfit; skipped for sets below three times this size
_TIMES = 100  # the learning rate: a factor of 10 may even help in a training this short
_LEAST_STEPS = 12
_VALIDATIONS = 5  # during training
_VALIDATED = 128  # sprites per validation; generators see each sprite several times, with different noise
_SHARE = 0.85  # share of the time for training and validation; the final evaluation takes the rest
_SMOOTHED = 1 / 10  # time constant as a share of the training
_DRAWN, _DRAWING = 8, GenerateSettings(seed=7)
_ABOUT_DRAWN = "New sprites, drawn from the same noise in every picture."
_SAME = 0.03  # losses with a smaller relative difference count as equal
_CORRECT, _RATE, _UNZEROED, _FEW_SPRITES = "correct", f"learning rate x {_TIMES}", "no zero_grad", f"{_FEW} sprites"
_UNAVERAGED = "weights not averaged"
_CODE = IMPORTS + """\
device = "{device}"
torch.manual_seed(0)
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)

for fault in ("none", "learning rate", "no zero_grad"):
    torch.manual_seed(0)  # the same initial weights
    layers = nn.Conv2d(4, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1)
    network = nn.Sequential(*layers).to(device)
    rate = 0.1 if fault == "learning rate" else 0.01
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate)
    for step in range(100):
        loss = nn.functional.mse_loss(network(x), x)
        if fault != "no zero_grad":
            optimizer.zero_grad()  # without it, gradients of all steps add up
        loss.backward()
        optimizer.step()
    network.eval()
    with torch.no_grad():  # without it, activations are kept for a backward pass
        loss = nn.functional.mse_loss(network(x), x)
    print(f"fault: {{fault}}, loss {{loss:.4f}}")
"""  # fmt: skip


class BreakIt(Experiment):
    """Trains small networks in turns: one correctly, the others with a single fault."""

    name = "break-it"
    title = "Break it"
    question = "How does a single fault change a training?"
    order = 70
    sets_obstacle = "The faults show in the loss of single sprites; a model of sets is judged by whole characters."
    seconds = 110.0
    _page = "https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html"
    read_on = ("Optimizing model parameters", _page)
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        learnt, heldout = _split(context)
        runs = _variants(learnt)
        seconds, start_s = _SHARE * context.seconds, time.perf_counter()
        validations, passed_s, told_s = 0, 0.0, 0.0
        while passed_s < seconds or len(runs[0].losses) < _LEAST_STEPS:
            for run in runs:  # in turns, for equal numbers of steps
                run.take()
            passed_s = time.perf_counter() - start_s
            if passed_s - told_s > TICK_S:
                told_s = passed_s
                yield base.seconds_in_turns(passed_s, seconds)
            if validations < _VALIDATIONS and passed_s >= seconds * (validations + 1) / (_VALIDATIONS + 1):
                validations += 1
                for run in runs:
                    run.validate(run.training.ema.network, heldout)
                yield Outcome(_plots(runs), (_table(runs),), pictures=tuple(_pictures(runs)))
        yield base.seconds_in_turns(seconds, seconds)
        yield Progress(0, 0, "evaluation and drawing")
        for run in runs:
            run.validate(run.training.ema.network, heldout)
        pictures = tuple(_pictures(runs))
        raw = _Variant(_UNAVERAGED, runs[0].training, runs[0].rate, losses=runs[0].losses)
        network = raw.training.network.eval()
        raw.validate(network, heldout)
        pictures += tuple(_pictures([raw], network))
        costs = _evaluated(raw.training, network, heldout)
        sentences = (*_sentences([*runs, raw], costs), *_about_size(context.config, learnt.config))
        yield Outcome(_plots(runs), (_table([*runs, raw]),), sentences, pictures=pictures)


@dataclass(eq=False)
class _Variant:
    """A correct or faulty training. rate: learning rate. validations: metrics on validation sprites, by step."""

    title: str
    training: BenchmarkTrainer
    rate: float
    losses: list[Tensor] = field(default_factory=list)  # float32 [] on the device
    validations: dict[int, Mapping[str, float]] = field(default_factory=dict)

    def take(self) -> None:
        """Take a training step and record the loss."""
        self.training.set_learning_rate(self.rate)
        self.losses.append(self.training.train_step().clone())

    @torch.no_grad()
    def validate(self, network: nn.Module, heldout: DeviceSprites) -> None:
        """Evaluate a network on validation sprites and record the metrics."""
        self.validations[len(self.losses)] = _figures(self.training, network, heldout)

    def curve(self) -> Line:
        """Return the curve of smoothed training losses, up to the first NaN or infinity."""
        return base.loss_curve(self.title, self.losses, _SMOOTHED)

    def validation_curve(self) -> Line:
        """Return the curve of losses on validation sprites, without NaN and infinity."""
        losses = {step: figures["loss"] for step, figures in self.validations.items() if math.isfinite(figures["loss"])}
        return Line(self.title, tuple(map(float, losses)), tuple(losses.values()))

    def ends(self) -> tuple[float, float]:
        """Return the final training loss and the loss on validation sprites; NaN if the training loss diverged."""
        curve = self.curve().y
        return curve[-1] if len(curve) == len(self.losses) else math.nan, list(self.validations.values())[-1]["loss"]


class _WithoutZeroGrad(BenchmarkTrainer):
    """Trains without zero_grad: gradients accumulate over all steps."""

    def __init__(self, training: BenchmarkTrainer) -> None:
        super().__init__(training.recipe, training.config, training.sprites, training.device, training.precision)
        self._kept: dict[Tensor, Tensor] = {}
        for weight in self.network.parameters():
            weight.register_post_accumulate_grad_hook(self._add_kept)

    def _add_kept(self, weight: Tensor) -> None:
        assert weight.grad is not None
        if weight in self._kept:
            weight.grad += self._kept[weight]
        self._kept[weight] = weight.grad.clone()  # optimizers change gradients in place


def _split(context: ExperimentContext) -> tuple[ExperimentContext, DeviceSprites]:
    """Return training sprites with smaller settings, and validation sprites. Raises TrainingError if too few."""
    values = context.config.to_json()
    small = {name: min(values[name], most) for name, most in _LIMITS.items() if name in values}
    split = split_by_group(context.sprites, _HELD_OUT, context.config.seed)
    if not len(split.validation):
        title = "There are too few sprites to validate a training."
        raise TrainingError(title, "Open more sprites, from at least two sources.")
    validation = context.sprites.take(stride_subsample(split.validation, _VALIDATED))
    heldout = device_examples(context.recipe, validation, context.target)
    config, training = context.config.replace(**small), context.sprites.take(split.training)
    return replace(context, config=config, sprites=training), heldout


def _variants(context: ExperimentContext) -> list[_Variant]:
    precision, rate = context.precision(), context.config.learning_rate
    sound = context.training(precision)
    runs = [
        _Variant(_CORRECT, sound, rate),
        _Variant(_RATE, context.training(precision), _TIMES * rate),
        _Variant(_UNZEROED, _WithoutZeroGrad(sound), rate),
    ]
    if len(context.sprites) >= _FEWEST_TIMES * _FEW:
        runs.append(_Variant(_FEW_SPRITES, context.training(precision), rate))
        few = np.linspace(0, len(context.sprites) - 1, _FEW, dtype=np.int64)
        runs[-1].training.set_sprites(context.sprites.take(few))
    return runs


def _figures(training: BenchmarkTrainer, network: nn.Module, heldout: DeviceSprites) -> Mapping[str, float]:
    sprite_count = _VALIDATED if training.recipe.makes == "sprites" else len(heldout)
    with autocast(training.device.type, training.precision):
        batches = heldout.plain_batches(training.config.batch_size, sprite_count)
        return training.recipe.evaluate(network, batches, training.config, training.spec).metrics


def _evaluated(training: BenchmarkTrainer, network: nn.Module, heldout: DeviceSprites) -> tuple[float, float, int]:
    """Return an evaluation's seconds without and with gradients, and the bytes per batch that gradients keep."""
    warnings.filterwarnings("ignore", "Converting a tensor with requires_grad", UserWarning)  # deliberate
    seconds = []
    for keeps in (False, True, False, True):  # each once as warm-up
        start_s = time.perf_counter()
        with torch.set_grad_enabled(keeps):
            _figures(training, network, heldout)
        training.wait()
        seconds.append(time.perf_counter() - start_s)
    batch = list(heldout.plain_batches(training.config.batch_size, training.config.batch_size))

    def one_batch() -> None:
        with autocast(training.device.type, training.precision):
            training.recipe.evaluate(network, batch, training.config, training.spec)

    return seconds[2], seconds[3], base.kept_bytes(one_batch)


@torch.no_grad()
def _pictures(runs: Iterable[_Variant], network: nn.Module | None = None) -> Iterator[Picture]:
    """Draw sprites from equal noise with each training's averaged weights, or with `network` instead."""
    for run in runs:
        training = run.training
        if training.recipe.makes != "sprites":
            return
        labels = torch.arange(_DRAWN, device=training.device) % len(training.spec.class_names)
        with autocast(training.device.type, training.precision):
            of = training.ema.network if network is None else network
            *_, drawn = training.recipe.draw(of, labels, _DRAWING.guidance, _DRAWING.steps, _DRAWING.seed)
        yield Picture.of(run.title, tile(to_rgba(drawn.nan_to_num()).numpy(), _DRAWN), _ABOUT_DRAWN)


def _plots(runs: list[_Variant]) -> tuple[Plot, ...]:
    validation = loss_plot("Loss on validation sprites", tuple(run.validation_curve() for run in runs))
    return validation, loss_plot("Training loss", tuple(run.curve() for run in runs))


def _table(runs: list[_Variant]) -> Table:
    headline = runs[0].training.recipe.headline
    columns = ("fault", ">training loss", ">loss on validation sprites")
    rows = [(run.title, *map(decimal, run.ends())) for run in runs]
    if headline is LOSS:
        return Table(columns, tuple(rows))
    best = (headline.format(list(run.validations.values())[-1].get(headline.name, math.nan)) for run in runs)
    with_best = ((*row, figure) for row, figure in zip(rows, best, strict=True))
    return Table((*columns, f">{headline.title}"), tuple(with_best))


def _sentences(runs: list[_Variant], costs: tuple[float, float, int]) -> Iterator[str]:
    sound, *others = runs
    in_training, usual = sound.ends()
    steps, losses = count(len(sound.losses), "step"), (decimal(in_training), decimal(usual))
    yield f"The correct training ends with a loss of {losses[0]} after {steps}, {losses[1]} on validation sprites."
    for run in others:
        in_training, loss = run.ends()
        title = f"{run.title[0].upper()}{run.title[1:]}: "
        on_few = f"{decimal(in_training)} on these, " if run.title == _FEW_SPRITES else ""
        if not math.isfinite(in_training):
            yield f"{title}the loss became NaN or infinite after {count(len(run.curve().x), 'step')}."
        else:
            yield f"{title}{on_few}{decimal(loss)} on validation sprites, {_compared(loss, usual, steps)}."
    without_s, with_s, kept = costs
    times = "as long" if abs(with_s / without_s - 1) < _SAME else f"{with_s / without_s:.2g} times as long"
    yield f"Without torch.no_grad(), an evaluation takes {times} and wastes {memory(kept)} per batch."


def _about_size(asked: TrainingConfig, used: TrainingConfig) -> Iterator[str]:
    """Yield a sentence with the reduced settings, or nothing if all are unchanged."""
    values, before = used.to_json(), asked.to_json()
    less = [f"{name.replace('_', ' ')} {values[name]}" for name in _LIMITS if values.get(name) != before.get(name)]
    if less:
        yield f"To fit several trainings into the time, these settings were reduced: {', '.join(less)}."


def _compared(loss: float, usual: float, steps: str) -> str:
    """Compare a loss with the correct one, `usual`, which may be negative. steps: '30 steps', for the text."""
    if abs(loss - usual) <= _SAME * abs(usual):
        return "no difference in a training this short"
    by = f"{percent(abs(loss - usual) / abs(usual))} " if usual else ""
    return f"{by}worse" if loss > usual else f"{by}better: {steps} are too few to show the damage"
