"""Search for sprites by name, class and attributes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QLineEdit

from studio.app.widgets import factory
from studio.core.names import nfc
from studio.data.sprites import Sprites

_DELAY_MS = 80  # collects fast typing: a search in a million names takes longer than a key press


class SpriteSearch(QLineEdit):
    """A search field. Finds sprites with every typed word in the name, class or attribute values.

    indices: found sprites, int64 [n], ascending; None without words. found: `indices` changed.
    """

    found = Signal()

    def __init__(self) -> None:
        super().__init__(placeholderText="Search sprites", clearButtonEnabled=True)
        self.indices: NDArray[np.int64] | None = None
        self._sprites: Sprites | None = None
        self._texts: list[str] = []  # name, class and values by sprite; filled by the first search
        self._timer = QTimer(self, singleShot=True, interval=_DELAY_MS)
        self._timer.timeout.connect(self._search)
        about = "Show only sprites with these words in their name, class or attributes. ({find})"
        factory.set_name_and_tip(self, "Search", about)
        self.setMinimumWidth(120)
        self.setMaximumWidth(320)
        self.textChanged.connect(self._timer.start)

    def set_sprites(self, sprites: Sprites) -> None:
        """Search these sprites from now on, for the typed words at once."""
        self._sprites, self._texts = sprites, []
        self._timer.stop()
        self.indices = self._matches()

    @Slot()
    def _search(self) -> None:
        self.indices = self._matches()
        self.found.emit()

    def _matches(self) -> NDArray[np.int64] | None:
        words, sprites = nfc(self.text()).casefold().split(), self._sprites
        if not words or sprites is None:
            return None
        if not self._texts:
            classes = sprites.class_names
            pairs = zip(sprites.names, sprites.labels.tolist(), strict=True)
            self._texts = [f"{name}\n{classes[label]}".casefold() for name, label in pairs]
            attributes = sprites.attributes
            for values, codes in zip(attributes.values, attributes.table.T, strict=True):
                known = [*(f"\n{value}".casefold() for value in values), ""]  # the last: no value
                self._texts = [text + known[code] for text, code in zip(self._texts, codes.tolist(), strict=True)]
        found = list(range(len(self._texts)))
        for word in words:  # a loop per word takes a fifth of the time of testing every word per sprite
            found = [index for index in found if word in self._texts[index]]
        return np.array(found, np.int64)
