"""Where the sprites of a training are: on its device, or streamed to it because they would not leave it enough room."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from studio.core import wording
from studio.core.config import TrainingConfig
from studio.core.events import Notice
from studio.data.sprites import Sprites
from studio.engine import devices
from studio.engine.batches import DeviceSprites, TrainSet
from studio.engine.streamed import StreamedSprites

_MOST = {"cpu": 0.25}  # share of the free memory that sprites may take there; elsewhere
_MOST_ELSEWHERE = 0.5


def placed(
    sprites: Sprites, indices: NDArray[np.int64], device: torch.device, config: TrainingConfig
) -> tuple[TrainSet, list[Notice]]:
    """The sprites at `indices` to be trained on, and what there is to say of it."""
    each, free = sprites.rgba[:1].nbytes, devices.memory_free(device)
    needed = each * len(indices)
    room = free * _MOST.get(device.type, _MOST_ELSEWHERE)
    if config.data_on_device == "yes" or (config.data_on_device == "auto" and needed <= room):
        return DeviceSprites(sprites, device, config.seed, indices), []
    title = (
        f"The sprites are loaded in the background while it trains: together they take {wording.memory(needed)}, "
        f"and {wording.memory(free)} of memory are free."
    )
    notice = Notice("info", title, "This hardly slows it down. The setting 'Data on the device' decides.")
    return StreamedSprites(sprites, device, config.seed, indices), [notice]
