"""The Train page's line about the training, which becomes a card with the result when the run ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QPushButton

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.sheet_layout import SPRITE_GAP
from studio.app.widgets.sprites.sheet_view import SpriteSheetView
from studio.core.events import SamplesReady

_ROOM = 4 * (32 + SPRITE_GAP), 2 * (32 + SPRITE_GAP)  # logical pixels for the samples
_MOST_SAMPLES = 8
_LEAST_TEXT, _LEAST_LINE = 280, 160  # widths in logical pixels: text and buttons beside samples, a line beside buttons
_MARGIN = 3 * factory.GRID // 2
_Direction = QBoxLayout.Direction


class ResultCard(QFrame):
    """A line of text beside buttons; after a run a card with headline, text, samples and the buttons."""

    def __init__(self, buttons: Sequence[QPushButton]) -> None:
        super().__init__()
        self.headline = factory.text("", "heading")
        self.text = factory.caption("")
        self.samples = SpriteSheetView()
        self._has_samples = False
        self._shown: SamplesReady | None = None  # samples of the run; the view shows a few
        self._order: tuple[QPushButton, ...] = ()
        self._flow = FlowLayout(factory.GRID, factory.GRID)
        words = factory.column(self.headline, self.text, spacing=factory.GRID // 2)
        self._body = factory.row(words, self._flow, grows=0)
        self._row = factory.row(self.samples, self._body, spacing=_MARGIN, grows=1)
        self._row.setAlignment(self.samples, Qt.AlignmentFlag.AlignTop)
        self.setLayout(self._row)
        self.set_order(buttons)
        self.show_line("")

    def show_line(self, text: str) -> None:
        """Show a line of text beside the buttons, without a card."""
        self._show_words("", text)
        self._has_samples = False
        self._show_samples()

    def show_result(self, headline: str, text: str, samples: SamplesReady | None) -> None:
        """Show a card with some of the run's samples; None for a run without samples."""
        self._show_words(headline, text)
        if samples is not None and samples is not self._shown:
            self._shown = samples
            sprites = samples.sprites
            side = sprites.shape[1] + SPRITE_GAP
            columns, rows = (max(1, room // side) for room in _ROOM)
            most, in_set = min(columns * rows, _MOST_SAMPLES, len(sprites)), len(samples.given)
            chosen = np.linspace(0, len(sprites) - 1, most).astype(int)
            if in_set:  # the drawn cells of whole sets
                chosen = np.arange(max(1, most // in_set) * in_set)[:most]
            self.samples.setFixedSize(side if columns == 1 else _ROOM[0], max(_ROOM[1], side))
            self.samples.set_sprites(sprites[chosen])
        self._has_samples = samples is not None and len(samples.sprites) > 0
        self._show_samples()

    def set_order(self, buttons: Sequence[QPushButton]) -> None:
        """Show the buttons in this order."""
        if tuple(buttons) == self._order:
            return
        self._order = tuple(buttons)
        while self._flow.count():
            self._flow.takeAt(0)
        for button in buttons:
            self._flow.addWidget(button)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_samples()
        self._arrange_words()

    def _show_samples(self) -> None:
        """Show the samples if a card has some and is wide enough for text beside them."""
        self.samples.setVisible(self._has_samples and self.width() >= _ROOM[0] + _LEAST_TEXT)

    def _show_words(self, headline: str, text: str) -> None:
        self.headline.setText(headline)
        self.headline.setVisible(bool(headline))
        self.text.setText(text)
        self.text.setVisible(bool(text) or not headline)
        margin = _MARGIN if headline else 0
        if margin != self._row.contentsMargins().left():
            theme.set_role(self, "card" if headline else "")
            self._row.setContentsMargins(margin, margin, margin, margin)
        self._arrange_words()

    def _arrange_words(self) -> None:
        """Place the buttons below a card's text, and below a line that would be squeezed beside them."""
        is_narrow = self.width() < self._flow.sizeHint().width() + _LEAST_LINE
        is_below = bool(self.headline.text()) or is_narrow
        self._body.setDirection(_Direction.TopToBottom if is_below else _Direction.LeftToRight)
