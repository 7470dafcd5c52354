"""The tutorials' Fashion-MNIST, from files to accuracy, in their loop and in the studio: five epochs of one network.

    python -m tests.bench.bench_tutorial [--data FOLDER] [--epochs 5] [--pairs 1]

FOLDER holds the four files of MNIST or Fashion-MNIST, unpacked; without it, 70,000 pictures of that shape are made up.
The tutorials' loop: torchvision's data set with ToTensor and Normalize, a DataLoader of 64, the network 784-128-64-10,
Adam at 0.003 and `loss.item()` at each step; then the accuracy on the t10k files, without gradients. The studio: the
command 'studio train --recipe classifier --network perceptron --optimizer adam' with the same batch size and rate, and
without what the tutorials lack (shifts, dropout, smoothed labels), then 'studio evaluate'; then once more with batches
four times as large at twice the rate. Each on the CPU, in turn, in a process of its own. Prints seconds of training,
those of the whole command from files to trained model, accuracy, and the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.bench.tools import command_line, say, told_by

COUNTS = {"train": 60_000, "t10k": 10_000}
SIZE, CLASSES, BATCH, RATE = 28, 10, 64, 0.003
LARGER = 4  # times


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--tutorial", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.tutorial:
        say(json.dumps(tutorial(chosen.tutorial, chosen.epochs)))
        return
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "FashionMNIST" / "raw"  # where torchvision looks for them
        raw.parent.mkdir()
        if chosen.data:
            raw.symlink_to(chosen.data.resolve())
        else:
            make_up(raw)
        ratios = []
        for number in range(chosen.pairs):
            theirs = told_by("tests.bench.bench_tutorial", "--tutorial", folder, "--epochs", chosen.epochs)
            told = [theirs]
            for times in (1, LARGER):
                run = Path(folder) / f"run {number} of {times * BATCH}"
                told.append(studio(raw, run, chosen.epochs, times * BATCH, times**0.5 * RATE))
            names = ("the tutorials' loop", "studio", f"studio, batches of {LARGER * BATCH}")
            for name, one in zip(names, told, strict=True):
                say(f"{name:24} {one['train_s']:6.1f} s trained, {one['whole_s']:6.1f} s in all, "
                    f"{100 * one['accuracy']:.2f} % of t10k right")  # fmt: skip
            ratios.append([theirs["train_s"] / one["train_s"] for one in told[1:]])
        same, larger = (statistics.median(column) for column in zip(*ratios, strict=True))
        say(f"the tutorials' loop trains {same:.1f} times as long, {larger:.1f} times with larger batches")


def make_up(folder: Path) -> None:
    """Write IDX files of such pictures: of each class, four drawings of overlapping bars, moved, scaled in brightness
    and noisy, so that the network gets most of them right, but not all.
    """
    folder.mkdir()
    rng = np.random.default_rng(0)
    drawings = np.stack([_drawing(rng) for _ in range(4 * CLASSES)])
    for name, count in COUNTS.items():
        kinds, moves = rng.integers(0, len(drawings), count), rng.integers(-3, 4, (count, 2))
        moved = np.stack([np.roll(drawings[kind], tuple(by), (0, 1)) for kind, by in zip(kinds, moves, strict=True)])
        noisy = moved * rng.uniform(0.5, 1, (count, 1, 1)) + rng.normal(0, 40, moved.shape)
        labels = kinds % CLASSES
        wrong = rng.random(count) < 0.08  # as in Fashion-MNIST, some can't be told
        labels[wrong] = rng.integers(0, CLASSES, int(wrong.sum()))
        pictures = noisy.clip(0, 255).astype(np.uint8)
        header = struct.pack(">IIII", 0x803, *pictures.shape)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(header + pictures.tobytes())
        header = struct.pack(">II", 0x801, count)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(header + labels.astype(np.uint8).tobytes())


def _drawing(rng: np.random.Generator) -> NDArray[np.float64]:
    """Bars across one another: float64 [SIZE, SIZE] in 0 to 255."""
    drawing = np.zeros((SIZE, SIZE))
    for _ in range(5):
        top, left = rng.integers(4, 20, 2)
        height, width = rng.permutation([rng.integers(2, 5), rng.integers(6, 16)])
        drawing[top : top + height, left : left + width] += rng.uniform(60, 200)
    return drawing.clip(0, 255)


def tutorial(folder: Path, epochs: int) -> dict[str, float]:
    """As the tutorials write it."""
    start_s = time.perf_counter()
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms

    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    training, test = (datasets.FashionMNIST(folder, train=train, transform=transform) for train in (True, False))
    loader, test_loader = DataLoader(training, BATCH, shuffle=True), DataLoader(test, BATCH)
    layers = (nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    model, criterion = nn.Sequential(nn.Flatten(), *layers, nn.LogSoftmax(dim=1)), nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    train_start_s = time.perf_counter()
    for _ in range(epochs):
        running = 0.0
        for pictures, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(pictures), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
    end_s = time.perf_counter()
    model.eval()
    with torch.no_grad():
        right = sum(int((model(pictures).argmax(1) == labels).sum()) for pictures, labels in test_loader)
    return {"train_s": end_s - train_start_s, "whole_s": end_s - start_s, "accuracy": right / len(test)}


def studio(raw: Path, run: Path, epochs: int, batch: int, rate: float) -> dict[str, float]:
    """By its commands, with a home of its own, so that nothing is known from before."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "STUDIO_HOME": home}
        settings: dict[str, Any] = {
            "recipe": "classifier",
            "network": "perceptron",
            "optimizer": "adam",
            "epochs": epochs,
        }
        settings |= {"batch-size": batch, "learning-rate": rate, "size": SIZE, "device": "cpu", "out": run}
        settings |= dict.fromkeys(("holdout", "shift-px", "dropout", "label-smoothing"), 0)  # the tutorials have none
        flags = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        start_s = time.perf_counter()
        events = _lines(["train", str(raw), *flags, "--json"], environment)
        whole_s = time.perf_counter() - start_s
        figures = _lines(["evaluate", str(run), "--json"], environment)
    finished = next(event for event in events if event["type"] == "RunFinished")
    return {"train_s": finished["elapsed_s"], "whole_s": whole_s, "accuracy": figures[-1]["metrics"]["accuracy"]}


def _lines(words: list[str], environment: dict[str, str]) -> list[dict[str, Any]]:
    """The events that a command of the studio tells."""
    command = [sys.executable, "-m", "studio", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
