"""Measures the device memory that a training uses."""

from typing import ClassVar

import torch

from studio.engine.devices import detection
from studio.engine.devices.detection import GPU_TYPES


class MemoryMeter:
    """Measures a training's memory on its device: this process's use above the level before the training.

    Create the meter before the training's network. On a GPU of type 'cuda' or 'xpu' it measures the peak of the
    training so far, on 'mps' the tensors in use, on a CPU the resident memory. No reading waits for the device.
    """

    # On a CPU, the process keeps most memory of an ended training, and the next training uses this memory again.
    _earlier: ClassVar[tuple[int, int]] = (0, 0)  # level before the last training on the CPU, and its use, in bytes

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._before_bytes = used_bytes = detection.memory_in_use(device)
        if device.type == "cpu":
            level_bytes, kept_bytes = MemoryMeter._earlier
            self._before_bytes = min(used_bytes, max(level_bytes, used_bytes - kept_bytes))
        self._peak_bytes = 0
        if device.type in GPU_TYPES:
            backend = torch.get_device_module(device)
            if backend.is_initialized():  # else there is no peak yet, and resetting it fails
                backend.reset_peak_memory_stats(device)

    def read(self) -> int:
        """Return the training's memory in bytes. Call it between ticks: steps reset the peak themselves."""
        used_bytes = detection.memory_in_use(self._device)
        if self._device.type in GPU_TYPES:
            peak_bytes = int(torch.get_device_module(self._device).max_memory_allocated(self._device))
            self._peak_bytes = used_bytes = max(self._peak_bytes, used_bytes, peak_bytes)
        own_bytes = max(0, used_bytes - self._before_bytes)
        if self._device.type == "cpu":
            MemoryMeter._earlier = self._before_bytes, own_bytes
        return own_bytes
