"""What can go wrong, in words for the person in front of the screen.

Every error that a user may see is a `StudioError`: a title that says what happened and a hint that says what to do. The
command line prints the two, the window shows them in a notice; anything else that escapes is a bug and shown as one.
"""

from __future__ import annotations

from pathlib import Path


class StudioError(Exception):
    """A fault that a user can understand. `title` is one sentence, `hint` says what to do next (may be empty)."""

    def __init__(self, title: str, hint: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.title} {self.hint}".strip()


class UsageError(StudioError):
    """The request itself is wrong: a setting out of bounds, a name that does not exist. Exit code 2."""


class BadInputError(StudioError):
    """Files that can't be used: nothing readable, too few sprites, a damaged file."""


class DeviceError(StudioError):
    """A device that is missing, failed its probe, or gave up."""


class DeviceFullError(DeviceError):
    """A device that has no memory left."""


class StepTooLargeError(DeviceFullError):
    """A device that has no memory left for a training step."""


class RunError(StudioError):
    """A run folder that is busy, damaged, from a newer version, or can't be written."""


class UnwritableError(RunError):
    """A run folder that can't be written, perhaps only for now: the disk is full or was disconnected.

    remedy: hint for the user. while_halted: hint while a training waits until it can write again.
    """

    remedy = "Free some space or choose another folder."
    while_halted = "Training waits and nothing is lost. Fix the cause, then go on."

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"Can't write to {path}.", f"{reason}. {self.remedy}")
        self.reason = reason


class RunGoneError(UnwritableError):
    """A run folder that was moved or removed, or whose drive was disconnected."""

    remedy = "Put the folder back, from the trash perhaps."
    while_halted = "Training waits with the model in memory. Put the folder back, from the trash perhaps, then go on."

    def __init__(self, path: Path) -> None:
        super().__init__(path, "The run's folder was moved or removed, or its drive was disconnected")


class DamagedError(RunError):
    """Something of a run that is not what the studio wrote."""


class ExportError(StudioError):
    """An export that could not be written or does not match its model when read back."""


class TrainingError(StudioError):
    """Training that can't go on: a loss that is no longer a number, data that a recipe can't learn from."""


class ProcessGoneError(TrainingError):
    """One of the processes that train a run together has ended, so that the others can't go on."""


class NotFiniteError(TrainingError):
    """A loss or a gradient that is no number, at `step`; the weights are those before it."""

    def __init__(self, step: int) -> None:
        hint = "Saved checkpoints are kept. Train again with a lower learning rate."
        super().__init__(f"The loss stopped being a number at step {step:,}.", hint)
        self.step = step
