"""Loading: the batch size, worker processes and pinned memory of a DataLoader, and what each changes."""

import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from studio.core.events import Events, Progress
from studio.core.formatting import count, percent, rate
from studio.engine.devices import detection
from studio.lab.experiments.base import TIMED_IMPORTS, ExperimentContext
from studio.lab.lessons.base import Answer, Exercise, Figures, Lesson, Prediction
from studio.lab.lessons.task import Step, examples, make_network
from studio.lab.outcome import Axis, Line, Outcome, Plot, Table

_SIZES = (4, 16, 64, 256)
_SIZE = 64  # of the batches for workers and pinned memory
_EPOCH = 2048  # sprites; fewer repeat
_WORKERS = 2
_LEAST, _MORE = 0.9, 1.1  # shares of the time; times between these shares count as equal
_LESS_TIME, _SAME_TIME, _MORE_TIME = "less time", "about the same time", "more time"
_STARTER = """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loader(data, device):
    # batches of 32 in a new order in each epoch; pinned memory for a CUDA device and for no other
    return DataLoader(data)


data = TensorDataset(torch.rand(100, 4, 8, 8), torch.randint(3, (100,)))
for x, y in make_loader(data, "cpu"):
    print(tuple(x.shape), tuple(y.shape))
    break
"""
_CODE = TIMED_IMPORTS + """\
from torch.utils.data import DataLoader, TensorDataset

device = "{device}"
data = TensorDataset(torch.rand(1024, 4, {size}, {size}), torch.randint(3, (1024,)))  # made-up sprites
network = nn.Sequential(nn.Flatten(), nn.Linear(4 * {size} * {size}, 3)).to(device)
optimizer = torch.optim.AdamW(network.parameters())

for batch_size in (4, 32, 256):
    # num_workers=2 would load batches in two processes; pin_memory=True helps copies to a CUDA card
    loader = DataLoader(data, batch_size, shuffle=True, num_workers=0, pin_memory=device.startswith("cuda"))
    start = time.perf_counter()
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = nn.functional.cross_entropy(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loss.item()  # waits for the device
    print(f"batches of {{batch_size}}: {{len(data) / (time.perf_counter() - start):.0f}} sprites/s")
"""  # fmt: skip


def _check(names: Mapping[str, Any]) -> str:
    """Look at the loaders that the learner's function makes for two devices."""
    data = TensorDataset(torch.rand(40, 2), torch.arange(40))
    for device, is_pinned in (("cuda", True), ("cpu", False)):
        loader = names["make_loader"](data, device)
        if loader.batch_size != 32:
            return f"The batches have {count(loader.batch_size or 0, 'sprite')} instead of 32."
        if not isinstance(loader.sampler, RandomSampler):
            return "The sprites come in the same order in each epoch."
        if loader.pin_memory != is_pinned:
            return f"For the device '{device}' pin_memory is {loader.pin_memory}."
    return ""


class Loading(Lesson):
    """Trains with a DataLoader: with several batch sizes, with worker processes, and with pinned memory."""

    name = "loading"
    title = "Loading batches"
    question = "With two worker processes, does an epoch take less or more time on your computer than with none?"
    order = 50
    seconds = 10.0
    intro = (
        "A DataLoader picks sprites in a random order and stacks the sprites to batches. An epoch is one pass through "
        "all sprites. The batch size says how many sprites go through the network in one step.",
        "Workers are extra processes. They prepare the next batches while the network computes. Workers help if "
        "preparing a batch is slow, for example if files are opened. But each batch travels from a worker to the "
        "training, and starting a process takes time.",
        "Pinned memory is reserved: the system never moves it. Copies from pinned memory to a card by NVIDIA are "
        "faster. In this lesson your sprites are already in memory, and the network is small. Do two workers help?",
    )
    prediction = Prediction(choices=(_LESS_TIME, _SAME_TIME, _MORE_TIME))
    read_on = ("torch.utils.data", "https://docs.pytorch.org/docs/stable/data.html")
    plain = _CODE
    gpu = (
        "A GPU computes faster and waits more often for the next batch. On a CPU pinned memory changes nothing, "
        "because the batches stay in the computer's memory; copies to a card by NVIDIA become faster. The studio needs "
        "no loader: all sprites stay on the device."
    )
    exercise = Exercise(
        task="Complete make_loader(): batches of 32, a new order in each epoch, and pinned memory only where it helps.",
        starter=_STARTER,
        answer=_STARTER.replace(
            "DataLoader(data)", 'DataLoader(data, batch_size=32, shuffle=True, pin_memory=device == "cuda")'
        ),
        check=_check,
    )

    def run(self, context: ExperimentContext) -> Events:
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)  # more workers than cores
        settings = [(size, 0, False) for size in _SIZES] + [(_SIZE, _WORKERS, False)]
        if context.target.type == "cuda":
            settings += [(_SIZE, 0, True), (_SIZE, _WORKERS, True)]
        found = examples(context)
        data = TensorDataset(*found.batch(_EPOCH))
        first = (part[:_SIZE].to(context.target) for part in data.tensors)
        step = Step(make_network(len(found.class_names)).to(context.target), *first)
        step()  # warm-up
        speeds, started_s = dict[tuple[int, int, bool], float](), 0.0
        for done, (size, workers, pinned) in enumerate(settings):
            loader = DataLoader(
                data, size, shuffle=True, num_workers=workers, pin_memory=pinned, persistent_workers=workers > 0
            )
            seconds, progress = context.seconds / len(settings), Progress(done, len(settings), "loaders measured")
            speeds[size, workers, pinned], first_s = yield from _speed(step, loader, context.target, seconds, progress)
            started_s = max(started_s, first_s if workers else 0.0)
        alone, helped = speeds[_SIZE, 0, False], speeds[_SIZE, _WORKERS, False]
        figures: dict[str, float | str] = {
            "alone_per_s": alone, "workers_per_s": helped, "workers": float(_WORKERS), "first_batch_s": started_s,
            "smallest_per_s": speeds[_SIZES[0], 0, False], "largest_per_s": speeds[_SIZES[-1], 0, False],
            "smallest": float(_SIZES[0]), "largest": float(_SIZES[-1]),
        }  # fmt: skip
        if (_SIZE, _WORKERS, True) in speeds:
            figures |= {"pinned_per_s": speeds[_SIZE, 0, True], "pinned_workers_per_s": speeds[_SIZE, _WORKERS, True]}
        line = Line("no workers", tuple(map(float, _SIZES)), tuple(speeds[size, 0, False] for size in _SIZES))
        plot = Plot("Speed by batch size", Axis("batch size", log=True), Axis("sprites/s"), (line,))
        sentence = f"Two workers: {rate(helped)}; no workers: {rate(alone)}, both with batches of {_SIZE}."
        yield Outcome((plot,), (_table(speeds),), (sentence,), figures=figures)

    def measured(self, figures: Figures) -> Answer:
        share = float(figures["alone_per_s"]) / float(figures["workers_per_s"])  # time with workers / time without
        return _LESS_TIME if share < _LEAST else _MORE_TIME if share > _MORE else _SAME_TIME

    def explain(self, figures: Figures, answer: Answer | None) -> Sequence[str]:
        alone, helped = float(figures["alone_per_s"]), float(figures["workers_per_s"])
        smallest, largest = float(figures["smallest_per_s"]), float(figures["largest_per_s"])
        why = {
            _LESS_TIME: "The workers prepared batches while the network computed.",
            _SAME_TIME: "The workers saved time, and sending batches from process to process cost about the same.",
            _MORE_TIME: "The sprites were already in memory: there was little to prepare, and sending each batch from "
            "process to process cost time.",
        }[str(self.measured(figures))]
        sentences = [
            f"With workers an epoch took {percent(alone / helped)} of the time without workers. {why} The first "
            f"batch came {float(figures['first_batch_s']):.2f} s after the start, because the processes had to start. "
            "The loaders were measured one after another; if other programs were busy, measure again.",
            f"Batches of {figures['largest']:.0f} sprites gave {largest / smallest:.2g} times the speed of batches of "
            f"{figures['smallest']:.0f}. "
            + (
                "Starting the operations of a step takes as long for few sprites as for many."
                if largest > _MORE * smallest
                else "Larger batches gain nothing here: the step itself takes the time, or other programs compute."
            ),
        ]
        if "pinned_per_s" in figures:
            times = float(figures["pinned_per_s"]) / alone
            sentences.append(f"Pinned memory without workers made training {times:.2g} times as fast.")
        else:
            sentences.append("Pinned memory was not measured: on your device it changes nothing.")
        return sentences

    def card_text(self, figures: Figures) -> str:
        speeds = {
            "no workers": "alone_per_s", "two workers": "workers_per_s", "pinned memory": "pinned_per_s",
            "two workers and pinned memory": "pinned_workers_per_s",
        }  # fmt: skip
        told = (f"{name} {rate(float(figures[key]))}" for name, key in speeds.items() if key in figures)
        return f"{', '.join(told)}."


def _table(speeds: Mapping[tuple[int, int, bool], float]) -> Table:
    rows = [
        (str(size), count(workers, "worker") if workers else "none", "yes" if pinned else "no", rate(speed))
        for (size, workers, pinned), speed in speeds.items()
    ]
    return Table((">batch size", "workers", "pinned memory", ">speed"), tuple(rows))


def _speed(
    step: Step, loader: DataLoader[Any], target: torch.device, seconds: float, progress: Progress
) -> Generator[Progress, None, tuple[float, float]]:
    """Train for `seconds`, in at least a step; return sprites per second, and the seconds before the first batch.

    Yields `progress` at the start and after each epoch.
    """
    yield progress
    begun_s = time.perf_counter()
    batches = iter(loader)
    next(batches)
    first_s = time.perf_counter() - begun_s
    detection.synchronize(target)
    start_s, sprites = time.perf_counter(), 0
    while True:
        for x, y in batches:
            step.x, step.y = x.to(target, non_blocking=True), y.to(target, non_blocking=True)
            step()
            sprites += len(y)
            if time.perf_counter() - start_s > seconds:
                detection.synchronize(target)
                return sprites / (time.perf_counter() - start_s), first_s
        yield progress
        batches = iter(loader)
