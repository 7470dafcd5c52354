"""How a training gets over losses that are not finite and over a full device, and tries again after a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from studio.core.errors import DeviceFullError
from studio.core.events import Event, Notice
from studio.engine.devices import detection

SOUND_CHECKPOINTS = 10  # in a row, after which a rollback is forgiven or larger micro-batches are tried


class MicroBatches:
    """How many micro-batches make a batch: more when the device is full, fewer again when it may have room."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._checkpoints_since = 0  # the last change of `count`
        self._patience = SOUND_CHECKPOINTS  # before fewer are tried
        self._on_trial = False  # fewer, since the last checkpoint

    def double(self, ranks: int = 1) -> bool:
        """Use twice as many, of which each of so many ranks had one at least. False when a trial of fewer has failed,
        which is not worth a notice.
        """
        was_trial = self._on_trial
        if was_trial:
            self._patience *= 2
        self.count, self._checkpoints_since, self._on_trial = 2 * max(self.count, ranks), 0, False
        return not was_trial

    def checkpoint_saved(self) -> bool:
        """Try half as many after some checkpoints without trouble. True when a trial has just succeeded."""
        has_succeeded, self._on_trial = self._on_trial, False
        if has_succeeded:
            self._patience = SOUND_CHECKPOINTS
        self._checkpoints_since += 1
        if self.count > 1 and self._checkpoints_since >= self._patience:
            self.count, self._checkpoints_since, self._on_trial = self.count // 2, 0, True
        return has_succeeded

    def in_words(self) -> str:
        """'whole' or 'in 4 parts': how a batch is taken."""
        return "whole" if self.count == 1 else f"in {self.count} parts"


class Recovery:
    """Rollbacks after losses that are not finite, each of which halves the learning rate, and the micro-batches."""

    def __init__(self, nan_rollbacks: int = 0, micro_batches: int = 1) -> None:
        self.nan_rollbacks = nan_rollbacks  # without those that were forgiven
        self.micro_batches = MicroBatches(micro_batches)
        self._sound_checkpoints = 0  # since the last rollback, or since one was forgiven

    def lr_scale(self) -> float:
        """The factor on the learning rate of the settings, 0 to 1."""
        return 0.5**self.nan_rollbacks

    def count_rollback(self) -> None:
        """Training goes back to its newest checkpoint because of a loss that is not finite."""
        self.nan_rollbacks, self._sound_checkpoints = self.nan_rollbacks + 1, 0

    def checkpoint_saved(self) -> list[Event]:
        """Forgive a rollback or try larger micro-batches after some sound checkpoints; what there is to say of it."""
        notices = list[Event]()
        if self.micro_batches.checkpoint_saved():
            title = f"Batches are taken {self.micro_batches.in_words()} again: the device has room for that."
            notices.append(Notice("info", title))
        self._sound_checkpoints += 1
        if self.nan_rollbacks and self._sound_checkpoints >= SOUND_CHECKPOINTS:
            self.nan_rollbacks, self._sound_checkpoints = self.nan_rollbacks - 1, 0
            title = f"Training learns at {self.lr_scale():.0%} of its rate again: its losses have long been sound."
            notices.append(Notice("info", title))
        return notices


class SideWork:
    """Work beside the training steps, such as live samples: skipped where the device has no room for it."""

    def __init__(self, device: torch.device, notices: list[Event]) -> None:
        """notices: where a Notice is put the first time that some work is skipped."""
        self._device, self._notices = device, notices
        self._skipped: set[str] = set()
        self._holds_memory = False  # of work that was skipped

    @contextlib.contextmanager
    def skip_if_full(self, what: str) -> Iterator[None]:
        """Around work that is called `what`: a DeviceFullError ends the work, not the training."""
        try:
            with detection.wrap_device_errors(self._device):
                yield
            return
        except DeviceFullError as error:
            if what not in self._skipped:
                self._skipped.add(what)
                hint = f"Training goes on without {what} until there is room for them."
                self._notices.append(Notice("warning", error.title, hint))
        self._holds_memory = True

    def give_back_memory(self) -> None:
        """Release the memory of skipped work to other programs: once its error is gone, which kept it in use."""
        if self._holds_memory:
            detection.empty_cache(self._device)
            self._holds_memory = False
