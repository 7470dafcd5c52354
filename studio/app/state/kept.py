"""Sprites that were kept: they survive the next drawing, and closing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QObject, Signal

from studio.core import files, places
from studio.core.events import Rgba
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

    def add(self, sprites: Iterable[NamedSprite]) -> None:
        """Keep square sprites."""
        known = {_pixels(kept.edit.sprite) for kept in self._kept}
        new = {_pixels(sprite.rgba): sprite for sprite in sprites if _pixels(sprite.rgba) not in known}
        if new:
            added = [KeptEdit(Edit.of(sprite.rgba), *sprite[1:]) for sprite in new.values()]
            self._kept = [*self._kept, *added][-_MOST:]
            self.changed.emit()

    def remove(self, kept: list[KeptEdit]) -> None:
        """Keep these no longer."""
        self._kept = [each for each in self._kept if each not in kept]
        self.changed.emit()

    def places(self, kept: list[KeptEdit]) -> tuple[tuple[int, KeptEdit], ...]:
        """Each of these with its place among all, for `put_back`."""
        return tuple((place, each) for place, each in enumerate(self._kept) if each in kept)

    def put_back(self, removed: Sequence[tuple[int, KeptEdit]]) -> None:
        """Keep these again, in their places, the lowest first."""
        kept = list(self._kept)
        for place, each in removed:
            kept.insert(place, each)
        self._kept = kept[-_MOST:]
        self.changed.emit()

    def among(self, sprites: Rgba) -> list[int]:
        """Which of these, uint8 [N, S, S, 4], are kept."""
        kept = {_pixels(each.edit.sprite) for each in self.of_size(sprites.shape[1])}
        return [number for number, sprite in enumerate(sprites) if _pixels(sprite) in kept] if kept else []

    def count_of_other_sizes(self, size: int) -> int:
        """How many are not so many pixels wide and high."""
        return len(self._kept) - len(self.of_size(size))

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


def _pixels(sprite: Rgba) -> tuple[int, bytes]:
    """What makes a square sprite, uint8 [S, S, 4], another one than others are."""
    return len(sprite), sprite.tobytes()
