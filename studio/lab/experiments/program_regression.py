"""The tutorials' regression, a network that predicts a number of each sprite, beside the studio's regression."""

import dataclasses
from pathlib import Path

import numpy as np

from studio.core.formatting import decimal
from studio.data.sprites import Sprites
from studio.lab.experiments.base import ExperimentContext
from studio.lab.experiments.program import Examples, Program, Trained, save_arrays
from studio.lab.outcome import Outcome

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
    return x.to(device), torch.from_numpy(arrays[f"number_{{part}}"]).to(device)  # [N, 1]


(x, y), (x_test, y_test) = load("train"), load("test")
mean, deviation = y.mean(), y.std()  # the network learns numbers near 0

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(4, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
    nn.Flatten(), nn.Linear(256, 1),
).to(device)
criterion, optimizer = nn.MSELoss(), torch.optim.AdamW(network.parameters(), lr=0.003)


def is_late():  # True on a slow computer: the training stops before its last epoch
    return time.perf_counter() - start > {limit}


start, steps = time.perf_counter(), 0
for epoch in range({epochs}):
    for batch in torch.randperm(len(x)).split({batch}):
        loss = criterion(network(x[batch]), (y[batch] - mean) / deviation)
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
    figure = (network(x_test) * deviation + mean - y_test).abs().mean().item()
print(f"{{steps}} steps in {{seconds:.2f}} s; mean error {{figure:.4g}} on the test set")
"""


class ProgramRegression(Program):
    """Trains a small convolutional network on a number of each sprite, beside the studio's regression."""

    name = "program-regression"
    title = "Program: regression"
    question = "How good is a short regression beside the studio's?"
    order = 64
    seconds = 30.0
    recipe_name = "regression"
    metric, figure_name = "mae", "mean error"
    read_on = ("MSELoss", "https://docs.pytorch.org/docs/stable/generated/torch.nn.MSELoss.html")
    plain = _CODE

    def prepare(self, sprites: Sprites) -> Sprites:
        """Keep the first number of each sprite; without numbers, take the percentage of opaque pixels."""
        names = sprites.target_names[:1]
        numbers = sprites.targets[:, :1] if names else 100 * (sprites.rgba[..., 3:] > 0).mean((1, 2))
        known = np.flatnonzero(np.isfinite(numbers[:, 0]))
        names = names or ("opaque pixels in %",)
        return dataclasses.replace(sprites, targets=numbers.astype(np.float32), target_names=names).take(known)

    def write_files(self, examples: Examples, folder: Path) -> None:
        save_arrays(folder, examples, number=(examples.training.targets, examples.test.targets))

    def figure_text(self, figure: float) -> str:
        return decimal(figure)

    def compare(self, context: ExperimentContext, examples: Examples, theirs: Trained, own: Trained) -> Outcome:
        """Compare both trainings, and name the predicted number."""
        outcome = super().compare(context, examples, theirs, own)
        first, *others = outcome.sentences
        named = f"The predicted number: {examples.training.target_names[0]}."
        return dataclasses.replace(outcome, sentences=(first, named, *others))
