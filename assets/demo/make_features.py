"""Trains the network in whose features any two sets of sprites can be compared, on the studio's own art alone.

    python assets/demo/make_features.py

It learns of which class a sprite is, whatever its colours, and how and how much it was spoilt. Figures by other weights
don't compare: run it again only if the network is another one. The same machine gives the same bytes.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch
from make_demo_sprites import CLASSES, draw_on_canvases
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from studio.engine.quality.features import FeatureNetwork, SpriteFeatures
from studio.engine.steps.batches import to_device, to_input

OUT = Path(__file__).resolve().parents[1] / "features.safetensors"
SEED = 20261122
SIZE = 32
PER_CLASS = 1000
STEPS, WARM_UP, BATCH, RATE = 4000, 100, 48, 2e-3
KINDS = 7  # of spoiling, not at all among them
LEAST, MOST = 0.005, 0.3  # how much of a sprite is spoilt


def recoloured(x: Tensor, rng: torch.Generator) -> Tensor:
    """Sprites [B, 4, S, S] as in `Batch`, their hues turned, three of ten as they are."""
    colour, alpha = (x[:, :3] + 1) / 2, (x[:, 3:] + 1) / 2
    turn = 2 * math.pi * torch.rand(len(x), 1, 1, generator=rng)
    turn *= torch.rand(len(x), 1, 1, generator=rng) > 0.3
    axis = torch.full((3,), 3**-0.5)  # of greys, in RGB
    across = torch.linalg.cross(torch.eye(3), axis.expand(3, 3))
    rotation = torch.eye(3) * turn.cos() + across * turn.sin() + torch.outer(axis, axis) * (1 - turn.cos())
    turned = torch.einsum("bij,bjhw->bihw", rotation, colour).clamp(min=0).minimum(alpha)
    return torch.cat([turned, alpha], 1) * 2 - 1


def spoilt(x: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Sprites [B, 4, S, S] as in `Batch`, spoilt in turn in one of seven ways, the ways int64 [B] and how much [B].

    Not at all, specks, blotches, blurred, a part blurred, outlines moved, a part in other colours. How much is 0 for
    what is as it was, else 0 to 1.
    """

    def random(channels: int) -> Tensor:
        return torch.rand(count, channels, size, size, generator=rng)

    count, _, size, _ = x.shape
    plain = torch.cat([(x[:, :3] + 1) / 2, (x[:, 3:] + 1) / 2], 1)
    colour, alpha = plain[:, :3], plain[:, 3:]
    amount = torch.rand(count, 1, 1, 1, generator=rng)
    share = LEAST * (MOST / LEAST) ** amount
    specks = torch.cat([random(3), torch.ones_like(alpha)], 1).where((alpha > 0) & (random(1) < share), plain)
    field = F.interpolate(torch.randn(count, 3, size // 4, size // 4, generator=rng), scale_factor=4.0)
    blotches = torch.cat([(colour + share.sqrt() / 2 * field * alpha).clamp(min=0).minimum(alpha), alpha], 1)
    blur = F.avg_pool2d(F.pad(plain, (1, 1, 1, 1)), 3, 1)
    middle = size * (0.2 + 0.6 * torch.rand(2, count, 1, 1, 1, generator=rng))
    places = torch.arange(size)
    half = size / 2 * share.sqrt()
    is_part = ((places[:, None] - middle[0]).abs() < half) & ((places - middle[1]).abs() < half)
    is_edge = F.max_pool2d(alpha, 3, 1, 1) + F.max_pool2d(-alpha, 3, 1, 1) > 0.5
    neighbour = plain.roll(1, 2).where(random(1) < 0.5, plain.roll(1, 3))
    ways = [
        plain,
        specks,
        blotches,
        plain.lerp(blur, (2 * share.sqrt()).clamp(max=1)),
        blur.where(is_part, plain),
        neighbour.where(is_edge & (random(1) < 3 * share), plain),
        torch.cat([colour.roll(1, 1), alpha], 1).where(is_part, plain),
    ]
    way = torch.arange(count) % KINDS
    found = torch.stack(ways)[way, torch.arange(count)]
    return found * 2 - 1, way, amount[:, 0, 0, 0] * (way > 0)


class Pupil(nn.Module):
    """A feature network and what it is taught by; the heads are not kept."""

    def __init__(self) -> None:
        super().__init__()
        self.network = FeatureNetwork()
        count = len(self.network.mean)
        self.classify = nn.Linear(count, len(CLASSES))
        self.judge = nn.Sequential(nn.Linear(count, count), nn.SiLU(), nn.Linear(count, KINDS + 1))

    def loss(self, x: Tensor, label: Tensor, way: Tensor, amount: Tensor) -> Tensor:
        """Of classes, ways of spoiling and how much was spoilt."""
        features = self.network(x)
        judged = self.judge(features)
        return (
            F.cross_entropy(self.classify(features), label, label_smoothing=0.1)
            + F.cross_entropy(judged[:, :KINDS], way)
            + 4 * F.mse_loss(judged[:, KINDS], amount)
        )


def main() -> None:
    """Train it, and write its weights in half precision."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # more would add numbers up in another order
    torch.use_deterministic_algorithms(True)
    rgba = draw_on_canvases(SEED, PER_CLASS, SIZE)
    labels = torch.arange(len(CLASSES)).repeat_interleave(PER_CLASS)
    pixels, pupil, rng = to_device(rgba, torch.device("cpu")), Pupil(), torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.AdamW(pupil.parameters(), RATE, weight_decay=0.05)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RATE * min(1, (step + 1) / WARM_UP) * min(1, 2 * (1 - step / STEPS))
        chosen = torch.randint(len(pixels), (BATCH,), generator=rng)
        x, way, amount = spoilt(recoloured(to_input(pixels[chosen]), rng), rng)
        loss = pupil.loss(x, labels[chosen], way, amount)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(pupil.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 200 == 0:
            sys.stdout.write(f"step {step + 1} of {STEPS}: loss {loss.item():.3f}\n")
            sys.stdout.flush()
    SpriteFeatures(pupil.network, torch.device("cpu")).fit_standardization(rgba)
    save_file({name: tensor.half().contiguous() for name, tensor in pupil.network.state_dict().items()}, OUT)
    sys.stdout.write(f"{OUT}: {OUT.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
