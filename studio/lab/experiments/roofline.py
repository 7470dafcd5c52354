"""Roofline: whether arithmetic, memory or the calls of operations limit a training step on this device."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from studio.core.events import Events, Progress
from studio.core.formatting import count, memory, number, percent
from studio.engine.devices import detection
from studio.engine.devices.cuda_graph import supports_cuda_graphs
from studio.engine.devices.precision import DTYPES
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.experiments.sweep import milliseconds
from studio.lab.outcome import Axis, Line, Outcome, Plot, Table

_MATRIX = {"cpu": 1024}  # rows and columns of the multiplied matrices, by kind of device
_LARGE_MATRIX = 8192
_LEAST_COPIED = 1 << 18  # bytes: copying a smaller tensor would measure calls
_TINY_LAYERS = 60  # layers with a single weight: calls take nearly the whole time
_LEAST_TIMES = 3
_CLOSE = 1.5  # report a second limit if the first limit is at most this factor higher
_EXPLAINED = 0.7  # share of the step; the finding mentions a smaller share
_PARTS = 4  # parts of the measurement, with equal shares of the time
_CODE = """\
import time

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

device = "{device}"


def seconds(work, times=5):
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        if device != "cpu":
            torch.accelerator.synchronize()  # wait until the device has finished
        taken.append(time.perf_counter() - start)
    return min(taken)


class Operations(TorchDispatchMode):
    calls = moved = 0

    def __torch_dispatch__(self, operation, types, inputs=(), options=None):
        result = operation(*inputs, **(options or {{}}))
        if not operation.is_view:  # a view reads and writes nothing
            tensors = [each for each in (*inputs, result) if isinstance(each, torch.Tensor)]
            Operations.calls += 1
            Operations.moved += sum(each.nbytes for each in tensors)
        return result


def step():
    optimizer.zero_grad()
    nn.functional.mse_loss(network(x), x).backward()
    optimizer.step()


matrix, block = torch.rand(1024, 1024, device=device), torch.rand(1 << 24, device=device)
weight, copied = torch.rand(1, device=device), torch.empty_like(block)
peak = 2 * 1024**3 / seconds(lambda: matrix @ matrix)  # operations per second
bandwidth = 2 * block.nbytes / seconds(lambda: copied.copy_(block))  # bytes per second
call = seconds(lambda: [weight + 1 for _ in range(1000)]) / 1000  # seconds

x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
network = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1))
network.to(device)
optimizer = torch.optim.AdamW(network.parameters(), fused=True)
step()  # warm-up
with FlopCounterMode(display=False) as flops, Operations():
    step()
print(f"a step: {{1000 * seconds(step):.2f}} ms")
print(f"arithmetic alone: {{1000 * flops.get_total_flops() / peak:.2f}} ms")
print(f"memory alone: {{1000 * Operations.moved / bandwidth:.2f}} ms")
print(f"Python alone: {{1000 * Operations.calls * call:.2f}} ms")
"""


@dataclass(frozen=True)
class DeviceLimits:
    """A device's limits: operations per second, bytes per second, and seconds per call."""

    flops_per_s: float
    bytes_per_s: float
    call_s: float

    def roof(self, intensity: float) -> float:
        """Return the most operations per second at `intensity`, in operations per byte."""
        return min(self.flops_per_s, self.bytes_per_s * intensity)


@dataclass(frozen=True)
class StepCost:
    """The work in a training step, and the shortest duration."""

    flops: int  # multiplications and additions in matrix products and convolutions
    moved_bytes: int  # bytes read and written by operations
    tensor_bytes: int  # mean bytes moved by an operation, weighted by bytes
    calls: int  # calls of operations, without views
    step_s: float

    @property
    def intensity(self) -> float:
        """The operations per byte."""
        return self.flops / self.moved_bytes

    def limits_s(self, limits: DeviceLimits) -> dict[str, float]:
        """Return seconds by part of the work, as if the step had only this part."""
        return {
            "compute": self.flops / limits.flops_per_s,
            "memory": self.moved_bytes / limits.bytes_per_s,
            "Python": self.calls * limits.call_s,
        }


class Roofline(Experiment):
    """Measures the device's limits, counts the work in a training step, and compares limits with work."""

    name = "roofline"
    title = "Roofline"
    question = "Is a training step limited by compute, memory or Python?"
    order = 57
    sets_obstacle = ""
    seconds = 15.0
    _page = "https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html"
    read_on = ("PyTorch Benchmark", _page)
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        share_s, costs = context.seconds / _PARTS, dict[int, StepCost]()
        for done, size in enumerate((context.config.batch_size, 1)):
            yield Progress(done, _PARTS, f"measurements; now steps of {count(size, context.recipe.noun)}")
            costs[size] = _step_cost(context, size, share_s)
        yield Progress(2, _PARTS, "measurements; now matrix products")
        flops_per_s, largest = _flops_per_s(context, share_s), max(cost.tensor_bytes for cost in costs.values())
        yield Progress(3, _PARTS, "measurements; now copies and calls")
        bytes_per_s = _bytes_per_s(context.target, largest, share_s / 2)
        limits = DeviceLimits(flops_per_s, bytes_per_s, _call_s(context.target, share_s / 2))
        yield Progress(_PARTS, _PARTS, "measurements")
        sentences = tuple(_sentences(costs, limits, context))
        cost = costs[context.config.batch_size]
        alone_s = cost.limits_s(limits)
        figures: dict[str, float | str] = {f"{name.lower()}_s": seconds for name, seconds in alone_s.items()}
        second, limit = sorted(alone_s, key=alone_s.__getitem__)[-2:]
        figures |= {
            "limit": limit, "step_s": cost.step_s, "advice": _ADVICE[limit],
            "close": second if alone_s[limit] < _CLOSE * alone_s[second] else "",
            "unexplained": "yes" if sum(alone_s.values()) < _EXPLAINED * cost.step_s else "no",
        }  # fmt: skip
        plots, tables = (_plot(costs, limits, context),), (_table(costs, limits, context),)
        yield Outcome(plots, tables, sentences, figures=figures)


class _Counter(TorchDispatchMode):
    """Records the bytes read and written by operation."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.moved_bytes: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            written = [] if "empty" in func.__name__ else tree_leaves(result)
            if result is None:  # an in-place operation on lists of tensors, for example a fused optimizer
                written = tree_leaves(args[:4])
            tensors = [each for each in (*tree_leaves((args, kwargs)), *written) if isinstance(each, Tensor)]
            self.moved_bytes.append(sum(min(each.nbytes, each.untyped_storage().nbytes()) for each in tensors))
        return result


def _fastest_s(work: Callable[[], object], target: torch.device, seconds: float) -> float:
    """Repeat `work` for `seconds`; return the shortest duration."""
    durations_s: list[float] = []
    while len(durations_s) <= _LEAST_TIMES or sum(durations_s) < seconds:
        start_s = time.perf_counter()
        work()
        detection.synchronize(target)
        durations_s.append(time.perf_counter() - start_s)
    return min(durations_s[1:])  # without the warm-up


def _flops_per_s(context: ExperimentContext, seconds: float) -> float:
    """Measure the rate of matrix products, in the precision from the settings."""
    size = _MATRIX.get(context.device.kind, _LARGE_MATRIX)
    matrix = torch.rand(size, size, device=context.target).to(DTYPES.get(context.precision(), torch.float32))
    return 2 * size**3 / _fastest_s(lambda: matrix @ matrix, context.target, seconds)


def _bytes_per_s(target: torch.device, moved_bytes: int, seconds: float) -> float:
    """Measure the rate of copies that move `moved_bytes`: caches make small copies faster. A copy reads and writes."""
    source = torch.ones(max(_LEAST_COPIED, moved_bytes) // 2, dtype=torch.uint8, device=target)
    copied = torch.empty_like(source)
    return 2 * source.nbytes / _fastest_s(lambda: copied.copy_(source), target, seconds)


def _call_s(target: torch.device, seconds: float) -> float:
    """Measure the seconds per operation, in forward and backward passes through layers with one weight."""
    network, x = nn.Sequential(*(nn.Linear(1, 1) for _ in range(_TINY_LAYERS))).to(target), torch.ones(1, 1)
    x = x.to(target)

    def work() -> None:
        network.zero_grad()
        network(x).sum().backward()

    with _Counter() as counter:
        work()
    return _fastest_s(work, target, seconds) / len(counter.moved_bytes)


def _step_cost(context: ExperimentContext, size: int, seconds: float) -> StepCost:
    """Count the work of an eager training step of `size` sprites, and time steps. Raises DeviceFullError."""
    training = context.training(context.precision(), batch_size=size)
    from torch.utils.flop_counter import FlopCounterMode  # imported late, because this module imports triton

    training.time_steps()  # creates the optimizer's state
    with FlopCounterMode(display=False) as flops, _Counter() as counter:
        training.train_step()
    moved_bytes = sum(counter.moved_bytes)
    mean_bytes = sum(each**2 for each in counter.moved_bytes) // moved_bytes
    step_s = _fastest_s(training.train_step, context.target, seconds)
    return StepCost(flops.get_total_flops(), moved_bytes, mean_bytes, len(counter.moved_bytes), step_s)


def _plot(costs: Mapping[int, StepCost], limits: DeviceLimits, context: ExperimentContext) -> Plot:
    """Plot the roof of the device over operations per byte, with a dot for each batch size."""
    ridge, intensities = limits.flops_per_s / limits.bytes_per_s, [cost.intensity for cost in costs.values()]
    ends = min(ridge, *intensities) / 4, ridge, 4 * max(ridge, *intensities)
    roof = Line("roof: memory, then compute", ends, tuple(limits.roof(x) / 1e9 for x in ends), dots=False)
    dots = []
    for size, cost in costs.items():
        reached = cost.flops / cost.step_s / 1e9
        dots.append(Line(f"step of {count(size, context.recipe.noun)}", (cost.intensity,), (reached,)))
    x, y = Axis("operations per byte", log=True), Axis("billion operations/s", log=True)
    return Plot(f"Roofline of {context.device.name}", x, y, (roof, *dots))


def _table(costs: Mapping[int, StepCost], limits: DeviceLimits, context: ExperimentContext) -> Table:
    rows = []
    for size, cost in costs.items():
        alone = (milliseconds(seconds) for seconds in cost.limits_s(limits).values())
        work = _large(cost.flops), memory(cost.moved_bytes), number(cost.calls)
        rows.append((count(size, context.recipe.noun), *work, *alone, milliseconds(cost.step_s)))
    work_columns = ">operations", ">bytes moved", ">calls"
    time_columns = ">compute alone", ">memory alone", ">Python alone", ">whole step"
    return Table(("step of", *work_columns, *time_columns), tuple(rows))


_NAMES = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))
_ADVICE = {
    "compute": "A smaller network, 16-bit precision or a faster device make the step faster; larger batches don't.",
    "memory": "16-bit precision halves the bytes, and torch.compile joins operations; a faster processor helps little.",
    "Python": "Larger batches give each call more work; torch.compile and CUDA graphs save calls.",
}


def _large(value: float) -> str:
    """Format a large number: 2.04e10 -> '20.4 billion'."""
    power, name = next((each for each in _NAMES if value >= each[0]), (1.0, ""))
    return f"{value / power:.3g} {name}".strip()


def _sentences(costs: Mapping[int, StepCost], limits: DeviceLimits, context: ExperimentContext) -> Iterator[str]:
    noun, precision = context.recipe.noun, context.precision()
    (size, cost), *others = costs.items()
    alone_s = cost.limits_s(limits)
    yield (
        f"{context.device.name} does {_large(limits.flops_per_s)} operations/s in {precision} and moves "
        f"{limits.bytes_per_s / 1e9:,.3g} GB/s; starting an operation from Python takes "
        f"{1e6 * limits.call_s:.2g} \u00b5s."
    )
    yield (
        f"A step of {count(size, noun)} takes {milliseconds(cost.step_s)}. Alone, its arithmetic would take "
        f"{milliseconds(alone_s['compute'])}, its memory traffic {milliseconds(alone_s['memory'])} and its "
        f"{count(cost.calls, 'call')} {milliseconds(alone_s['Python'])}."
    )
    first, second, _ = sorted(alone_s, key=alone_s.__getitem__, reverse=True)
    close = f", with {second} close behind" if alone_s[first] < _CLOSE * alone_s[second] else ""
    yield f"So {first} limits the step{close}. {_ADVICE[first]}"
    share = cost.flops / cost.step_s / limits.roof(cost.intensity)
    cached = " More than 100 % is possible where a cache holds the tensors." if share > 1 else ""
    yield f"At {cost.intensity:.3g} operations per byte, the step reaches {percent(share)} of the roof.{cached}"
    explained = sum(alone_s.values()) / cost.step_s
    if explained < _EXPLAINED:
        yield (
            f"The three together explain {percent(explained)} of the step. Small or uneven operations don't reach the "
            "device's best rates, and other programs may have slowed the step."
        )
    for other_size, other in others:
        share = min(1.0, other.calls * limits.call_s / other.step_s)
        yield f"With {count(other_size, noun)} per step, calls are {percent(share)} of {milliseconds(other.step_s)}."
    if supports_cuda_graphs(context.target):
        yield "These steps ran call by call; trainings replay them as a CUDA graph, which saves the calls."
