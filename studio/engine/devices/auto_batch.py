"""Batch sizes for drawing, predicting and measuring that adapt to the free memory of the device."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import nn

from studio.core.errors import DeviceFullError
from studio.engine.devices import detection

_PIXELS_PER_BATCH = 256 * 32 * 32  # enough pixels to keep a GPU busy, with small or large sprites


class AutoBatchSize:
    """A batch size, `count`, that is halved whenever the device runs out of memory. No result may depend on it.

    most: maximum batch size. size: width of a sprite in pixels; larger sprites get smaller batches.
    """

    def __init__(self, device: torch.device, most: int, size: int = 1) -> None:
        self.count = max(1, min(most, _PIXELS_PER_BATCH // size**2))
        self._device, self._was_full = device, False

    def slices(self, total: int) -> Iterator[slice]:
        """Yield slices of at most `count` of `total` sprites in order, the failed one again after `halve_if_full`."""
        start, self.count = 0, max(1, min(self.count, total))  # a batch size above `total` would survive a halving
        while start < total:
            part = slice(start, min(start + self.count, total))
            yield part
            if not self._was_full:
                start = part.stop

    def accumulate_gradients(self, network: nn.Module, add: Callable[[int], None]) -> None:
        """Compute the gradients of a batch in micro-batches that fit the device.

        Calls `add(micro-batch size)`, which must add up the gradients. If memory runs out, clears the gradients and
        calls `add` with half the size. Raises DeviceFullError if a single sprite doesn't fit.
        """
        while True:
            network.zero_grad(set_to_none=True)
            with self.halve_if_full(), torch.enable_grad():
                add(self.count)
            if not self._was_full:
                return

    @contextlib.contextmanager
    def halve_if_full(self) -> Iterator[None]:
        """Halve `count` if the block, to be repeated then, fills the device. Raises DeviceFullError at one sprite."""
        if self._was_full:  # now, not in `except`: there the traceback still holds tensors of the failed block
            detection.empty_cache(self._device)
        self._was_full = False
        try:
            with detection.wrap_device_errors(self._device):
                yield
        except DeviceFullError:
            if self.count == 1:
                raise
            self.count, self._was_full = self.count // 2, True
