"""What was checked on new sprites, of how many it holds, and what else there is to say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QLabel, QWidget

from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout

if TYPE_CHECKING:
    from studio.app.background.job_events import SpritesColoured
    from studio.data.colour.constraints import ConstraintCheck


class Badges(QWidget):
    """A badge for each check, and a note that stays as long as its sprites do."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[QLabel] = []
        self.note = factory.text("", "warning")
        self._flow = FlowLayout(factory.GRID // 2, factory.GRID // 2)
        self.setLayout(factory.column(self.note, self._flow, spacing=4))
        self.show_result(None)

    def show_result(self, made: SpritesColoured | None) -> None:
        """Speak of these sprites; None: of none."""
        for label in self.labels:
            self._flow.removeWidget(label)
            label.deleteLater()
        self.labels = [_badge(badge) for badge in made.badges] if made is not None else []
        for label in self.labels:
            self._flow.addWidget(label)
        self.note.setText(made.note if made is not None else "")
        self.note.setVisible(bool(self.note.text()))
        self.setVisible(bool(self.labels or self.note.text()))


def _badge(badge: ConstraintCheck) -> QLabel:
    """A check in words: of how many sprites it holds, and why not of the others."""
    fails = badge.count - badge.holds
    words, tip = badge.title, f"{badge.title}: checked on each of these sprites."
    if fails and fails == badge.but_kept:
        words, tip = f"{badge.title}, except where nothing changed", "Pixels that were to stay are as they were."
    elif fails:
        words, tip = f"{badge.title}: {badge.holds} of {badge.count}", "Checked on each of these sprites."
    made = factory.badge(words)
    factory.set_name_and_tip(made, words, tip)
    return made
