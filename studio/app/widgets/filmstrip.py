"""Live samples and their history."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from studio.app.widgets.sprite_sheet import SpriteSheetView
from studio.core.events import Rgba


class Filmstrip(QWidget):
    """Samples of one seed over the steps: the sprites above (`view`), a film of earlier ones below.

    step_shown: the step whose samples are on show now.
    """

    step_shown = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = SpriteSheetView(self)

    def add(self, step: int, sprites: Rgba, captions: Sequence[str] = ()) -> None:
        """Append the samples of `step` (later than the others); they are shown when the strip is live."""

    def clear(self) -> None:
        """Forget everything: a new run begins."""

    def show_step(self, step: int) -> None:
        """Show the newest samples not later than `step`: what hovering the loss curve calls."""

    def go_live(self) -> None:
        """Show the newest samples and follow new ones."""

    def is_live(self) -> bool:
        """Whether new samples are shown as they come."""
        return True

    def steps(self) -> list[int]:
        """The steps that there are samples of."""
        return []

    def shown_step(self) -> int:
        """The step on show; -1 while there is none."""
        return -1

    def sprites_at(self, step: int) -> Rgba | None:
        """The samples that `show_step` would show."""
        return None
