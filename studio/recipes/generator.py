"""New sprites from noise: class-conditional rectified flow (Liu et al. 2022, Lipman et al. 2022) with a U-Net.

A sprite x1 and noise x0 are joined by a straight line x_t = (1 - t) x0 + t x1; the network learns the line's velocity
x1 - x0 from (x_t, t, class). It does so by guessing the sprite, which is flat and clean where noise is not, and
working out the velocity from that (Li & He 2025). What it guesses of each pixel are the odds of the colours of a
palette, so that sprites are made of true pixels: see `colours`. Times are logit-normal (Esser et al. 2024). Sampling
follows the velocity from noise to a sprite.

Towards the end of a training, some sprites are shown with a part of their pixels as they are, marked, so that it is
learnt to fill in the rest (after Mayet et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional as F

from studio.core.config import TrainingConfig, Value, setting, with_default
from studio.data.sprites import Sprites
from studio.recipes import few_step
from studio.recipes.base import (
    Batch,
    BatchRng,
    Evaluation,
    Preset,
    Recipe,
    Spec,
    TrainingBudget,
    evenly_spread,
)
from studio.recipes.capabilities import EditCondition, Student
from studio.recipes.colours import colour_errors, in_rows, palette_for, some_rows
from studio.recipes.flow import (
    CONSTANTS,
    LATEST,
    Periodic,
    blend_noise,
    draw_noise,
    encode,
    guided,
    mirrored,
    overlapping,
    solve,
    tied,
    timesteps,
)
from studio.recipes.layers import whole_groups
from studio.recipes.planning import Planner
from studio.recipes.unet import UNet, WithAllOdds, known_labels


@dataclass(frozen=True)
class GeneratorConfig(TrainingConfig):
    """Settings of the generator."""

    learning_rate: float = with_default(TrainingConfig, "learning_rate", 4e-3)
    width: int = setting(64, "Channels of the network: more learn finer detail and train slower.", low=16, high=512)
    class_dropout: float = setting(
        0.1, "Share of sprites trained without their class, which classifier-free guidance needs.",
        low=0.0, high=1.0, advanced=True, former_name="label_drop",
    )  # fmt: skip
    colours: int = setting(
        256, "How many of your sprites' colours the model chooses from, pixel by pixel. 0 lets it mix any colour: for "
        "painted art; pixel art comes out speckled.",
        unit="colours", label="Palette",
        low=0, high=1024, legacy_default=0, advanced=True,
    )  # fmt: skip
    time_mean: float = setting(
        -0.3, "Where on the way from noise to sprite training looks most: negative is nearer to noise.",
        label="Time focus",
        low=-5.0, high=5.0, advanced=True,
    )  # fmt: skip

    inpaint_share: float = setting(
        0.33, "Share of sprites with an inpainting mask in the last fifth of the training: teaches filling in.",
        low=0.0, high=1.0, legacy_default=0.0, advanced=True, former_name="filling",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", whole_groups(self.width))


_PLANNER = Planner(
    width=GeneratorConfig.width, widths=(32, 48, 64, 96, 128), slowing=1.4, most_looks=300, most_tuning_looks=600
)
_VELOCITY_SHARE = 0.5  # of its error, beside the cross-entropy
_INPAINT_FROM = 0.8  # of the training: earlier, new sprites get worse by up to a tenth, and fills fit no better
# How far from what is kept, in pixels, and how strongly what was filled in is drawn anew; more steps do worse.
_SEAMS, _SEAM_STEPS = ((3, 0.4), (2, 0.3), (2, 0.3)), 6
_BEFORE_SEAMS = 0.6  # of the steps: the rest is as long as the seams take


class Generator(Recipe[GeneratorConfig, UNet]):
    """Draws new sprites of each class."""

    name = "generator"
    title = "Generator"
    summary = "Learns to draw new sprites like yours, class by class."
    makes = "sprites"
    Config, Network = GeneratorConfig, UNet
    order = 1
    relative_cost = 11.0
    # Noise scales of trainings in their middle were 50 to 76 sprites, and at their end 560 to 830.
    largest_batch = 256
    small = GeneratorConfig(width=16, colours=32)
    capabilities = frozenset(
        {"vary", "fill", "mirror", "seamless", "silhouette", "blend", "mix", "map", "from_noise", "flow", "distil"}
    )
    solver = CONSTANTS
    stages = (_INPAINT_FROM,)
    fixed_by_weights = ("width", "colours")
    # At the usual rate, what they hold is soon forgotten. That it falls from the beginning leaves fewer copies.
    fine_tuning = MappingProxyType({"learning_rate": 1e-3, "lr_decay_share": 1.0})

    def presets(self, means: TrainingBudget) -> tuple[Preset, ...]:
        return (
            _PLANNER.preset("Quick", "A first look: shapes and colours.", 2.0, 40_000, means),
            _PLANNER.preset("Standard", "Recognisable sprites on most computers.", 10.0, 200_000, means),
            _PLANNER.preset("Best", "Finer detail, for a longer break.", 30.0, 370_000, means),
        )

    def cost(self, size: int) -> float:
        return super().cost(size if size < 96 else size // 2)  # seen from twice as far: see UNet

    def arguments(self, config: GeneratorConfig, spec: Spec) -> dict[str, Value]:
        classes = len(spec.class_names)
        return {"size": spec.size, "classes": classes, "width": config.width, "colours": config.colours}

    def statistics(self, sprites: Sprites, config: GeneratorConfig) -> Mapping[str, Tensor]:
        return {"head.palette": palette_for(sprites.rgba, config.colours)} if config.colours else {}

    def rows(self, spec: Spec) -> Mapping[str, tuple[str, ...]]:
        return {"label.weight": spec.class_names}

    def loss(self, network: UNet, batch: Batch, config: GeneratorConfig, rng: BatchRng) -> Tensor:
        t = torch.sigmoid(rng.randn() + config.time_mean)
        label = torch.where(rng.rand() < config.class_dropout, network.classes, batch.y)
        noise = rng.randn(*batch.x.shape[1:])
        share = config.inpaint_share if batch.progress >= _INPAINT_FROM else 0.0  # of sprites with a mask
        rows = some_rows(network.size, rng.rand(1))
        error = _error(network, batch, noise, t, label, _inpainting_mask(batch, share, rng), rows)
        # A mask hides half of the pixels on average; the division keeps the loss curve without a step.
        return error / (1 - share / 2)

    def evaluate(self, network: UNet, batches: Iterable[Batch], config: GeneratorConfig, spec: Spec) -> Evaluation:
        """The training loss at evenly spread quantiles of the training times, with noise of a fixed seed.

        A sprite's time and noise follow from its place alone, so that the batches may be of any size.
        """
        total, seen = 0.0, 0
        for batch in batches:
            count = len(batch.x)
            noise = draw_noise(count, batch.x.shape[-1], seed=0, first=seen).to(batch.x.device)
            normal = torch.special.ndtri(evenly_spread(seen, count)).float()  # on the CPU: MPS has no ndtri
            times = torch.sigmoid(normal + config.time_mean).to(batch.x.device)
            nothing = torch.zeros_like(batch.x[:, :1])  # is kept
            rows = some_rows(network.size, torch.full((count, 1), 0.5, device=times.device))
            total += float(_error(network, batch, noise, times, batch.y, nothing, rows)) * count
            seen += count
        return Evaluation({"loss": total / seen})

    @staticmethod
    def draw(network: UNet, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0) -> Iterator[Tensor]:
        noise = draw_noise(len(labels), network.size, seed, first).to(labels.device)
        return _draw_from(network, noise, labels, guidance, steps)

    @staticmethod
    def noise(network: UNet, count: int, seed: int, first: int = 0) -> Tensor:
        return draw_noise(count, network.size, seed, first)

    @staticmethod
    def draw_from(
        network: UNet, noise: Tensor, labels: Tensor, guidance: float | Tensor, steps: int
    ) -> Iterator[Tensor]:
        return _draw_from(network, noise, labels, guidance, steps)

    @staticmethod
    def redraw(
        network: UNet, given: EditCondition, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0
    ) -> Iterator[Tensor]:
        """After Meng et al. 2022 (SDEdit): the sprites, as far back towards noise as the strength says, drawn anew.

        A shorter way takes fewer steps: two at least. What was filled in is drawn anew along its seam, again and again:
        it fits better to what stays once both sides are known.
        """
        kept, seams = given.keep, [seam for seam in _SEAMS if seam[1] < given.strength]
        if kept is None or not seams or not Generator.knows_inpainting(network):
            yield from _redrawn(network, given, labels, guidance, steps, seed, first)
            return
        x = given.sprites
        for x in _redrawn(network, given, labels, guidance, math.ceil(_BEFORE_SEAMS * steps), seed, first):
            yield x
        for number, (reach, strength) in enumerate(seams, 1):
            filled = torch.where(kept == 1, given.sprites, x)
            keep = 1 - F.max_pool2d(kept, 2 * reach + 1, 1, reach) + kept
            seam = replace(given, sprites=filled, strength=strength, keep=keep)
            for x in _redrawn(network, seam, labels, 1.0, min(steps, _SEAM_STEPS), seed + number, first):
                yield x

    @staticmethod
    def knows_inpainting(network: UNet) -> bool:
        return bool(network.keep.weight.any())

    @staticmethod
    def blend(network: UNet, sprites: Tensor, labels: Tensor, shares: Tensor, steps: int) -> Iterator[Tensor]:
        known = known_labels(network, labels)
        noise = encode(guided(WithAllOdds(network), known, 1.0), sprites, steps)
        mixtures = shares @ F.one_hot(known, network.classes + 1).float()
        # The way back knew no guidance: with it, the way forth would not lead to the same sprites.
        yield from solve(guided(network, mixtures, 1.0), blend_noise(noise, shares), timesteps(steps))

    @staticmethod
    def draw_map(
        network: UNet, shares: Mapping[int, Tensor], ties: Tensor, guidance: float, steps: int, seed: int
    ) -> Iterator[Tensor]:
        height, width = ties.shape
        count = height * width // network.size**2
        parts = draw_noise(count, network.size, seed).to(ties.device)
        first = torch.full((int(ties.max()) + 1,), len(ties.flatten()), device=ties.device)
        first = first.scatter_reduce(0, ties.flatten(), torch.arange(height * width, device=ties.device), "amin")
        noise = parts.view(count, 4, -1).swapaxes(0, 1).reshape(1, 4, -1)[..., first[ties.flatten()]]
        velocities = {
            label: overlapping(guided(network, torch.full((count,), label, device=ties.device), guidance), network.size)
            for label in shares
        }

        def velocity(x: Tensor, t: float) -> Tensor:
            each = [share * velocities[label](x, t) for label, share in shares.items()]
            return tied(torch.stack(each).sum(0), ties)

        return solve(velocity, noise.view(1, 4, height, width), timesteps(steps))

    @staticmethod
    def trajectory(network: UNet, labels: Tensor, guidance: float, seed: int, first: int = 0) -> Iterator[Tensor]:
        return few_step.trajectory(network, labels, guidance, seed, first)

    @staticmethod
    def student(network: UNet) -> Student:
        return few_step.FewStepStudent(network)


def _draw_from(network: UNet, noise: Tensor, labels: Tensor, guidance: float | Tensor, steps: int) -> Iterator[Tensor]:
    return solve(guided(network, known_labels(network, labels), guidance), noise, timesteps(steps))


def _velocity(
    network: UNet, labels: Tensor, guidance: float, given: EditCondition, noise: Tensor
) -> Callable[[Tensor, float], Tensor]:
    """The velocity that keeps to what is given. Kept pixels, and alpha that is known, go from noise to what they are.

    A network that has learnt to fill is shown the kept pixels themselves. One that has not is shown them as noisy as
    all others are at that time (Lugmayr et al. 2022), and does worse.
    """
    sprites, keep = given.sprites, given.keep
    learnt = keep is not None and Generator.knows_inpainting(network)
    looking = Periodic(network, *given.seamless) if any(given.seamless) else network
    free = guided(looking, labels, guidance, keep if learnt else None)

    def velocity(x: Tensor, t: float) -> Tensor:
        shown = torch.where(keep == 1, sprites, x) if keep is not None and learnt else x
        v = mirrored(free(shown, t), *given.mirror)
        if given.alpha is not None:
            v = torch.cat([v[:, :3], given.alpha - noise[:, 3:]], 1)
        return v if keep is None else torch.where(keep == 1, sprites - noise, v)

    return velocity


def _redrawn(
    network: UNet, given: EditCondition, labels: Tensor, guidance: float, steps: int, seed: int, first: int
) -> Iterator[Tensor]:
    """x after each step of what is drawn anew, the sprites last."""
    start = 1 - given.strength
    noise = draw_noise(len(given.sprites), network.size, seed, first).to(given.sprites.device)
    noise = mirrored(noise, *given.mirror)
    velocity = _velocity(network, known_labels(network, labels), guidance, given, noise)
    fewer = min(steps, max(2, math.ceil(steps * given.strength)))
    return solve(velocity, torch.lerp(noise, given.sprites, start), timesteps(fewer, start))


def _inpainting_mask(batch: Batch, share: float, rng: BatchRng) -> Tensor:
    """Which pixels are shown as they are, 1 there: float32 [B, 1, S, S]; some of that share of the sprites.

    What is hidden is a box, all but a box, or blobs, of any size.
    """
    if not share:
        return torch.zeros_like(batch.x[:, :1])
    size = batch.x.shape[-1]
    axis = torch.linspace(-1, 1, size, device=batch.x.device)
    x, y, slimness = rng.randn(3, 1, 1, 1).mul(0.5).unbind(1)
    box = torch.maximum((axis - x).abs() * slimness.exp(), (axis[:, None] - y).abs() / slimness.exp())
    blobs = F.interpolate(rng.randn(1, 5, 5), size=(size, size), mode="bicubic", align_corners=True)
    kind, chosen, hidden = rng.rand(3, 1, 1, 1).unbind(1)
    depth = torch.where(kind < 0.5, blobs, torch.where(kind < 0.75, box, -box))
    in_order = depth.flatten(1).sort(1).values  # [B, S * S]
    edge = in_order.gather(1, (hidden.flatten(1) * in_order.shape[1]).long())  # of so many pixels, all below are hidden
    return ((depth >= edge.view_as(hidden)) & (chosen < share)).float()


def _error(network: UNet, batch: Batch, noise: Tensor, t: Tensor, label: Tensor, keep: Tensor, rows: Tensor) -> Tensor:
    """How wrong the guess is at times t [B] on the lines from `noise` to the batch's sprites; 0 where pixels are kept.

    The mean squared error of the velocity. With a palette, half of that and the cross-entropy of the odds of colours,
    in nats a pixel, both in these rows of the sprites, int64 [B, rows].
    """
    t = t.clamp(max=LATEST)
    mix = t[:, None, None, None]
    x = torch.where(keep == 1, batch.x, (1 - mix) * noise + mix * batch.x)
    guess = network.features(x, t, label, batch.augment_labels, keep)
    if network.head is None:
        return (((guess.float() - batch.x) / (1 - mix)).square() * (1 - keep)).mean()
    features, colours, counts = (in_rows(values, rows) for values in (guess, batch.x, 1 - keep))
    weights = counts[..., 0] / counts.numel()
    # The velocity leads from x to the guess in 1 - t; its error is the mean of four numbers.
    of_means = _VELOCITY_SHARE / 4 * weights / (1 - mix[:, 0]).square()
    return colour_errors(network.head, features, colours, weights, of_means)
