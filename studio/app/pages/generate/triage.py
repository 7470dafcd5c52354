"""Keeps or rejects the selected results, as steps that can be undone."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.pages.generate.batches import GridContent, Rejection
from studio.app.state.undo import UndoHistory, UndoStep
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core import formatting


class Triage(QObject):
    """Keeps or rejects the selected sprites of the grid, and selects the next one."""

    hidden_changed = Signal()  # new sprites were rejected
    shown_changed = Signal()  # rejected sprites are back, or rejected again

    def __init__(self, content: GridContent, grid: SpriteGrid, history: UndoHistory) -> None:
        """Create the actions. history: receives kept and rejected sprites."""
        super().__init__(grid)
        self._content, self._grid, self._history = content, grid, history

    @Slot()
    def keep(self) -> None:
        """Keep the selected new sprites."""
        chosen = self._grid.selected()
        if self._content.shows_new and chosen:
            kept = self._content.kept
            added = kept.add(map(self._content.sprite, chosen))
            if added:
                undo, redo = partial(kept.remove, added), partial(kept.restore, kept.indexed(added))
                self._history.add(UndoStep(f"keep {formatting.count(len(added), 'sprite')}", undo, redo))
            self._select_next(chosen[-1])

    @Slot()
    def reject(self) -> None:
        """Hide the selected new sprites, or remove the selected kept sprites."""
        chosen = self._grid.selected()
        if not chosen:
            return
        rejection = self._content.rejection(chosen)
        self._content.reject(rejection)
        if self._content.shows_new:
            self._grid.set_visible(self._content.remaining(), stays=True)
            self.hidden_changed.emit()
            self._select_next(chosen[-1])
        else:
            self._select_next(chosen[-1] - len(chosen))
        undo, redo = partial(self._restore, rejection), partial(self._reject_again, rejection)
        self._history.add(UndoStep(f"reject {formatting.count(len(chosen), 'sprite')}", undo, redo))

    def _restore(self, rejection: Rejection) -> None:
        """Show rejected sprites again, and select them."""
        shown = self._content.restore(rejection)
        if shown:
            self.shown_changed.emit()
            self._grid.go_to(shown[0])
            if len(shown) > 1:
                self._grid.select(shown)
            self._grid.setFocus()

    def _reject_again(self, rejection: Rejection) -> None:
        self._content.reject(rejection)
        self.shown_changed.emit()

    def _select_next(self, number: int) -> None:
        """Select the sprite that follows sprite `number` in the grid, or the last sprite."""
        remaining = self._content.remaining()
        if remaining:
            self._grid.go_to(next((other for other in remaining if other > number), remaining[-1]))
        self._grid.setFocus()
