"""Threads: how many of them make a CPU train fastest."""

from __future__ import annotations

import statistics
import time

import torch

from studio.core.events import Events
from studio.core.formatting import count, rate
from studio.engine.devices.types import Device
from studio.lab.experiments.base import Experiment, ExperimentContext, seconds_in_turns
from studio.lab.outcome import Axis, Line, Outcome, Plot

_LEAST_ROUNDS = 3
_AS_GOOD = 1.03  # a number of threads is only better where it is faster by more than this
_CODE = """\
import time

import torch
from torch import nn

x = torch.rand({batch_size}, 4, {size}, {size})
network = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1))
optimizer = torch.optim.AdamW(network.parameters())

for threads in {counts}:
    torch.set_num_threads(threads)
    for step in range(4):  # the first pays for the start of the threads
        start = time.perf_counter()
        loss = nn.functional.mse_loss(network(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds = time.perf_counter() - start
    print(f"{{threads}} threads: {{len(x) / seconds:.0f}} sprites/s")
"""


class Threads(Experiment):
    """Times the same training step with more and more CPU threads, in turns."""

    name = "threads"
    title = "Threads"
    question = "How many threads make this CPU train fastest?"
    order = 30
    seconds = 30.0
    read_on = (
        "torch.set_num_threads",
        "https://docs.pytorch.org/docs/stable/generated/torch.set_num_threads.html",
    )
    plain = _CODE

    def obstacle(self, device: Device) -> str:
        return "" if device.kind == "cpu" else f"Threads share work on a CPU; {device.name} is none."

    def run(self, bench: ExperimentContext) -> Events:
        counts = _counts(bench.device)
        training = bench.training(bench.precision())
        durations_s: dict[int, list[float]] = {threads: [] for threads in counts}
        end_s, rounds = time.perf_counter() + bench.seconds, 0
        while rounds < _LEAST_ROUNDS or time.perf_counter() < end_s:
            for threads in counts:  # in turns: what else the computer does meets all of them alike
                torch.set_num_threads(threads)
                training.train_step()  # starts or ends threads
                durations_s[threads].append(training.time_steps())
                yield seconds_in_turns(bench.seconds - (end_s - time.perf_counter()), bench.seconds)
            rounds += 1
            yield Outcome((_plot(durations_s, bench),))
        yield _outcome(durations_s, bench)

    def template_values(self, bench: ExperimentContext) -> dict[str, object]:
        return {"counts": tuple(_counts(bench.device))}


def _counts(device: Device) -> list[int]:
    """1, 2, 4 and so on up to the cores; then twice as many threads as cores, which is more than can work at once."""
    cores = max(1, device.cores)
    powers = [2**power for power in range(cores.bit_length()) if 2**power < cores]
    return [*powers, cores, 2 * cores]


def _plot(durations_s: dict[int, list[float]], bench: ExperimentContext) -> Plot:
    counts = tuple(float(threads) for threads in durations_s)
    speeds = tuple(bench.config.batch_size / statistics.median(times) for times in durations_s.values())
    ideal = Line("if each did as much as the first", counts, tuple(speeds[0] * threads for threads in counts), False)
    return Plot(
        "Speed by threads", Axis("threads", log=True), Axis("sprites/s"), (Line("measured", counts, speeds), ideal)
    )


def _outcome(durations_s: dict[int, list[float]], bench: ExperimentContext) -> Outcome:
    medians_s = {threads: statistics.median(times) for threads, times in durations_s.items()}
    fastest_s = min(medians_s.values())
    best = min(threads for threads, median_s in medians_s.items() if median_s <= _AS_GOOD * fastest_s)
    best_s, batch_size, cores = medians_s[best], bench.config.batch_size, max(1, bench.device.cores)
    sentences = [
        f"{count(best, 'thread')} {'trains' if best == 1 else 'train'} fastest: {rate(batch_size / best_s)}, a step "
        f"of {count(batch_size, 'sprite')} in {1000 * best_s:.0f} ms."
    ]
    if best > 1:
        times = medians_s[1] / best_s
        sentences.append(f"That is {times:.3g} times as fast as one thread; {best} times would be ideal.")
    if best <= cores:
        times = medians_s[2 * cores] / best_s
        change = f"take {times:.2g} times as long" if times > _AS_GOOD else "are no slower"
        sentences.append(f"{2 * cores} threads, twice as many as there are cores, {change}.")
    taken = bench.config.threads or bench.device.threads
    if best == taken:
        sentences.append("These settings take just as many.")
    suggests = {} if best == taken else {"threads": best}
    return Outcome((_plot(durations_s, bench),), (), tuple(sentences), suggests)
