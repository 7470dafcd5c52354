"""Remembers the user's choice in a combo box while another model does not offer it."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QComboBox

from studio.app.widgets import factory


class LastingChoice(QObject):
    """Selects the user's choice in a combo box again whenever new entries contain it."""

    def __init__(self, box: QComboBox) -> None:
        super().__init__(box)
        self._box = box
        self.wanted: object = None  # the data of the user's choice; None before a choice
        box.currentIndexChanged.connect(self._on_chosen)

    def fill(self, items: Iterable[tuple[str, object]], usual: object) -> None:
        """Replace the entries (text, data); select the user's choice, or else the data `usual`. Emits no signals."""
        offered = list(items)
        is_offered = any(data == self.wanted for _, data in offered)
        factory.fill_combo(self._box, offered, self.wanted if is_offered else usual)

    @Slot()
    def _on_chosen(self) -> None:
        self.wanted = self._box.currentData()
