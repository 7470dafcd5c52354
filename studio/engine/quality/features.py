"""Features of sprites for KID and Fréchet distances, from a small network trained on the training sprites.

Features of photographs say little about pixel art. So each training set gets a network, trained without validation
sprites and saved under the training set's fingerprint: equal features measure runs on equal data.

A network that only classifies ignores degraded sprites: noise over a tenth of the range changed no distance. So the
network also classifies a sprite's corruption (specks, blotches, blur), and features come from every level.
"""

import contextlib
from collections.abc import Generator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as as_bytes
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core import files, paths
from studio.core.arrays import Rgba
from studio.core.config import TrainingConfig
from studio.core.events import Event, Progress
from studio.data.sprites import Sprites
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import autocast
from studio.engine.steps.batches import DeviceSprites, stride_subsample, to_device, to_input
from studio.engine.steps.optim import make_optimizers, set_learning_rate
from studio.recipes.layers import ResidualBlock, group_norm

PROTOCOL = 5  # increase this after a change to the features, here or in the layers
_STEPS, _WARM_UP, _BATCH, _RATE = 600, 60, 32, 4e-3
_WIDTH = 16
_SHIFT_PX = 2
_SCALED_BY = 1024  # training sprites for the standardization; more would delay the training
_CORRUPTIONS = 4  # none, specks, blotches, blur
_TURNS = 4  # rotations of the pretext task
_MAX_BATCH = 256


class FeatureNetwork(nn.Module):
    """A small residual network (He et al. 2016) from x [B, 4, S, S] to features [B, 128].

    Features are means over positions at four levels. The input layer folds `patch` x `patch` pixels into a position.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, patch: int = 1) -> None:
        super().__init__()
        self.patch = patch
        width, deep = _WIDTH, 4 * _WIDTH
        self.enter = nn.Conv2d(4 * self.patch**2, width, 3, 1, 1)
        self.fine = ResidualBlock(width, width)
        self.middle = nn.Sequential(ResidualBlock(width, 2 * width, stride=2), ResidualBlock(2 * width, 2 * width))
        self.coarse = nn.Sequential(ResidualBlock(2 * width, deep, stride=2), ResidualBlock(deep, deep))
        self.norm = group_norm(deep)
        self.register_buffer("mean", torch.zeros(2 * deep))
        self.register_buffer("deviation", torch.ones(2 * deep))

    def forward(self, x: Tensor) -> Tensor:
        padding = -x.shape[-1] % self.patch
        x = F.pixel_unshuffle(F.pad(x, (0, padding, 0, padding), value=-1.0), self.patch)
        levels = [self.enter(x)]  # [B, 16, S, S]
        for stage in (self.fine, self.middle, self.coarse):
            levels.append(stage(levels[-1]))  # [B, 16, S, S], [B, 32, S/2, S/2], [B, 64, S/4, S/4]
        levels[-1] = self.norm(levels[-1])
        return torch.cat([F.silu(level).mean((2, 3)) for level in levels], 1)  # [B, 16 + 16 + 32 + 64]


class PretrainingNetwork(FeatureNetwork):
    """A feature network with two heads for training: classes from the last 64 features, corruptions from all 128.

    Folds large sprites, to keep feature maps at about 32 positions per side.
    """

    def __init__(self, size: int, classes: int) -> None:
        super().__init__(patch=max(1, size // 32))
        deep = 4 * _WIDTH
        self.classify = nn.Linear(deep, classes)
        self.judge = nn.Sequential(nn.Linear(2 * deep, deep), nn.SiLU(), nn.Linear(deep, _CORRUPTIONS))

    def class_scores(self, features: Tensor) -> Tensor:
        """Return logits [B, classes] for features [B, 128]."""
        return self.classify(features[:, -4 * _WIDTH :])  # type: ignore[no-any-return]


class SpriteFeatures:
    """Computes the features of sprites with a trained network on its device."""

    def __init__(self, network: FeatureNetwork, device: torch.device) -> None:
        self.network = network.to(device).to(memory_format=torch.channels_last).eval()
        self.device = device

    def of(self, rgba: Rgba) -> NDArray[np.float64]:
        """Return features float64 [N, 128] for sprites uint8 [N, S, S, 4].

        Standardizes features by the training sprites, and scales them to equal length, so no outlier dominates.
        """
        scaled = ((self._raw(rgba) - self.network.mean) / self.network.deviation).cpu().double()  # MPS has no float64
        return np.asarray((F.normalize(scaled) * scaled.shape[1] ** 0.5).numpy())  # length sqrt(128): RMS 1 per feature

    def fit_standardization(self, rgba: Rgba) -> None:
        """Set the mean and deviation for standardizing features, measured on the sprites `rgba`."""
        raw = self._raw(rgba)
        self.network.mean.copy_(raw.mean(0))
        self.network.deviation.copy_(raw.std(0).clamp(min=1e-6))

    @torch.no_grad()
    def _raw(self, rgba: Rgba) -> Tensor:
        batch_size, found = AutoBatchSize(self.device, _MAX_BATCH, rgba.shape[1]), list[Tensor]()
        for part in batch_size.slices(len(rgba)):
            with batch_size.halve_if_full():
                found.append(self.network(to_input(to_device(rgba[part], self.device))))
        return torch.cat(found).float()


class TrainedFeatures(SpriteFeatures):
    """Computes features trained on a run's training sprites; with several classes, also predicts classes."""

    def __init__(self, network: PretrainingNetwork, device: torch.device, *, knows_classes: bool) -> None:
        super().__init__(network, device)
        self.taught, self.knows_classes = network, knows_classes

    def classes_of(self, rgba: Rgba) -> NDArray[np.int64]:
        """Return the predicted class of each sprite, int64 [N]. Requires `knows_classes`."""
        return self.taught.class_scores(self._raw(rgba)).argmax(1).cpu().numpy()


def fixed_features(device: torch.device) -> SpriteFeatures:
    """Return features equal for every run, trained on the studio's own art by assets/demo/make_features.py.

    Trainings don't select checkpoints by fixed features, so fixed features stay an independent measure.
    """
    network = FeatureNetwork()
    network.load_state_dict(parse_tensors((paths.assets() / "features.safetensors").read_bytes()))
    return SpriteFeatures(network, device)


def learn_features(training: Sprites, device: torch.device, precision: str) -> Generator[Event, None, TrainedFeatures]:
    """Return features for the training sprites, from the cache or newly trained; yields Progress."""
    knows_classes = bool((training.class_counts() > 0).sum() > 1)
    classes = len(training.class_names) if knows_classes else _TURNS
    with torch.random.fork_rng(devices=[]):  # the caller's random state stays untouched
        torch.manual_seed(0)
        network = PretrainingNetwork(training.size, classes)
    path = paths.features() / f"{training.fingerprint} {PROTOCOL}.safetensors"
    found = TrainedFeatures(network, device, knows_classes=knows_classes)
    if _load(network, path):
        return found
    is_damaged = path.exists()
    for progress in _learn(found, training, precision):
        yield progress
        if not is_damaged and path.exists() and _load(network, path):  # this job was paused for another job
            network.eval()
            return found
    found.fit_standardization(stride_subsample(training.rgba, _SCALED_BY))
    tensors = {name: tensor.cpu().contiguous() for name, tensor in network.state_dict().items()}
    with contextlib.suppress(OSError):  # without the cache, train again next time
        files.write_atomic(path, as_bytes(tensors))
    return found


def _load(network: PretrainingNetwork, path: Path) -> bool:
    """Load a trained network; return False for a missing, damaged or unfitting file."""
    with contextlib.suppress(OSError, SafetensorError, RuntimeError):
        network.load_state_dict(parse_tensors(path.read_bytes()))
        return True
    return False


def _learn(found: TrainedFeatures, training: Sprites, precision: str) -> Generator[Event, None, None]:
    """Train the features to tell corruptions apart, and classes or turns (Gidaris et al. 2018); yields Progress."""
    precision = "fp32" if precision == "fp16" else precision  # fp16 would need a loss scaler
    network, data = found.taught.train(), DeviceSprites(training, found.device)
    optimizers = make_optimizers(network, TrainingConfig(weight_decay=0.05), precision)
    rng, batch_size = torch.Generator(found.device), AutoBatchSize(found.device, _BATCH)
    for step in range(_STEPS):
        set_learning_rate(optimizers, _RATE * min(1, (step + 1) / _WARM_UP) * min(1, 2 * (1 - step / _STEPS)))
        rng.manual_seed(step)
        batch = data.batch(step, _BATCH, flip=False, shift_px=_SHIFT_PX, rng=rng)
        x, y = (batch.x, batch.y) if found.knows_classes else _turned(batch.x)
        x, kind = corrupt(x, rng)
        batch_size.accumulate_gradients(network, partial(_add_gradients, network, x, y, kind, precision))
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        yield Progress(step + 1, _STEPS, "steps")
    network.zero_grad(set_to_none=True)
    network.eval()


def _add_gradients(
    network: PretrainingNetwork, x: Tensor, y: Tensor, kind: Tensor, precision: str, at_once: int
) -> None:
    """Add a batch's gradients, in micro-batches of `at_once`. y: classes or turns, kind: corruptions, int64 [B]."""
    for x_part, y_part, kind_part in zip(x.split(at_once), y.split(at_once), kind.split(at_once), strict=True):
        with autocast(x.device.type, precision):
            features = network(x_part)
            loss = F.cross_entropy(network.class_scores(features).float(), y_part, label_smoothing=0.1)
            loss = loss + F.cross_entropy(network.judge(features).float(), kind_part)  # corruption
        (loss * (len(x_part) / len(x))).backward()  # the mean over the batch, part by part


def corrupt(x: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Corrupt three quarters of a batch: a quarter with specks, with blotches of four pixels, and with blur.

    x: float32 [B, 4, S, S]. Returns a new x, and kinds int64 [B]: unchanged (0), specks (1), blotches (2), blur (3).
    """
    count, _, size, _ = x.shape
    kind = torch.arange(count, device=x.device) % _CORRUPTIONS  # int64 [B]
    kinds = kind[:, None, None, None]
    colour, alpha = (x[:, :3] + 1) / 2, (x[:, 3:] + 1) / 2
    strength = 0.05 + 0.2 * torch.rand(count, 1, 1, 1, device=x.device, generator=rng)
    specks = torch.randn(count, 3, size, size, device=x.device, generator=rng)
    blotches = torch.randn(count, 3, -(-size // 4), -(-size // 4), device=x.device, generator=rng)
    noise = torch.where(kinds == 2, F.interpolate(blotches, scale_factor=4.0)[..., :size, :size], specks)
    noisy = torch.cat([(colour + strength * noise * alpha).clamp(min=0).minimum(alpha), alpha], 1)
    plain = torch.cat([colour, alpha], 1)
    blurred = plain.lerp(F.avg_pool2d(F.pad(plain, (1, 1, 1, 1), mode="replicate"), 3, 1), 4 * strength)
    found = torch.where(kinds == 0, plain, torch.where(kinds == 3, blurred, noisy))
    return found * 2 - 1, kind


def _turned(x: Tensor) -> tuple[Tensor, Tensor]:
    """Turn the quarters of a batch 0, 1, 2 and 3 times. Returns the batch, and turns by sprite, int64 [B]."""
    turns = torch.arange(len(x), device=x.device) * _TURNS // len(x)
    parts = [x[turns == turn].rot90(turn, (2, 3)) for turn in range(_TURNS)]
    return torch.cat(parts), turns
