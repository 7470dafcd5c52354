"""Training sets that don't fit on the device: sprites on disk or in CPU memory, copied batch by batch.

A reader thread collects the next batches while the device trains. It uses numpy and files only; all torch calls run on
the engine thread. `make_train_set` decides which sets are streamed.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core import files, formatting
from studio.core.arrays import Indices, Rgba
from studio.core.config import TrainingConfig
from studio.core.errors import TrainingError
from studio.core.events import Notice
from studio.data.sprites import Examples
from studio.engine.devices import detection
from studio.engine.steps.batches import DeviceSprites, RawBatch, TrainSet, shuffled_indices

_AHEAD = 4  # batches to read ahead
_TIMEOUT_S = 30.0  # limit for a read: a sleeping drive needs some seconds
_JOIN_S = 0.5
_HINT = "Checkpoints are saved. Check the drive, then resume the run."


class StreamedSprites(TrainSet):
    """A training set on disk or in CPU memory with DeviceSprites' batches; a thread reads ahead until `close`."""

    def __init__(self, sprites: Examples, device: torch.device, seed: int = 0, indices: Indices | None = None) -> None:
        super().__init__(sprites, device, seed, indices)
        self._sprites = _SpriteReader(sprites, self._source_indices)
        self._thread: _ReaderThread | None = None
        self._buffers: list[_Buffers] = []
        self._pending: deque[Future[_Buffers]] = deque()  # batches of the steps from `_next` on
        self._next = (-1, 0, slice(0, 0))  # step, batch size and rows of the first pending batch
        self._epoch = (-1, sprites.labels)  # number of the epoch, order of the sprites
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._uploading: _Buffers | None = None  # may still be copied to the device

    def raw_batch(self, step: int, size: int, rows: slice) -> RawBatch:
        if self._next != (step, size, rows):
            self._restart(step, size, rows)
        if self._uploading is not None:
            self._uploading.wait()
            self._request(step + _AHEAD - 1, self._uploading)  # the buffers are free: read the next batch
        try:
            buffers = self._pending.popleft().result(_TIMEOUT_S)
        except TimeoutError:
            raise TrainingError("The drive with the sprites does not respond.", _HINT) from None
        except OSError as error:
            raise TrainingError(f"The sprites can't be read: {error.strerror or error}.", _HINT) from error
        self._uploading, self._next = buffers, (step + 1, size, rows)
        return self._upload(buffers)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.close()
        self._thread = None
        self._sprites.close()

    def _restart(self, step: int, size: int, rows: slice) -> None:
        """Drop the batches read ahead, and read ahead from this step."""
        if self._thread is not None:
            self._thread.close()
        self._thread, self._uploading, self._next = _ReaderThread(), None, (step, size, rows)
        shape = (rows.stop - rows.start, *self._sprites.shape)
        numbers, pinned = self.targets_host.shape[1], self._stream is not None
        self._buffers = [_Buffers.allocate(shape, numbers, pinned=pinned) for _ in range(_AHEAD)]
        self._pending.clear()
        for number, buffers in enumerate(self._buffers):
            self._request(step + number, buffers)

    def _request(self, step: int, buffers: _Buffers) -> None:
        assert self._thread is not None
        _, size, rows = self._next
        start = step * size + rows.start
        self._pending.append(self._thread.submit(lambda: self._fill(buffers, start)))

    def _fill(self, buffers: _Buffers, start: int) -> _Buffers:
        """Read a batch's sprites into buffers. Runs on the reader thread, one batch after another."""
        done, size = 0, len(buffers.labels_host)
        while done < size:
            epoch, offset = divmod(start + done, len(self))  # a batch may span two epochs
            known, order = self._epoch
            if known != epoch:
                order = shuffled_indices(self.seed, epoch, len(self))
                self._epoch = (epoch, order)
            chosen = order[offset : offset + size - done]
            part = slice(done, done + len(chosen))
            np.take(self.labels_host, chosen, out=buffers.labels_host[part], mode="clip")
            buffers.targets_host[part] = self.targets_host[chosen]
            self._sprites.read(chosen, buffers.rgba_host[part])
            done += len(chosen)
        return buffers

    def _upload(self, buffers: _Buffers) -> RawBatch:
        held = (buffers.rgba, buffers.labels, buffers.targets)
        if self._stream is None:
            rgba, y, targets = (tensor.to(self.device, copy=True) for tensor in held)
        else:
            with torch.cuda.stream(self._stream):
                rgba, y, targets = (tensor.to(self.device, non_blocking=True) for tensor in held)
                buffers.copied = self._stream.record_event()  # the buffers may be refilled after this event
            now = torch.cuda.current_stream(self.device)
            now.wait_event(buffers.copied)  # training waits for the copy, the CPU does not
            for tensor in (rgba, y, targets):
                tensor.record_stream(now)  # keeps the allocator from reusing the memory too early
        return rgba.permute(0, 3, 1, 2).contiguous(), y, targets  # uint8 [B, 4, S, S], int64 [B], float32 [B, T]


@dataclass(eq=False)
class _Buffers:
    """CPU memory for a batch: tensors, and numpy arrays over the tensors' memory. CUDA needs pinned memory."""

    rgba: Tensor  # uint8 [B, S, S, 4]
    labels: Tensor  # int64 [B]
    targets: Tensor  # float32 [B, T]
    rgba_host: Rgba
    labels_host: NDArray[np.int64]
    targets_host: NDArray[np.float32]
    copied: torch.cuda.Event | None = None

    @classmethod
    def allocate(cls, shape: tuple[int, ...], numbers: int, *, pinned: bool) -> _Buffers:
        rgba = torch.empty(shape, dtype=torch.uint8, pin_memory=pinned)  # only pinned memory allows asynchronous copies
        labels = torch.empty(shape[0], dtype=torch.int64, pin_memory=pinned)
        targets = torch.empty((shape[0], numbers), dtype=torch.float32, pin_memory=pinned)
        return cls(rgba, labels, targets, rgba.numpy(), labels.numpy(), targets.numpy())

    def wait(self) -> None:
        """Wait for the copy to the device, before filling the buffers again."""
        if self.copied is not None:
            self.copied.synchronize()


class _SpriteReader:
    """Reads sprites from memory or, with seek, from their file: an error in a memory map kills the process."""

    def __init__(self, sprites: Examples, indices: Indices) -> None:
        self._rgba, self._source_indices = sprites.rgba, indices
        self.shape = sprites.rgba.shape[1:]
        self._start = sprites.stored.start if sprites.stored else 0
        self._file = None
        if sprites.stored is not None:
            with contextlib.suppress(OSError):  # file deleted: only the memory map remains
                self._file = sprites.stored.path.open("rb", buffering=0)

    def read(self, chosen: Indices, out: Rgba) -> None:
        """Read the sprites at the indices `chosen` into `out`, uint8 [B, S, S, 4]. Raises OSError."""
        indices = self._source_indices[chosen]
        if self._file is None:
            np.take(self._rgba, indices, axis=0, out=out, mode="clip")
            return
        for row, index in zip(out, indices.tolist(), strict=True):
            start = self._start + index * row.nbytes
            if files.read_into(self._file, start, row.reshape(-1).data) != row.nbytes:
                raise OSError("the file became shorter")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _ReaderThread:
    """Runs tasks in order on a daemon thread, because a hanging drive must not block the end of the program."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[_Buffers], Callable[[], _Buffers]] | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streaming", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], _Buffers]) -> Future[_Buffers]:
        """Queue `work`; return a future for the result or error."""
        future: Future[_Buffers] = Future()
        self._tasks.put((future, work))
        return future

    def close(self) -> None:
        """End the thread after its current task; wait at most _JOIN_S for it."""
        self._stop.set()
        self._tasks.put(None)
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while (asked := self._tasks.get()) is not None and not self._stop.is_set():
            future, work = asked
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - `Future.result` raises it on the engine thread
                future.set_exception(error)


_MAX_CPU_SHARE, _MAX_GPU_SHARE = 0.25, 0.5  # share of the free memory for sprites


def make_train_set(
    sprites: Examples, indices: Indices, device: torch.device, config: TrainingConfig, processes: int = 1
) -> tuple[TrainSet, list[Notice]]:
    """Create a training set of the sprites at `indices`, streamed if they don't fit in device memory.

    Returns the set, and a notice if it is streamed. processes: ranks on the device; each holds a training set.
    """
    each, free = sprites.rgba[:1].nbytes, detection.memory_free(device)
    needed = each * len(indices)
    room = free * (_MAX_CPU_SHARE if device.type == "cpu" else _MAX_GPU_SHARE) / processes
    if config.data_on_device == "yes" or (config.data_on_device == "auto" and needed <= room):
        return DeviceSprites(sprites, device, config.seed, indices), []
    sizes = f"they need {formatting.memory(needed)}, and {formatting.memory(free)} of memory is free."
    title = f"Sprites are loaded in the background: {sizes}"
    notice = Notice("info", title, "This hardly slows training. To change it, use the setting 'Data on the device'.")
    return StreamedSprites(sprites, device, config.seed, indices), [notice]
