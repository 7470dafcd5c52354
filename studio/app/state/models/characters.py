"""The characters that the user draws with a model of sets: given cells, candidates, locks and corrections."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Signal

from studio.app.background import set_jobs
from studio.app.background.job_queue import JobQueue
from studio.app.state.undo import UndoHistory, UndoStep
from studio.app.state.window_file import WindowFile
from studio.core import formatting, paths
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.data.sets import placing
from studio.data.sets.draft_file import draft_from_bytes, draft_to_bytes
from studio.data.sets.drafts import GIVEN, CellRef, Draft
from studio.data.sets.layout import GAP

_Kind = tuple[tuple[str, ...], int]  # cell names, and side of a cell in pixels


class CharacterDrafts(QObject):
    """Holds a draft for each kind of character. Every change is a step of the undo history.

    draft: the draft for the chosen model. edited: the cell in the cell editor; None for a closed editor.
    """

    changed = Signal()  # the draft, or the edited cell
    refused = Signal(str)  # why images can't be used; '' after a change
    placed = Signal(object)  # list of int: cells with new images
    frames_placed = Signal(str)  # a sentence on the frames in the cells; '' without animations

    def __init__(self, job_queue: JobQueue, history: UndoHistory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue, self._history = job_queue, history
        self.draft = Draft.empty((), 1)
        self.edited: CellRef | None = None
        self._drafts: dict[_Kind, Draft] = {}
        self._files: dict[_Kind, WindowFile[Draft]] = {}  # this window's file for each kind

    def show_kind(self, names: tuple[str, ...], size: int) -> None:
        """Show the draft of a kind of character. A new draft copies given cells with equal names and size."""
        if _kind(self.draft) == (names, size):
            return
        kind = names, size
        if kind not in self._drafts:
            self._files[kind] = WindowFile(_file_of(kind), partial(_parse, kind), draft_to_bytes)
            stored = self._files[kind].stored
            self._drafts[kind] = stored if stored is not None else _copy_given(self.draft, names, size)
        self.draft = self._drafts[kind]
        self.edited = None
        self.changed.emit()

    def change(self, title: str, draft: Draft) -> None:
        """Replace a draft by its new version as an undoable step."""
        before = self._drafts[_kind(draft)]
        if draft is before:
            return
        self._set(draft)
        self._history.add(UndoStep(title, partial(self._set, before), partial(self._set, draft)))
        self.refused.emit("")

    def latest(self, draft: Draft) -> Draft:
        """Return the latest version of a draft."""
        return self._drafts[_kind(draft)]

    def place_images(self, images: Sequence[tuple[str, Rgba]], target: int = GAP) -> None:
        """Fill cells with images as given cells, or emit `refused`. target: see `placing.place_images`."""
        self._place_files([set_jobs.CellFile(name, (("", rgba),)) for name, rgba in images], target)

    def _place_files(self, found: Sequence[set_jobs.CellFile], target: int) -> None:
        """Fill cells with the images of files as given cells; emit `refused`, or `frames_placed`."""
        draft = self.draft
        single = [(file.name, file.frames[0][1]) for file in found if len(file.frames) == 1]
        placed, sentences = dict[int, Rgba](), list[str]()
        free = np.flatnonzero(~draft.given).tolist()
        try:
            for file in (file for file in found if len(file.frames) > 1):
                named = draft.grid.cell_of_file(file.name)
                first = target if named == GAP or len(found) == 1 else named
                own = placing.place_frames(file.frames, draft.grid, draft.size, first)
                sentences.append(_describe_frames(file, own, draft))
                placed.update(own)
            if single:
                left = [cell for cell in free if cell not in placed]
                placed.update(placing.place_images(single, draft.grid, draft.size, left, target))
        except BadInputError as error:
            self.refused.emit(f"{error.title} {error.hint}")
            return
        self.give(placed, "fill")
        self.frames_placed.emit(" ".join(sentences))

    def read_files(self, chosen: Sequence[Path], target: int = GAP) -> None:
        """Read image files and fill cells with the images."""
        on_read = partial(self._on_read, _kind(self.draft), target)
        self._job_queue.run("files", f"Opening {chosen[0].name}", partial(set_jobs.read_cells, chosen), on_read)

    def give(self, placed: Mapping[int, Rgba], verb: str) -> None:
        """Fill given cells as an undoable step. placed: uint8 [S, S, 4] by cell. verb: start of the step's title."""
        self.change(f"{verb} {self._name_cells(placed)}", self.draft.with_given(placed))
        self.placed.emit(list(placed))

    def clear(self, cells: Sequence[int]) -> None:
        """Clear given cells."""
        filled = [cell for cell in cells if self.draft.given[cell]]
        if filled:
            self.change(f"clear {self._name_cells(filled)}", self.draft.without_given(filled))

    def paint(self, sprite: Rgba) -> None:
        """Replace the pixels of the edited cell by uint8 [S, S, 4]."""
        at = self.edited
        before = self.draft.pixels(at) if at is not None else None
        if at is not None and before is not None and not np.array_equal(before, sprite):
            self.change(f"paint {self.draft.grid.names[at.cell]}", self.draft.with_pixels(at, sprite))

    def edit(self, at: CellRef | None) -> None:
        """Open a cell in the cell editor; None closes the editor."""
        if at != self.edited:
            self.edited = at
            self.changed.emit()

    def set_locked(self, cells: Sequence[CellRef], *, locked: bool) -> None:
        """Lock or unlock cells of candidates."""
        verb = "lock" if locked else "unlock"
        self.change(f"{verb} {formatting.count(len(cells), 'cell')}", self.draft.with_locks(cells, locked=locked))

    def use_as_given(self, key: int, cells: Iterable[int]) -> None:
        """Turn cells of a candidate into given cells."""
        candidate = self.draft.candidate(key)
        if candidate is not None:
            self.give({cell: candidate.cells[cell] for cell in cells}, "give")

    def reject(self, keys: Sequence[int]) -> None:
        """Remove candidates."""
        title = f"reject {formatting.count(len(keys), 'character')}"
        self.change(title, self.draft.without_candidates(keys))

    def store(self) -> None:
        """Store the drafts for the next session, a file for each kind of character. Raises OSError."""
        for kind, draft in self._drafts.items():
            is_empty = not draft.candidates and not draft.given.any()
            self._files[kind].store(None if is_empty else draft)

    def release(self) -> None:
        """Unlock the files of the drafts for other windows."""
        for file in self._files.values():
            file.release()

    def has(self, at: CellRef) -> bool:
        """Return whether the candidate of a cell still exists; True for given cells."""
        return at.key == GIVEN or self.draft.candidate(at.key) is not None

    def _name_cells(self, cells: Iterable[int]) -> str:
        """Return the name of a single cell, or the number of cells: '3 cells'."""
        names = [self.draft.grid.names[cell] for cell in cells]
        return names[0] if len(names) == 1 else formatting.count(len(names), "cell")

    def _set(self, draft: Draft) -> None:
        kind = _kind(draft)
        self._drafts[kind] = draft
        if kind == _kind(self.draft):
            self.draft = draft
            if self.edited is not None and not self.has(self.edited):
                self.edited = None
            self.changed.emit()

    def _on_read(self, kind: _Kind, target: int, found: tuple[list[set_jobs.CellFile], BadInputError | None]) -> None:
        images, error = found
        if error is not None:
            self.refused.emit(f"{error.title} {error.hint}")
        elif kind == _kind(self.draft):
            self._place_files(images, target)


def _describe_frames(file: set_jobs.CellFile, placed: Mapping[int, Rgba], draft: Draft) -> str:
    """Return a sentence on the filled cells: 'walk.gif: 4 of 6 frames fill down/1 to down/4.'"""
    names, total = [draft.grid.names[cell] for cell in sorted(placed)], len(file.frames)
    frames = f"all {total} frames fill" if len(names) == total else f"{len(names)} of {total} frames fill"
    return f"{file.name}: {frames} {names[0]}{f' to {names[-1]}' if len(names) > 1 else ''}."


def _kind(draft: Draft) -> _Kind:
    return draft.grid.names, draft.size


def _file_of(kind: _Kind) -> Path:
    digest = hashlib.sha256(repr(kind).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return paths.home() / "characters" / f"{digest}.npz"


def _parse(kind: _Kind, data: bytes) -> Draft:
    """Decode a stored draft of a kind. Raises ValueError for damaged data and other kinds."""
    draft = draft_from_bytes(data)
    if _kind(draft) != kind:
        raise ValueError("a draft of another kind")
    return draft


def _copy_given(before: Draft, names: tuple[str, ...], size: int) -> Draft:
    """Return a new draft with copies of the given cells of another draft with equal names and size."""
    empty = Draft.empty(names, size)
    if before.size != size:
        return empty
    filled = np.flatnonzero(before.given).tolist()
    own = {before.grid.names[cell]: before.cells[cell] for cell in filled}
    return empty.with_given({names.index(name): sprite for name, sprite in own.items() if name in names})
