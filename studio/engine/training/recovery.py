"""Recover a training from losses that are not finite and from a full device."""

import contextlib
from collections.abc import Iterator

import torch

from studio.core.errors import DeviceFullError
from studio.core.events import Event, Notice
from studio.core.formatting import percent
from studio.engine.devices import detection

SOUND_CHECKPOINTS = 10  # valid checkpoints in a row, after which a rollback is undone or larger micro-batches are tried


class MicroBatches:
    """The number of micro-batches per batch: doubled when the device is full, halved again after a while."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._checkpoints_since = 0  # checkpoints saved since `count` changed
        self._patience = SOUND_CHECKPOINTS  # checkpoints to wait before trying larger micro-batches
        self._on_trial = False  # larger micro-batches were set since the last checkpoint

    def double(self, ranks: int = 1) -> bool:
        """Double the number of micro-batches, to at least two per rank.

        Returns whether the user needs a notice: not if a trial of fewer micro-batches has failed.
        """
        was_trial = self._on_trial
        if was_trial:
            self._patience *= 2
        self.count, self._checkpoints_since, self._on_trial = 2 * max(self.count, ranks), 0, False
        return not was_trial

    def on_checkpoint_saved(self) -> bool:
        """Count a saved checkpoint, and after enough try larger micro-batches; True if a trial succeeded."""
        has_succeeded, self._on_trial = self._on_trial, False
        if has_succeeded:
            self._patience = SOUND_CHECKPOINTS
        self._checkpoints_since += 1
        if self.count > 1 and self._checkpoints_since >= self._patience:
            self.count, self._checkpoints_since, self._on_trial = self.count // 2, 0, True
        return has_succeeded

    def describe(self) -> str:
        """Return how batches are split, 'whole' or 'in 4 parts', for notices."""
        return "whole" if self.count == 1 else f"in {self.count} parts"


class Recovery:
    """A training's recovery from failures: rollbacks, which halve the learning rate, and micro-batches."""

    def __init__(self, nan_rollbacks: int = 0, micro_batches: int = 1) -> None:
        self.nan_rollbacks = nan_rollbacks  # rollbacks still in effect
        self.micro_batches = MicroBatches(micro_batches)
        self._sound_checkpoints = 0  # since a rollback happened or was undone

    def lr_scale(self) -> float:
        """Return the factor by which rollbacks scale the learning rate, 0 to 1."""
        return 0.5**self.nan_rollbacks

    def count_rollback(self) -> None:
        """Count a rollback to the newest checkpoint after a loss that was not finite."""
        self.nan_rollbacks, self._sound_checkpoints = self.nan_rollbacks + 1, 0

    def on_checkpoint_saved(self) -> list[Event]:
        """Count a checkpoint; after enough, undo a rollback or try larger micro-batches. Returns notices."""
        titles = []
        if self.micro_batches.on_checkpoint_saved():
            titles = [f"Batches are trained {self.micro_batches.describe()} again: the device has enough memory."]
        self._sound_checkpoints += 1
        if self.nan_rollbacks and self._sound_checkpoints >= SOUND_CHECKPOINTS:
            self.nan_rollbacks, self._sound_checkpoints = self.nan_rollbacks - 1, 0
            titles.append(f"The learning rate is back at {percent(self.lr_scale())}: the loss has stayed finite.")
        return [Notice("info", title) for title in titles]


class SideWork:
    """Skips work such as live samples if the device has no memory; `notices` receives one Notice per kind of work."""

    def __init__(self, device: torch.device, notices: list[Event]) -> None:
        self._device, self._notices = device, notices
        self._skipped: set[str] = set()
        self._holds_memory = False  # skipped work may still hold memory

    @contextlib.contextmanager
    def skip_if_full(self, what: str) -> Iterator[None]:
        """Catch a DeviceFullError in the block, so that training continues without this work, named `what`."""
        try:
            with detection.wrap_device_errors(self._device):
                yield
            return
        except DeviceFullError as error:
            if what not in self._skipped:
                self._skipped.add(what)
                hint = f"Training continues without {what} until there is enough memory."
                self._notices.append(Notice("warning", error.title, hint))
        self._holds_memory = True

    def give_back_memory(self) -> None:
        """Release the memory of skipped work, after its error was handled: the traceback holds the memory."""
        if self._holds_memory:
            detection.empty_cache(self._device)
            self._holds_memory = False
