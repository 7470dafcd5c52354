"""The tutorials' convolutional classifier of pixel art, beside the studio's classifier."""

from pathlib import Path

from studio.lab.experiments.program import Examples, Program, percent_text, save_arrays

_CODE = """\
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

folder = Path({folder})  # your sprites as arrays
device = "{device}"

arrays = np.load(folder / "sprites.npz")


def load(part):
    x = torch.from_numpy(arrays[f"x_{{part}}"]).permute(0, 3, 1, 2) / 127.5 - 1  # [N, 4, S, S]
    return x.to(device), torch.from_numpy(arrays[f"y_{{part}}"]).to(device)


(x, y), (x_test, y_test) = load("train"), load("test")
classes = int(torch.cat([y, y_test]).max()) + 1

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(4, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
    nn.Flatten(), nn.Linear(256, classes),
).to(device)
criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.AdamW(network.parameters(), lr=0.003)


def is_late():  # True on a slow computer: the training stops before its last epoch
    return time.perf_counter() - start > {limit}


start, steps = time.perf_counter(), 0
for epoch in range({epochs}):
    for batch in torch.randperm(len(x)).split({batch}):
        loss = criterion(network(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if is_late():
            break
    print(f"epoch {{epoch + 1}}: loss of the last batch {{loss.item():.4f}}")
    if is_late():
        break
seconds = time.perf_counter() - start

network.eval()
with torch.no_grad():
    figure = (network(x_test).argmax(1) == y_test).float().mean().item()
print(f"{{steps}} steps in {{seconds:.2f}} s; {{100 * figure:.1f}} % of the test set is right")
"""


class ProgramClassifier(Program):
    """Trains a small convolutional network on the sprites' classes, beside the studio's classifier."""

    name = "program-classifier"
    title = "Program: pixel classifier"
    question = "How good is a short classifier beside the studio's?"
    order = 63
    seconds = 30.0
    recipe_name = "classifier"
    metric, figure_name = "accuracy", "accuracy"
    read_on = (
        "Training a classifier", "https://docs.pytorch.org/tutorials/beginner/blitz/cifar10_tutorial.html",
    )  # fmt: skip
    plain = _CODE

    def write_files(self, examples: Examples, folder: Path) -> None:
        save_arrays(folder, examples, y=(examples.training.labels, examples.test.labels))

    def figure_text(self, figure: float) -> str:
        return percent_text(figure)
