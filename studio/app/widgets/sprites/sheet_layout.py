"""Lay out a few sprites in a view: rows of equal boxes, or sets in rows of given, true and drawn cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import QFontMetrics

from studio.app.widgets.sprites.painting import side_for

SPRITE_GAP = 6  # logical pixels between sprites
PAIR_GAP = 2  # logical pixels between an original and its reconstruction
_PART_GAP, _BLOCK_GAP = 18, 48  # logical pixels between parts of a row, and between blocks of sets


@dataclass(frozen=True)
class SheetViewLayout:
    """Boxes for sprites in rows with `columns` columns. A box holds a sprite and a caption; boxes have equal sizes.

    caption: height of the caption at the bottom of a box; 0 without captions. titles, names: texts above sets.
    """

    boxes: tuple[QRect, ...]
    columns: int
    caption: int
    titles: tuple[tuple[QRect, str], ...] = ()
    names: tuple[tuple[QRect, str], ...] = ()

    @classmethod
    def fill(
        cls, area: QSize, ratio: float, count: int, size: int, caption: QSize, *, has_pairs: bool = False
    ) -> SheetViewLayout:
        """Lay out `count` sprites, or pairs of sprites, as large as possible, then with the widest captions.

        ratio: device pixels per logical pixel. size: width of a sprite in pixels. caption: room for the longest
        caption; (0, 0) without captions. Long captions widen the boxes if the area has room.
        """
        gap, width, best = SPRITE_GAP, area.width(), (0.0, 0, 0)
        columns = max(1, width // (size + gap))
        for candidate in range(1, count + 1):
            across = width // candidate - gap
            across = (across - PAIR_GAP) // 2 if has_pairs else across
            down = area.height() // math.ceil(count / candidate) - gap - caption.height()
            side = side_for(min(across, down), size, ratio)
            found = side, min(width // candidate - gap, caption.width()), -(-count % candidate)  # last: minus the gaps
            if side <= min(across, down) and found > best:
                best, columns = found, candidate
        side, rows = math.ceil(best[0] or size), math.ceil(count / columns)
        drawn = 2 * side + PAIR_GAP if has_pairs else side
        wide, high = max(drawn, min(caption.width(), width // columns - gap)), side + caption.height()
        left = max(0, (width - columns * (wide + gap) + gap) // 2)
        top = max(0, (area.height() - rows * (high + gap) + gap) // 2)
        cells = (divmod(number, columns) for number in range(count))
        corners = ((left + column * (wide + gap), top + row * (high + gap)) for row, column in cells)
        return cls(tuple(QRect(*corner, wide, high) for corner in corners), columns, caption.height())

    @classmethod
    def fill_sets(cls, area: QSize, ratio: float, sets: SetRows, metrics: QFontMetrics) -> SheetViewLayout:
        """Lay out sets, a row per set, in blocks beside each other, with sprites as large as possible."""
        numbers = [number for number in range(1, sets.number + 1) if not sets.number % number]
        found = [_Blocks(area, ratio, sets, metrics, across) for across in numbers]
        best = max(found, key=lambda blocks: (blocks.fits, blocks.side, -blocks.across))
        return cls(best.boxes(), sum(sets.parts) * best.across, 0, best.titles(), best.names())

    def at(self, point: QPoint) -> int:
        """Return the index of the sprite at a point; -1 without a sprite."""
        return next((number for number, box in enumerate(self.boxes) if box.contains(point)), -1)


class SetRows(NamedTuple):
    """Sets to lay out, at least one. A set takes a row. size: width of a cell in pixels."""

    number: int
    size: int
    parts: Sequence[int]  # number of cells by part of a row; gaps separate the parts
    titles: Sequence[str]  # by part
    names: Sequence[str]  # cell names to show above the columns; empty without names


class _Blocks:
    """Lays out sets in `across` blocks beside each other. Further arguments: see `SheetViewLayout.fill_sets`."""

    def __init__(self, area: QSize, ratio: float, sets: SetRows, metrics: QFontMetrics, across: int) -> None:
        count, size, parts, titles, names = sets
        self.across = across
        self._sets, self._line = sets, metrics.height()
        self._head = self._line * (2 if names else 1) + SPRITE_GAP  # height above the first row
        lines, columns = math.ceil(count / across), sum(parts)
        least = max(map(metrics.horizontalAdvance, names), default=0)
        gaps = (len(parts) - 1) * (_PART_GAP - SPRITE_GAP) + columns * SPRITE_GAP
        free = (area.width() - (across - 1) * _BLOCK_GAP) // across - gaps
        down = (area.height() - self._head) // lines - SPRITE_GAP
        room = min(free // columns, down)
        side = side_for(room, size, ratio)
        self.fits = room > 0 and side <= room and free // columns >= least
        self.side = math.ceil(side) if room > 0 else size
        title_widths = [metrics.horizontalAdvance(title) for title in titles]
        self._wide = max(self.side, least)  # width of a column
        self._widths = [
            max(part * (self._wide + SPRITE_GAP) - SPRITE_GAP, width)
            for part, width in zip(parts, title_widths, strict=True)
        ]
        self._block = sum(self._widths) + (len(parts) - 1) * _PART_GAP
        used = QSize(across * (self._block + _BLOCK_GAP) - _BLOCK_GAP, self._head + lines * (self.side + SPRITE_GAP))
        self._left = max(0, (area.width() - used.width()) // 2)
        self._top = max(0, (area.height() - used.height()) // 2)

    def boxes(self) -> tuple[QRect, ...]:
        """Return the boxes for the cells, set after set."""
        rows = (divmod(number, self.across) for number in range(self._sets.number))
        tops = ((block, self._top + self._head + row * (self.side + SPRITE_GAP)) for row, block in rows)
        return tuple(
            QRect(x + (self._wide - self.side) // 2, top, self.side, self.side)
            for block, top in tops for x in self._columns(block)
        )  # fmt: skip

    def titles(self) -> tuple[tuple[QRect, str], ...]:
        """Return boxes and texts for the parts' titles, above every block."""
        parts = list(zip(self._widths, self._sets.titles, strict=True))
        return tuple(
            (QRect(x, self._top, width, self._line), title)
            for block in range(self.across) for x, (width, title) in zip(self._starts(block), parts, strict=True)
        )  # fmt: skip

    def names(self) -> tuple[tuple[QRect, str], ...]:
        """Return boxes and texts for the column names, below the titles."""
        return tuple(
            (QRect(x, self._top + self._line, self._wide, self._line), name)
            for block in range(self.across) for x, name in zip(self._columns(block), self._sets.names, strict=False)
        )  # fmt: skip

    def _starts(self, block: int) -> list[int]:
        """Return the left edges of a row's parts."""
        starts = [self._left + block * (self._block + _BLOCK_GAP)]
        for width in self._widths[:-1]:
            starts.append(starts[-1] + width + _PART_GAP)
        return starts

    def _columns(self, block: int) -> list[int]:
        """Return the left edges of a row's columns."""
        parts = zip(self._starts(block), self._sets.parts, strict=True)
        return [start + number * (self._wide + SPRITE_GAP) for start, part in parts for number in range(part)]
