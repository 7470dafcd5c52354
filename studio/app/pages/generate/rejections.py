"""What was taken away from the new sprites and the kept ones, to be had back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from studio.app.pages.generate.batches import ResultBatch
from studio.app.state.models.kept import KeptSprites
from studio.core import formatting
from studio.data.pixels.editing import SavedEdit


@dataclass(frozen=True, eq=False)
class Rejection:
    """Sprites that were taken away at once: numbers of a batch, or kept ones with their places."""

    batch: ResultBatch | None
    numbers: tuple[int, ...]
    kept: tuple[tuple[int, SavedEdit], ...] = ()

    def title(self) -> str:
        """What Undo takes back."""
        return f"Reject {formatting.count(len(self.numbers) + len(self.kept), 'sprite')}"


class RejectionHistory:
    """All of them since the window was opened, the newest last."""

    def __init__(self, kept: KeptSprites) -> None:
        self._kept = kept
        self._done: list[Rejection] = []

    def title(self) -> str:
        """What Undo takes back; empty when there is nothing."""
        return self._done[-1].title() if self._done else ""

    def reject(self, batch: ResultBatch, numbers: Sequence[int]) -> None:
        """Hide these of a batch."""
        batch.rejected |= set(numbers)
        self._done.append(Rejection(batch, tuple(numbers)))

    def reject_kept(self, kept: list[SavedEdit]) -> None:
        """Keep these no longer."""
        self._done.append(Rejection(None, (), self._kept.indexed(kept)))
        self._kept.remove(kept)

    def undo(self) -> Rejection:
        """Bring back what was rejected last."""
        last = self._done.pop()
        if last.batch is not None:
            last.batch.rejected -= set(last.numbers)
        else:
            self._kept.restore(last.kept)
        return last
