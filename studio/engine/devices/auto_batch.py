"""Batches of work that is no training step, as large as the device has room for: drawing, predicting, measuring."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import nn

from studio.core.errors import DeviceFullError
from studio.engine.devices import detection

_PIXELS_PER_BATCH = 256 * 32 * 32  # a batch: they keep a device busy, whether they are of few sprites or of many


class AutoBatchSize:
    """A batch size: bounded by a number of pixels, and halved whenever the device is full.

    Results must not depend on it.
    """

    def __init__(self, device: torch.device, most: int, size: int = 1) -> None:
        """most: sprites a batch, at most; size: their side in pixels, where large ones take more room."""
        self.count = max(1, min(most, _PIXELS_PER_BATCH // size**2))
        self._device = device
        self._was_full = False

    def slices(self, total: int) -> Iterator[slice]:
        """Slices of `total` sprites in order; one for which there was no `halve_if_full` comes again, smaller."""
        start, self.count = 0, max(1, min(self.count, total))  # half of more than there are would be no fewer
        while start < total:
            part = slice(start, min(start + self.count, total))
            yield part
            if not self._was_full:
                start = part.stop

    def accumulate_gradients(self, network: nn.Module, add: Callable[[int], None]) -> None:
        """Have `add` add the gradients of a batch, so many sprites at once; where the device is full, begun anew with
        fewer. Raises DeviceFullError.
        """
        while True:
            network.zero_grad(set_to_none=True)
            with self.halve_if_full(), torch.enable_grad():
                add(self.count)
            if not self._was_full:
                return

    @contextlib.contextmanager
    def halve_if_full(self) -> Iterator[None]:
        """Around work on `count` sprites: where the device is full, the work ends without error and `count` is halved.

        Raises DeviceFullError when one sprite is too many.
        """
        if self._was_full:  # only now: as long as its error was handled, what had failed was kept in memory by it
            detection.empty_cache(self._device)
        self._was_full = False
        try:
            with detection.wrap_device_errors(self._device):
                yield
        except DeviceFullError:
            if self.count == 1:
                raise
            self.count, self._was_full = self.count // 2, True
