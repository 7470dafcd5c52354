"""The user's notes on a run: name, note, star and tags, stored as notes.json in the run folder.

A training never touches notes.json, so notes can change during the training, without the run's lock. Changes read the
file first: the window and the command line keep each other's changes. After two simultaneous changes, the later wins.
"""

import dataclasses
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from studio.core.errors import RunError, UsageError
from studio.core.names import nfc
from studio.engine.runs.folder import RunDir, read_json

MAX_NAME_LENGTH, MAX_NOTE_LENGTH, MAX_TAG_LENGTH = 80, 10_000, 32  # characters
MAX_TAGS = 16
_FILE = "notes.json"

Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TAG_LENGTH)]
Tags = Annotated[tuple[Tag, ...], msgspec.Meta(max_length=MAX_TAGS)]


@dataclass(frozen=True)
class RunNotes:
    """The content of notes.json. An empty name stands for the folder's name. A tag is a single word."""

    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)] = ""
    note: Annotated[str, msgspec.Meta(max_length=MAX_NOTE_LENGTH)] = ""
    starred: bool = False
    tags: Tags = ()


def read_notes(run: Path) -> RunNotes:
    """Return a run's notes; empty notes for a missing, damaged or unreadable file."""
    try:
        return _read(run)
    except RunError:
        return RunNotes()


def change_notes(
    run: Path, *, name: str | None = None, note: str | None = None, starred: bool | None = None,
    tags: Iterable[str] | None = None,
) -> RunNotes:  # fmt: skip
    """Write new notes and return all notes of the run. None keeps a note. Raises RunError, UsageError.

    Never overwrites a damaged notes.json.
    """
    before = _read(run)
    notes = RunNotes(
        before.name if name is None else nfc(" ".join(name.split())),  # on one line
        before.note if note is None else note.strip(),
        before.starred if starred is None else starred,
        before.tags if tags is None else split_tags(" ".join(tags)),
    )
    if notes.name == folder_name(run):
        notes = dataclasses.replace(notes, name="")
    check_notes(notes)
    if notes != before:
        folder, text = RunDir(run), json.dumps(dataclasses.asdict(notes), indent=2, ensure_ascii=False)
        with folder.wrap_write_errors():
            folder.write_file(_FILE, text.encode("utf-8", "replace"))
    return notes


def split_tags(text: str) -> tuple[str, ...]:
    """Split text into tags without duplicates: 'boss, dark #wip Boss' -> ('boss', 'dark', 'wip')."""
    found: dict[str, str] = {}
    for word in filter(None, re.split(r"[#,;\s]+", nfc(text))):
        found.setdefault(word.casefold(), word)
    return tuple(found.values())


def display_name(run: Path) -> str:
    """Return the run's display name: the user's name for the run, or the folder's name."""
    return read_notes(run).name or folder_name(run)


def folder_name(run: Path) -> str:
    """Return the name of the run's folder. For a link, return the name of its target."""
    return nfc(run.resolve().name)


def check_notes(notes: RunNotes) -> None:
    """Raise UsageError for a too long name, note or tag, and for too many tags."""
    longest_tag = max(map(len, notes.tags), default=0)
    for what, length, most in (
        ("A name", len(notes.name), MAX_NAME_LENGTH),
        ("A note", len(notes.note), MAX_NOTE_LENGTH),
        ("A tag", longest_tag, MAX_TAG_LENGTH),
    ):
        if length > most:
            raise UsageError(f"{what} has at most {most:,} characters, not {length:,}.")
    if len(notes.tags) > MAX_TAGS:
        raise UsageError(f"A run has at most {MAX_TAGS} tags, not {len(notes.tags)}.")


def _read(run: Path) -> RunNotes:
    """Read notes.json; return empty notes for a missing file. Raises DamagedError; RunError for an unreadable file."""
    repair = "Repair or delete the file, then enter the notes again."
    return read_json(run / _FILE, RunNotes, repair) or RunNotes()
