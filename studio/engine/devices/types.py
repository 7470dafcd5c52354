"""What window and command line must know of devices, measurements and drawing: plain data, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Event
from studio.data.sprites import Sprites

if TYPE_CHECKING:
    from torch import device as TorchDevice

STARTER: Final = "starter"  # the model that comes with the studio: it learnt from CC0 sprites only
NOTHING: Final = "nothing"
# What a training starts from: nothing, the starter, or the best model of the run in this folder.
ParentSource = Path | Literal["starter"] | None


@dataclass(frozen=True)
class Device:
    """A device and what its probe found: `problem` is empty when it works."""

    id: str  # what torch calls it: 'cuda:0', 'xpu:0', 'mps', 'cpu'
    kind: str
    name: str
    memory_free_bytes: int
    memory_total_bytes: int
    cores: int = 0  # CPU only
    threads: int = 0  # CPU only: how many training uses
    precision: str = "fp32"  # what suits it: 'fp32', 'bf16' or 'fp16'
    mixed: str = "bf16"  # the mixed precision that it is best at, whether it suits or not; empty when it has none
    steps_per_s: float = 0.0  # of the probe's small network, in the faster precision: ranks the devices
    problem: str = ""
    probed: bool = True  # else precision, mixed and steps_per_s say nothing yet

    @property
    def torch(self) -> TorchDevice:
        """The torch.device with this id. The first use imports torch."""
        import torch

        return torch.device(self.id)


@dataclass(frozen=True)
class DevicesFound(Event):
    """All devices, usable or not, and the id of the fastest."""

    devices: tuple[Device, ...]
    fastest: str


@dataclass(frozen=True)
class DeviceMeasured(Event):
    """Training steps on one device in one precision.

    transfer_ms is the time per step of moving the batch there from ordinary memory, as a loader that keeps the data
    outside the device must; the studio pays it once, or behind the compute where the sprites don't fit the device.
    """

    device_id: str
    precision: str
    sprites_per_s: float
    transfer_ms: float
    compute_ms: float


@dataclass(frozen=True, eq=False)
class MapReady(Event):
    """Sprites of a run on a plane, like ones near to one another.

    model: whose features they are, for people. sprites: those of the run; of very many some, of so many in `total`.
    features: float32 [N, D]. positions: float32 [N, 2] in [0, 1], to the right and down, both in one scale; explained:
    the share of the features' variance that the two axes show. spacing: float32 [N], how far each is from all sprites
    that come before it in a fixed order, along the axis on which that is more: those of a spacing of s or more cover
    the map, and as squares of side s they don't overlap.
    neighbours: int64 [N, n], the nearest others by their features, nearest first; apart: float32 [N], how far they are
    on average, in units of what is usual. odd: int64, the sprites that are farthest from theirs, the farthest first.
    decodes: whether there are sprites for codes between features, too.
    """

    model: str
    sprites: Sprites
    total: int
    features: NDArray[np.float32]
    positions: NDArray[np.float32]
    explained: float
    spacing: NDArray[np.float32]
    neighbours: NDArray[np.int64]
    apart: NDArray[np.float32]
    odd: NDArray[np.int64]
    decodes: bool


@dataclass(frozen=True, eq=False)
class CodesDecoded(Event):
    """Sprites uint8 [N, S, S, 4] from codes."""

    sprites: Rgba
