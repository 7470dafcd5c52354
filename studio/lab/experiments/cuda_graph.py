"""CUDA graph: steps that a card is asked for at once beside the same steps, asked for one operation at a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Generator
from dataclasses import dataclass

from studio.core.errors import DeviceFullError
from studio.core.events import Events, Progress
from studio.core.formatting import count, number, percent, rate
from studio.engine.devices import detection
from studio.engine.devices.cuda_graph import supports_cuda_graphs
from studio.engine.devices.types import Device
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Axis, Line, Outcome, Plot, Table

SIZES = (16, 64, 256)
_WARM_UP_STEPS = 5  # one of them is recorded
_LEAST_ROUNDS, _AT_ONCE = 3, 5  # steps that nobody waits for in between, as in a training
_FASTER = 1.05  # times as fast: less is noise
_CODE = """\
import time

import torch
from torch import nn

device = "{device}"
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
network = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1))
network.to(device)
on_cuda = device.startswith("cuda")
optimizer = torch.optim.AdamW(network.parameters(), capturable=on_cuda)  # all it counts is there


def step():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(network(x), x)
    loss.backward()
    optimizer.step()
    return loss


def milliseconds(take, steps=20):
    start = time.perf_counter()
    for _ in range(steps):
        take()
    if on_cuda:
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - start) / steps


milliseconds(step)  # whatever is done for the first time
print(f"one by one: {{milliseconds(step):.2f}} ms a step")
if on_cuda:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()  # is written down, not done
    print(f"as a graph: {{milliseconds(graph.replay):.2f}} ms a step, loss {{loss.item():.4f}}")
"""


@dataclass(frozen=True)
class _Measured:
    """Seconds of a step of so many sprites, without and with the graph."""

    size: int
    plain_s: float
    graph_s: float

    @property
    def times(self) -> float:
        """How many times as fast the graph is."""
        return self.plain_s / self.graph_s


class CudaGraph(Experiment):
    """Takes the steps of a training with and without a graph of them, for batches of several sizes."""

    name = "cuda-graph"
    title = "CUDA graph"
    question = "How long does a card wait to be asked for the next operation?"
    order = 55
    seconds = 30.0
    read_on = ("CUDA Graphs", "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs")
    plain = _CODE

    def obstacle(self, device: Device) -> str:
        return "" if supports_cuda_graphs(device.torch) else "Only NVIDIA's cards have CUDA graphs."

    def run(self, bench: ExperimentContext) -> Events:
        precision, found = bench.precision(), list[_Measured]()
        for place, size in enumerate(SIZES):
            what = f"batch sizes; {count(size, 'sprite')} a step"
            yield Progress(place, len(SIZES), what)
            try:
                found.append((yield from _measure(bench, precision, size, bench.seconds / len(SIZES))))
            except DeviceFullError:
                if not found:
                    raise
                break
            yield Progress(place + 1, len(SIZES), what)
            yield Outcome(_plots(found), (_table(found),))
        yield Outcome(_plots(found), (_table(found),), _sentences(found, bench))


def _measure(
    bench: ExperimentContext, precision: str, size: int, seconds: float
) -> Generator[Progress, None, _Measured]:
    """Both in turns, for so many seconds: what else the computer does meets both alike. Raises DeviceFullError."""
    detection.empty_cache(bench.target)
    plain, graph = (bench.training(precision, use_graph=use_graph, batch_size=size) for use_graph in (False, True))
    for training in (plain, graph):
        training.time_steps(_WARM_UP_STEPS)
    start_s, rounds = time.perf_counter(), list[tuple[float, float]]()
    while len(rounds) < _LEAST_ROUNDS or time.perf_counter() - start_s < seconds:
        rounds.append((plain.time_steps(_AT_ONCE), graph.time_steps(_AT_ONCE)))
        yield Progress(SIZES.index(size), len(SIZES), f"batch sizes; {count(size, 'sprite')} a step")
    plain_s, graph_s = (statistics.median(times) for times in zip(*rounds, strict=True))
    return _Measured(size, plain_s, graph_s)


def _plots(found: list[_Measured]) -> tuple[Plot, ...]:
    sizes = tuple(float(item.size) for item in found)
    lines = (
        Line("one by one", sizes, tuple(item.size / item.plain_s for item in found)),
        Line("as a graph", sizes, tuple(item.size / item.graph_s for item in found)),
    )
    return (Plot("Speed by batch size", Axis("sprites a step", log=True), Axis("sprites/s"), lines),)


def _table(found: list[_Measured]) -> Table:
    rows = tuple(
        (
            number(item.size), f"{1000 * item.plain_s:,.2f} ms", f"{1000 * item.graph_s:,.2f} ms",
            rate(item.size / item.graph_s), f"{item.times:.3g}",
        )
        for item in found
    )  # fmt: skip
    return Table((">sprites a step", ">one by one", ">as a graph", ">speed as a graph", ">times as fast"), rows)


def _sentences(found: list[_Measured], bench: ExperimentContext) -> tuple[str, ...]:
    usual = min(found, key=lambda item: abs(item.size - bench.config.batch_size))
    first = (
        f"Asked for one operation at a time, a step of {count(usual.size, 'sprite')} takes {1000 * usual.plain_s:,.2f} "
        f"ms; asked for at once, as a graph, {1000 * usual.graph_s:,.2f} ms."
    )
    if usual.times < _FASTER:
        return first, "So nothing waits here: the operations themselves take longer than asking for them."
    waits = f"So the device waited for {percent(1 - usual.graph_s / usual.plain_s)} of the time to be asked."
    largest = found[-1]
    less = f"With {number(largest.size)} sprites a step a graph is {largest.times:.3g} times as fast"
    why = ": the more there is to compute at once, the less it waits." if largest.times < usual.times else "."
    return first, waits, less + why, "Trainings use a graph by themselves: what they learn is the same."
