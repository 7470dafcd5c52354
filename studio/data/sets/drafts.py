"""Drafts of characters, drawn with a model of sets: given cells and candidates, with locks and corrections.

All classes are immutable, because undo keeps earlier drafts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from studio.core.arrays import Mask, Rgba
from studio.core.pictures import are_filled
from studio.data.sets.layout import GAP
from studio.data.sets.placing import CellGrid

GIVEN = 0  # key of the given cells; candidates have keys from 1
_keys = itertools.count(GIVEN + 1)


class CellRef(NamedTuple):
    """A cell of a draft. key: GIVEN, or the key of a candidate."""

    key: int
    cell: int


@dataclass(frozen=True, eq=False)
class Candidate:
    """A drawn character. Redrawing keeps locked cells; the given cells are locked first."""

    cells: Rgba  # uint8 [C, S, S, 4]
    given: Mask  # bool [C], cells of the user
    locked: Mask  # bool [C]
    painted: Mask  # bool [C], corrected after the last drawing
    seed: int
    noise: int  # index of the noise that drew the whole character
    redraws: int = 0
    model: str = ""  # the model's name for saved files
    source: str = ""  # the model's provenance as JSON
    key: int = field(default_factory=lambda: next(_keys))  # unique in the process

    def with_locks(self, cells: Iterable[int], *, locked: bool) -> Candidate:
        """Return the candidate with `cells` locked or unlocked."""
        return replace(self, locked=_with(self.locked, cells, locked))

    def with_pixels(self, cell: int, sprite: Rgba) -> Candidate:
        """Return the candidate with a corrected, locked cell."""
        cells = self.cells.copy()
        cells[cell] = sprite
        painted, locked = (_with(mask, (cell,), True) for mask in (self.painted, self.locked))
        return replace(self, cells=cells, painted=painted, locked=locked, given=_with(self.given, (cell,), False))

    def redrawn(self, cells: Rgba, where: Mask, *, carries: bool) -> Candidate:
        """Return the candidate with new pixels in the cells `where`, bool [C].

        carries: the new cells take over the corrections, so no correction waits any longer.
        """
        merged = np.where(where[:, None, None, None], cells, self.cells)
        painted = self.painted & False if carries else self.painted
        given = self.given & ~where
        return replace(self, cells=merged, given=given, painted=painted, redraws=self.redraws + (not carries))


def _with(mask: Mask, cells: Iterable[int], value: bool) -> Mask:
    changed = mask.copy()
    changed[list(cells)] = value
    return changed


@dataclass(frozen=True, eq=False)
class Draft:
    """Given cells and candidates for a character."""

    grid: CellGrid
    cells: Rgba  # uint8 [C, S, S, 4], the given cells; other cells are transparent
    candidates: tuple[Candidate, ...] = ()

    @classmethod
    def empty(cls, names: tuple[str, ...], size: int) -> Draft:
        """Return a draft without given cells. size: width of a cell in pixels."""
        return cls(CellGrid(names), np.zeros((len(names), size, size, 4), np.uint8))

    @property
    def size(self) -> int:
        """The width of a cell in pixels."""
        return int(self.cells.shape[1])

    @property
    def given(self) -> Mask:
        """Mask of the given cells: bool [C]."""
        return are_filled(self.cells)

    def candidate(self, key: int) -> Candidate | None:
        """Return a candidate by key."""
        return next((one for one in self.candidates if one.key == key), None)

    def pixels(self, at: CellRef) -> Rgba | None:
        """Return the pixels of a cell, uint8 [S, S, 4]; None for a removed candidate."""
        if at.key == GIVEN:
            sprite: Rgba = self.cells[at.cell]
            return sprite
        candidate = self.candidate(at.key)
        return candidate.cells[at.cell] if candidate is not None else None

    def with_given(self, placed: Mapping[int, Rgba]) -> Draft:
        """Return the draft with replaced given cells. placed: uint8 [S, S, 4] by cell."""
        cells = self.cells.copy()
        for cell, sprite in placed.items():
            cells[cell] = sprite
        return replace(self, cells=cells)

    def without_given(self, cleared: Iterable[int]) -> Draft:
        """Return the draft with the given cells `cleared` made empty."""
        cells = self.cells.copy()
        cells[list(cleared)] = 0
        return replace(self, cells=cells)

    def with_candidate(self, changed: Candidate) -> Draft:
        """Return the draft with a candidate replaced by `changed`, which has the candidate's key."""
        return replace(self, candidates=tuple(changed if one.key == changed.key else one for one in self.candidates))

    def with_locks(self, cells: Sequence[CellRef], *, locked: bool) -> Draft:
        """Return the draft with the candidates' cells `cells` locked or unlocked."""
        draft = self
        for key in dict.fromkeys(at.key for at in cells):
            candidate = draft.candidate(key)
            if candidate is not None:
                own = [at.cell for at in cells if at.key == key]
                draft = draft.with_candidate(candidate.with_locks(own, locked=locked))
        return draft

    def without_candidates(self, keys: Iterable[int]) -> Draft:
        """Return the draft without the candidates `keys`."""
        gone = set(keys)
        return replace(self, candidates=tuple(one for one in self.candidates if one.key not in gone))

    def with_pixels(self, at: CellRef, sprite: Rgba) -> Draft:
        """Return the draft with the pixels `sprite`, uint8 [S, S, 4], in a cell."""
        if at.key == GIVEN:
            return self.with_given({at.cell: sprite})
        candidate = self.candidate(at.key)
        return self.with_candidate(candidate.with_pixels(at.cell, sprite)) if candidate is not None else self


def animation(cells: Rgba, grid: CellGrid, row: int) -> Rgba:
    """Return a view's frames, or every view's frames side by side, without empty frames: uint8 [F, S, W, 4].

    cells: uint8 [C, S, S, 4]. row: the view's row; -1 for every view. Views with a single frame become frames.
    """
    filled = are_filled(cells)
    chosen = grid.table if row < 0 else grid.table[row : row + 1]
    frame_cells = chosen if row < 0 and len(grid.columns) == 1 else chosen.T  # [F, cells side by side]
    frames = [own for own in frame_cells.tolist() if any(cell != GAP and filled[cell] for cell in own)]
    blank = np.zeros(cells.shape[1:], np.uint8)
    drawn = [np.concatenate([cells[cell] if cell != GAP else blank for cell in own], 1) for own in frames]
    return np.stack(drawn) if drawn else np.zeros((0, *cells.shape[1:]), np.uint8)
