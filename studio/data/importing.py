"""Dropped files and folders -> `Sprites`, as a generator of events.

files are listed -> sources read them on threads -> they are arranged on one canvas -> the result is cached -> sprites
are mended as asked for.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import studio.data.sources
from studio.core import wording
from studio.core.discovery import discover
from studio.core.errors import BadInputError
from studio.core.events import Event, Notice, Progress
from studio.data import caching
from studio.data.arranging import MOST_BYTES, Arranged, arrange, commonest
from studio.data.background import in_threads
from studio.data.imported import (
    MOST_FILES,
    NOTE_GROUPS,
    QUARANTINE_GROUPS,
    SHEET_GROUPS,
    ImportOptions,
    Quarantined,
    SpritesImported,
)
from studio.data.labelling import is_labels_file, read_labels
from studio.data.listing import Root, files_under, roots_of, title_of
from studio.data.mending import mend
from studio.data.reading import Reading, read_all
from studio.data.sources.base import Found, Source

__all__ = [
    "NOTE_GROUPS",
    "QUARANTINE_GROUPS",
    "SHEET_GROUPS",
    "ImportOptions",
    "Quarantined",
    "SpritesImported",
    "import_sprites",
]

_CHUNK = 32  # files for one thread at a time
_THREADS = 2  # one waits for the disk while the other decodes; more only fight over the interpreter
_LOPSIDED = 100
_READ = (
    "PNG, GIF, BMP, WebP, JPEG, TGA and TIFF pictures and animations, Aseprite files, sheets with their description "
    "(JSON, .atlas or .tres) beside them, and IDX files, in folders, sub-folders and zip archives"
)


class NothingUsableError(BadInputError):
    """No file could be kept. left_out: what was found instead, and why it can't be."""

    def __init__(self, title: str, hint: str, left_out: Sequence[Quarantined]) -> None:
        super().__init__(title, hint)
        self.left_out = tuple(left_out)


def import_sprites(
    paths: Sequence[Path], options: ImportOptions, cache_dir: Path | None = None
) -> Generator[Event, None, None]:
    """Read every sprite under `paths`: Progress at least every 50 ms, Notice where useful, SpritesImported last.

    Closing the generator stops the import within 200 ms, also while a file hangs. Files on disk are never changed.
    With `cache_dir`, unchanged files are not read again. Raises BadInputError when a path does not exist and
    NothingUsableError when nothing usable was found.
    """
    started = time.perf_counter()
    yield Progress(0, 0, "files found")
    roots = roots_of(paths)
    sources = all_sources()
    files, problems = yield from _list_files(roots)
    entry = recalled = None
    if cache_dir is not None:
        names = [source.name for source in sources]
        entry = caching.entry_for(cache_dir, roots, files, problems, options, names)
        recalled = yield from _recall(entry)
    arranged = recalled
    if arranged is None:
        labelling, unreadable = yield from read_labels(files)
        pictures = [file for file in files if not is_labels_file(file)]
        readings = yield from _read_files(pictures, sources, options)
        arranged = yield from arrange(readings, options, title_of(roots), [*problems, *unreadable], labelling)
        if not len(arranged.sprites):
            raise _nothing_usable(roots, arranged.quarantine)
        if entry is not None and all(item.group != "no access" for item in arranged.quarantine):
            yield from _store(entry, arranged)
    mended = yield from mend(arranged, options)
    if not len(mended.sprites):
        title = f"Nothing of {title_of(roots)!r} is left: all {len(arranged.sprites):,} sprites are left out."
        raise BadInputError(
            title, f"Most often: {commonest(mended.quarantine)}. Take back one of the import's settings."
        )
    if recalled is None:
        yield from _notices(mended)
    yield _imported(mended, started, from_cache=recalled is not None)


def all_sources() -> list[Source]:
    """Every kind of input there is, in the order in which they are asked."""
    found = discover(studio.data.sources, Source)  # type: ignore[type-abstract]
    return sorted(found.values(), key=lambda source: (-source.priority, source.name))


def _list_files(roots: Sequence[Root]) -> Generator[Event, None, tuple[list[Found], list[Quarantined]]]:
    """Every file, sorted by name, and what could not be looked at."""
    files: list[Found] = []
    problems: list[Quarantined] = []
    with closing(in_threads(files_under, roots, threads=1)) as batches:
        for batch in batches:
            for item in batch:
                if isinstance(item, Found):
                    files.append(item)
                else:
                    problems.append(item)
            yield Progress(len(files), 0, "files found")
            if len(files) >= MOST_FILES:
                title = f"Only the first {MOST_FILES:,} files found are looked at."
                yield Notice("warning", title, "Import a smaller folder to choose which.")
                break
    files.sort(key=lambda file: (file.name, file.where))
    problems.sort(key=lambda item: (item.name, item.reason))
    return files[:MOST_FILES], problems


def _read_files(
    files: list[Found], sources: list[Source], options: ImportOptions
) -> Generator[Event, None, list[Reading]]:
    """What came of each file that was for the studio, in no fixed order."""
    chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    readings: list[Reading] = []
    done = size = 0
    with closing(in_threads(partial(read_all, sources=sources, options=options), chunks, threads=_THREADS)) as batches:
        for batch in batches:
            done += len(batch)
            size += sum(reading.bytes for reading in batch)
            if size > MOST_BYTES:
                title = f"These pictures take more than {wording.memory(MOST_BYTES)} of memory."
                raise BadInputError(title, "Import a smaller folder, or fewer large pictures.")
            readings += [reading for reading in batch if not reading.is_nothing]
            yield Progress(done, len(files), "files read")
    return readings


def _recall(entry: Path) -> Generator[Event, None, Arranged | None]:
    recalled: list[Arranged] = []
    with closing(in_threads(caching.recall, [entry], threads=1)) as batches:
        for batch in batches:
            recalled += batch
            yield Progress(0, 0, "sprites loaded")
    return recalled[0] if recalled else None


def _store(entry: Path, arranged: Arranged) -> Generator[Event, None, None]:
    """Keep the import for the next time. A cache that can't be written is said and stops nothing."""

    def work(target: Path) -> Iterator[None]:
        caching.store(target, arranged)
        yield

    try:
        with closing(in_threads(work, [entry], threads=1)) as batches:
            for _ in batches:
                yield Progress(len(arranged.sprites), len(arranged.sprites), "sprites kept for the next time")
    except OSError as error:
        reason = error.strerror or error
        yield Notice(
            "info", f"The import could not be kept for the next time: {reason}.", f"It goes to {entry.parent}."
        )


def _notices(arranged: Arranged) -> Iterator[Event]:
    counts = arranged.sprites.class_counts()
    if counts.max() >= _LOPSIDED * counts.min():
        large, small = (arranged.sprites.class_names[i] for i in (int(counts.argmax()), int(counts.argmin())))
        title = f"Class {large!r} has {counts.max():,} sprites and {small!r} only {counts.min():,}."
        yield Notice("warning", title, f"A model will hardly learn {small!r}: merge small classes or add sprites.")


def _imported(arranged: Arranged, started: float, *, from_cache: bool) -> SpritesImported:
    return SpritesImported(
        sprites=arranged.sprites,
        quarantine=arranged.quarantine,
        notes=arranged.notes,
        sizes=arranged.sizes,
        proposed_size=arranged.proposed_size,
        elapsed_s=time.perf_counter() - started,
        from_cache=from_cache,
    )


def _nothing_usable(roots: Sequence[Root], quarantine: Sequence[Quarantined]) -> NothingUsableError:
    where, hint = title_of(roots), f"The studio reads {_READ}."
    title = f"None of the {len(quarantine):,} pictures in {where!r} can be used."
    if not quarantine:
        title = f"There are no pictures in {where!r}."
    elif len(quarantine) == 1:
        title = f"{quarantine[0].name!r} can't be used: {quarantine[0].reason}."
    else:
        hint = f"Most often: {commonest(quarantine)}. {hint}"
    return NothingUsableError(title, hint, quarantine)
