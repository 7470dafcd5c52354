"""Hardest sprites: those with the highest loss, what a classifier takes them for, and where it looked.

Where it looked is found by occlusion (Zeiler & Fergus 2014): a patch is hidden, place by place, and what that takes
from the probability of the class said is laid over the sprite. The gradient by the input (Simonyan et al. 2014) costs
one pass instead of 200, but it tells of tiny changes of single pixels, which pixel art does not have, and next to
nothing where the classifier is sure.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Rgba
from studio.core.events import Classified, Events, NumbersPredicted, Progress
from studio.core.formatting import count, decimal, number, percent, predicted_and_true
from studio.core.pictures import tile
from studio.data.sprites import Sprites
from studio.engine.devices import detection
from studio.engine.devices.precision import autocast
from studio.engine.models.model import TrainedModel
from studio.engine.sampling.generate import predict
from studio.engine.steps.batches import DeviceSprites, to_device, to_input
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Axis, Line, Outcome, Picture, Plot, Table
from studio.recipes.base import Batch

_SHOWN = 16
_COLUMNS = 8
_LOOKS = 16  # at each sprite, where the loss depends on noise: always the same times and the same noise
_NUMBERS = 3  # of a regression, in the table
_CELLS = 6  # of the confusion matrix
_LOOKED_INTO = 8  # of the hardest, for where the classifier looked
_SHARE = 0.8  # of the time is for losses
_LEAST = 64  # sprites, whatever the time is
_PATCHES = 8  # side by side in a sprite; they are moved by half of their side
_GLOW = np.array([255, 96, 0])  # the colour of places that matter most
_CODE = """\
import torch
from torch import nn

device = "{device}"
torch.manual_seed(0)
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
y = torch.randint({classes}, ({batch_size},), device=device)
network = nn.Sequential(nn.Flatten(), nn.Linear(4 * {size} * {size}, {classes})).to(device)

with torch.no_grad():
    logits = network(x)
    losses = nn.functional.cross_entropy(logits, y, reduction="none")  # one for each sprite
    for place in losses.argsort(descending=True)[:8].tolist():
        print(f"sprite {{place}}: loss {{losses[place]:.3f}}, class {{y[place]}}, "
              f"taken for {{logits[place].argmax()}}")

    hardest, patch = int(losses.argmax()), max(1, {size} // 8)
    said = logits[hardest].argmax()
    usual = logits[hardest].softmax(0)[said]
    for top in range(0, {size} - patch + 1, patch):
        hidden = x[hardest : hardest + 1].clone()
        hidden[:, :, top : top + patch] = 0
        fall = usual - network(hidden).softmax(1)[0, said]
        print(f"without the rows from {{top}} on, its class is {{100 * fall:.2g}} % less probable")
"""


class Hardest(Experiment):
    """Works out the loss of each sprite by itself, and shows those with the highest."""

    name = "hardest"
    title = "Hardest sprites"
    question = "Which sprites does the model get most wrong?"
    order = 96
    seconds = 60.0
    subject = "run"
    read_on = (
        "CrossEntropyLoss and its reduction",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
    )
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        model = yield from context.loaded_model()
        with detection.wrap_device_errors(model.device):
            order, losses = yield from _losses(model, context.sprites, _SHARE * context.seconds)
            found = _Found(context.sprites.take(order), losses, _depends_on_noise(model))
            if model.recipe.makes != "sprites":
                *_, told = predict(model, found.sprites.rgba)
                found.told = told if isinstance(told, Classified | NumbersPredicted) else None
            pictures = [found.picture(), *found.confused()]
            sentences = [*found.sentences(context)]
            if isinstance(found.told, Classified):
                looked, falls = _where_it_looked(model, found.sprites.rgba[:_LOOKED_INTO], found.said()[:_LOOKED_INTO])
                pictures.insert(1, looked)
                sentences.append(_about_places(falls, found.sprites.size))
        yield Outcome((found.plot(),), (found.table(),), tuple(sentences), pictures=tuple(pictures), step=model.step)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        return {"classes": max(2, len(context.sprites.class_names))}


@dataclass(eq=False)
class _Found:
    """Sprites from the hardest on, with their losses, float64 [N], and what the model says of them, if it says any.

    is_noisy: see `_depends_on_noise`.
    """

    sprites: Sprites
    losses: NDArray[np.float64]
    is_noisy: bool
    told: Classified | NumbersPredicted | None = None

    def said(self) -> NDArray[np.int64]:
        """The class that each is taken for, int64 [N]."""
        assert isinstance(self.told, Classified)
        return np.asarray(self.told.probabilities.argmax(1), np.int64)

    def picture(self) -> Picture:
        title = f"The hardest {count(min(_SHOWN, len(self.sprites)), 'sprite')}, from the hardest on"
        shown = tile(self.sprites.rgba[:_SHOWN], _COLUMNS)
        return Picture.of(title, shown, "Sprites in the order of the table below.")

    def plot(self) -> Plot:
        """All losses by rank."""
        ranks = tuple(float(rank) for rank in range(1, len(self.losses) + 1))
        line = Line("loss", ranks, tuple(self.losses.tolist()), dots=len(ranks) < _SHOWN)
        return Plot("Loss of each sprite, from the hardest on", Axis("rank"), Axis("loss"), (line,))

    def table(self) -> Table:
        names = self.sprites.class_names
        columns, rows = ["sprite", "class", ">loss"], list[tuple[str, ...]]()
        if isinstance(self.told, Classified):
            columns += ["taken for", ">probability"]
        elif isinstance(self.told, NumbersPredicted):
            columns += [f">{name}" for name in self.told.names[:_NUMBERS]]
        for place in range(min(_SHOWN, len(self.sprites))):
            row = [
                self.sprites.names[place].rpartition("/")[2],
                names[self.sprites.labels[place]],
                decimal(float(self.losses[place])),
            ]
            rows.append((*row, *self._told_of(place)))
        return Table(tuple(columns), tuple(rows))

    def _told_of(self, place: int) -> Sequence[str]:
        if isinstance(self.told, Classified):
            said = int(self.told.probabilities[place].argmax())
            return self.told.class_names[said], percent(float(self.told.probabilities[place, said]))
        if isinstance(self.told, NumbersPredicted):
            pairs = zip(self.told.numbers[place].tolist(), self.sprites.targets[place].tolist(), strict=True)
            return [predicted_and_true(*pair) for pair in pairs][:_NUMBERS]
        return ()

    def cells(self) -> list[tuple[tuple[int, int], int]]:
        """(true class, class said) of what was confused, and how often: the most frequent first."""
        if not isinstance(self.told, Classified):
            return []
        pairs = zip(self.sprites.labels.tolist(), self.said().tolist(), strict=True)
        return Counter(pair for pair in pairs if pair[0] != pair[1]).most_common()

    def confused(self) -> Iterator[Picture]:
        """The sprites behind the cells of the confusion matrix that hold the most."""
        names = self.sprites.class_names
        for (true, said), often in self.cells()[:_CELLS]:
            inside = np.flatnonzero((self.sprites.labels == true) & (self.said() == said))
            title = f"{names[true]} taken for {names[said]}: {count(often, 'sprite')}"
            shown = tile(self.sprites.rgba[inside[:_COLUMNS]], _COLUMNS)
            yield Picture.of(title, shown, "Sprites of a cell of the confusion matrix, the hardest first.")

    def sentences(self, context: ExperimentContext) -> Iterator[str]:
        seen, middle = len(self.sprites), float(np.median(self.losses))
        name = self.sprites.class_names[self.sprites.labels[0]]
        highest = float(self.losses[0])
        times = f", {highest / middle:.2g} times the median of {decimal(middle)}" if middle > 0 else ""
        yield (
            f"The hardest of {number(seen)} {context.sprites_in_words()} is {self.sprites.names[0]} ({name}), with "
            f"a loss of {decimal(highest)}{times}."
        )
        if seen < len(context.sprites):
            yield f"There was time for {number(seen)} of {number(len(context.sprites))}, chosen from all over."
        if self.is_noisy:
            yield (
                f"Each was looked at {_LOOKS} times, at times evenly spread over those of the training, with the same "
                "times and the same noise for all."
            )
        if isinstance(self.told, Classified):
            cells = self.cells()
            wrong = sum(often for _, often in cells)
            yield f"{number(wrong)} of {number(seen)} are taken for another class, {percent(wrong / seen)}."
            if cells:
                (true, said), often = cells[0]
                names = self.sprites.class_names
                yield f"Most often {names[true]} is taken for {names[said]}: {count(often, 'sprite')}."


def _losses(
    model: TrainedModel, sprites: Sprites, seconds: float
) -> Generator[Progress, None, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """The places of sprites from the highest loss on, and these losses: of all, or as many as there is time for.

    A loss is the recipe's own in an evaluation of that sprite alone.
    """
    data, looks = DeviceSprites(sprites, model.device), _LOOKS if _depends_on_noise(model) else 1
    places = np.random.default_rng(0).permutation(len(sprites))
    losses, start_s = list[float](), time.perf_counter()
    for place in places.tolist():
        if time.perf_counter() - start_s > seconds and len(losses) >= _LEAST:
            break
        batch = _repeated(data, place, looks)
        with torch.no_grad(), autocast(model.device.type, model.precision):
            found = model.recipe.evaluate(model.network, [batch], model.config, model.spec)
        losses.append(found.metrics["loss"])
        yield Progress(len(losses), len(sprites), "sprites looked at")
    values = np.array(losses)
    order = np.argsort(-values, kind="stable")
    return places[: len(values)][order], values[order]


def _depends_on_noise(model: TrainedModel) -> bool:
    """Whether the loss of a sprite is another one at other times and with other noise."""
    return "flow" in model.recipe.capabilities


def _repeated(data: DeviceSprites, place: int, times: int) -> Batch:
    """A batch of one sprite so many times."""
    part, unchanged = torch.full((times,), place, device=data.device), torch.zeros(times, 3, device=data.device)
    return Batch(to_input(data.rgba[part]), data.labels[part], unchanged, data.targets[part])


def _where_it_looked(
    model: TrainedModel, sprites: Rgba, said: NDArray[np.int64]
) -> tuple[Picture, NDArray[np.float64]]:
    """The sprites, uint8 [N, S, S, 4], above the same with what mattered most; and how much hiding a patch took at most
    from the probability of the class that each is said to be: float64 [N].
    """
    inputs = to_input(to_device(sprites, model.device))
    found = [_falls(model, x, int(label)) for x, label in zip(inputs, said, strict=True)]
    glowing = [_glowing(sprite, falls) for sprite, (falls, _) in zip(sprites, found, strict=True)]
    title = "Where it looked: the brighter a place glows, the more hiding it takes from the class that was said"
    about = "The hardest sprites, and below each what the classifier's word for it rests on."
    picture = Picture.of(title, tile(np.concatenate([sprites, np.stack(glowing)]), len(sprites)), about)
    return picture, np.array([most for _, most in found])


def _patch_of(size: int) -> int:
    """The side of a patch that is hidden, in pixels."""
    return max(1, size // _PATCHES)


@torch.no_grad()
def _falls(model: TrainedModel, x: Tensor, said: int) -> tuple[NDArray[np.float64], float]:
    """By how much the probability of a class falls when patches are hidden that hold a pixel, on average but at least
    0: float64 [S, S]; and the most that a single patch takes from it. x: float32 [4, S, S], as in `Batch`.
    """
    size = x.shape[-1]
    patch = _patch_of(size)
    starts = [*range(0, size - patch, max(1, patch // 2)), size - patch]
    corners = [(top, left) for top in starts for left in starts]
    hidden = x.repeat(1 + len(corners), 1, 1, 1)
    for place, (top, left) in enumerate(corners, 1):
        hidden[place, :, top : top + patch, left : left + patch] = -1  # nothing is there
    with autocast(model.device.type, model.precision):
        shares = model.recipe.predict(model.network, hidden)[:, said].double().cpu().numpy()
    total, times = np.zeros((size, size)), np.zeros((size, size))
    taken = shares[0] - shares[1:]
    for (top, left), fall in zip(corners, taken, strict=True):
        total[top : top + patch, left : left + patch] += fall
        times[top : top + patch, left : left + patch] += 1
    return np.maximum(total / times, 0), max(0.0, float(taken.max()))


def _glowing(sprite: Rgba, falls: NDArray[np.float64]) -> Rgba:
    """A sprite, uint8 [S, S, 4], in dark greys, and over it what matters, float64 [S, S]."""
    grey = sprite[..., :3].mean(-1) * sprite[..., 3] / 255 * 0.5 + 24
    share = (falls / max(float(falls.max()), 1e-12))[..., None]
    colour = (1 - share) * grey[..., None] + share * _GLOW
    return np.concatenate([colour, np.full((*falls.shape, 1), 255)], -1).astype(np.uint8)


def _about_places(falls: NDArray[np.float64], size: int) -> str:
    patch, points = _patch_of(size), 100 * float(np.median(falls))
    return (
        f"Where it looked: hiding the {patch} x {patch} pixels that matter most lowers the probability of the class "
        f"that was said by {points:.0f} points of 100, in the median of these {count(len(falls), 'sprite')}."
    )
