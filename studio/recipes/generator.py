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

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core.config import TrainingConfig, Value, setting, with_default
from studio.data.sprites import Sprites
from studio.recipes.base import Batch, BatchRng, Evaluation, Given, Preset, Recipe, Spec, TrainingBudget, evenly_spread
from studio.recipes.colours import PaletteHead, errors_and_means, in_rows, palette_for, some_rows
from studio.recipes.flow import (
    CONSTANTS,
    LATEST,
    Periodic,
    blend_noise,
    draw_noise,
    encode,
    guided,
    mirrored,
    moments,
    overlapping,
    solve,
    tied,
)
from studio.recipes.layers import Attention, ResidualBlock, TimeFeatures, group_norm, whole_groups
from studio.recipes.planning import Planner


@dataclass(frozen=True)
class GeneratorConfig(TrainingConfig):
    """Settings of the generator."""

    learning_rate: float = with_default(TrainingConfig, "learning_rate", 4e-3)
    width: int = setting(64, "Channels of the network: more learn finer detail and train slower.", low=16, high=512)
    label_drop: float = setting(
        0.1, "Share of sprites shown without their class, which is what makes guidance possible.",
        label="Class drop",
        low=0.0, high=1.0, advanced=True,
    )  # fmt: skip
    colours: int = setting(
        256, "How many of your sprites' colours the model chooses from, pixel by pixel. 0 lets it mix any colour: for "
        "painted art; pixel art comes out speckled.",
        unit="colours", label="Palette",
        low=0, high=1024, absent=0, advanced=True,
    )  # fmt: skip
    time_mean: float = setting(
        -0.3, "Where on the way from noise to sprite training looks most: negative is nearer to noise.",
        label="Time focus",
        low=-5.0, high=5.0, advanced=True,
    )  # fmt: skip

    filling: float = setting(
        0.33, "In the last fifth, share of sprites of which a part is given: teaches the model to fill in the rest.",
        low=0.0, high=1.0, absent=0.0, advanced=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", whole_groups(self.width))


_PLANNER = Planner(
    width=GeneratorConfig.width, widths=(32, 48, 64, 96, 128), slowing=1.4, most_looks=300, most_tuning_looks=600
)
_STRIDES = 5
_PIXEL_FEATURES = 64  # divided by the side of a patch: channels of a pixel, of which the head makes odds
_VELOCITY_SHARE = 0.5  # of its error, beside the cross-entropy
_EARLIER = 0.05  # times t (1 - t)
_FILLING_FROM = 0.8  # of the training: learnt from the beginning, it would make new sprites worse by a tenth


class UNet(nn.Module):
    """Velocity [B, 4, S, S] from (x_t [B, 4, S, S], t [B] in [0, 1), label [B]); label `classes` stands for any class.

    A label may also be a mixture: float32 [B, classes + 1], the share of each.
    `keep` [B, 1, S, S] is 1 where x_t holds the sprite's own pixels, to which the rest is to fit: there the velocity
    means nothing. Without it, or where it is 0, all is to be drawn.

    With `colours`, what it guesses of a pixel are the odds of so many colours, and the sprite is their mean; at the
    time of the last step it is the likeliest colour instead.

    Works at half resolution through pixel-unshuffle (a quarter from 96 pixels on), then two levels further down, each
    as wide as the first: in little time, most is learnt at the finest level.
    `changes` [B, 3] tells how augmentation changed the sprites, as in `Batch`, so that it does not leak into samples
    (Karras et al. 2022). Any S: the border is padded.
    """

    def __init__(self, size: int, classes: int, width: int, colours: int = 0) -> None:
        super().__init__()
        self.size, self.classes = size, classes
        self.patch = 2 if size < 96 else 4
        self.padding = -size % (4 * self.patch)
        condition, pixels = 4 * width, 4 * self.patch**2
        features = _PIXEL_FEATURES // self.patch if colours else 4
        self.time = nn.Sequential(
            TimeFeatures(128), nn.Linear(128, condition), nn.SiLU(), nn.Linear(condition, condition)
        )
        self.label = nn.Embedding(classes + 1, condition)
        self.changes = nn.Linear(3, condition, bias=False)

        def blocks(count: int, joined: int = 0) -> nn.ModuleList:
            """Residual blocks; the first takes `joined` channels more, of the level that is joined here."""
            return nn.ModuleList(
                [ResidualBlock(width + (joined if i == 0 else 0), width, condition) for i in range(count)]
            )

        self.enter, self.down1 = nn.Conv2d(pixels, width, 3, 1, 1), blocks(3)
        self.pool1, self.down2 = nn.Conv2d(width, width, 3, 2, 1), blocks(2)
        self.pool2, self.bottom, self.attend = nn.Conv2d(width, width, 3, 2, 1), blocks(2), Attention(width)
        self.rise2, self.up2 = nn.Conv2d(width, width, 1), blocks(2, joined=width)
        self.rise1, self.up1 = nn.Conv2d(width, width, 1), blocks(3, joined=width)
        self.norm, self.leave = group_norm(width), nn.Conv2d(width, features * self.patch**2, 3, 1, 1)
        self.head = PaletteHead(features, colours) if colours else None
        self.keep = nn.Conv2d(self.patch**2, width, 3, 1, 1, bias=False)
        nn.init.normal_(self.leave.weight, std=0.02 if colours else 0.0)
        nn.init.zeros_(self.changes.weight)
        nn.init.zeros_(self.keep.weight)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As torch does; weights from before there was `keep` have none for it, which is as if they were 0."""
        without = {"keep.weight": torch.zeros_like(self.keep.weight)}
        return super().load_state_dict({**without, **state_dict}, strict, assign)

    def forward(
        self, x: Tensor, t: Tensor, label: Tensor, changes: Tensor | None = None, keep: Tensor | None = None
    ) -> Tensor:
        features = self.features(x, self.told(t), label, changes, keep)
        return (self.sprite(features, t) - x) / (1 - t)[:, None, None, None]

    def told(self, t: Tensor) -> Tensor:
        """The times that it is told when it draws: earlier, as what is drawn is noisier than what it has learnt from
        (time-shift sampler, Li et al. 2024). Where colours are mixed, that was not measured.
        """
        return t if self.head is None else t - _EARLIER * t * (1 - t)

    def sprite(self, features: Tensor, t: Tensor) -> Tensor:
        """The sprite [B, 4, S, S] that x_t leads to, by its features: float32."""
        if self.head is None:
            return features.float()
        return self.head.mean(features.permute(0, 2, 3, 1), t).permute(0, 3, 1, 2)

    def features(
        self, x: Tensor, t: Tensor, label: Tensor, changes: Tensor | None = None, keep: Tensor | None = None
    ) -> Tensor:
        """What the guess is made of, [B, channels, S, S]: the colour of each pixel, or what the head makes odds of."""
        condition = self.time(t) + (label @ self.label.weight if label.is_floating_point() else self.label(label))
        if changes is not None:
            condition = condition + self.changes(changes)
        condition = F.silu(condition)
        border = (0, self.padding, 0, self.padding)
        fine = self.enter(F.pixel_unshuffle(F.pad(x, border, value=-1.0), self.patch))
        if keep is not None:
            fine = fine + self.keep(F.pixel_unshuffle(F.pad(keep, border), self.patch))
        for block in self.down1:
            fine = block(fine, condition)
        coarse = self.pool1(fine)
        for block in self.down2:
            coarse = block(coarse, condition)
        h = self.pool2(coarse)
        h = self.bottom[1](self.attend(self.bottom[0](h, condition)), condition)
        h = torch.cat([F.interpolate(self.rise2(h), scale_factor=2.0, mode="nearest"), coarse], 1)
        for block in self.up2:
            h = block(h, condition)
        h = torch.cat([F.interpolate(self.rise1(h), scale_factor=2.0, mode="nearest"), fine], 1)
        for block in self.up1:
            h = block(h, condition)
        return F.pixel_shuffle(self.leave(F.hardswish(self.norm(h))), self.patch)[:, :, : self.size, : self.size]


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
    can = frozenset({"vary", "fill", "mirror", "seamless", "silhouette", "blend", "mix", "map", "from_noise", "flow"})
    solver = CONSTANTS
    strides = _STRIDES
    fixed_by_weights = ("width", "colours")
    fine_tuning = MappingProxyType({"learning_rate": 1e-3})  # at the usual rate, what they hold is soon forgotten

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
        label = torch.where(rng.rand() < config.label_drop, network.classes, batch.y)
        noise = rng.randn(*batch.x.shape[1:])
        filling = config.filling if batch.progress >= _FILLING_FROM else 0.0
        rows = None if network.head is None else some_rows(network.size, rng.rand(1))
        error = _error(network, batch, noise, t, label, _some_kept(batch, filling, rng), rows)
        return error / (1 - filling / 2)  # of what is filled in half is kept, on average: the curve has no step there

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
        network: UNet, given: Given, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0
    ) -> Iterator[Tensor]:
        """After Meng et al. 2022 (SDEdit): the sprites, as far back towards noise as the strength says, drawn anew.

        A shorter way takes fewer steps: two at least.
        """
        start = 1 - given.strength
        noise = draw_noise(len(given.sprites), network.size, seed, first).to(given.sprites.device)
        noise = mirrored(noise, *given.mirror)
        velocity = _velocity(network, _known(network, labels), guidance, given, noise)
        fewer = min(steps, max(2, math.ceil(steps * given.strength)))
        return solve(velocity, torch.lerp(noise, given.sprites, start), moments(fewer, start))

    @staticmethod
    def knows_filling(network: UNet) -> bool:
        return bool(network.keep.weight.any())

    @staticmethod
    def blend(network: UNet, sprites: Tensor, labels: Tensor, shares: Tensor, steps: int) -> Iterator[Tensor]:
        known = _known(network, labels)
        noise = encode(guided(_WithAllOdds(network), known, 1.0), sprites, steps)
        mixtures = shares @ F.one_hot(known, network.classes + 1).float()
        # The way back knew no guidance: with it, the way forth would not lead to the same sprites.
        yield from solve(guided(network, mixtures, 1.0), blend_noise(noise, shares), moments(steps))

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

        return solve(velocity, noise.view(1, 4, height, width), moments(steps))

    @staticmethod
    def path(network: UNet, labels: Tensor, guidance: float, seed: int, first: int = 0) -> Iterator[Tensor]:
        noise = draw_noise(len(labels), network.size, seed, first).to(labels.device)
        velocity = guided(_WithAllOdds(network), _known(network, labels), guidance)
        states = itertools.chain([noise], solve(velocity, noise, moments(2 * _STRIDES)))
        return itertools.compress(states, _is_between_strides(network))

    @staticmethod
    def stride(network: UNet, x: Tensor, number: Tensor, labels: Tensor) -> Tensor:
        times = torch.tensor(_stride_times(network), device=x.device)
        t, t_next = times[number], times[number + 1]
        return x + (t_next - t)[:, None, None, None] * _WithAllOdds(network)(x, t, _known(network, labels))

    @classmethod
    def draw_in_strides(cls, network: UNet, labels: Tensor, seed: int, first: int = 0) -> Iterator[Tensor]:
        x, known = draw_noise(len(labels), network.size, seed, first).to(labels.device), _known(network, labels)
        velocity = guided(network, known, 1.0)
        for t, t_next in itertools.pairwise(_stride_times(network)):
            x = x + (t_next - t) * velocity(x, t)
            yield x


def _draw_from(network: UNet, noise: Tensor, labels: Tensor, guidance: float | Tensor, steps: int) -> Iterator[Tensor]:
    return solve(guided(network, _known(network, labels), guidance), noise, moments(steps))


class _WithAllOdds:
    """A network that gives no colour precedence in the last step: for what is to be learnt, or followed backwards."""

    def __init__(self, network: UNet) -> None:
        self.classes = network.classes
        self._network = network

    def __call__(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        features = self._network.features(x, self._network.told(t), label)
        sprite = self._network.sprite(features, torch.zeros_like(t))
        return (sprite - x) / (1 - t)[:, None, None, None]


def _is_between_strides(network: UNet) -> list[bool]:
    """Of the states of a path in 2 * _STRIDES steps, whether one is between two strides, the first or the last.

    With a palette, the last stride is the last step, which takes the likeliest colours.
    """
    kept = range(0, 2 * _STRIDES + 1, 2) if network.head is None else (0, 3, 5, 7, 9, 10)
    return [place in kept for place in range(2 * _STRIDES + 1)]


def _stride_times(network: UNet) -> list[float]:
    return list(itertools.compress(moments(2 * _STRIDES), _is_between_strides(network)))


def _known(network: UNet, labels: Tensor) -> Tensor:
    """Labels as the network takes them, of int64 [N] with -1 for any class or of shares float32 [N, classes]."""
    if labels.is_floating_point():
        return F.pad(labels, (0, 1))
    return torch.where(labels < 0, network.classes, labels)


def _velocity(
    network: UNet, labels: Tensor, guidance: float, given: Given, noise: Tensor
) -> Callable[[Tensor, float], Tensor]:
    """The velocity that keeps to what is given. Kept pixels, and alpha that is known, go from noise to what they are.

    A network that has learnt to fill is shown the kept pixels themselves. One that has not is shown them as noisy as
    all others are at that time (Lugmayr et al. 2022), and does worse.
    """
    sprites, keep = given.sprites, given.keep
    learnt = keep is not None and Generator.knows_filling(network)
    looking = Periodic(network, *given.seamless) if any(given.seamless) else network
    free = guided(looking, labels, guidance, keep if learnt else None)

    def velocity(x: Tensor, t: float) -> Tensor:
        shown = torch.where(keep == 1, sprites, x) if keep is not None and learnt else x
        v = mirrored(free(shown, t), *given.mirror)
        if given.alpha is not None:
            v = torch.cat([v[:, :3], given.alpha - noise[:, 3:]], 1)
        return v if keep is None else torch.where(keep == 1, sprites - noise, v)

    return velocity


def _some_kept(batch: Batch, filling: float, rng: BatchRng) -> Tensor:
    """Which pixels are shown as they are, 1 there: float32 [B, 1, S, S]; some of that share of the sprites.

    What is hidden is a box, all but a box, or blobs, of any size.
    """
    if not filling:
        return torch.zeros_like(batch.x[:, :1])
    size = batch.x.shape[-1]
    axis = torch.linspace(-1, 1, size, device=batch.x.device)
    x, y, slimness = rng.randn(3, 1, 1, 1).mul(0.5).unbind(1)
    box = torch.maximum((axis - x).abs() * slimness.exp(), (axis[:, None] - y).abs() / slimness.exp())
    blobs = F.interpolate(rng.randn(1, 5, 5), size=(size, size), mode="bicubic", align_corners=True)
    kind, is_filled, share = rng.rand(3, 1, 1, 1).unbind(1)
    depth = torch.where(kind < 0.5, blobs, torch.where(kind < 0.75, box, -box))
    in_order = depth.flatten(1).sort(1).values  # [B, S * S]
    edge = in_order.gather(1, (share.flatten(1) * in_order.shape[1]).long())  # of so many pixels, all below are hidden
    return ((depth >= edge.view_as(share)) & (is_filled < filling)).float()


def _error(
    network: UNet, batch: Batch, noise: Tensor, t: Tensor, label: Tensor, keep: Tensor, rows: Tensor | None = None
) -> Tensor:
    """How wrong the guess is at times t [B] on the lines from `noise` to the batch's sprites; 0 where pixels are kept.

    The mean squared error of the velocity. With a palette, half of that and the cross-entropy of the odds of colours,
    in nats a pixel: in these rows of the sprites, int64 [B, rows], or in all.
    """
    t = t.clamp(max=LATEST)
    mix = t[:, None, None, None]
    x = torch.where(keep == 1, batch.x, (1 - mix) * noise + mix * batch.x)
    guess = network.features(x, t, label, batch.augment_labels, keep)
    if network.head is None:
        return (((guess.float() - batch.x) / (1 - mix)).square() * (1 - keep)).mean()
    seen = guess, batch.x, 1 - keep
    features, sprites, counts = seen if rows is None else (in_rows(values, rows) for values in seen)
    pixels, colours = (values.permute(0, 2, 3, 1).contiguous() for values in (features, sprites))
    error, mean = errors_and_means(network.head, pixels, network.head.nearest(colours))
    velocity_error = ((mean - colours) / (1 - mix)).square().mean(3)  # the velocity leads from x to the guess in 1 - t
    return ((error + _VELOCITY_SHARE * velocity_error) * counts[:, 0]).mean()
