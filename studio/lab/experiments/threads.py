"""Threads: the number of CPU threads that trains fastest."""

import statistics

import torch

from studio.core.events import Events
from studio.core.formatting import count, rate
from studio.engine.devices.types import Device
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.experiments.sweep import SETUP, TIMED_STEP, sweep_in_turns
from studio.lab.outcome import Axis, Line, Outcome, Plot

_LEAST_ROUNDS = 3
_AS_GOOD = 1.03  # ratio of times that counts as equal
_CODE = SETUP + """
for threads in {counts}:
    torch.set_num_threads(threads)
    for step in range(4):  # the first step starts the threads
""" + TIMED_STEP + """\
    print(f"{{threads}} threads: {{len(x) / seconds:.0f}} sprites/s")
"""  # fmt: skip


class Threads(Experiment):
    """Times training steps with different numbers of CPU threads, in turns."""

    name = "threads"
    title = "Threads"
    question = "How many threads make this CPU train fastest?"
    order = 30
    sets_obstacle = ""
    seconds = 30.0
    read_on = ("torch.set_num_threads", "https://docs.pytorch.org/docs/stable/generated/torch.set_num_threads.html")
    plain = _CODE

    def obstacle(self, device: Device) -> str:
        return "" if device.kind == "cpu" else f"Only CPUs have threads to set; {device.name} is not a CPU."

    def run(self, context: ExperimentContext) -> Events:
        counts, training = _counts(context.device), context.training(context.precision())
        durations_s: dict[int, list[float]] = {threads: [] for threads in counts}

        def measure(threads: int) -> None:
            torch.set_num_threads(threads)
            training.train_step()  # starts or ends threads
            durations_s[threads].append(training.time_steps())

        yield from sweep_in_turns(
            counts, measure, lambda: Outcome((_plot(durations_s, context),)), context.seconds, _LEAST_ROUNDS
        )
        yield _conclusion(durations_s, context)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        return {"counts": tuple(_counts(context.device))}


def _counts(device: Device) -> list[int]:
    """Return the thread counts to measure: powers of two below the core count, all cores, twice the cores."""
    cores = max(1, device.cores)
    powers = [2**power for power in range(cores.bit_length()) if 2**power < cores]
    return [*powers, cores, 2 * cores]


def _plot(durations_s: dict[int, list[float]], context: ExperimentContext) -> Plot:
    counts = tuple(float(threads) for threads in durations_s)
    speeds = tuple(context.config.batch_size / statistics.median(times) for times in durations_s.values())
    ideal = Line("ideal", counts, tuple(speeds[0] * threads for threads in counts), dots=False)
    lines = Line("measured", counts, speeds), ideal
    return Plot("Speed by number of threads", Axis("threads", log=True), Axis(f"{context.recipe.noun}s/s"), lines)


def _conclusion(durations_s: dict[int, list[float]], context: ExperimentContext) -> Outcome:
    medians_s = {threads: statistics.median(times) for threads, times in durations_s.items()}
    fastest_s = min(medians_s.values())
    best = min(threads for threads, median_s in medians_s.items() if median_s <= _AS_GOOD * fastest_s)
    best_s, batch_size, cores = medians_s[best], context.config.batch_size, max(1, context.device.cores)
    noun = context.recipe.noun
    speed = rate(batch_size / best_s, f"{noun}s")
    trains = f"{count(best, 'thread')} {'trains' if best == 1 else 'train'} fastest: {speed}"
    sentences = [f"{trains}, {1000 * best_s:.0f} ms for a step of {count(batch_size, noun)}."]
    if best > 1:
        times = medians_s[1] / best_s
        sentences.append(f"{best} threads are {times:.3g} times as fast as one thread; ideal would be {best} times.")
    if best <= cores:
        times = medians_s[2 * cores] / best_s
        change = f"take {times:.2g} times as long" if times > _AS_GOOD else "are no slower"
        sentences.append(f"{2 * cores} threads, two per core, {change}.")
    current = context.config.threads or context.device.threads
    if best == current:
        sentences.append("Your settings already use this number of threads.")
    suggests = {} if best == current else {"threads": best}
    return Outcome((_plot(durations_s, context),), (), tuple(sentences), suggests)
