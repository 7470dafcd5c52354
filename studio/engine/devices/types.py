"""Data classes about devices, training parents and the sprite map, for code that must not import torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import NOT_IN_JSON, Event
from studio.data.sprites import Sprites

if TYPE_CHECKING:
    from torch import device as TorchDevice

STARTER: Final = "starter"  # the bundled model, trained on CC0 sprites only
NOTHING: Final = "nothing"
# Initial weights of a training: random, the bundled starter, or the best model of the run in this folder.
ParentSource = Path | Literal["starter"] | None


@dataclass(frozen=True)
class Device:
    """A device for training and the results of its probe. problem: why the device doesn't work, else ''."""

    id: str  # torch's name: 'cuda:0', 'xpu:0', 'mps', 'cpu'
    kind: str
    name: str
    memory_free_bytes: int
    memory_total_bytes: int
    cores: int = 0  # CPU only
    threads: int = 0  # CPU only: used for training
    precision: str = "fp32"  # the fastest: 'fp32', 'bf16' or 'fp16'
    mixed: str = "bf16"  # its best mixed precision, even if slower than fp32; '' if it has none
    steps_per_s: float = 0.0  # of the probe's network, in the fastest precision; ranks the devices
    problem: str = ""
    probed: bool = True  # if False, precision, mixed and steps_per_s are unknown

    @property
    def torch(self) -> TorchDevice:
        """The torch.device with this id. The first use imports torch."""
        import torch

        return torch.device(self.id)


@dataclass(frozen=True)
class DevicesFound(Event):
    """Yielded by `find_devices`: all devices, working or not, and the id of the fastest."""

    devices: tuple[Device, ...]
    fastest: str


@dataclass(frozen=True)
class DeviceMeasured(Event):
    """The measured speed of training steps on one device in one precision."""

    device_id: str
    precision: str
    sprites_per_s: float
    transfer_ms: float  # to copy a batch from pageable memory, as a data loader would
    compute_ms: float
    noun: str = field(default="sprite", metadata=NOT_IN_JSON)  # for a training example


@dataclass(frozen=True, eq=False)
class MapReady(Event):
    """A 2D map of sprites of a run, with similar sprites close together."""

    model: str  # title of the model that computed the features
    sprites: Sprites  # on the map: a sample of `total`
    total: int
    features: NDArray[np.float32]  # [N, D]
    positions: NDArray[np.float32]  # [N, 2] in [0, 1], right and down, with one scale for both axes
    explained: float  # share of the feature variance along the two axes
    spacing: NDArray[np.float32]  # [N]: sprites spaced by at least s cover the map without overlap as squares of side s
    neighbours: NDArray[np.int64]  # [N, n], nearest by features, nearest first
    apart: NDArray[np.float32]  # [N], mean distance to them, relative to the usual
    odd: NDArray[np.int64]  # outliers by `apart`, farthest first
    decodes: bool  # whether the model can decode codes into sprites


@dataclass(frozen=True, eq=False)
class CodesDecoded(Event):
    """Yielded when an autoencoder has decoded codes. sprites: uint8 [N, S, S, 4]."""

    sprites: Rgba
