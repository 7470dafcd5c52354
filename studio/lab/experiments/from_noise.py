"""From noise to sprite: what drawing makes of the same noise, step by step, with guidance and without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from studio.core.arrays import Rgba
from studio.core.events import Events, Progress
from studio.core.formatting import count, percent
from studio.core.pictures import tile
from studio.engine.devices import detection
from studio.engine.sampling.generate import run_in_precision
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import to_rgba
from studio.lab.experiments.base import Experiment, ExperimentContext, evenly
from studio.lab.outcome import Axis, Line, Outcome, Picture, Plot
from studio.recipes.base import Recipe

_SPRITES = 4
_USUAL = GenerateSettings(seed=7)
_MOST_SHOWN = 10  # states of a sprite; the first, the last and some between
_SETTLED = 0.05  # of a sprite's pixels, that may still change sides of the silhouette
_CODE = """\
import torch
from torch import nn

device, steps, guidance = "{device}", 10, {guidance:g}
torch.manual_seed(0)
layers = nn.Conv2d(6, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1)
network = nn.Sequential(*layers).to(device)  # train it first: this one draws noise
noise = torch.randn({count}, 4, {size}, {size}, device=device)


def velocity(x, t, has_class):
    planes = [torch.full_like(x[:, :1], value) for value in (t, has_class)]
    return network(torch.cat([x, *planes], 1))


with torch.no_grad():
    for strength in (1.0, guidance):  # 1 is without guidance
        x = noise
        for step in range(steps):
            without = velocity(x, step / steps, 0.0)
            x = x + (without + strength * (velocity(x, step / steps, 1.0) - without)) / steps
            visible = (x[:, 3] > 0).float().mean()
            print(f"guidance {{strength:g}}, step {{step + 1}}: {{100 * visible:.0f}} % visible")
"""


class FromNoise(Experiment):
    """Draws a few sprites twice from the same noise, and shows the states on the way."""

    name = "from-noise"
    title = "From noise to sprite"
    question = "How does noise become a sprite, and what does guidance change?"
    order = 94
    seconds = 6.0
    subject = "run"
    read_on = ("torch.randn", "https://docs.pytorch.org/docs/stable/generated/torch.randn.html")
    plain = _CODE

    def unsupported_reason(self, recipe: Recipe) -> str:
        return "" if recipe.makes == "sprites" else f"A {recipe.title.lower()} draws no sprites: choose a generator."

    def run(self, context: ExperimentContext) -> Events:
        model = yield from context.loaded_model()
        common = np.argsort(-context.sprites.class_counts(), kind="stable")[:_SPRITES]
        labels = torch.from_numpy(np.resize(common, _SPRITES)).to(model.device)
        ways: list[_Way] = []
        for guidance in (1.0, _USUAL.guidance):
            way = _Way(guidance)
            hook = model.network.register_forward_pre_hook(way.count_looks)
            with detection.wrap_device_errors(model.device):
                steps = model.recipe.draw(model.network, labels, guidance, _USUAL.steps, _USUAL.seed)
                for x in run_in_precision(model, steps):
                    way.add(x)
                    done = len(ways) * _USUAL.steps + len(way.states)
                    yield Progress(min(done, 2 * _USUAL.steps), 2 * _USUAL.steps, "steps taken")
            hook.remove()
            ways.append(way)
        names = [model.spec.class_names[label].rpartition("/")[2] for label in labels.tolist()]
        pictures = tuple(way.picture(names) for way in ways)
        yield Outcome((_plot(ways),), (), tuple(_sentences(ways)), pictures=pictures, step=model.step)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        return {"guidance": _USUAL.guidance, "count": _SPRITES}


@dataclass(eq=False)
class _Way:
    """A drawing. states: uint8 [N, S, S, 4] after each step. looks: sprites that the network was shown."""

    guidance: float

    def __post_init__(self) -> None:
        self.states: list[Rgba] = []
        self._silhouettes: list[NDArray[np.bool_]] = []  # [N, S, S], where alpha is above half
        self._looks = 0

    def count_looks(self, network: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        """A hook: the network is shown so many."""
        self._looks += len(inputs[0])

    def add(self, x: Tensor) -> None:
        """A step was taken to x, as in `Batch`."""
        self.states.append(to_rgba(x).numpy())
        self._silhouettes.append((x[:, 3] > 0).cpu().numpy())

    @property
    def title(self) -> str:
        return "guidance off" if self.guidance == 1 else f"guidance {self.guidance:g}"

    @property
    def final(self) -> NDArray[np.bool_]:
        """The silhouettes in the end."""
        return self._silhouettes[-1]

    def looks(self) -> float:
        """How often the network was asked for each sprite; 0 where it is asked by another way than a call."""
        return self._looks / len(self.states[0])

    def unsettled(self) -> list[float]:
        """After each step, the share of pixels on the other side of the silhouette than in the end."""
        return [float((silhouette != self.final).mean()) for silhouette in self._silhouettes]

    def settled_at(self) -> int:
        """The first step from which on the silhouettes stay within _SETTLED of the final ones, from 1 on."""
        later = [step for step, share in enumerate(self.unsettled(), 1) if share > _SETTLED]
        return later[-1] + 1 if later else 1

    def picture(self, names: list[str]) -> Picture:
        """A row for each sprite, a column for each of some steps."""
        total = len(self.states)
        places = evenly(total, _MOST_SHOWN)
        columns = len(places)
        shown = np.stack([self.states[place] for place in places], 1)  # [N, columns, S, S, 4]
        steps = "every step" if columns == total else f"{columns} of {total} steps"
        about = f"A row for each sprite ({', '.join(names)}), from the first step to the last."
        title = f"{self.title[0].upper()}{self.title[1:]}: after {steps}"
        return Picture.of(title, tile(shown.reshape(-1, *shown.shape[2:]), columns), about)


def _plot(ways: list[_Way]) -> Plot:
    lines = tuple(
        Line(
            way.title,
            tuple(float(step) for step in range(1, len(way.states) + 1)),
            tuple(100 * (1 - share) for share in way.unsettled()),
        )
        for way in ways
    )
    title = "Pixels that are on the same side of the silhouette as in the end"
    return Plot(title, Axis("step"), Axis("% of the pixels"), lines)


def _sentences(ways: list[_Way]) -> Iterator[str]:
    off, on = ways
    steps = len(off.states)
    asked = (
        f": the network is asked {off.looks():.3g} times for a sprite with guidance off, {on.looks():.3g} times with a "
        f"guidance of {on.guidance:g}, which compares the class with any class"
        if off.looks()
        else ""
    )
    yield f"{count(len(off.states[0]), 'sprite')} are drawn in {count(steps, 'step')}{asked}."
    for way in ways:
        yield (
            f"With {way.title}, the silhouettes are within {percent(_SETTLED)} of the final ones from step "
            f"{way.settled_at()} of {steps} on."
        )
    apart = percent(float((off.final != on.final).mean()))
    yield f"From the same noise, the silhouettes with guidance and without differ in {apart} of the pixels in the end."
