"""A code of a few numbers for each sprite, and the sprite back from it: a variational autoencoder (Kingma & Welling
2014).

What it tells of each pixel are the odds of the colours of a palette, learnt by cross-entropy: a decoder that is unsure
says so in the odds, where one that is learnt by squared error mixes colours. What is drawn in the end is the colour to
be expected by odds that are sharpened: the likeliest alone would be black wherever it is unsure, as outlines are black,
and that of the odds as they are is blurred.
The codes of a class are taken to be normal around a mean of its own, which is learnt along with them, so that new
sprites of it can be drawn. The decoder is told the code alone: it knows no class, and between any two codes there are
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core.config import TrainingConfig, Value, setting, with_default
from studio.data.sprites import Sprites
from studio.recipes.base import Batch, BatchRng, Evaluation, Preset, Recipe, Spec, TrainingBudget
from studio.recipes.colours import PaletteHead, colour_errors, in_rows, palette_for, some_rows
from studio.recipes.flow import normal_rows
from studio.recipes.layers import ResidualBlock, group_norm, whole_groups
from studio.recipes.planning import Planner


@dataclass(frozen=True)
class AutoencoderConfig(TrainingConfig):
    """Settings of the autoencoder."""

    minutes: float = with_default(TrainingConfig, "minutes", 5.0)
    batch_size: int = with_default(TrainingConfig, "batch_size", 32)
    learning_rate: float = with_default(TrainingConfig, "learning_rate", 2e-3)
    width: int = setting(
        32, "Channels of the first level of the network: more learn finer detail and train slower.", low=16, high=512
    )
    code: int = setting(
        32, "How many numbers stand for a sprite: more give it back more exactly, fewer bring like ones closer.",
        unit="numbers", label="Code",
        low=2, high=1024,
    )  # fmt: skip
    colours: int = setting(
        256, "How many of your sprites' colours the model chooses from, pixel by pixel.",
        unit="colours", label="Palette",
        low=2, high=1024, advanced=True,
    )  # fmt: skip
    kl_weight: float = setting(
        1.0, "Pull of the codes of a class towards one another: more lets more of the codes between them be sprites, "
        "less gives sprites back more exactly. 1 is the variational autoencoder of the books.",
        label="Pull of codes",
        low=0.0, high=100.0, advanced=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", whole_groups(self.width))


_PLANNER = Planner(
    width=AutoencoderConfig.width, widths=(16, 32, 48, 64), slowing=1.4, most_looks=1000, most_tuning_looks=1000
)
_PIXEL_FEATURES = 64  # divided by the side of a patch: channels of a pixel, of which the head makes odds
_SHARPNESS = 2.5  # of the odds, when drawing: as near to held-out sprites as at 1, with edges, and nearer than at 100
_ANY = 0.1  # share of the sprites whose codes teach what those of any class are like


class CodeNetwork(nn.Module):
    """Sprites x [B, 4, S, S] to codes [B, code] and back.

    Works at half resolution through pixel-unshuffle (a quarter from 96 pixels on), then two levels further down. Any S:
    the border is padded. prior: for each class, and last for any, the mean of its codes and the logarithm of their
    deviation.
    """

    def __init__(self, size: int, classes: int, width: int, code: int, colours: int) -> None:
        super().__init__()
        self.size, self.classes, self.code = size, classes, code
        self.patch = 2 if size < 96 else 4
        self.padding = -size % (4 * self.patch)
        self.side, deep = (size + self.padding) // (4 * self.patch), 4 * width
        features = _PIXEL_FEATURES // self.patch
        self.enter = nn.Conv2d(4 * self.patch**2, width, 3, 1, 1)
        self.down = nn.Sequential(
            ResidualBlock(width, width),
            ResidualBlock(width, deep, stride=2),
            ResidualBlock(deep, deep, stride=2),
            ResidualBlock(deep, deep),
        )
        self.squeezed = group_norm(deep)
        self.squeeze, self.expand = nn.Linear(deep * self.side**2, 2 * code), nn.Linear(code, deep * self.side**2)
        self.bottom = nn.Sequential(ResidualBlock(deep, deep), ResidualBlock(deep, deep))
        self.middle = nn.Sequential(ResidualBlock(deep, deep), nn.Conv2d(deep, width, 1))
        self.fine = nn.Sequential(ResidualBlock(width, width), ResidualBlock(width, width))
        self.norm, self.leave = group_norm(width), nn.Conv2d(width, features * self.patch**2, 3, 1, 1)
        self.head = PaletteHead(features, colours)
        self.prior = nn.Embedding(classes + 1, 2 * code)
        nn.init.zeros_(self.prior.weight)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The mean of the code of each sprite and the logarithm of its deviation, float32 [B, code] both."""
        border = (0, self.padding, 0, self.padding)
        h = self.down(self.enter(F.pixel_unshuffle(F.pad(x, border, value=-1.0), self.patch)))
        mean, deviation = self.squeeze(F.hardswish(self.squeezed(h)).flatten(1)).float().chunk(2, 1)
        return mean, deviation.clamp(-10.0, 10.0)

    def features(self, code: Tensor) -> Tensor:
        """What the head makes odds of, [B, channels, S, S]."""
        h = self.bottom(self.expand(code).unflatten(1, (-1, self.side, self.side)))
        h = self.middle(F.interpolate(h, scale_factor=2.0, mode="nearest"))
        h = self.fine(F.interpolate(h, scale_factor=2.0, mode="nearest"))
        h = F.pixel_shuffle(self.leave(F.hardswish(self.norm(h))), self.patch)
        return h[:, :, : self.size, : self.size]

    def decode(self, code: Tensor) -> Tensor:
        """The sprite [B, 4, S, S]: float32."""
        return self.head.expected(self.features(code).permute(0, 2, 3, 1), _SHARPNESS).permute(0, 3, 1, 2)

    def codes_of(self, label: Tensor) -> tuple[Tensor, Tensor]:
        """As `encode`, of the codes of each class int64 [B] or of shares of them float32 [B, classes + 1]."""
        known = label @ self.prior.weight if label.is_floating_point() else self.prior(label)
        mean, deviation = known.float().chunk(2, 1)
        return mean, deviation


class Autoencoder(Recipe[AutoencoderConfig, CodeNetwork]):
    """Gives sprites back from codes. It draws new ones in one step, of random codes, and knows no guidance."""

    name = "autoencoder"
    title = "Autoencoder"
    summary = "Learns a code of a few numbers for each sprite: a map of all of them, and a way from any to any other."
    makes = "sprites"
    Config, Network = AutoencoderConfig, CodeNetwork
    order = 4
    relative_cost = 7.7
    small = AutoencoderConfig(width=16, code=8, colours=32)
    capabilities = frozenset({"encode", "decode", "blend", "mix", "from_noise"})
    fixed_by_weights = ("width", "code", "colours")

    def presets(self, means: TrainingBudget) -> tuple[Preset, ...]:
        return (
            _PLANNER.preset("Quick", "A first map: which sprites are alike.", 2.0, 40_000, means),
            _PLANNER.preset("Standard", "Sprites that come back recognisably.", 5.0, 120_000, means),
            _PLANNER.preset("Best", "Finer detail, for a longer break.", 20.0, 300_000, means),
        )

    def arguments(self, config: AutoencoderConfig, spec: Spec) -> dict[str, Value]:
        classes = len(spec.class_names)
        return {
            "size": spec.size, "classes": classes, "width": config.width, "code": config.code,
            "colours": config.colours,
        }  # fmt: skip

    def statistics(self, sprites: Sprites, config: AutoencoderConfig) -> Mapping[str, Tensor]:
        return {"head.palette": palette_for(sprites.rgba, config.colours)}

    def rows(self, spec: Spec) -> Mapping[str, tuple[str, ...]]:
        return {"prior.weight": spec.class_names}

    def loss(self, network: CodeNetwork, batch: Batch, config: AutoencoderConfig, rng: BatchRng) -> Tensor:
        label = torch.where(rng.rand() < _ANY, network.classes, batch.y)
        mean, deviation = network.encode(batch.x)
        features = network.features(mean + deviation.exp() * rng.randn(network.code))
        rows = some_rows(network.size, rng.rand(1))
        error = _error(network, in_rows(features, rows), in_rows(batch.x, rows))
        divergence = _divergence(mean, deviation, *network.codes_of(label))
        return error + config.kl_weight / network.size**2 * divergence.mean()

    def evaluate(
        self, network: CodeNetwork, batches: Iterable[Batch], config: AutoencoderConfig, spec: Spec
    ) -> Evaluation:
        """The loss without chance in the codes, and the share of the pixels whose likeliest colour is their own."""
        total, right, count = 0.0, 0.0, 0
        for batch in batches:
            mean, deviation = network.encode(batch.x)
            divergence = _divergence(mean, deviation, *network.codes_of(batch.y))
            features, colours = _by_pixel(network.features(mean)), _by_pixel(batch.x)
            loss = _error(network, features, colours) + config.kl_weight / network.size**2 * divergence.mean()
            likeliest = network.head.mean(features, torch.ones(len(mean), device=mean.device))
            found, true = network.head.nearest(likeliest), network.head.nearest(colours)
            total += float(loss) * len(batch.x)
            right += float((found == true).float().mean((1, 2)).sum())
            count += len(batch.x)
        return Evaluation({"loss": total / count, "pixels": right / count})

    @staticmethod
    def encode(network: CodeNetwork, x: Tensor) -> Tensor:
        return network.encode(x)[0]

    @staticmethod
    def decode(network: CodeNetwork, codes: Tensor) -> Tensor:
        return network.decode(codes)

    @staticmethod
    def draw(
        network: CodeNetwork, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0
    ) -> Iterator[Tensor]:
        noise = normal_rows(len(labels), (network.code,), seed, first).to(labels.device)
        yield from _draw_from(network, noise, labels)

    @staticmethod
    def noise(network: CodeNetwork, count: int, seed: int, first: int = 0) -> Tensor:
        return normal_rows(count, (network.code,), seed, first)

    @staticmethod
    def draw_from(
        network: CodeNetwork, noise: Tensor, labels: Tensor, guidance: float | Tensor, steps: int
    ) -> Iterator[Tensor]:
        yield from _draw_from(network, noise, labels)

    @staticmethod
    def blend(network: CodeNetwork, sprites: Tensor, labels: Tensor, shares: Tensor, steps: int) -> Iterator[Tensor]:
        yield network.decode(shares @ network.encode(sprites)[0])


def _draw_from(network: CodeNetwork, noise: Tensor, labels: Tensor) -> Iterator[Tensor]:
    known = F.pad(labels, (0, 1)) if labels.is_floating_point() else torch.where(labels < 0, network.classes, labels)
    mean, deviation = network.codes_of(known)
    yield network.decode(mean + deviation.exp() * noise)


def _by_pixel(values: Tensor) -> Tensor:
    """[B, channels, H, W] as [B, H, W, channels]."""
    return values.permute(0, 2, 3, 1).contiguous()


def _error(network: CodeNetwork, features: Tensor, x: Tensor) -> Tensor:
    """The cross-entropy of the odds of colours, in nats a pixel, by features [B, H, W, channels] of x [B, H, W, 4]."""
    even = torch.full(x.shape[:-1], 1 / x[..., 0].numel(), device=x.device)
    return colour_errors(network.head, features, x, even, torch.zeros_like(even))


def _divergence(mean: Tensor, deviation: Tensor, prior_mean: Tensor, prior_deviation: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of normal codes from those of their class, in nats: [B]. Means and logarithms of
    deviations: [B, code].
    """
    apart = (mean - prior_mean).square() + (2 * deviation).exp()
    return (prior_deviation - deviation + apart / (2 * (2 * prior_deviation).exp()) - 0.5).sum(1)
