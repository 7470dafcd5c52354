"""The content of the Generate page for a model of sets: given cells, a player, and the drawn characters."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSize, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QWidget

from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages.generate.sets.candidates import CandidatesPanel
from studio.app.pages.generate.sets.given import GivenPanel
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.sprites.cell_table import CellTable
from studio.app.widgets.sprites.player import Player
from studio.app.widgets.wrapping import WrappingPanel
from studio.core.arrays import Rgba
from studio.data.sets.drafts import animation

_SPEED = 6  # frames per second; a walk of four frames looks hurried at 10
_WIDE_SHARE, _NARROW_SHARE = 0.43, 0.3  # share of the height for the given cells
_NARROW = 480  # logical pixels; a narrower view has the player below the characters
_ALL = -1
_HINT = "Plays the given cells, or the character that you select below."


class WalkPlayer(QWidget):
    """Plays a view, or all views side by side, of a character."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = factory.combo("View", "Choose the view to play, or all views side by side.")
        self.rows.setMinimumContentsLength(8)
        self.player = Player()
        self.player.playback.speed.setValue(_SPEED)
        self._name = factory.ElidedLabel("heading")
        playing = factory.panel(factory.column(self.rows, self.player, grows=1))
        self._stack = factory.stack(factory.panel(factory.column(factory.caption(_HINT), 1)), playing)
        self.setLayout(factory.column(self._name, self._stack, grows=1))

    def row(self) -> int:
        """Return the chosen view, or -1 for all."""
        chosen = self.rows.currentData()
        return _ALL if chosen is None else int(chosen)

    def set_low(self, is_low: bool) -> None:
        """Place the player's controls beside the frame, or below it."""
        direction = QBoxLayout.Direction.LeftToRight if is_low else QBoxLayout.Direction.TopToBottom
        self.player.set_direction(direction)

    def show_rows(self, names: tuple[str, ...]) -> None:
        """Offer these views."""
        shown = tuple(self.rows.itemText(at) for at in range(1, self.rows.count()))
        if shown != names:
            items = [("All views", _ALL), *((name, at) for at, name in enumerate(names))]
            factory.fill_combo(self.rows, items, self.row())

    def show_frames(self, name: str, frames: Rgba) -> None:
        """Play frames, uint8 [F, H, W, 4]; none shows a hint."""
        self._name.show_text(name if len(frames) else "Play")
        self._stack.setCurrentIndex(1 if len(frames) else 0)
        if len(frames):
            self.player.show_frames(frames)


class SetsView(WrappingPanel):
    """The given cells with a player at their side, above the drawn characters."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._characters = session.characters
        self._plays_given = True
        self.given = GivenPanel(session)
        self.candidates = CandidatesPanel(session.characters, session.drag_files)
        self.walk = WalkPlayer()
        self._above = factory.row(self.given, self.walk, spacing=2 * factory.GRID)
        self._above.setStretch(0, 1)
        self._above.setStretch(1, 1)
        self._box = factory.column(self._above, self.candidates, spacing=2 * factory.GRID, grows=1)
        self.setLayout(self._box)
        self.given.table.focused.connect(self._on_given_focused)
        self.candidates.table.focused.connect(self._on_candidates_focused)
        self.candidates.table.selection_changed.connect(self._refresh_player)
        self.walk.rows.currentIndexChanged.connect(self._refresh_player)
        self._characters.changed.connect(self._refresh_player)
        self._refresh_player()

    def show_first(self) -> None:
        """Select the first cell of the first drawn character and focus the table."""
        self.candidates.table.select([0])
        self.candidates.table.setFocus()

    def focus_table(self) -> CellTable:
        """Focus the last used table, and return the table."""
        table = self.given.table if self._plays_given else self.candidates.table
        table.setFocus()
        return table

    def to_save(self) -> SpriteSelection | None:
        """Return the selected characters, or all, at the speed of the player; None without characters."""
        selection = self.candidates.to_save()
        if selection is not None:
            return replace(selection, duration_ms=self.walk.player.playback.duration_ms())
        return None

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the player beside the given cells, or below the characters in a narrow view."""
        super().resizeEvent(event)
        is_narrow, (width, height) = self.width() < _NARROW, self.size().toTuple()
        share = _NARROW_SHARE if is_narrow else _WIDE_SHARE
        self.given.fit(QSize(width if is_narrow else width // 2, round(height * share)))
        is_below = self._box.indexOf(self.walk) >= 0
        if is_narrow != is_below:
            old, new = (self._above, self._box) if is_narrow else (self._box, self._above)
            old.removeWidget(self.walk)
            new.addWidget(self.walk, 0 if is_narrow else 1)
            self.walk.set_low(is_narrow)

    @Slot()
    def _on_given_focused(self) -> None:
        self._plays_given = True
        self._refresh_player()

    @Slot()
    def _on_candidates_focused(self) -> None:
        self._plays_given = False
        self._refresh_player()

    @Slot()
    def _refresh_player(self) -> None:
        """Play the character of the last used table."""
        draft, candidate = self._characters.draft, self.candidates.current()
        self.walk.show_rows(draft.grid.rows)
        if self._plays_given or candidate is None:
            name, cells = "Given", draft.cells
        else:
            name, cells = f"Character {draft.candidates.index(candidate) + 1}", candidate.cells
        self.walk.show_frames(name, animation(cells, draft.grid, self.walk.row()))
