"""Change the names, stars, notes and tags of runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TypedDict

from studio.app.background.job_queue import JobQueue
from studio.app.state.runs.runs import SHORT_JOB, RunList
from studio.app.state.undo import UndoHistory, UndoStep
from studio.core.errors import StudioError
from studio.core.formatting import count
from studio.engine.runs.notes import RunNotes, change_notes

_log = logging.getLogger(__name__)


class _NoteChange(TypedDict, total=False):
    """Arguments for `change_notes`: a run's new notes. A missing or None value changes nothing."""

    name: str
    starred: bool
    note: str | None
    tags: Sequence[str] | None


class NotesEditor:
    """Changes names, stars, notes and tags of runs, and adds undo steps."""

    def __init__(self, job_queue: JobQueue, runs: RunList, history: UndoHistory) -> None:
        self._job_queue, self._runs, self._history = job_queue, runs, history

    def rename(self, path: Path, name: str) -> None:
        """Give a run a display name, with an undo step. name: '' for the folder's name."""
        run = self._runs.at(path)
        if run is not None and name != run.notes.name:
            self._change([path], f"rename {run.title}", {"name": run.notes.name}, {"name": name})

    def star(self, paths: Sequence[Path], *, starred: bool) -> None:
        """Star runs or remove stars, with a single undo step."""
        changed = [path for path in paths if (run := self._runs.at(path)) is not None and run.notes.starred != starred]
        if changed:
            what = self._runs.title_of(changed[0]) if len(changed) == 1 else count(len(changed), "run")
            title = f"star {what}" if starred else f"remove star of {what}"
            self._change(changed, title, {"starred": not starred}, {"starred": starred})

    def change_notes(self, path: Path, *, note: str | None, tags: Sequence[str] | None) -> None:
        """Change a run's note and tags; None leaves a field unchanged.

        Typing stores many changes. Consecutive changes to equal fields of a run share an undo step.
        """
        run = self._runs.at(path)
        notes, after = run.notes if run is not None else RunNotes(), _NoteChange(note=note, tags=tags)
        before = _NoteChange(note=None if note is None else notes.note, tags=None if tags is None else notes.tags)
        what = "note" if tags is None else "tags" if note is None else "note and tags"
        self._change([path], f"change {what} of {self._runs.title_of(path)}", before, after, joins=True)

    def _change(
        self, paths: Sequence[Path], title: str, before: _NoteChange, after: _NoteChange, *, joins: bool = False
    ) -> None:
        """Change the notes of runs, with an undo step. joins: extend the latest undo step if its title is `title`."""
        latest, redo = self._history.latest, partial(self._write_notes, paths, after)
        redo()
        if joins and latest is not None and latest.title == title:
            self._history.replace_latest(UndoStep(title, latest.undo, redo))
        else:
            self._history.add(UndoStep(title, partial(self._write_notes, paths, before), redo))

    def _write_notes(self, paths: Sequence[Path], change: _NoteChange) -> None:
        for path in paths:
            write, on_success = partial(change_notes, path, **change), partial(self._runs.set_notes, path)
            self._job_queue.run("files", f"Saving notes of {path.name}", write, on_success, **SHORT_JOB)

    def change_notes_now(self, path: Path, *, note: str | None, tags: Sequence[str] | None) -> None:
        """Write a run's notes immediately, without a job, because the window closes."""
        try:
            self._runs.set_notes(path, change_notes(path, note=note, tags=tags))
        except StudioError as error:  # the window is closed: only log
            _log.warning("%s", error)
