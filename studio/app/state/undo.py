"""Undo and redo of the actions on a page."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_events import UndoOffered
from studio.core import formatting
from studio.core.config import Config, settings_of

MAX_STEPS = 100  # beyond this number, the oldest steps are dropped


@dataclass(frozen=True, eq=False)
class UndoStep:
    """An undoable action. title: completes 'Undo' in the Edit menu, such as 'exclude 3 sprites'."""

    title: str
    undo: Callable[[], object]
    redo: Callable[[], object]


Steps = tuple[tuple[UndoStep, ...], tuple[UndoStep, ...]]  # steps to undo, latest last; steps to redo, next first


def change_title(before: Config, after: Config) -> str:
    """Return the undo title of a change of settings: 'change batch size', or 'change settings' for several."""
    labels = [
        item.label for item in settings_of(type(after)) if getattr(before, item.name) != getattr(after, item.name)
    ]
    return f"change {formatting.lower_first(labels[0])}" if len(labels) == 1 else "change settings"


class UndoHistory(QObject):
    """The last actions on a page, with the functions that revert and repeat them."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._steps: Steps = ((), ())

    @property
    def latest(self) -> UndoStep | None:
        """The action to revert; None for an empty history."""
        return self._steps[0][-1] if self._steps[0] else None

    @property
    def next(self) -> UndoStep | None:
        """The action to repeat; None without undone actions."""
        return self._steps[1][0] if self._steps[1] else None

    def steps(self) -> Steps:
        """Return the whole history, for `restore`."""
        return self._steps

    def restore(self, steps: Steps) -> None:
        """Return to an earlier result of `steps`, for example because an action has failed."""
        if steps != self._steps:
            self._steps = steps
            self.changed.emit()

    def add(self, step: UndoStep) -> None:
        """Add a finished action and drop the undone actions."""
        self.restore(((*self._steps[0], step)[-MAX_STEPS:], ()))

    def replace_latest(self, step: UndoStep) -> None:
        """Replace the latest action, for example by a longer edit."""
        self.restore(((*self._steps[0][:-1], step), ()))

    def offer(self, step: UndoStep, title: str, hint: str = "To restore, press Undo.") -> UndoOffered:
        """Return a message with an Undo button; the message expires with the next action."""
        return UndoOffered("info", title, hint, holds=partial(self._is_latest, step), undo=partial(self._undo, step))

    def _is_latest(self, step: UndoStep) -> bool:
        return self.latest is step

    def _undo(self, step: UndoStep) -> None:
        if self.latest is step:
            self.undo()

    def clear(self) -> None:
        self.restore(((), ()))

    @Slot()
    def undo(self) -> None:
        """Revert the latest action."""
        past, future = self._steps
        if past:
            self.restore((past[:-1], (past[-1], *future)))
            past[-1].undo()

    @Slot()
    def redo(self) -> None:
        """Repeat the next undone action."""
        past, future = self._steps
        if future:
            self.restore(((*past, future[0]), future[1:]))
            future[0].redo()
