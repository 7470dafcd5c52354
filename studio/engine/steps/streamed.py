"""Training sets that do not fit the device: sprites on the disk or in ordinary memory, copied there batch by batch.

`make_train_set` decides which those are. A thread gathers the next batches while the device works on this one. It runs
numpy and reads files; all torch calls are allocate on the engine's thread.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core import files, formatting
from studio.core.arrays import Rgba
from studio.core.config import TrainingConfig
from studio.core.errors import TrainingError
from studio.core.events import Notice
from studio.data.sprites import Sprites
from studio.engine.devices import detection
from studio.engine.steps.batches import DeviceSprites, RawBatch, TrainSet, shuffled_indices

_AHEAD = 4  # batches that are gathered before they are asked for
_TIMEOUT_S = 30.0  # with a drive that does not answer: one that was asleep needs some seconds
_JOIN_S = 0.5
_HINT = "Saved checkpoints are kept: check the drive, then resume the run."


class StreamedSprites(TrainSet):
    """Gives the same batches as DeviceSprites. `close` ends its thread."""

    def __init__(
        self, sprites: Sprites, device: torch.device, seed: int = 0, indices: NDArray[np.int64] | None = None
    ) -> None:
        super().__init__(sprites, device, seed, indices)
        self._rows = _SpriteReader(sprites, self._source_indices)
        self._reader: _Thread | None = None
        self._slots: list[_Buffers] = []
        self._waiting: deque[Future[_Buffers]] = deque()  # of the steps from `_next` on
        self._next = (-1, 0, slice(0, 0))  # step, size and rows of the batch that the first one of them is
        self._epoch = (-1, sprites.labels)  # its number and the order of its sprites
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._last: _Buffers | None = None  # may still be on its way to the device

    def raw_batch(self, step: int, size: int, rows: slice) -> RawBatch:
        if self._next != (step, size, rows):
            self._restart(step, size, rows)
        if self._last is not None:
            self._last.wait()
            self._request(step + _AHEAD - 1, self._last)
        try:
            slot = self._waiting.popleft().result(_TIMEOUT_S)
        except TimeoutError:
            raise TrainingError("The drive with the sprites has stopped answering.", _HINT) from None
        except OSError as error:
            raise TrainingError(f"The sprites can't be read any more: {error.strerror or error}.", _HINT) from error
        self._last, self._next = slot, (step + 1, size, rows)
        return self._upload(slot)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None
        self._rows.close()

    def _restart(self, step: int, size: int, rows: slice) -> None:
        """Gather batches from this step on, and drop those gathered before."""
        if self._reader is not None:
            self._reader.close()
        self._reader, self._last, self._next = _Thread(), None, (step, size, rows)
        shape = (rows.stop - rows.start, *self._rows.shape)
        numbers, pinned = self.targets_host.shape[1], self._stream is not None
        self._slots = [_Buffers.allocate(shape, numbers, pinned=pinned) for _ in range(_AHEAD)]
        self._waiting.clear()
        for number, slot in enumerate(self._slots):
            self._request(step + number, slot)

    def _request(self, step: int, slot: _Buffers) -> None:
        assert self._reader is not None
        _, size, rows = self._next
        start = step * size + rows.start
        self._waiting.append(self._reader.submit(lambda: self._fill(slot, start)))

    def _fill(self, slot: _Buffers, start: int) -> _Buffers:
        """Runs on the thread, one after the other: entries of the endless list of shuffled epochs."""
        done, size = 0, len(slot.labels_host)
        while done < size:
            epoch, offset = divmod(start + done, len(self))
            known, order = self._epoch
            if known != epoch:
                order = shuffled_indices(self.seed, epoch, len(self))
                self._epoch = (epoch, order)
            chosen = order[offset : offset + size - done]
            part = slice(done, done + len(chosen))
            np.take(self.labels_host, chosen, out=slot.labels_host[part], mode="clip")
            slot.targets_host[part] = self.targets_host[chosen]
            self._rows.read(chosen, slot.rgba_host[part])
            done += len(chosen)
        return slot

    def _upload(self, slot: _Buffers) -> RawBatch:
        held = (slot.rgba, slot.labels, slot.targets)
        if self._stream is None:
            rgba, y, targets = (tensor.to(self.device, copy=True) for tensor in held)
        else:
            with torch.cuda.stream(self._stream):
                rgba, y, targets = (tensor.to(self.device, non_blocking=True) for tensor in held)
                slot.copied = self._stream.record_event()
            now = torch.cuda.current_stream(self.device)
            now.wait_event(slot.copied)
            for tensor in (rgba, y, targets):
                tensor.record_stream(now)
        return rgba.permute(0, 3, 1, 2).contiguous(), y, targets


@dataclass(eq=False)
class _Buffers:
    """Buffers of one batch on the CPU, as tensors and as numpy views of the same memory.

    rgba: uint8 [B, S, S, 4]. labels: int64 [B]. targets: float32 [B, T].
    """

    rgba: Tensor
    labels: Tensor
    targets: Tensor
    rgba_host: Rgba
    labels_host: NDArray[np.int64]
    targets_host: NDArray[np.float32]
    copied: torch.cuda.Event | None = None

    @classmethod
    def allocate(cls, shape: tuple[int, ...], numbers: int, *, pinned: bool) -> _Buffers:
        rgba = torch.empty(shape, dtype=torch.uint8, pin_memory=pinned)
        labels = torch.empty(shape[0], dtype=torch.int64, pin_memory=pinned)
        targets = torch.empty((shape[0], numbers), dtype=torch.float32, pin_memory=pinned)
        return cls(rgba, labels, targets, rgba.numpy(), labels.numpy(), targets.numpy())

    def wait(self) -> None:
        """Wait until its copy to the device is done, so that it can be filled again."""
        if self.copied is not None:
            self.copied.synchronize()


class _SpriteReader:
    """Random access to sprites by index. Those in a file are read with seek, not through its memory map: there, a fault
    of the drive would end the program instead of raising OSError.
    """

    def __init__(self, sprites: Sprites, places: NDArray[np.int64]) -> None:
        self._rgba, self._source_indices = sprites.rgba, places
        self.shape = sprites.rgba.shape[1:]
        self._start = sprites.stored.start if sprites.stored else 0
        self._file = None
        if sprites.stored is not None:
            with contextlib.suppress(OSError):  # its name is gone: the map is all there is
                self._file = sprites.stored.path.open("rb", buffering=0)

    def read(self, chosen: NDArray[np.int64], out: Rgba) -> None:
        """Fill uint8 [B, S, S, 4]. Raises OSError."""
        places = self._source_indices[chosen]
        if self._file is None:
            np.take(self._rgba, places, axis=0, out=out, mode="clip")
            return
        for row, place in zip(out, places.tolist(), strict=True):
            start = self._start + place * row.nbytes
            if files.read_into(self._file, start, row.reshape(-1).data) != row.nbytes:
                raise OSError("their file has become shorter")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _Thread:
    """A daemon thread that runs tasks in order: a drive that hangs does not keep the program from ending."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[_Buffers], Callable[[], _Buffers]] | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streaming", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], _Buffers]) -> Future[_Buffers]:
        """Queue `work`; its result, or its error."""
        future: Future[_Buffers] = Future()
        self._tasks.put((future, work))
        return future

    def close(self) -> None:
        """End the thread after its current task; waits for it for _JOIN_S at most."""
        self._stop.set()
        self._tasks.put(None)
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while (asked := self._tasks.get()) is not None and not self._stop.is_set():
            future, work = asked
            with _ErrorsTo(future):
                future.set_result(work())


class _ErrorsTo:
    """Puts an error in the block into the future."""

    def __init__(self, future: Future[_Buffers]) -> None:
        self._future = future

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            self._future.set_exception(error)
        return True


_MAX_SHARE = {"cpu": 0.25}  # share of the free memory that sprites may take there; elsewhere
_MAX_SHARE_ELSEWHERE = 0.5


def make_train_set(
    sprites: Sprites, indices: NDArray[np.int64], device: torch.device, config: TrainingConfig, processes: int = 1
) -> tuple[TrainSet, list[Notice]]:
    """A train set of the sprites at `indices`, streamed where the device has too little room for them; and notices.

    processes: how many there are on the device, each of which has its own.
    """
    each, free = sprites.rgba[:1].nbytes, detection.memory_free(device)
    needed = each * len(indices)
    room = free * _MAX_SHARE.get(device.type, _MAX_SHARE_ELSEWHERE) / processes
    if config.data_on_device == "yes" or (config.data_on_device == "auto" and needed <= room):
        return DeviceSprites(sprites, device, config.seed, indices), []
    title = (
        f"The sprites are loaded in the background while it trains: together they take {formatting.memory(needed)}, "
        f"and {formatting.memory(free)} of memory are free."
    )
    notice = Notice("info", title, "This hardly slows it down. The setting 'Data on the device' decides.")
    return StreamedSprites(sprites, device, config.seed, indices), [notice]
