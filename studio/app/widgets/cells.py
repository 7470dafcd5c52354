"""Where cells of one size lie: arithmetic alone, so that a million of them take no longer than one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cells:
    """`count` cells of `width` x `height` pixels in lines of `across`, numbered in reading order from 0."""

    count: int
    width: int
    height: int
    across: int

    @classmethod
    def within(cls, room: int, count: int, width: int, height: int) -> Cells:
        """As many cells side by side as `room` pixels hold, one at least."""
        return cls(count, width, height, max(1, room // width))

    @property
    def lines(self) -> int:
        """The last one may be short."""
        return -(-self.count // self.across)

    def place(self, cell: int) -> tuple[int, int]:
        """The upper left corner of a cell: x and y in pixels."""
        line, column = divmod(cell, self.across)
        return column * self.width, line * self.height

    def at(self, x: int, y: int) -> int:
        """The cell that covers a pixel; -1 for none."""
        column, line = x // self.width, y // self.height
        cell = line * self.across + column
        return cell if 0 <= column < self.across and line >= 0 and cell < self.count else -1

    def runs(self, left: int, top: int, right: int, bottom: int) -> list[tuple[int, int]]:
        """The cells that a rectangle touches, its edges among it, as (first, last) of runs of neighbours, ascending."""
        first, last = max(left // self.width, 0), min(right // self.width, self.across - 1)
        lines = range(max(top // self.height, 0), min(bottom // self.height, self.lines - 1) + 1)
        if first > last or not lines:
            return []
        if (first, last) == (0, self.across - 1):
            return [(lines[0] * self.across, min(lines[-1] * self.across + last, self.count - 1))]
        found = ((line * self.across + first, min(line * self.across + last, self.count - 1)) for line in lines)
        return [(start, end) for start, end in found if start <= end]

    def below(self, cell: int, lines: int) -> int:
        """The cell that many lines further down, or up where `lines` is negative; at the edges the nearest there is."""
        line, column = divmod(cell, self.across)
        line = min(max(line + lines, 0), self.lines - 1)
        return min(line * self.across + column, self.count - 1)
