"""A label with a link to a web page."""

from __future__ import annotations

import html

from PySide6.QtCore import Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QLabel

from studio.app.widgets import factory
from studio.app.widgets.tab_order import TAB_REASONS

_BY_MOUSE = Qt.TextInteractionFlag.LinksAccessibleByMouse
_BY_KEYBOARD = Qt.TextInteractionFlag.LinksAccessibleByKeyboard


class LinkLabel(QLabel):
    """A label that ends with a link. A click opens the page; so does Enter after Tab."""

    def __init__(self, words: str, tip: str) -> None:
        """Create a label without a link. words: the text before the link."""
        super().__init__()
        self._words, self._tip = words, tip
        factory.set_name_and_tip(self, words, tip)
        self.setTextInteractionFlags(_BY_MOUSE | _BY_KEYBOARD)
        self.setOpenExternalLinks(True)
        self.setWordWrap(True)  # else a long title makes the page wider than a small window

    def show_link(self, title: str, address: str) -> None:
        """Show a link; hide the label if the address is empty."""
        self.setText(f'{self._words}: <a href="{html.escape(address)}">{html.escape(title)}</a>')
        factory.set_name_and_tip(self, f"{self._words}: {title}", self._tip)
        self.setVisible(bool(address))

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Select the link when Tab moves the focus here, so that Enter opens the page."""
        super().focusInEvent(event)
        if event.reason() in TAB_REASONS and not self.hasSelectedText():
            self.focusNextPrevChild(True)
