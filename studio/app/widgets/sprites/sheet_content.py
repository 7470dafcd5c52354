"""The content of a view of a few sprites: sprites with captions, reconstructions, or sets in rows, with positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from PySide6.QtCore import QSize
from PySide6.QtGui import QFontMetrics

from studio.app.widgets.sprites.captions import short_captions
from studio.app.widgets.sprites.sheet_layout import SetRows, SheetViewLayout
from studio.core.arrays import Rgba

PAIRS = "Left: original. Right: reconstruction."
GIVEN, *_ = SET_PARTS = ("Given", "True", "Drawn")
_SETS = "Rows of given, true and drawn cells"
_READABLE = 8  # characters; shorter elided captions tell nothing
_MUCH_LARGER = 1.5  # sprite's side without captions / with captions, from where on captions give way


@dataclass(frozen=True, eq=False)
class SheetContent:
    """Sprites of a sheet view.

    originals: uint8 [N, S, S, 4], a sprite on the left of each, for reconstructions. parts: the numbers of given, true
    and drawn cells in a row of `rgba`, for sets; () for other sprites.
    """

    rgba: Rgba  # uint8 [N, S, S, 4]
    captions: Sequence[str] = ()
    originals: Rgba | None = None
    parts: tuple[int, ...] = ()

    @cached_property
    def short(self) -> list[str]:
        """The captions where the whole captions have no room."""
        return short_captions(self.captions)

    def part_of(self, row: int) -> str:
        """Return 'Given', 'True' or 'Drawn' for a cell of sets; '' for other sprites."""
        if not self.parts:
            return ""
        column, ends = row % sum(self.parts), np.cumsum(self.parts)
        return SET_PARTS[int(np.searchsorted(ends, column, side="right"))]

    def describe(self, current: int) -> str:
        """Describe the sprites, and the current sprite, for screen readers. '' without sprites.

        current: -1 for none.
        """
        count = len(self.rgba)
        about = ", ".join(self.captions) or (f"{count} sprites" if count else "")
        if current >= 0:
            part = f", {self.part_of(current).lower()}" if self.parts else ""
            about = f"{self.captions[current] if self.captions else 'Sample'}{part}, {current + 1} of {count}"
        elif self.parts:
            about = f"{_SETS}: {', '.join(dict.fromkeys(self.captions))}"
        return f"{about}. {PAIRS}" if self.originals is not None else about

    def places(self, area: QSize, ratio: float, metrics: QFontMetrics) -> SheetViewLayout:
        """Return the places of the sprites in an area, without captions if unreadable or if sprites can be much larger.

        area: in logical pixels. ratio: device pixels for a logical pixel.
        """
        (count, size), none, has_pairs = self.rgba.shape[:2], QSize(0, 0), self.originals is not None
        if self.parts and count:
            return self._places_of_sets(area, ratio, metrics)
        if has_pairs:
            area -= QSize(0, metrics.height())  # the last line explains the pairs
        fill = partial(SheetViewLayout.fill, area, ratio, count, size, has_pairs=has_pairs)
        if not (self.captions and count):
            return fill(caption=none)
        longest = max(map(metrics.horizontalAdvance, self.short))
        found = fill(caption=QSize(longest, metrics.height()))
        readable = min(longest, _READABLE * metrics.averageCharWidth())
        has_room = found.boxes[0].width() >= readable and found.boxes[-1].bottom() < area.height()
        bare = fill(caption=none)
        gives_way = bare.boxes[0].height() >= _MUCH_LARGER * (found.boxes[0].height() - found.caption)
        return found if has_room and not gives_way else bare

    def _places_of_sets(self, area: QSize, ratio: float, metrics: QFontMetrics) -> SheetViewLayout:
        """Return the places of sets, without the names of cells if these would make the sprites smaller."""
        (count, size), columns = self.rgba.shape[:2], sum(self.parts)
        found = []
        for names in (self.short[:columns], ()):
            sets = SetRows(count // columns, size, self.parts, SET_PARTS, names)
            found.append(SheetViewLayout.fill_sets(area, ratio, sets, metrics))
        named, bare = found
        has_room = max((line.right() for line, _ in named.names), default=0) < area.width()
        return named if has_room and named.boxes[0].width() >= bare.boxes[0].width() else bare
