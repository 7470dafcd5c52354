"""From noise to sprite: the steps of drawing from the same noise, with guidance and without."""

from collections.abc import Iterator

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
from studio.lab.experiments.base import IMPORTS, Experiment, ExperimentContext, evenly_spaced
from studio.lab.outcome import Axis, Line, Outcome, Picture, Plot
from studio.recipes.base import Recipe

_SPRITES = 4
_USUAL = GenerateSettings(seed=7)
_MOST_SHOWN = 10  # steps per sprite in the picture
_SETTLED = 0.05  # share of pixels on the wrong side of the final silhouette
_CODE = IMPORTS + """\
device, steps, guidance = "{device}", 10, {guidance:g}
torch.manual_seed(0)
layers = nn.Conv2d(6, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1)
network = nn.Sequential(*layers).to(device)  # untrained: it draws noise
noise = torch.randn({count}, 4, {size}, {size}, device=device)


def velocity(x, t, has_class):
    planes = [torch.full_like(x[:, :1], value) for value in (t, has_class)]
    return network(torch.cat([x, *planes], 1))


with torch.no_grad():
    for scale in (1.0, guidance):  # 1 is without guidance
        x = noise
        for step in range(steps):
            without = velocity(x, step / steps, 0.0)
            x = x + (without + scale * (velocity(x, step / steps, 1.0) - without)) / steps
            visible = (x[:, 3] > 0).float().mean()
            print(f"guidance {{scale:g}}, step {{step + 1}}: {{100 * visible:.0f}} % visible")
"""  # fmt: skip


class FromNoise(Experiment):
    """Draws sprites with and without guidance from the same noise, and shows the steps."""

    name = "from-noise"
    title = "From noise to sprite"
    question = "How does noise become a sprite, and what does guidance change?"
    order = 94
    seconds = 6.0
    subject = "run"
    read_on = ("torch.randn", "https://docs.pytorch.org/docs/stable/generated/torch.randn.html")
    plain = _CODE

    def unsupported_reason(self, recipe: Recipe) -> str:
        what = recipe.kind.capitalize()
        return "" if recipe.makes == "sprites" else f"{what} can't draw sprites. Choose a generator."

    def run(self, context: ExperimentContext) -> Events:
        model = yield from context.load_model()
        frequent = np.argsort(-context.sprites.class_counts(), kind="stable")[:_SPRITES]
        labels = torch.from_numpy(np.resize(frequent, _SPRITES)).to(model.device)
        drawings: list[_Drawing] = []
        for guidance in (1.0, _USUAL.guidance):
            drawing = _Drawing(guidance)
            hook = model.network.register_forward_pre_hook(drawing.count_evaluations)
            with detection.wrap_device_errors(model.device):
                steps = model.recipe.draw(model.network, labels, guidance, _USUAL.steps, _USUAL.seed)
                for x in run_in_precision(model, steps):
                    drawing.add(x)
                    done = len(drawings) * _USUAL.steps + len(drawing.states)
                    yield Progress(min(done, 2 * _USUAL.steps), 2 * _USUAL.steps, "steps taken")
            hook.remove()
            drawings.append(drawing)
        names = [model.spec.class_names[label].rpartition("/")[2] for label in labels.tolist()]
        pictures = tuple(drawing.picture(names) for drawing in drawings)
        yield Outcome((_plot(drawings),), (), tuple(_sentences(drawings)), pictures=pictures, step=model.step)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        return {"guidance": _USUAL.guidance, "count": _SPRITES}


class _Drawing:
    """Records the steps of drawing N sprites. states: uint8 [N, S, S, 4] after each step."""

    def __init__(self, guidance: float) -> None:
        self.guidance = guidance
        self.title = "guidance off" if guidance == 1 else f"guidance {guidance:g}"
        self.states: list[Rgba] = []
        self._silhouettes: list[NDArray[np.bool_]] = []  # [N, S, S] after each step, alpha above 0.5
        self._evaluations = 0

    def count_evaluations(self, network: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        """Count the evaluated sprites, as a forward pre-hook of the network."""
        self._evaluations += len(inputs[0])

    def add(self, x: Tensor) -> None:
        """Record the state x after a step: float32 [N, 4, S, S], RGBA in [-1, 1]."""
        self.states.append(to_rgba(x).numpy())
        self._silhouettes.append((x[:, 3] > 0).cpu().numpy())

    @property
    def final(self) -> NDArray[np.bool_]:
        """The silhouettes of the finished sprites, [N, S, S]."""
        return self._silhouettes[-1]

    def evaluations(self) -> float:
        """Return the number of network evaluations per sprite; 0 if drawing bypasses forward hooks."""
        return self._evaluations / len(self.states[0])

    def unsettled(self) -> list[float]:
        """Return the share of pixels after each step that differ from the final silhouettes."""
        return [float((silhouette != self.final).mean()) for silhouette in self._silhouettes]

    def settled_at(self) -> int:
        """Return the step, counted from 1, from which on the silhouettes are within 5 % of the final ones."""
        later = [step for step, share in enumerate(self.unsettled(), 1) if share > _SETTLED]
        return later[-1] + 1 if later else 1

    def picture(self, names: list[str]) -> Picture:
        """Return a picture of the steps, with a row per sprite. names: class of each sprite."""
        indices = evenly_spaced(total := len(self.states), _MOST_SHOWN)
        columns = len(indices)
        shown = np.stack([self.states[index] for index in indices], 1)  # [N, columns, S, S, 4]
        steps = "every step" if columns == total else f"{columns} of {total} steps"
        about = f"One row per sprite ({', '.join(names)}), from the first step to the last."
        title = f"{self.title[0].upper()}{self.title[1:]}: after {steps}"
        return Picture.of(title, tile(shown.reshape(-1, *shown.shape[2:]), columns), about)


def _plot(drawings: list[_Drawing]) -> Plot:
    lines = []
    for drawing in drawings:
        settled = tuple(100 * (1 - share) for share in drawing.unsettled())
        lines.append(Line(drawing.title, tuple(map(float, range(1, len(settled) + 1))), settled))
    title = "Pixels already inside or outside the final silhouette"
    return Plot(title, Axis("step"), Axis("% of the pixels"), tuple(lines))


def _sentences(drawings: list[_Drawing]) -> Iterator[str]:
    off, on = drawings
    steps = len(off.states)
    cost = (
        f". Each sprite takes {off.evaluations():.3g} network evaluations with guidance off and {on.evaluations():.3g} "
        f"with guidance {on.guidance:g}, which also evaluates the network without the class"
        if off.evaluations()
        else ""
    )
    yield f"The experiment drew {count(len(off.states[0]), 'sprite')} in {count(steps, 'step')}{cost}."
    for drawing in drawings:
        since = f"by at most {percent(_SETTLED)} from step {drawing.settled_at()} of {steps} on"
        yield f"With {drawing.title}, the silhouettes differ from the final ones {since}."
    apart = percent(float((off.final != on.final).mean()))
    yield f"Guidance changes {apart} of the pixels of the final silhouettes, from the same noise."
