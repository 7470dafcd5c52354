"""Layers: the parameters of a network, and how each layer trained, if the run logged layer statistics."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig, settings_of
from studio.core.events import Events, Progress
from studio.core.formatting import count, decimal, memory, number, percent
from studio.engine.runs.history import MetricCurve, read_history
from studio.lab.experiments.base import IMPORTS, Experiment, ExperimentContext, evenly_spaced
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot, Table

_MOST_ROWS = 60  # of a table; in larger networks a module's parameters share a row
_LINES = 6  # per plot
_DASH = "\u2013"
_CODE = IMPORTS + """\
device, inputs = "{device}", 4 * {size} * {size}
x = torch.rand({batch_size}, inputs, device=device)
network = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
for name, weight in network.named_parameters():
    print(f"{{name}}: {{tuple(weight.shape)}}, {{weight.dtype}}, on {{weight.device}}")

inputs_of = dict[str, torch.Tensor]()


def record(name):
    return lambda layer, inputs: inputs_of.update({{name: inputs[0].detach()}})


for name, layer in network.named_children():
    if isinstance(layer, nn.Linear):
        layer.register_forward_pre_hook(record(name))

optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
before = {{name: weight.detach().clone() for name, weight in network.named_parameters()}}
network(x).square().mean().backward()
optimizer.step()
for name, weight in network.named_parameters():
    ratio = (weight - before[name]).norm() / weight.norm()
    print(f"{{name}}: update ratio {{ratio:.3f}}, gradient norm {{weight.grad.norm():.3g}}")
for name, values in inputs_of.items():
    dead = (values.amax(0) - values.amin(0) == 0).float().mean()  # equal for all samples
    print(f"layer {{name}}: {{100 * dead:.0f}} % of its inputs are dead units")
"""  # fmt: skip


class Layers(Experiment):
    """Lists the parameters of a network, and plots layer statistics if the run logged them."""

    name = "layers"
    title = "Layers"
    question = "Which layers does the network have, and how did each layer train?"
    order = 90
    sets_obstacle = ""
    seconds = 3.0
    subject = "run"
    _page = "https://docs.pytorch.org/tutorials/beginner/basics/buildmodel_tutorial.html#model-parameters"
    read_on = ("Build the neural network: model parameters", _page)
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        assert context.run is not None
        model = yield from context.load_model()
        curves = read_history(context.run).layers
        weights = dict(model.network.named_parameters())
        tables = [_table_of(model.network)]
        sentences = [*_about_weights(weights, model.step)]
        plots: tuple[Plot, ...] = ()
        if curves:
            plots = tuple(_plots(curves, model.step))
            tables.insert(0, _recorded(curves, model.step))
            sentences += _about_learning(curves, model.step, context.recipe.noun)
        else:
            sentences.append(_how_to_record(context.config))
        yield Progress(1, 1, "runs read")
        yield Outcome(plots, tuple(tables), tuple(sentences), step=model.step)


def _table_of(network: nn.Module) -> Table:
    """Return a table of the network's parameters, with a row per module in large networks."""
    weights = dict(network.named_parameters())
    rows = {name: [weight] for name, weight in weights.items()}
    if len(rows) > _MOST_ROWS:
        rows = {}
        for name, weight in weights.items():
            rows.setdefault(name.rpartition(".")[0] or name, []).append(weight)
    sizes, cells = torch.stack([_rms(group) for group in rows.values()]).tolist(), []
    for (name, group), size in zip(rows.items(), sizes, strict=True):
        shapes = "; ".join(" x ".join(map(str, weight.shape)) or "1" for weight in group)
        total = number(sum(weight.numel() for weight in group))
        cells.append((name, shapes, _type_of(group[0]), str(group[0].device), total, decimal(size)))
    return Table(("layer", "shape", "type", "device", ">weights", ">size (RMS)"), tuple(cells))


def _rms(weights: Sequence[Tensor]) -> Tensor:
    return torch.cat([weight.float().flatten() for weight in weights]).square().mean().sqrt()


def _type_of(weight: Tensor) -> str:
    return str(weight.dtype).removeprefix("torch.")


def _about_weights(weights: Mapping[str, Tensor], step: int) -> Iterator[str]:
    kinds = sorted({f"{_type_of(weight)} on {weight.device}" for weight in weights.values()})
    total = count(sum(weight.numel() for weight in weights.values()), "weight")
    room, tensors = memory(sum(weight.nbytes for weight in weights.values())), count(len(weights), "tensor")
    yield f"The averaged network at step {number(step)} has {total} in {tensors} of {' and '.join(kinds)}: {room}."
    sizes = {name: _rms([weight]).item() for name, weight in weights.items() if weight.ndim > 1}
    most, least = _ends(sizes)
    if most != least:
        highest, lowest = decimal(sizes[most]), decimal(sizes[least])
        yield f"The weights are largest in {most} (RMS {highest}) and smallest in {least} (RMS {lowest})."


def _ends(values: Mapping[str, float]) -> tuple[str, str]:
    """Return the names of the layers with the highest and the lowest value, ignoring zeros if possible."""
    some = {name: value for name, value in values.items() if value} or values
    return max(some, key=some.__getitem__), min(some, key=some.__getitem__)


def _at(curves: Mapping[str, MetricCurve], step: int) -> tuple[int, dict[str, float]]:
    """Return the last logged step up to `step`, else the first, and each layer's value there."""
    known = sorted({int(logged) for curve in curves.values() for logged in curve.steps})
    chosen = max((logged for logged in known if logged <= step), default=known[0] if known else step)
    found = {name: curve.values[curve.steps == chosen] for name, curve in curves.items()}
    return chosen, {name: float(values[0]) for name, values in found.items() if len(values)}


def _plots(curves: Mapping[str, Mapping[str, MetricCurve]], step: int) -> Iterator[Plot]:
    """Yield a plot of each layer statistic by training step. step: the checkpoint's, to be marked."""
    figures = (
        ("update", "Ratio of update norm to weight norm", Axis("ratio", log=True), 1),
        ("gradient", "Gradient norm", Axis("norm", log=True), 1),
        ("dead", "Dead units among a layer's inputs", Axis("%"), 100),
    )
    for figure, title, axis, scale in figures:
        names = _plotted(_at(curves[figure], step)[1])
        drawn = (_line(name, curves[figure][name], scale=scale, positive=axis.log) for name in names)
        lines = tuple(line for line in drawn if line.x)
        if any(value for line in lines for value in line.y):  # no plot of zeros
            yield Plot(title, Axis("step"), axis, lines, (Mark(float(step), "checkpoint"),))


def _plotted(values: Mapping[str, float]) -> list[str]:
    """Choose 6 layers to plot: the layers with the highest and the lowest value, and layers in between."""
    names = list(values)
    if len(names) <= _LINES:
        return names
    ends = _ends(values)
    others = [name for name in names if name not in ends]
    between = [others[index] for index in evenly_spaced(len(others), _LINES - 2)]
    return [name for name in names if name in {*ends, *between}]


def _line(name: str, curve: MetricCurve, *, scale: float, positive: bool) -> Line:
    pairs = zip(curve.steps.tolist(), curve.values.tolist(), strict=True)
    points = [(float(step), scale * value) for step, value in pairs if value > 0 or not positive]
    return Line(name, tuple(step for step, _ in points), tuple(value for _, value in points), dots=len(points) < 2)


def _recorded(curves: Mapping[str, Mapping[str, MetricCurve]], step: int) -> Table:
    """Return a table of all layers' statistics, at the last logged step up to `step`."""
    logged, update = _at(curves["update"], step)
    gradient, dead = (_at(curves[figure], step)[1] for figure in ("gradient", "dead"))
    rows = []
    for name, ratio in update.items():
        norm = f"{gradient[name]:.3g}" if name in gradient else _DASH
        rows.append((name, f"{100 * ratio:.3g} %", norm, percent(dead[name]) if name in dead else _DASH))
    return Table((f"layer, at step {number(logged)}", ">update ratio", ">gradient norm", ">dead units"), tuple(rows))


def _about_learning(curves: Mapping[str, Mapping[str, MetricCurve]], step: int, noun: str) -> Iterator[str]:
    """Yield sentences about the logged statistics of layers up to `step`. noun: for a training example."""
    times = len({int(logged) for curve in curves["update"].values() for logged in curve.steps})
    logged, update = _at(curves["update"], step)
    gradient, dead = (_at(curves[figure], step)[1] for figure in ("gradient", "dead"))
    most, least = _ends(update)
    yield (
        f"The run has {count(times, 'measurement')} of its layers. At step {number(logged)} an update changed {most} "
        f"most, by {100 * update[most]:.2g} % of its weight norm, and {least} least, by {100 * update[least]:.2g} %."
    )
    if still := [name for name, moved in update.items() if not moved]:
        yield f"Not updated at all: {', '.join(still)}."
    most, least = _ends(gradient)
    yield f"The gradient norm is highest in {most}, {gradient[most]:.2g}, lowest in {least}, {gradient[least]:.2g}."
    if dead:
        worst, alive = max(dead, key=dead.__getitem__), sum(not share for share in dead.values())
        layers = count(len(dead), "layer")
        yield (
            f"{worst} has the most dead units: {percent(dead[worst])} of its inputs have the same value for every "
            f"{noun}. {number(alive)} of {layers} have none."
            if dead[worst]
            else f"None of {layers} has dead units: the inputs vary from {noun} to {noun}."
        )
    if len(update) > _LINES:
        yield f"Each plot shows {_LINES} of {len(update)} layers: the highest, the lowest, and some in between."


def _how_to_record(config: TrainingConfig) -> str:
    label = next(item.label for item in settings_of(type(config)) if item.name == "log_layer_stats")
    return (
        f"This run has no layer statistics. Turn on '{label}' in the advanced settings of the Train page, or pass "
        "--log-layer-stats on the command line, to plot each layer's updates, gradients and dead units. Logging them "
        "costs less than 1 % of the time."
    )
