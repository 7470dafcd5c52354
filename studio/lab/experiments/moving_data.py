"""Moving data: what it costs to bring sprites to the network, loop by loop, until hardly anything is left."""

from __future__ import annotations

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

_MOST_SPRITES, _MOST_PIXELS = 512, 1 << 22  # of what is written as files
_MOST_PIXELS_AT_ONCE = 1 << 18  # in a batch: Python takes microseconds for each
_WORKERS = (1, 2, 4)
_WARM_UP_STEPS, _LEAST_STEPS = 2, 3
_TURNS = 2  # of each loop: the better one counts, as other programs only slow it down
_LITTLE = 0.02  # of a step with files: less is noise
_FASTER = 1.05  # times as fast: less is noise
_PIXELS = "files, turned into tensors by a loop over pixels"
_FILES = "files, opened in every step"
_DECODED = "opened once, put together sprite by sprite"
_WHOLE = "opened once, batches cut from one tensor"
_RESIDENT = "all on the device beforehand"
_UNREAD = "and the loss is not read in every step"
_PAID = {  # for what the way before each of these costs more
    _DECODED: "opening files",
    _WHOLE: "putting batches together sprite by sprite",
    _RESIDENT: "moving them",
    _UNREAD: "reading its loss",
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
    # Here num_workers=2 would let two processes open the files; pin_memory=True helps a CUDA card.
    loader = DataLoader(ImageFolder(folder, ToTensor()), batch_size={batch_size}, shuffle=True)
    print(f"files: {{train(loader):.0f}} sprites/s")
    x, y = (torch.cat(parts).to(device) for parts in zip(*loader))

order = torch.randperm(len(x), device=device).split({batch_size})
print(f"all on the device: {{train((x[part], y[part]) for part in order):.0f}} sprites/s")
"""

Batches = Generator[tuple[Tensor, Tensor], None, None]  # float32 [B, 4, S, S] in [0, 1] and int64 [B], without end


@dataclass(frozen=True)
class _Loop:
    """A way to bring batches to the network; workers: processes that open files."""

    title: str
    batches: Callable[[], Batches]
    workers: int = 0
    reads_loss: bool = True


class MovingData(Experiment):
    """Trains a small classifier on the same sprites, brought to it in the tutorials' way and in quicker ones."""

    name = "moving-data"
    title = "Moving data"
    question = "What does it cost to bring sprites to the network?"
    order = 35
    seconds = 40.0
    read_on = ("torch.utils.data", "https://docs.pytorch.org/docs/stable/data.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        found: dict[str, float] = {}
        with tempfile.TemporaryDirectory() as folder:
            most = min(_MOST_SPRITES, _MOST_PIXELS // context.sprites.size**2)
            sprites = context.sprites.take(np.unique(np.linspace(0, len(context.sprites) - 1, most, dtype=np.int64)))
            _save(sprites.rgba, sprites.labels, Path(folder))
            loops = _loops(context, Path(folder))
            turns = [loop for _ in range(_TURNS) for loop in loops]
            for place, loop in enumerate(turns):
                yield Progress(place, len(turns), f"loops; {loop.title}")
                step_s = yield from _step_s(loop, context, context.seconds / len(turns))
                found[loop.title] = min(step_s, found.get(loop.title, step_s))
                yield Progress(place + 1, len(turns), f"loops; {loop.title}")
                yield Outcome(tables=(_table(found, context),))
        training = context.training(context.precision())
        own_s = sorted(training.time_steps() for _ in range(_WARM_UP_STEPS + _LEAST_STEPS))[_LEAST_STEPS - 1]
        sentences = _sentences(found, own_s, context)
        yield Outcome((_plot(found, context),), (_table(found, context),), tuple(sentences))


def _batch_size(context: ExperimentContext) -> int:
    """That of the settings, unless it is too much for a loop over pixels."""
    return min(context.config.batch_size, len(context.sprites), _MOST_PIXELS_AT_ONCE // context.sprites.size**2)


def _save(rgba: Rgba, labels: NDArray[np.int64], folder: Path) -> None:
    """Write the sprites, uint8 [N, S, S, 4], as files: one folder for each class."""
    for number, (pixels, label) in enumerate(zip(rgba, labels.tolist(), strict=True)):
        path = folder / f"{label:05}" / f"{number:05}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(path)


def _opened(path: str) -> Image.Image:
    with Image.open(path) as picture:
        return picture.convert("RGBA")


def _by_pixels(picture: Image.Image) -> Tensor:
    """float32 [4, S, S] in [0, 1], as a beginner would write it."""
    rows = range(picture.height)
    channels = zip(*([picture.getpixel((x, y)) for x in range(picture.width)] for y in rows), strict=True)
    values = [[[value / 255 for value in pixel] for pixel in column] for column in channels]
    return torch.tensor(values).permute(2, 1, 0)


def _loops(context: ExperimentContext, folder: Path) -> list[_Loop]:
    """The ways that there are on the device, the tutorials' own first."""
    from torchvision.datasets import ImageFolder  # a second, which nobody should wait for but who wants this
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
    return f"files, opened by {count(workers, 'worker')} ahead of the step"


def _pinned(workers: int) -> str:
    return f"{_with(workers)}, into pinned memory"


def _loaded(dataset: Dataset[tuple[Tensor, ...]], size: int, workers: int = 0, pinned: bool = False) -> Batches:
    """Batches of a loader, whose workers end with this."""
    warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)  # more workers than cores: on purpose
    loader = DataLoader(
        dataset, size, shuffle=True, num_workers=workers, pin_memory=pinned, persistent_workers=workers > 0,
        drop_last=True,
    )  # fmt: skip
    while True:
        yield from loader


def _cut(x: Tensor, y: Tensor, size: int) -> Batches:
    """Batches of tensors that hold all sprites, wherever these are."""
    while True:
        for part in torch.randperm(len(x), device=x.device).split(size)[: len(x) // size]:
            yield x[part], y[part]


def _step_s(loop: _Loop, context: ExperimentContext, seconds: float) -> Generator[Progress, None, float]:
    """Seconds of a step of this loop, its batch included, on average: workers have some ready, and then none."""
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
        for _ in range(_WARM_UP_STEPS * (1 + loop.workers)):  # what was ready before the clock began is not counted
            step(next(batches))
        detection.synchronize(target)
        start_s = said_s = time.perf_counter()
        steps = 0
        while steps < _LEAST_STEPS or time.perf_counter() - start_s < seconds:
            step(next(batches))
            steps += 1
            if time.perf_counter() - said_s > TICK_S:
                said_s = time.perf_counter()
                yield Progress(steps, 0, f"steps; {loop.title}")
        detection.synchronize(target)
        return (time.perf_counter() - start_s) / steps


def _plot(found: dict[str, float], context: ExperimentContext) -> Plot:
    """How many sprites a second come with so many workers, and without any files."""
    size = _batch_size(context)
    workers = (0, *_WORKERS)
    places = tuple(map(float, workers))
    speeds = tuple(size / found[_with(number) if number else _FILES] for number in workers)
    lines = [Line("files", places, speeds)]
    if _pinned(max(_WORKERS)) in found:
        lines.append(Line("into pinned memory", places[-1:], (size / found[_pinned(max(_WORKERS))],)))
    resident = Line(_RESIDENT, places, (size / found[_RESIDENT],) * len(places), dots=False)
    return Plot("Speed by workers that open files", Axis("workers"), Axis("sprites/s", log=True), (*lines, resident))


def _table(found: dict[str, float], context: ExperimentContext) -> Table:
    size = _batch_size(context)
    rows = tuple((title, f"{1000 * step_s:,.2f} ms", rate(size / step_s)) for title, step_s in found.items())
    return Table(("sprites come from", ">a step", ">speed"), rows)


def _sentences(found: dict[str, float], own_s: float, context: ExperimentContext) -> Iterator[str]:
    """What each step of the ladder saves. own_s: seconds of a step of the recipe."""
    files_s, last_s, is_cpu = found[_FILES], found[_UNREAD], context.device.kind == "cpu"
    yield (
        f"A step takes {1000 * files_s:.1f} ms when files are opened in it, {1000 * last_s:.1f} ms when all is on the "
        f"device: {files_s / last_s:.2g} times as fast, with the same network."
    )
    ladder = (_FILES, _DECODED, _WHOLE) if is_cpu else (_FILES, *_PAID)
    yield f"What a step no longer pays: {', '.join(_paid(found, ladder))}."
    yield f"A loop over pixels in Python would make that step {found[_PIXELS] / files_s:.2g} times as long."
    best = min(_WORKERS, key=lambda workers: found[_with(workers)])
    times = files_s / found[_with(best)]
    helps = f"that is {times:.2g} times as fast" if times > _FASTER else "that is no faster here"
    yield f"{count(best, 'worker')} can open the files ahead of the step: {helps}."
    yield (
        f"Beside a step of the {context.recipe.title.lower()}, which takes {1000 * own_s:,.0f} ms, opening files in it "
        f"would cost {percent((files_s - last_s) / own_s)} more. The studio has all on the device."
    )
    if pinned_s := found.get(_pinned(max(_WORKERS))):
        yield f"Pinned memory makes loading {found[_with(max(_WORKERS))] / pinned_s:.2g} times as fast."
    else:
        yield "Pinned memory quickens the way to a CUDA card; there is none at work here, so that can't be shown."
    if is_cpu:
        same = [found[title] for title in (_WHOLE, _RESIDENT, _UNREAD)]
        yield (
            "Nor does '.to' move anything on a CPU, or reading the loss wait for it: the last three loops are the same "
            f"work. That their times differ by {percent(max(same) / min(same) - 1)} says how far to trust such times."
        )


def _paid(found: dict[str, float], ladder: tuple[str, ...]) -> list[str]:
    """What each way costs more than the next one, '6.6 ms for opening files'; what is next to nothing comes last."""
    costs_s = {_PAID[after]: found[before] - found[after] for before, after in pairwise(ladder)}
    least_s = _LITTLE * found[_FILES]
    dear = [f"{1000 * cost_s:.2g} ms for {what}" for what, cost_s in costs_s.items() if cost_s > least_s]
    return dear + [f"next to nothing for {what}" for what, cost_s in costs_s.items() if cost_s <= least_s]
