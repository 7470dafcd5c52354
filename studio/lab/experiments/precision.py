"""Precision: fp32 against 16-bit formats, in speed, in memory and in the training loss."""

import math
from collections.abc import Iterator, Mapping

from studio.core.events import Events, Progress
from studio.core.formatting import count, decimal, memory, percent
from studio.lab.experiments.base import TIMED_IMPORTS, Experiment, ExperimentContext, kept_bytes, loss_plot
from studio.lab.experiments.sweep import TimedTraining, milliseconds, sweep_in_turns
from studio.lab.outcome import Outcome, Plot, Table

_WARM_UP_STEPS, _LEAST_ROUNDS = 3, 6
_FASTER = 1.05  # a smaller speed-up is noise
_SAME = 0.03  # losses that differ by less differ only in rounding
_CODE = TIMED_IMPORTS + """\
device = "{kind}"
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)

for dtype in (torch.float32, torch.bfloat16):  # torch.float16 needs a torch.amp.GradScaler
    torch.manual_seed(0)
    layers = nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1)
    network = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(network.parameters())
    for step in range(5):
        start = time.perf_counter()
        # autocast converts the inputs of convolutions; the weights stay float32
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            error = nn.functional.mse_loss(network(x).float(), x)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        loss = error.item()  # waits for a GPU
        seconds = time.perf_counter() - start
    print(f"{{dtype}}: {{1000 * seconds:.1f}} ms a step, loss {{loss:.4f}}")
"""  # fmt: skip


class Precision(Experiment):
    """Trains the same network from the same seed in each precision, in turns."""

    name = "precision"
    title = "Precision"
    question = "Is 16-bit training faster here, and equally good?"
    order = 40
    sets_obstacle = ""
    seconds = 60.0
    read_on = ("Automatic mixed precision", "https://docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        names = ("fp32", "bf16") if context.device.kind == "cpu" else ("fp32", "bf16", "fp16")
        trainings = {name: PrecisionTraining(context.training(name)) for name in names}
        yield Progress(0, 0, "warm-up")
        for training in trainings.values():
            training.warm_up(_WARM_UP_STEPS)

        in_turns, step = list(trainings.values()), TimedTraining.step
        yield from sweep_in_turns(
            in_turns, step, lambda: Outcome((_plot(trainings),), (_table(trainings),)), context.seconds, _LEAST_ROUNDS
        )
        yield _conclusion(trainings, context)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        return {"kind": context.target.type}


class PrecisionTraining(TimedTraining):
    """A timed training in one precision. kept_bytes: memory kept by a forward pass for the backward pass."""

    kept_bytes = 0

    def warm_up(self, steps: int) -> None:
        self.kept_bytes = kept_bytes(self.step)
        super().warm_up(steps - 1)


def _plot(trainings: Mapping[str, PrecisionTraining]) -> Plot:
    lines = tuple(training.curve(name) for name, training in trainings.items())
    return loss_plot("Loss by precision, from the same seed", lines)


def _table(trainings: Mapping[str, PrecisionTraining]) -> Table:
    rows = []
    for name, one in trainings.items():
        rows.append((name, one.speed, milliseconds(one.step_s), memory(one.kept_bytes)))
    return Table(("precision", ">speed", ">time per step", ">kept for the backward pass"), tuple(rows))


def _conclusion(trainings: Mapping[str, PrecisionTraining], context: ExperimentContext) -> Outcome:
    plot = _plot(trainings)
    ends = {line.name: line.y[-1] if line.y else math.nan for line in plot.lines}
    sentences = [text for name in trainings if name != "fp32" for text in _compared(name, trainings, ends)]
    fp32_s = trainings["fp32"].step_s
    same = [name for name in trainings if abs(ends[name] / ends["fp32"] - 1) <= _SAME]
    best = min(same, key=lambda name: trainings[name].step_s, default="fp32")
    best = best if fp32_s >= _FASTER * trainings[best].step_s else "fp32"
    used = context.precision()
    sentences.append(f"Your settings use {used}." if best == used else f"Your settings use {used}, not {best}.")
    # No suggestion of fp16: 'auto' chooses it where a GPU lacks fast bf16.
    suggests = {} if best in (used, "fp16") else {"precision": best}
    return Outcome((plot,), (_table(trainings),), tuple(sentences), suggests, figures=_figures(trainings, ends))


def _figures(trainings: Mapping[str, PrecisionTraining], ends: Mapping[str, float]) -> dict[str, float | str]:
    """Return step time, kept memory and last loss of each precision, and whether it learns as fp32 does."""
    figures: dict[str, float | str] = {}
    for name, training in trainings.items():
        figures |= {f"{name}_step_s": training.step_s, f"{name}_kept_bytes": float(training.kept_bytes)}
        figures[f"{name}_loss"] = ends[name] if math.isfinite(ends[name]) else "not finite"
        figures[f"{name}_learns"] = "equally" if abs(ends[name] / ends["fp32"] - 1) <= _SAME else "otherwise"
    return figures


def _compared(name: str, trainings: Mapping[str, PrecisionTraining], ends: Mapping[str, float]) -> Iterator[str]:
    """Yield sentences that compare a precision with fp32. ends: last smoothed loss by precision."""
    training, base = trainings[name], trainings["fp32"]
    times = base.step_s / training.step_s
    pace = "as fast as" if 1 / _FASTER < times < _FASTER else f"{times:.2g} times as fast as"
    yield (
        f"{name} is {pace} fp32 here: {training.speed} against {base.speed}. It keeps "
        f"{memory(training.kept_bytes)} for the backward pass; fp32 keeps {memory(base.kept_bytes)}."
    )
    if not math.isfinite(ends[name]):
        yield f"In {name} the loss became NaN or infinite."
        return
    difference = abs(ends[name] / ends["fp32"] - 1)
    yield (
        f"After {count(len(training.losses), 'step')} from the same seed the losses are {decimal(ends[name])} and "
        f"{decimal(ends['fp32'])}. They differ by {'less than 0.1 %' if difference < 0.001 else percent(difference)}"
        f"{': both learn equally well, and the curves cover each other' if difference <= _SAME else ''}."
    )
