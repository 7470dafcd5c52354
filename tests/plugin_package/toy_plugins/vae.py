"""A variational autoencoder (Kingma & Welling 2014): draws a sprite from a few normal numbers, in one step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core.config import TrainingConfig, Value, setting, with_default
from studio.recipes.base import Batch, BatchRng, Evaluation, Preset, Recipe, Spec, TrainingBudget


@dataclass(frozen=True)
class VAEConfig(TrainingConfig):
    hidden: int = setting(512, "Features between a sprite and its code.", low=8, high=4096)
    code: int = setting(32, "Numbers that stand for a sprite.", low=2, high=1024)
    kl_weight: float = setting(1e-3, "Pull of the codes towards normal numbers.", low=0.0, high=1.0, advanced=True)
    label_drop: float = setting(0.1, "Share of sprites shown without their class.", low=0.0, high=1.0, advanced=True)
    minutes: float = with_default(TrainingConfig, "minutes", 2.0)


class VAE(nn.Module):
    """Sprites [B, 4, S, S] to codes [B, code] and back, for a class [B]; label `classes` stands for any class."""

    def __init__(self, size: int, classes: int, hidden: int, code: int) -> None:
        super().__init__()
        self.size, self.classes, self.code = size, classes, code
        self.label = nn.Embedding(classes + 1, hidden)
        self.enter, self.leave = nn.Linear(4 * size * size, hidden), nn.Linear(hidden, 4 * size * size)
        self.squeeze, self.expand = nn.Linear(hidden, 2 * code), nn.Linear(code, hidden)

    def encode(self, x: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the codes, [B, code] each."""
        mean, log_variance = self.squeeze(F.silu(self.enter(x.flatten(1)) + self.label(label))).float().chunk(2, 1)
        return mean, log_variance

    def decode(self, code: Tensor, label: Tensor) -> Tensor:
        """Sprites [B, 4, S, S]."""
        x: Tensor = self.leave(F.silu(self.expand(code) + self.label(label)))
        return x.float().tanh().view(-1, 4, self.size, self.size)


class VAERecipe(Recipe[VAEConfig, VAE]):
    name = "vae"
    title = "Toy VAE"
    summary = "Learns to draw sprites like yours from a few numbers, blurred but at once."
    makes = "sprites"
    Config, Network = VAEConfig, VAE
    small = VAEConfig(hidden=64, code=8)
    capabilities = frozenset({"from_noise"})

    def presets(self, budget: TrainingBudget) -> tuple[Preset, ...]:
        return (Preset("Standard", "All that it learns.", {"minutes": 2.0}),)

    def arguments(self, config: VAEConfig, spec: Spec) -> dict[str, Value]:
        return {"size": spec.size, "classes": len(spec.class_names), "hidden": config.hidden, "code": config.code}

    def loss(self, network: VAE, batch: Batch, config: VAEConfig, rng: BatchRng) -> Tensor:
        label = torch.where(rng.rand() < config.label_drop, network.classes, batch.y)
        mean, log_variance = network.encode(batch.x, label)
        code = mean + (log_variance / 2).exp() * rng.randn(network.code)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean() / 2
        return F.mse_loss(network.decode(code, label), batch.x) + config.kl_weight * divergence

    def evaluate(self, network: VAE, batches: Iterable[Batch], config: VAEConfig, spec: Spec) -> Evaluation:
        """How far sprites are from what their mean codes give back."""
        total, count = 0.0, 0
        for batch in batches:
            found = network.decode(network.encode(batch.x, batch.y)[0], batch.y)
            total += float(F.mse_loss(found, batch.x)) * len(batch.x)
            count += len(batch.x)
        return Evaluation({"loss": total / count})

    @staticmethod
    def draw(network: VAE, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0) -> Iterator[Tensor]:
        code = normal_codes(len(labels), network.code, seed, first).to(labels.device)
        yield network.decode(code, torch.where(labels < 0, network.classes, labels))

    @staticmethod
    def noise(network: VAE, count: int, seed: int, first: int = 0) -> Tensor:
        return normal_codes(count, network.code, seed, first)

    @staticmethod
    def draw_from(
        network: VAE, noise: Tensor, labels: Tensor, guidance: float | Tensor, steps: int
    ) -> Iterator[Tensor]:
        yield network.decode(noise, torch.where(labels < 0, network.classes, labels))


def normal_codes(count: int, size: int, seed: int, first: int) -> Tensor:
    """Codes [count, size], on the CPU: each follows from the seed and its place alone."""
    rng = torch.Generator()
    places = range(first, first + count)
    return torch.stack([torch.randn(size, generator=rng.manual_seed(seed + 1_000_003 * place)) for place in places])
