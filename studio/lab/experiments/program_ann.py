"""The tutorials' neural network for Fashion-MNIST's files, beside the studio's classifier."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from studio.core import files
from studio.core.config import Value
from studio.core.errors import TrainingError
from studio.data.sprites import Sprites
from studio.lab.experiments.program import Examples, Program, grey, percent_text

_MOST_CLASSES = 256
_CODE = """\
import struct
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

folder = Path({folder})  # your sprites in the format of Fashion-MNIST
device = "{device}"


def read(name):
    data = (folder / name).read_bytes()
    dimensions = data[3]  # then a size for each dimension, then the bytes
    sizes = struct.unpack_from(f">{{dimensions}}I", data, 4)
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions :]), dtype=torch.uint8).reshape(sizes)


def load(part):
    x = (read(f"{{part}}-images-idx3-ubyte").float() / 255 - 0.5) / 0.5  # in [-1, 1]
    return TensorDataset(x, read(f"{{part}}-labels-idx1-ubyte").long())


training, test = load("train"), load("t10k")
pixels, classes = training.tensors[0][0].numel(), int(training.tensors[1].max()) + 1

torch.manual_seed(0)
layers = nn.Linear(pixels, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, classes)
network = nn.Sequential(nn.Flatten(), *layers).to(device)
criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(network.parameters(), lr=0.003)


def is_late():  # True on a slow computer: the training stops before its last epoch
    return time.perf_counter() - start > {limit}


start, steps = time.perf_counter(), 0
for epoch in range({epochs}):
    total = 0.0
    for x, y in DataLoader(training, {batch}, shuffle=True):
        x, y = x.to(device), y.to(device)
        loss = criterion(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        steps += 1
        if is_late():
            break
    print(f"epoch {{epoch + 1}}: loss {{total / len(training):.4f}}")
    if is_late():
        break
seconds = time.perf_counter() - start

network.eval()
right = 0
with torch.no_grad():  # testing needs no gradients
    for x, y in DataLoader(test, {batch}):
        right += (network(x.to(device)).argmax(1) == y.to(device)).sum().item()
figure = right / len(test)
print(f"{{steps}} steps in {{seconds:.2f}} s; {{100 * figure:.1f}} % of the test set is right")
"""


class ProgramAnn(Program):
    """Trains a network of linear layers on files in the format of Fashion-MNIST, beside the studio's perceptron."""

    name = "program-ann"
    title = "Program: first network"
    question = "How good is a tutorial's first network beside the studio's?"
    order = 62
    seconds = 20.0
    recipe_name = "classifier"
    most_sprites = 4096
    settings: ClassVar[Mapping[str, Value]] = {
        **Program.settings, "network": "perceptron", "optimizer": "adam", "learning_rate": 0.003,
        "label_smoothing": 0.0,
    }  # fmt: skip
    metric, figure_name = "accuracy", "accuracy"
    read_on = ("Quickstart", "https://docs.pytorch.org/tutorials/beginner/basics/quickstart_tutorial.html")
    plain = _CODE

    def prepare(self, sprites: Sprites) -> Sprites:
        if len(sprites.class_names) > _MOST_CLASSES:
            hint = f"The files of Fashion-MNIST hold a byte for each label. Open at most {_MOST_CLASSES} classes."
            raise TrainingError("These sprites have too many classes for the program.", hint)
        return sprites

    def write_files(self, examples: Examples, folder: Path) -> None:
        for name, part in (("train", examples.training), ("t10k", examples.test)):
            pictures, labels = grey(part.rgba), part.labels.astype("uint8")
            header = struct.pack(">IIII", 0x803, *pictures.shape)
            files.write_atomic(folder / f"{name}-images-idx3-ubyte", header + pictures.tobytes())
            header = struct.pack(">II", 0x801, len(labels))
            files.write_atomic(folder / f"{name}-labels-idx1-ubyte", header + labels.tobytes())

    def figure_text(self, figure: float) -> str:
        return percent_text(figure)
