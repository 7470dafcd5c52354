"""CUDA graph: training steps that the GPU replays from a graph, and the same steps launched kernel by kernel."""

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
from studio.lab.experiments.base import TIMED_IMPORTS, Experiment, ExperimentContext
from studio.lab.experiments.sweep import sweep
from studio.lab.outcome import Axis, Line, Outcome, Plot, Table

SIZES = (16, 64, 256)
_WARM_UP_STEPS = 5  # including the capture of the graph
_LEAST_ROUNDS, _STEPS_PER_ROUND = 3, 5  # no synchronisation within a round, as in a training
_FASTER = 1.05  # a smaller speed-up is noise
_CODE = TIMED_IMPORTS + """\
device = "{device}"
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
network = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1))
network.to(device)
on_cuda = device.startswith("cuda")
optimizer = torch.optim.AdamW(network.parameters(), capturable=on_cuda)  # counts on the GPU


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


milliseconds(step)  # warm-up
print(f"eager: {{milliseconds(step):.2f}} ms a step")
if on_cuda:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()  # captured, not executed
    print(f"as a graph: {{milliseconds(graph.replay):.2f}} ms a step, loss {{loss.item():.4f}}")
"""  # fmt: skip


@dataclass(frozen=True)
class GraphTiming:
    """Seconds per step of one batch size, eager and with a CUDA graph."""

    size: int
    eager_s: float
    graph_s: float

    @property
    def speedup(self) -> float:
        """The speed with a CUDA graph, as a multiple of the eager speed."""
        return self.eager_s / self.graph_s


class CudaGraph(Experiment):
    """Times training steps with and without a CUDA graph, for several batch sizes."""

    name = "cuda-graph"
    title = "CUDA graph"
    question = "How long does a GPU wait for the CPU to launch its kernels?"
    order = 55
    sets_obstacle = "Steps on single sprites are timed; a model of sets trains on whole characters."
    seconds = 30.0
    read_on = ("CUDA Graphs", "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs")
    plain = _CODE

    def obstacle(self, device: Device) -> str:
        return "" if supports_cuda_graphs(device.torch) else "Only NVIDIA GPUs have CUDA graphs."

    def run(self, context: ExperimentContext) -> Events:
        timings = list[GraphTiming]()

        def measure(size: int) -> Generator[Progress, None, bool]:
            try:
                timings.append((yield from _measure(context, size)))
            except DeviceFullError:
                if not timings:
                    raise
                return False
            return True

        sizes = {count(size, "sprite"): size for size in SIZES}
        yield from sweep(sizes, "batch sizes", measure, lambda: Outcome(_plots(timings), (_table(timings),)))
        yield Outcome(_plots(timings), (_table(timings),), _sentences(timings, context))


def _measure(context: ExperimentContext, size: int) -> Generator[Progress, None, GraphTiming]:
    """Time eager and CUDA-graph steps of a batch size in turns; yields Progress. Raises DeviceFullError."""
    detection.empty_cache(context.target)
    precision = context.precision()
    eager, graph = (context.training(precision, use_graph=use, batch_size=size) for use in (False, True))
    for training in (eager, graph):
        training.time_steps(_WARM_UP_STEPS)
    seconds = context.seconds / len(SIZES)
    start_s, rounds = time.perf_counter(), list[tuple[float, float]]()
    while len(rounds) < _LEAST_ROUNDS or time.perf_counter() - start_s < seconds:
        rounds.append((eager.time_steps(_STEPS_PER_ROUND), graph.time_steps(_STEPS_PER_ROUND)))
        yield Progress(SIZES.index(size), len(SIZES), f"batch sizes; now {count(size, 'sprite')}")
    eager_s, graph_s = (statistics.median(times) for times in zip(*rounds, strict=True))
    return GraphTiming(size, eager_s, graph_s)


def _plots(timings: list[GraphTiming]) -> tuple[Plot, ...]:
    sizes = tuple(float(item.size) for item in timings)
    eager = Line("eager", sizes, tuple(item.size / item.eager_s for item in timings))
    graph = Line("CUDA graph", sizes, tuple(item.size / item.graph_s for item in timings))
    return (Plot("Speed by batch size", Axis("batch size", log=True), Axis("sprites/s"), (eager, graph)),)


def _table(timings: list[GraphTiming]) -> Table:
    rows = []
    for item in timings:
        steps = f"{1000 * item.eager_s:,.2f} ms", f"{1000 * item.graph_s:,.2f} ms"
        rows.append((number(item.size), *steps, rate(item.size / item.graph_s), f"{item.speedup:.3g}"))
    return Table((">batch size", ">eager step", ">graph step", ">graph speed", ">times as fast"), tuple(rows))


def _sentences(timings: list[GraphTiming], context: ExperimentContext) -> tuple[str, ...]:
    usual = min(timings, key=lambda item: abs(item.size - context.config.batch_size))
    first = (
        f"With {count(usual.size, 'sprite')} per step, an eager step takes {1000 * usual.eager_s:,.2f} ms: the CPU "
        f"launches every kernel. Replaying the step as a CUDA graph takes {1000 * usual.graph_s:,.2f} ms."
    )
    if usual.speedup < _FASTER:
        return first, "The GPU hardly waits here: running its kernels takes longer than launching them."
    waits = f"In eager steps the GPU waits for launches {percent(1 - usual.graph_s / usual.eager_s)} of the time."
    largest = timings[-1]
    large = f"With {number(largest.size)} sprites per step a graph is {largest.speedup:.3g} times as fast"
    why = ": larger batches keep the GPU busy longer per launch." if largest.speedup < usual.speedup else "."
    return first, waits, large + why, "Trainings on NVIDIA GPUs use a graph automatically; the result is the same."
