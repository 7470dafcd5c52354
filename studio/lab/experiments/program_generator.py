"""A generator as in the tutorials, which learns to draw sprites from noise, beside the studio's generator."""

from pathlib import Path

import torch
from torch import Tensor

from studio.core.config import TrainingConfig
from studio.core.formatting import decimal
from studio.data.sprites import Sprites
from studio.engine.steps.batches import to_device, to_input
from studio.engine.steps.benchmark import BenchmarkTrainer
from studio.lab.experiments.base import ExperimentContext
from studio.lab.experiments.program import Examples, Program, save_arrays
from studio.recipes.base import Recipe

_DRAWN, _STEPS = 12, 20
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
    x = torch.from_numpy(arrays[f"x_{{part}}"]).permute(0, 3, 1, 2).to(device) / 255  # [N, 4, S, S]
    return torch.cat([x[:, :3] * x[:, 3:], x[:, 3:]], 1) * 2 - 1  # no colour where transparent


def velocity(z, t):
    return network(torch.cat([z, t.expand(len(z), 1, *z.shape[2:])], 1))  # t is a fifth channel


x, x_test = load("train"), load("test")
torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(5, 48, 3, padding=1), nn.SiLU(),
    nn.Conv2d(48, 48, 5, padding=2), nn.SiLU(),
    nn.Conv2d(48, 48, 5, padding=2), nn.SiLU(),
    nn.Conv2d(48, 4, 3, padding=1),
).to(device)
optimizer = torch.optim.AdamW(network.parameters(), lr=0.002)


def is_late():  # True on a slow computer: the training stops before its last epoch
    return time.perf_counter() - start > {limit}


start, steps = time.perf_counter(), 0
for epoch in range({epochs}):
    for batch in torch.randperm(len(x)).split({batch}):
        sprites, noise = x[batch], torch.randn_like(x[batch])
        t = torch.rand(len(batch), 1, 1, 1, device=device)  # 0: noise, 1: sprite
        mixed = (1 - t) * noise + t * sprites
        loss = nn.functional.mse_loss(velocity(mixed, t), sprites - noise)
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
    drawn = torch.randn({drawn}, *x.shape[1:], device=device)
    for step in range({steps}):  # from noise to sprites in small steps
        drawn += velocity(drawn, torch.full((1, 1, 1, 1), step / {steps}, device=device)) / {steps}
    figure = torch.cdist(drawn.flatten(1), x_test.flatten(1)).min(1).values.mean().item()
print(f"{{steps}} steps in {{seconds:.2f}} s; distance {{figure:.4g}} to the nearest test sprite")
"""


class ProgramGenerator(Program):
    """Trains a small network to turn noise into sprites, beside a small generator of the studio."""

    name = "program-generator"
    title = "Program: generator"
    question = "How good is a short generator beside the studio's?"
    order = 65
    seconds = 60.0
    recipe_name = "generator"
    most_sprites = 640
    figure_name = "distance to the nearest test sprite"
    read_on = ("torch.randn_like", "https://docs.pytorch.org/docs/stable/generated/torch.randn_like.html")
    plain = _CODE

    def studio_config(self, recipe: Recipe) -> TrainingConfig:
        config: TrainingConfig = recipe.small
        return config

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        return {**super().template_values(context), "drawn": _DRAWN, "steps": _STEPS}

    def write_files(self, examples: Examples, folder: Path) -> None:
        save_arrays(folder, examples)

    def figure_text(self, figure: float) -> str:
        return decimal(figure)

    @torch.no_grad()
    def judge(self, training: BenchmarkTrainer, test: Sprites) -> tuple[float, Tensor | None]:
        labels = torch.arange(_DRAWN, device=training.device) % len(test.class_names)
        *_, drawn = training.recipe.draw(training.network.eval(), labels, 1.0, _STEPS, 0)
        sprites = to_input(to_device(test.rgba, training.device))
        return float(torch.cdist(drawn.flatten(1), sprites.flatten(1)).min(1).values.mean()), drawn
