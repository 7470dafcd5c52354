"""Moving data: the cost of loading sprites for a training step, for data loaders from slow to fast."""

import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from studio.core.arrays import Rgba
from studio.core.events import Events, Progress
from studio.core.formatting import count, percent, rate
from studio.engine.devices import detection
from studio.engine.training.loop import TICK_S
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Axis, Line, Outcome, Plot, Table

_MOST_SPRITES, _MOST_PIXELS = 512, 1 << 22  # to write as files
_MOST_PIXELS_AT_ONCE = 1 << 18  # per batch: a Python loop takes microseconds per pixel
_WORKERS = (1, 2, 4)
_WARM_UP_STEPS, _LEAST_STEPS = 2, 3
_TURNS = 2  # per loader; the faster turn counts, because other programs only slow a loader down
_LITTLE = 0.02  # of the time with files: smaller costs are noise
_FASTER = 1.05  # a smaller speed-up is noise
# The loaders, from slow to fast.
_PIXELS = "files, converted by a loop over pixels"
_FILES = "files, opened in every step"
_DECODED = "files opened once, batches collated from sprites"
_WHOLE = "files opened once, batches sliced from one tensor"
_RESIDENT = "all sprites on the device"
_UNREAD = "all on the device, loss not read in every step"
_SAVED = {  # the cost that each loader avoids
    _DECODED: "opening files",
    _WHOLE: "collating batches",
    _RESIDENT: "moving batches to the device",
    _UNREAD: "reading the loss",
}
_CODE = """\
import tempfile
import time
from pathlib import Path

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import ToTensor

device, size = "{device}", {size}
network = nn.Sequential(nn.Flatten(), nn.Linear(3 * size * size, 2)).to(device)
optimizer, criterion = torch.optim.AdamW(network.parameters()), nn.CrossEntropyLoss()


def train(batches):
    start, sprites = time.perf_counter(), 0
    for x, y in batches:
        loss = criterion(network(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sprites += len(y)
    loss.item()  # waits for a GPU: once, not in every step
    return sprites / (time.perf_counter() - start)


with tempfile.TemporaryDirectory() as folder:
    for number in range(256):  # one folder for each class
        path = Path(folder, "ab"[number % 2], f"{{number}}.png")
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (size, size), (number, 0, 0)).save(path)
    # num_workers=2 would open files in two processes; pin_memory=True speeds up transfers to CUDA
    loader = DataLoader(ImageFolder(folder, ToTensor()), batch_size={batch_size}, shuffle=True)
    print(f"files: {{train(loader):.0f}} sprites/s")
    x, y = (torch.cat(parts).to(device) for parts in zip(*loader))

order = torch.randperm(len(x), device=device).split({batch_size})
print(f"all on the device: {{train((x[part], y[part]) for part in order):.0f}} sprites/s")
"""

Batches = Generator[tuple[Tensor, Tensor], None, None]  # endless; float32 [B, 4, S, S] in [0, 1] and int64 [B]


@dataclass(frozen=True)
class _Loop:
    """A training loop with one of the compared data loaders.

    workers: number of loader processes.
    """

    title: str
    batches: Callable[[], Batches]
    workers: int = 0
    reads_loss: bool = True


class MovingData(Experiment):
    """Trains a small classifier with several data loaders, and compares the time per step."""

    name = "moving-data"
    title = "Moving data"
    question = "How much time does loading data cost?"
    order = 35
    sets_obstacle = ""
    seconds = 40.0
    read_on = ("torch.utils.data", "https://docs.pytorch.org/docs/stable/data.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        step_s: dict[str, float] = {}  # seconds per step, by loader
        with tempfile.TemporaryDirectory() as folder:
            most = min(_MOST_SPRITES, _MOST_PIXELS // context.sprites.size**2)
            sprites = context.sprites.take(np.unique(np.linspace(0, len(context.sprites) - 1, most, dtype=np.int64)))
            _save(sprites.rgba, sprites.labels, Path(folder))
            loops = _loops(context, Path(folder))
            turns = [loop for _ in range(_TURNS) for loop in loops]
            for index, loop in enumerate(turns):
                yield Progress(index, len(turns), f"loaders; now {loop.title}")
                seconds = yield from _step_s(loop, context, context.seconds / len(turns))
                step_s[loop.title] = min(seconds, step_s.get(loop.title, seconds))
                yield Progress(index + 1, len(turns), f"loaders; now {loop.title}")
                yield Outcome(tables=(_table(step_s, context),))
        training = context.training(context.precision())
        own_s = sorted(training.time_steps() for _ in range(_WARM_UP_STEPS + _LEAST_STEPS))[_LEAST_STEPS - 1]
        sentences = _sentences(step_s, own_s, context)
        yield Outcome((_plot(step_s, context),), (_table(step_s, context),), tuple(sentences))


def _batch_size(context: ExperimentContext) -> int:
    """Return the batch size of the settings, limited because the slowest loader loops over pixels."""
    return min(context.config.batch_size, len(context.sprites), _MOST_PIXELS_AT_ONCE // context.sprites.size**2)


def _save(rgba: Rgba, labels: NDArray[np.int64], folder: Path) -> None:
    for number, (pixels, label) in enumerate(zip(rgba, labels.tolist(), strict=True)):
        path = folder / f"{label:05}" / f"{number:05}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(path)


def _opened(path: str) -> Image.Image:
    with Image.open(path) as picture:
        return picture.convert("RGBA")


def _by_pixels(picture: Image.Image) -> Tensor:
    """Convert a picture to float32 [4, S, S] in [0, 1] with a Python loop, as a beginner would."""
    rows = range(picture.height)
    channels = zip(*([picture.getpixel((x, y)) for x in range(picture.width)] for y in rows), strict=True)
    values = [[[value / 255 for value in pixel] for pixel in column] for column in channels]
    return torch.tensor(values).permute(2, 1, 0)


def _loops(context: ExperimentContext, folder: Path) -> list[_Loop]:
    """Create the training loops to compare on the context's device, slowest first. folder: sprite files."""
    from torchvision.datasets import ImageFolder  # imported late: it takes a second
    from torchvision.transforms import ToTensor

    by_pixels, files = (ImageFolder(folder, transform, loader=_opened) for transform in (_by_pixels, ToTensor()))
    x, y = (torch.stack(parts) for parts in zip(*((x, torch.tensor(y)) for x, y in files), strict=True))
    size, target = _batch_size(context), context.target
    loops = [
        _Loop(_PIXELS, partial(_loaded, by_pixels, size)),
        _Loop(_FILES, partial(_loaded, files, size)),
        *(_Loop(_with(workers), partial(_loaded, files, size, workers), workers) for workers in _WORKERS),
    ]
    if target.type == "cuda":
        workers = max(_WORKERS)
        loops.append(_Loop(_pinned(workers), partial(_loaded, files, size, workers, pinned=True), workers))
    return [
        *loops,
        _Loop(_DECODED, partial(_loaded, TensorDataset(x, y), size)),
        _Loop(_WHOLE, partial(_cut, x, y, size)),
        _Loop(_RESIDENT, partial(_cut, x.to(target), y.to(target), size)),
        _Loop(_UNREAD, partial(_cut, x.to(target), y.to(target), size), reads_loss=False),
    ]


def _with(workers: int) -> str:
    return f"files, opened in advance by {count(workers, 'worker')}"


def _pinned(workers: int) -> str:
    return f"{_with(workers)}, into pinned memory"


def _loaded(dataset: Dataset[tuple[Tensor, ...]], size: int, workers: int = 0, pinned: bool = False) -> Batches:
    """Yield batches of `size` sprites from a DataLoader, endlessly; closing the generator ends the workers."""
    warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)  # more workers than cores
    loader = DataLoader(
        dataset, size, shuffle=True, num_workers=workers, pin_memory=pinned, persistent_workers=workers > 0,
        drop_last=True,
    )  # fmt: skip
    while True:
        yield from loader


def _cut(x: Tensor, y: Tensor, size: int) -> Batches:
    """Yield shuffled batches of `size` sprites without end. x, y: tensors of all sprites, on one device."""
    while True:
        for part in torch.randperm(len(x), device=x.device).split(size)[: len(x) // size]:
            yield x[part], y[part]


def _step_s(loop: _Loop, context: ExperimentContext, seconds: float) -> Generator[Progress, None, float]:
    """Run a training loop; return the average seconds of a step, loading included. Yields Progress."""
    target, classes = context.target, len(context.sprites.class_names)
    network = nn.Sequential(nn.Conv2d(4, 16, 3, 2), nn.SiLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
    network.extend([nn.Linear(256, classes)]).to(target)
    optimizer, criterion = torch.optim.AdamW(network.parameters()), nn.CrossEntropyLoss()

    def step(batch: tuple[Tensor, Tensor]) -> None:
        x, y = (part.to(target, non_blocking=True) for part in batch)
        loss = criterion(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loop.reads_loss:
            loss.item()

    with closing(loop.batches()) as batches:
        for _ in range(_WARM_UP_STEPS * (1 + loop.workers)):  # uses up the batches that workers have prefetched
            step(next(batches))
        detection.synchronize(target)
        start_s = said_s = time.perf_counter()
        steps = 0
        while steps < _LEAST_STEPS or time.perf_counter() - start_s < seconds:
            step(next(batches))
            steps += 1
            if time.perf_counter() - said_s > TICK_S:
                said_s = time.perf_counter()
                yield Progress(steps, 0, f"steps with {loop.title}")
        detection.synchronize(target)
        return (time.perf_counter() - start_s) / steps


def _plot(step_s: dict[str, float], context: ExperimentContext) -> Plot:
    """Plot the training speed by number of loader processes, beside the speed without files."""
    size = _batch_size(context)
    workers = (0, *_WORKERS)
    positions = tuple(map(float, workers))
    speeds = tuple(size / step_s[_with(number) if number else _FILES] for number in workers)
    lines = [Line("files", positions, speeds)]
    if _pinned(max(_WORKERS)) in step_s:
        lines.append(Line("into pinned memory", positions[-1:], (size / step_s[_pinned(max(_WORKERS))],)))
    resident = Line(_RESIDENT, positions, (size / step_s[_RESIDENT],) * len(positions), dots=False)
    return Plot("Speed by number of workers", Axis("workers"), Axis("sprites/s", log=True), (*lines, resident))


def _table(step_s: dict[str, float], context: ExperimentContext) -> Table:
    size = _batch_size(context)
    rows = tuple((title, f"{1000 * seconds:,.2f} ms", rate(size / seconds)) for title, seconds in step_s.items())
    return Table(("loader", ">time per step", ">speed"), rows)


def _sentences(step_s: dict[str, float], own_s: float, context: ExperimentContext) -> Iterator[str]:
    """Yield sentences that compare the data loaders.

    step_s: seconds per training step, by name of the loader. own_s: seconds of the recipe's own training step.
    """
    files_s, last_s, is_cpu = step_s[_FILES], step_s[_UNREAD], context.device.kind == "cpu"
    last = f"{1000 * last_s:.1f} ms with all sprites on the device: {files_s / last_s:.2g} times as fast"
    yield f"A step takes {1000 * files_s:.1f} ms with files opened in it, and {last}, with the same network."
    ladder = (_FILES, _DECODED, _WHOLE) if is_cpu else (_FILES, *_SAVED)
    yield f"Time saved per step: {', '.join(_savings(step_s, ladder))}."
    yield f"Converting the pixels in a Python loop makes a step {step_s[_PIXELS] / files_s:.2g} times as long."
    best = min(_WORKERS, key=lambda workers: step_s[_with(workers)])
    times = files_s / step_s[_with(best)]
    helps = f"{times:.2g} times as fast" if times > _FASTER else "no faster here"
    yield f"With {count(best, 'worker')} opening files in advance, a step is {helps}."
    own = f"A training step of the {context.recipe.title.lower()} takes {1000 * own_s:,.0f} ms"
    longer = percent((files_s - last_s) / own_s)
    yield f"{own}; opening files would make it {longer} longer. The studio keeps all sprites on the device."
    if pinned_s := step_s.get(_pinned(max(_WORKERS))):
        yield f"Pinned memory makes loading {step_s[_with(max(_WORKERS))] / pinned_s:.2g} times as fast."
    else:
        yield "Pinned memory was not measured: only CUDA GPUs benefit from pinned memory."
    if is_cpu:
        same = [step_s[title] for title in (_WHOLE, _RESIDENT, _UNREAD)]
        yield (
            "On a CPU '.to' moves nothing and reading the loss waits for nothing, so the last three loaders do the "
            f"same work. Their times differ by {percent(max(same) / min(same) - 1)}: smaller differences in the table "
            "prove nothing."
        )


def _savings(step_s: dict[str, float], ladder: tuple[str, ...]) -> list[str]:
    saved_s = {_SAVED[after]: step_s[before] - step_s[after] for before, after in pairwise(ladder)}
    least_s = _LITTLE * step_s[_FILES]
    large = [f"{1000 * seconds:.2g} ms for {what}" for what, seconds in saved_s.items() if seconds > least_s]
    return large + [f"almost nothing for {what}" for what, seconds in saved_s.items() if seconds <= least_s]
