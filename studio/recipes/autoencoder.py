"""The autoencoder: turns each sprite into a code of a few numbers, and back. A variational autoencoder (Kingma &
Welling 2014).

For each pixel the decoder predicts logits of the colours of a palette and trains with cross-entropy: an unsure decoder
gives low probabilities, where one trained with squared errors would mix colours. Drawing takes the expected colour of
sharpened logits. The most likely colour alone would turn every unsure pixel black, as outlines are black; the expected
colour without sharpening is blurred.

The codes of a class follow a normal distribution with a learnt mean and deviation, so that new sprites of the class can
be drawn. The decoder sees the code alone, not the class: all codes between two codes can be decoded.
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
from studio.recipes.colours import PaletteHead, choose_palette, choose_rows, colour_loss, select_rows
from studio.recipes.flow import normal_rows
from studio.recipes.layers import ResidualBlock, group_norm, patch_size, whole_groups
from studio.recipes.planning import Planner


@dataclass(frozen=True)
class AutoencoderConfig(TrainingConfig):
    """The settings of the autoencoder."""

    minutes: float = with_default(TrainingConfig, "minutes", 5.0)
    batch_size: int = with_default(TrainingConfig, "batch_size", 32)
    learning_rate: float = with_default(TrainingConfig, "learning_rate", 2e-3)
    width: int = setting(
        32, "Channels of the network's first level. More channels learn finer detail and train slower.",
        low=16, high=512,
    )  # fmt: skip
    code: int = setting(
        32, "Numbers in the code of a sprite. More numbers reproduce sprites better; fewer group similar sprites.",
        unit="numbers", label="Code", low=2, high=1024,
    )  # fmt: skip
    colours: int = setting(
        256, "Number of colours in the model's palette, chosen from your sprites.",
        unit="colours", label="Palette", low=2, high=1024, advanced=True,
    )  # fmt: skip
    kl_weight: float = setting(
        1.0, "Weight of the KL divergence, which pulls the codes of a class together. More weight makes interpolations "
        "better, less reproduces sprites more exactly. 1 is the standard variational autoencoder.",
        label="KL weight", low=0.0, high=100.0, advanced=True, low_text="Off",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", whole_groups(self.width))


_PLANNER = Planner(
    width=AutoencoderConfig.width, widths=(16, 32, 48, 64), slowing=1.4, most_epochs=1000, most_tuning_epochs=1000
)
_PIXEL_FEATURES = 64  # divided by the patch size: feature channels per pixel, the input of the palette head
_SHARPNESS = 2.5  # of the logits when drawing: sharper edges than 1, smaller errors on validation sprites than 100
_ANY = 0.1  # share of the sprites without a class in training, for drawing without a class


class CodeNetwork(nn.Module):
    """Encodes sprites x [B, 4, S, S] as codes [B, code], and decodes codes to sprites.

    Works at half resolution through pixel-unshuffle (a quarter from 96 pixels on), with two coarser levels. S may be
    any size: the border is padded.
    prior: weight [classes + 1, 2 * code], mean and log standard deviation of the codes by class; the last row stands
    for any class.
    """

    def __init__(self, size: int, classes: int, width: int, code: int, colours: int) -> None:
        super().__init__()
        self.size, self.classes, self.code = size, classes, code
        self.patch = patch_size(size)
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
        # side: pixels of the coarsest level, 4 for sprites of 32 pixels
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
        """Encode sprites x; return the mean and log standard deviation of their codes, both float32 [B, code]."""
        border = (0, self.padding, 0, self.padding)
        # [B, deep, side, side]
        h = self.down(self.enter(F.pixel_unshuffle(F.pad(x, border, value=-1.0), self.patch)))
        mean, log_std = self.squeeze(F.hardswish(self.squeezed(h)).flatten(1)).float().chunk(2, 1)
        return mean, log_std.clamp(-10.0, 10.0)

    def features(self, code: Tensor) -> Tensor:
        """Decode codes [B, code] to features [B, channels, S, S], the input of the palette head."""
        h = self.bottom(self.expand(code).unflatten(1, (-1, self.side, self.side)))  # [B, deep, side, side]
        h = self.middle(F.interpolate(h, scale_factor=2.0, mode="nearest"))  # [B, width, 2 * side, 2 * side]
        h = self.fine(F.interpolate(h, scale_factor=2.0, mode="nearest"))  # [B, width, 4 * side, 4 * side]
        return F.pixel_shuffle(self.leave(F.hardswish(self.norm(h))), self.patch)[:, :, : self.size, : self.size]

    def decode(self, code: Tensor) -> Tensor:
        """Decode codes [B, code] to sprites, float32 [B, 4, S, S]."""
        return self.head.expected(self.features(code).permute(0, 2, 3, 1), _SHARPNESS).permute(0, 3, 1, 2)

    def codes_of(self, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log standard deviation of the codes by label, both float32 [B, code].

        label: class indices int64 [B], or class weights in a mixture, float32 [B, classes + 1].
        """
        known = label @ self.prior.weight if label.is_floating_point() else self.prior(label)
        mean, log_std = known.float().chunk(2, 1)
        return mean, log_std


class Autoencoder(Recipe[AutoencoderConfig, CodeNetwork]):
    """Variational autoencoder: encodes sprites as codes, and draws new sprites from random codes in one step."""

    name = "autoencoder"
    title = "Autoencoder"
    summary = "Learns a code of a few numbers per sprite, for a map of all sprites and for in-betweens."
    makes = "sprites"
    Config, Network = AutoencoderConfig, CodeNetwork
    order = 4
    relative_cost = 7.7
    small = AutoencoderConfig(width=16, code=8, colours=32)
    capabilities = frozenset({"encode", "decode", "blend", "mix", "from_noise"})
    fixed_by_weights = ("width", "code", "colours")

    def presets(self, budget: TrainingBudget) -> tuple[Preset, ...]:
        return (
            _PLANNER.preset("Quick", "A first map of similar sprites.", 2.0, 40_000, budget),
            _PLANNER.preset("Standard", "Recognisable reconstructions.", 5.0, 120_000, budget),
            _PLANNER.preset("Best", "Finer detail, for a longer break.", 20.0, 300_000, budget),
        )

    def arguments(self, config: AutoencoderConfig, spec: Spec) -> dict[str, Value]:
        classes = len(spec.class_names)
        return {
            "size": spec.size, "classes": classes, "width": config.width, "code": config.code,
            "colours": config.colours,
        }  # fmt: skip

    def statistics(self, sprites: Sprites, config: AutoencoderConfig) -> Mapping[str, Tensor]:
        return {"head.palette": choose_palette(sprites.rgba, config.colours)}

    def rows(self, spec: Spec) -> Mapping[str, tuple[str, ...]]:
        return {"prior.weight": spec.class_names}

    def loss(self, network: CodeNetwork, batch: Batch, config: AutoencoderConfig, rng: BatchRng) -> Tensor:
        label = torch.where(rng.rand() < _ANY, network.classes, batch.y)
        mean, log_std = network.encode(batch.x)  # [B, code] each
        # Reparameterisation: the gradient flows through mean and log_std of the random code.
        features = network.features(mean + log_std.exp() * rng.randn(network.code))
        rows = choose_rows(network.size, rng.rand(1))
        error = _error(network, select_rows(features, rows), select_rows(batch.x, rows))
        divergence = _divergence(mean, log_std, *network.codes_of(label))
        # The error is per pixel, the divergence per sprite.
        return error + config.kl_weight / network.size**2 * divergence.mean()

    def evaluate(
        self, network: CodeNetwork, batches: Iterable[Batch], config: AutoencoderConfig, spec: Spec
    ) -> Evaluation:
        """Return the loss and the share of pixels in the right colour, for sprites decoded from their mean codes."""
        total, right, count = 0.0, 0.0, 0
        for batch in batches:
            mean, log_std = network.encode(batch.x)
            divergence = _divergence(mean, log_std, *network.codes_of(batch.y))
            features, colours = _by_pixel(network.features(mean)), _by_pixel(batch.x)
            loss = _error(network, features, colours) + config.kl_weight / network.size**2 * divergence.mean()
            likeliest = network.head.expected_at(features, torch.ones(len(mean), device=mean.device))
            found, true = network.head.nearest_index(likeliest), network.head.nearest_index(colours)
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
    mean, log_std = network.codes_of(known)
    yield network.decode(mean + log_std.exp() * noise)


def _by_pixel(values: Tensor) -> Tensor:
    """Move the channels last: [B, channels, H, W] to [B, H, W, channels]."""
    return values.permute(0, 2, 3, 1).contiguous()


def _error(network: CodeNetwork, features: Tensor, x: Tensor) -> Tensor:
    """Return the cross-entropy of the predicted colours in nats per pixel, float32 [].

    features: [B, H, W, channels], input of the palette head. x: [B, H, W, 4], the true colours.
    """
    even = torch.full(x.shape[:-1], 1 / x[..., 0].numel(), device=x.device)
    return colour_loss(network.head, features, x, even, torch.zeros_like(even))


def _divergence(mean: Tensor, log_std: Tensor, prior_mean: Tensor, prior_log_std: Tensor) -> Tensor:
    """Return the KL divergence between normally distributed codes and their priors, in nats: [B].

    All arguments: [B, code].
    """
    apart = (mean - prior_mean).square() + (2 * log_std).exp()
    return (prior_log_std - log_std + apart / (2 * (2 * prior_log_std).exp()) - 0.5).sum(1)
