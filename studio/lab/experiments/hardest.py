"""Hardest sprites: the sprites with the highest loss, their predicted classes, and the pixels that decided.

The decisive pixels are found by occlusion (Zeiler & Fergus 2014): a patch is hidden at each position, and the drop of
the predicted class's probability is drawn over the sprite. The gradient with respect to the input (Simonyan et al.
2014) would need one pass instead of 200. But it measures tiny changes of single pixels, which pixel art does not have,
and is almost zero where the classifier is sure.
"""

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
from studio.engine.steps.batches import DeviceSprites, device_examples, to_device, to_input
from studio.lab.experiments.base import IMPORTS, Experiment, ExperimentContext
from studio.lab.outcome import Axis, Line, Outcome, Picture, Plot, Table
from studio.recipes.base import Batch

_SHOWN = 16
_COLUMNS = 8
_REPEATS = 16  # evaluations per sprite if its loss depends on noise, with equal times and noise for every sprite
_NUMBERS = 3  # columns for the numbers of a regression
_CELLS = 6  # most frequent cells of the confusion matrix
_OCCLUDED = 8  # sprites with a picture of decisive pixels
_SHARE = 0.8  # share of the time for computing losses
_LEAST = 64  # sprites, even if the time is over
_PATCHES = 8  # per row of a sprite; consecutive patches overlap by half
_GLOW = np.array([255, 96, 0])  # the colour of the most decisive pixels
_CODE = IMPORTS + """\
device = "{device}"
torch.manual_seed(0)
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
y = torch.randint({classes}, ({batch_size},), device=device)
network = nn.Sequential(nn.Flatten(), nn.Linear(4 * {size} * {size}, {classes})).to(device)

with torch.no_grad():
    logits = network(x)
    losses = nn.functional.cross_entropy(logits, y, reduction="none")  # one for each sprite
    for index in losses.argsort(descending=True)[:8].tolist():
        print(f"sprite {{index}}: loss {{losses[index]:.3f}}, class {{y[index]}}, "
              f"predicted {{logits[index].argmax()}}")

    hardest, patch = int(losses.argmax()), max(1, {size} // 8)
    predicted = logits[hardest].argmax()
    probability = logits[hardest].softmax(0)[predicted]
    for top in range(0, {size} - patch + 1, patch):
        hidden = x[hardest : hardest + 1].clone()
        hidden[:, :, top : top + patch] = 0
        drop = probability - network(hidden).softmax(1)[0, predicted]
        print(f"without rows {{top}} to {{top + patch - 1}}: probability {{100 * drop:.2g}} % lower")
"""  # fmt: skip


class Hardest(Experiment):
    """Computes the loss of each sprite, and shows the sprites with the highest losses."""

    name = "hardest"
    title = "Hardest sprites"
    question = "Which sprites does the model get most wrong?"
    order = 96
    sets_obstacle = "Single sprites are ranked by their loss; a model of sets only has losses of whole characters."
    seconds = 60.0
    subject = "run"
    _page = "https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html"
    read_on = ("CrossEntropyLoss and its reduction", _page)
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        model = yield from context.load_model()
        with detection.wrap_device_errors(model.device):
            order, losses = yield from _losses(model, context.sprites, _SHARE * context.seconds)
            ranked = _RankedSprites(context.sprites.take(order), losses, _depends_on_noise(model))
            if model.recipe.makes != "sprites":
                *_, event = predict(model, ranked.sprites.rgba)
                ranked.prediction = event if isinstance(event, Classified | NumbersPredicted) else None
            pictures = [ranked.picture(), *ranked.confused()]
            sentences = [*ranked.sentences(context)]
            if isinstance(ranked.prediction, Classified):
                examined, predicted = ranked.sprites.rgba[:_OCCLUDED], ranked.predicted()[:_OCCLUDED]
                picture, drops = _occlusion_picture(model, examined, predicted)
                pictures.insert(1, picture)
                sentences.append(_about_occlusion(drops, ranked.sprites.size))
        yield Outcome((ranked.plot(),), (ranked.table(),), tuple(sentences), pictures=tuple(pictures), step=model.step)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        return {"classes": max(2, len(context.sprites.class_names))}


@dataclass(eq=False)
class _RankedSprites:
    """Sprites from the highest loss to the lowest, with the model's predictions."""

    sprites: Sprites
    losses: NDArray[np.float64]  # [N]
    is_noisy: bool  # whether a loss depends on random noise
    prediction: Classified | NumbersPredicted | None = None  # None if the model draws sprites

    def predicted(self) -> NDArray[np.int64]:
        """Return the predicted classes, int64 [N]."""
        assert isinstance(self.prediction, Classified)
        return np.asarray(self.prediction.probabilities.argmax(1), np.int64)

    def picture(self) -> Picture:
        title = f"The hardest {count(min(_SHOWN, len(self.sprites)), 'sprite')}, hardest first"
        shown = tile(self.sprites.rgba[:_SHOWN], _COLUMNS)
        return Picture.of(title, shown, "Sprites in the order of the table below.")

    def plot(self) -> Plot:
        """Plot the losses of all sprites, from the highest to the lowest."""
        ranks = tuple(float(rank) for rank in range(1, len(self.losses) + 1))
        line = Line("loss", ranks, tuple(self.losses.tolist()), dots=len(ranks) < _SHOWN)
        return Plot("Loss of each sprite, hardest first", Axis("rank"), Axis("loss"), (line,))

    def table(self) -> Table:
        names = self.sprites.class_names
        columns, rows = ["sprite", "class", ">loss"], list[tuple[str, ...]]()
        if isinstance(self.prediction, Classified):
            columns += ["predicted", ">probability"]
        elif isinstance(self.prediction, NumbersPredicted):
            columns += [f">{name}" for name in self.prediction.names[:_NUMBERS]]
        for index in range(min(_SHOWN, len(self.sprites))):
            name, loss = self.sprites.names[index].rpartition("/")[2], decimal(float(self.losses[index]))
            rows.append((name, names[self.sprites.labels[index]], loss, *self._prediction_of(index)))
        return Table(tuple(columns), tuple(rows))

    def _prediction_of(self, index: int) -> Sequence[str]:
        if isinstance(self.prediction, Classified):
            label = int(self.prediction.probabilities[index].argmax())
            return self.prediction.class_names[label], percent(float(self.prediction.probabilities[index, label]))
        if isinstance(self.prediction, NumbersPredicted):
            pairs = zip(self.prediction.numbers[index].tolist(), self.sprites.targets[index].tolist(), strict=True)
            return [predicted_and_true(*pair) for pair in pairs][:_NUMBERS]
        return ()

    def cells(self) -> list[tuple[tuple[int, int], int]]:
        """Count wrong predictions by (true class, predicted class); return the pairs, most frequent first."""
        if not isinstance(self.prediction, Classified):
            return []
        pairs = zip(self.sprites.labels.tolist(), self.predicted().tolist(), strict=True)
        return Counter(pair for pair in pairs if pair[0] != pair[1]).most_common()

    def confused(self) -> Iterator[Picture]:
        """Yield a picture of sprites for each of the 6 most frequent confusions of two classes."""
        names = self.sprites.class_names
        for (true, predicted), number_of in self.cells()[:_CELLS]:
            inside = np.flatnonzero((self.sprites.labels == true) & (self.predicted() == predicted))
            title = f"{names[true]} predicted as {names[predicted]}: {count(number_of, 'sprite')}"
            shown = tile(self.sprites.rgba[inside[:_COLUMNS]], _COLUMNS)
            yield Picture.of(title, shown, "Sprites in one cell of the confusion matrix, hardest first.")

    def sentences(self, context: ExperimentContext) -> Iterator[str]:
        seen, median = len(self.sprites), float(np.median(self.losses))
        name = self.sprites.class_names[self.sprites.labels[0]]
        highest = float(self.losses[0])
        times = f", {highest / median:.2g} times the median of {decimal(median)}" if median > 0 else ""
        hardest, loss = f"{self.sprites.names[0]} ({name})", f"{decimal(highest)}{times}"
        yield f"The hardest of {number(seen)} {context.describe_sprites()} is {hardest}, with a loss of {loss}."
        if seen < len(context.sprites):
            yield f"The time sufficed for {number(seen)} of {number(len(context.sprites))} sprites, chosen at random."
        if self.is_noisy:
            equal = "at the same times and with the same noise for every sprite"
            yield f"The loss of a sprite is the mean of {_REPEATS} evaluations, {equal}."
        if isinstance(self.prediction, Classified):
            cells = self.cells()
            wrong = sum(number_of for _, number_of in cells)
            yield f"{number(wrong)} of {number(seen)} predictions are wrong, {percent(wrong / seen)}."
            if cells:
                (true, predicted), number_of = cells[0]
                names = self.sprites.class_names
                yield f"Most often {names[true]} is predicted as {names[predicted]}: {count(number_of, 'sprite')}."


def _losses(
    model: TrainedModel, sprites: Sprites, seconds: float
) -> Generator[Progress, None, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return indices, highest validation loss first, and losses, of all sprites or a random part; yields Progress."""
    data = device_examples(model.recipe, sprites, model.device)
    repeats = _REPEATS if _depends_on_noise(model) else 1
    places = np.random.default_rng(0).permutation(len(sprites))
    losses, start_s = list[float](), time.perf_counter()
    for place in places.tolist():
        if time.perf_counter() - start_s > seconds and len(losses) >= _LEAST:
            break
        batch = _repeated(data, place, repeats)
        with torch.no_grad(), autocast(model.device.type, model.precision):
            found = model.recipe.evaluate(model.network, [batch], model.config, model.spec)
        losses.append(found.metrics["loss"])
        yield Progress(len(losses), len(sprites), "sprites")
    values = np.array(losses)
    order = np.argsort(-values, kind="stable")
    return places[: len(values)][order], values[order]


def _depends_on_noise(model: TrainedModel) -> bool:
    """Return whether the model's loss depends on random times and noise, as in rectified flow."""
    return "flow" in model.recipe.capabilities


def _repeated(data: DeviceSprites, place: int, times: int) -> Batch:
    """Return a batch of `times` copies of the sprite at the index `place`."""
    part, unchanged = torch.full((times,), place, device=data.device), torch.zeros(times, 3, device=data.device)
    return Batch(to_input(data.rgba[part]), data.labels[part], unchanged, data.targets[part])


def _occlusion_picture(
    model: TrainedModel, sprites: Rgba, predicted: NDArray[np.int64]
) -> tuple[Picture, NDArray[np.float64]]:
    """Draw sprites uint8 [N, S, S, 4] above the pixels that decided the predicted class of each sprite.

    Also returns the largest drop of each predicted class's probability when one patch is hidden, float64 [N].
    """
    inputs = to_input(to_device(sprites, model.device))
    results = [_probability_drops(model, x, int(label)) for x, label in zip(inputs, predicted, strict=True)]
    glowing = [_glowing(sprite, drops) for sprite, (drops, _) in zip(sprites, results, strict=True)]
    title = "Decisive pixels: hiding bright pixels lowers the probability of the predicted class most"
    about = "Top: the hardest sprites. Bottom: the decisive pixels of each sprite."
    picture = Picture.of(title, tile(np.concatenate([sprites, np.stack(glowing)]), len(sprites)), about)
    return picture, np.array([largest for _, largest in results])


def _patch_of(size: int) -> int:
    """Return the side of the square patches to hide in sprites of this size, in pixels."""
    return max(1, size // _PATCHES)


@torch.no_grad()
def _probability_drops(model: TrainedModel, x: Tensor, predicted: int) -> tuple[NDArray[np.float64], float]:
    """Measure how much hiding patches of the sprite x lowers the probability of the predicted class.

    x: float32 [4, S, S], in [-1, 1]. Returns the mean drop at each pixel, float64 [S, S], and the largest of a patch.
    """
    size = x.shape[-1]
    patch = _patch_of(size)
    starts = [*range(0, size - patch, max(1, patch // 2)), size - patch]
    corners = [(top, left) for top in starts for left in starts]
    hidden = x.repeat(1 + len(corners), 1, 1, 1)
    for index, (top, left) in enumerate(corners, 1):
        hidden[index, :, top : top + patch, left : left + patch] = -1  # transparent
    with autocast(model.device.type, model.precision):
        probabilities = (
            model.recipe.predictor_of(model.spec)(model.network, hidden)[:, predicted].double().cpu().numpy()
        )
    total, times = np.zeros((size, size)), np.zeros((size, size))
    drops = probabilities[0] - probabilities[1:]  # [patches]
    for (top, left), drop in zip(corners, drops, strict=True):
        total[top : top + patch, left : left + patch] += drop
        times[top : top + patch, left : left + patch] += 1
    return np.maximum(total / times, 0), max(0.0, float(drops.max()))


def _glowing(sprite: Rgba, drops: NDArray[np.float64]) -> Rgba:
    """Draw a sprite uint8 [S, S, 4] in dark grey; pixels whose hiding matters, by float64 [S, S], in orange."""
    grey = sprite[..., :3].mean(-1) * sprite[..., 3] / 255 * 0.5 + 24
    share = (drops / max(float(drops.max()), 1e-12))[..., None]
    colour = (1 - share) * grey[..., None] + share * _GLOW
    return np.concatenate([colour, np.full((*drops.shape, 1), 255)], -1).astype(np.uint8)


def _about_occlusion(drops: NDArray[np.float64], size: int) -> str:
    patch, points = _patch_of(size), 100 * float(np.median(drops))
    by = f"{points:.0f} percentage points (median of {count(len(drops), 'sprite')})"
    return f"Hiding the most decisive {patch} x {patch} pixels lowers the probability of the predicted class by {by}."
