"""Errors with messages for users.

Users see every error as a `StudioError`: the title says what happened, the hint says what to do. The command line
prints title and hint, the window shows a notice. Other exceptions are bugs, and the studio reports them as bugs.
"""

from __future__ import annotations

from pathlib import Path

# For a path with too many characters, Windows says "path not found" or "name too long"; folders may have 247.
_TOO_LONG_ON_WINDOWS, _LONGEST_WINDOWS_PATH = frozenset({3, 206}), 247


class StudioError(Exception):
    """Base for errors with a message for users. title: one sentence. hint: what to do next, or ''."""

    topic = ""  # 'topic#section' of the guide with more help, or ''

    def __init__(self, title: str, hint: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.title} {self.hint}".strip()


class UsageError(StudioError):
    """An invalid request: a setting out of range or an unknown name. The command line exits with code 2."""


class SetsError(UsageError):
    """Pictures without sets, or given cells that a model of sets can't complete."""

    topic = "sets"


class BadInputError(StudioError):
    """Unusable input files: nothing readable, too few sprites, or a damaged file."""

    topic = "troubleshooting#sprites-are-left-out"


class DeviceError(StudioError):
    """A missing device, a device that fails its test, or a device that stops working."""

    topic = "troubleshooting#the-gpu-is-not-used"


class DeviceFullError(DeviceError):
    """A device is out of memory."""

    topic = "troubleshooting#out-of-memory"


class StepTooLargeError(DeviceFullError):
    """A device has too little memory for a training step."""


class RunError(StudioError):
    """A busy, damaged or unwritable run folder, or a newer version's run."""

    topic = "troubleshooting#a-run-is-locked-or-damaged"


class BusyRunError(RunError):
    """A run that another process trains, or trained while this process waited."""


class UnwritableError(RunError):
    """An unwritable run folder, perhaps only temporarily: the disk is full or disconnected."""

    topic = "troubleshooting#the-disk-is-full-or-gone"

    remedy = "Free some space or choose another folder."  # hint for the user
    # Hint while a training waits for a writable folder.
    while_halted = "Training waits and nothing is lost. Fix the cause, then resume."

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"Can't write to {path}.", f"{reason}. {self.remedy}")
        self.reason = reason


class RunGoneError(UnwritableError):
    """A moved or removed run folder, or a run folder on a disconnected drive."""

    remedy = "Put the folder back; look in the trash."
    while_halted = "Training waits with the model in memory. Put the folder back, then resume."

    def __init__(self, path: Path) -> None:
        super().__init__(path, "The run's folder was moved or removed, or its drive was disconnected")


class DamagedError(RunError):
    """A run's file with changed contents: something else than the studio wrote the file."""


class ExportError(StudioError):
    """An unwritable export, or an exported file whose outputs differ from the model's."""

    topic = "troubleshooting#an-export-fails"


class TrainingError(StudioError):
    """Training that can't continue: a NaN loss, or data that the recipe can't learn from."""

    topic = "troubleshooting#training-stops-with-an-error"


class ProcessGoneError(TrainingError):
    """A distributed training lost a process, so the other processes can't continue."""


class NotFiniteError(TrainingError):
    """A NaN or infinite loss or gradient at `step`. The weights come from before `step`."""

    def __init__(self, step: int) -> None:
        hint = "Saved checkpoints are kept. Lower the learning rate and train again."
        super().__init__(f"The loss became NaN or infinite at step {step:,}.", hint)
        self.step = step


def os_error_reason(error: OSError, path: Path | None = None) -> str:
    """Return why a file is unusable, without a full stop. path: the file the user knows, if the error names another."""
    length = max(len(str(name)) for name in (path or "", error.filename or ""))
    if getattr(error, "winerror", None) in _TOO_LONG_ON_WINDOWS and length > _LONGEST_WINDOWS_PATH:
        return f"The path has {length} characters, too many for Windows: choose a folder with a shorter path"
    return str(error.strerror or error)
