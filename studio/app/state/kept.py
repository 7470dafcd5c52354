"""Sprites that were kept: they survive the next drawing, and closing."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QObject, Signal

from studio.core import files, places
from studio.data.editing import Edit, KeptEdit, NamedSprite

_MOST = 1000  # the oldest go


class KeptSprites(QObject):
    """Kept sprites of all sizes, the oldest first, each once. changed: one came or went."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = places.home() / "kept.jsonl"
        self._kept = self._read()

    def of_size(self, size: int) -> list[KeptEdit]:
        """Those that are so many pixels wide and high."""
        return [kept for kept in self._kept if len(kept.edit.sprite) == size]

    def add(self, sprite: NamedSprite) -> None:
        """Keep a square sprite."""
        if not any(np.array_equal(kept.edit.sprite, sprite.rgba) for kept in self._kept):
            self._kept = [*self._kept, KeptEdit(Edit.of(sprite.rgba), *sprite[1:])][-_MOST:]
            self.changed.emit()

    def remove(self, kept: list[KeptEdit]) -> None:
        """Keep these no longer."""
        self._kept = [each for each in self._kept if each not in kept]
        self.changed.emit()

    def keep(self) -> None:
        """Remember them for the next time. Raises OSError."""
        if self._kept:
            files.write_atomic(self._path, b"\n".join(kept.to_json() for kept in self._kept))
        else:
            files.remove(self._path)

    def _read(self) -> list[KeptEdit]:
        """What was remembered; what is damaged is as if it had never been."""
        found = []
        try:
            lines = self._path.read_bytes().split(b"\n")
        except OSError:
            return []
        for line in lines:
            try:
                found.append(KeptEdit.from_json(line))
            except ValueError:
                continue
        return found
