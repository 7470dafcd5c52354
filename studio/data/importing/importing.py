"""Dropped files and folders -> `Sprites`, as a generator of events.

files are listed -> sources read them on all cores -> they are arranged on one canvas -> the result is cached -> sprites
are mended as asked for. What there may be a million of is in columns or on the disk on its way: see FoundFiles,
Gathered, scratch and packed.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from studio.core import formatting
from studio.core.errors import BadInputError, StudioError
from studio.core.events import Event, Notice, Progress
from studio.data.assemble import ImportBuffer, ImportResult, arrange, commonest
from studio.data.doctor.class_spelling import spelling_groups
from studio.data.doctor.findings import MERGE_CLASSES, SPLITS_AS_CLASSES, FixOffered
from studio.data.doctor.fixes import apply_fixes, exclusion_filter, unmatched_patterns
from studio.data.files.scratch import IN_MEMORY, usable
from studio.data.files.source_files import MOST_FILES, Quarantined, Skipped
from studio.data.importing.own_grids import grids_by_name, own_grids
from studio.data.labels.labelling import read_labels
from studio.data.options import (
    NOTE_GROUPS,
    QUARANTINE_GROUPS,
    SHEET_GROUPS,
    FoundSheet,
    Grid,
    ImportOptions,
    SpritesImported,
)
from studio.data.palettes.files import load_palette
from studio.data.reading.finding import FoundFiles, Root, files_under, roots_of, title_of
from studio.data.reading.read import all_sources
from studio.data.reading.splits import SplitFolders, remove_split_folders
from studio.data.reading.workers import ReaderPool, Worker, in_threads, run_in_thread, run_workers
from studio.data.sheets.recognising import SheetCandidate, most_likely_grid, vote_on_sheets
from studio.data.similarity.groups import group_near_duplicates
from studio.data.sources.base import Source
from studio.data.store import import_cache

__all__ = [
    "NOTE_GROUPS",
    "QUARANTINE_GROUPS",
    "SHEET_GROUPS",
    "ImportOptions",
    "Quarantined",
    "SpritesImported",
    "all_sources",
    "import_sprites",
]

_CHUNK = 32  # files for one reader at a time
_LOPSIDED = 100
_MOST_NAMED = 3
_READ = (
    "PNG, GIF, BMP, WebP, JPEG, TGA, TIFF, QOI, ICO, PCX, PPM and XPM pictures, Aseprite, Piskel and OpenRaster files, "
    "sheets with their description (JSON, .atlas or .tres) beside them, and IDX files, in folders and zip archives"
)


class NothingUsableError(BadInputError):
    """No file could be kept. left_out: what was found instead, and why it can't be. sheets: as in SpritesImported."""

    def __init__(self, title: str, hint: str, left_out: Sequence[Quarantined], sheets: Sequence[FoundSheet]) -> None:
        super().__init__(title, hint)
        self.left_out, self.sheets = tuple(left_out), tuple(sheets)


def import_sprites(
    paths: Sequence[Path], options: ImportOptions, cache_dir: Path | None = None
) -> Generator[Event, None, None]:
    """Read every sprite under `paths`: Progress at least every 50 ms, Notice where useful, SpritesImported last.

    Closing the generator stops the import within 200 ms, also while a file hangs. Files on disk are never changed.
    With `cache_dir`, unchanged files are not read again. Raises NothingUsableError when nothing usable was found, and
    BadInputError when a path does not exist, a palette can't be used or there is no room for what was found.
    """
    started = time.perf_counter()
    yield Progress(0, 0, "files found")
    roots, options = roots_of(paths), with_palette(options)
    grids_by_name(options.sheet_grids)  # raises for a bad list before files are read
    shared = [root.home for root in roots if root.is_folder and root.shares_name]
    if shared:
        title = f"Folders with equal names become one set: {', '.join(shared)}."
        yield Notice("info", title, "Import their parent folder to get a class for each.")
    sources = all_sources()
    files, problems = yield from list_files(roots)
    splits: list[SplitFolders] = []
    if options.split_folders:
        splits = yield from run_in_thread(remove_split_folders(files), len(files.folders), "folders looked at")
    for split in splits:
        title = f"{split.sentence()}{f' (in {split.parent[:-1]})' if split.parent else ''}."
        fix = SPLITS_AS_CLASSES
        yield FixOffered("info", title, f"Undo: '{fix.title}' in the window, or --no-split-folders.", fix=fix)
    entry = recalled = None
    if cache_dir is not None:
        names = [source.name for source in sources]
        looking = import_cache.entry_path(cache_dir, roots, files, problems, options, names)
        entry = yield from run_in_thread(looking, len(files), "files looked up")
        recalled = yield from run_in_thread(import_cache.load_import(entry), 0, "sprites loaded")
    arranged = recalled
    try:
        if arranged is None:
            arranged = yield from _read(files, problems, sources, options, title_of(roots), cache_dir)
            arranged = replace(arranged, notes=(*arranged.notes, *_notes_on_splits(splits, title_of(roots))))
            if not len(arranged.sprites):
                raise _nothing_usable(roots, arranged)
            if entry is not None and all(item.group != "no access" for item in arranged.quarantine):
                arranged = yield from _store(entry, arranged)
        mended = (yield from apply_fixes(arranged, options, cache_dir)) if options.mends else arranged
    except OSError as error:
        raise _no_room(error, usable(cache_dir)) from error
    if not len(mended.sprites):
        title = f"Nothing of {title_of(roots)!r} is left: all {len(arranged.sprites):,} sprites are left out."
        raise BadInputError(
            title, f"Most often: {commonest(mended.quarantine)}. Take back one of the import's settings."
        )
    if unknown := unmatched_patterns(options.leave_out, _all_names(arranged)):
        title = f"No sprite named {unknown[0]!r} to leave out."
        yield Notice("warning", title, "Correct the name under Advanced, or write * for any text.")
    if recalled is None:
        yield from _notices(mended)
    origin = {"paths": [str(root.path) for root in roots], "options": options.changed()}
    yield _imported(mended, origin, started, from_cache=recalled is not None)


def with_palette(options: ImportOptions) -> ImportOptions:
    """Return the options with the whole path of the palette. Raises BadInputError if the palette can't be used."""
    if not options.palette:
        return options
    named = os.path.expanduser(options.palette)  # noqa: PTH111 - Path.expanduser fails where there is no such user
    path = os.path.abspath(named)  # noqa: PTH100 - Path.resolve would follow links
    load_palette(Path(path)).visible()  # before the files are read, which can take minutes
    return options.replace(palette=path)


def list_files(roots: Sequence[Root]) -> Generator[Event, None, tuple[FoundFiles, list[Quarantined]]]:
    """Every file, sorted by name, and what could not be looked at."""
    files = FoundFiles()
    problems: list[Quarantined] = []
    skipped: list[str] = []
    left_over = 0
    with closing(in_threads(files_under, roots, threads=1)) as batches:
        for batch in batches:
            for item in batch:
                if isinstance(item, Quarantined):
                    problems.append(item)
                elif isinstance(item, Skipped):
                    skipped.append(item.name)
                elif len(files) < MOST_FILES:
                    files.add(item)
                else:
                    left_over += 1
            yield Progress(len(files), 0, "files found")
            if left_over:
                title = f"Only the first {MOST_FILES:,} files found are looked at."
                yield Notice("warning", title, "Import a smaller folder to choose which.")
                break
    if skipped:
        yield _about_skipped(skipped)
    yield from run_in_thread(files.sorting(), 0, "files in order")
    problems.sort(key=lambda item: (item.name, item.reason))
    return files, problems


def _notes_on_splits(splits: Sequence[SplitFolders], title: str) -> Iterator[Quarantined]:
    for split in splits:
        yield Quarantined(split.parent[:-1] or title, split.sentence(), "split folders")


def _about_skipped(names: list[str]) -> Notice:
    """Return a notice with the count and first names of skipped folders and files of other programs."""
    first = sorted(names)[:_MOST_NAMED]
    more = f" and {len(names) - len(first):,} more" if len(names) > len(first) else ""
    title = f"Skipped {formatting.count(len(names), 'trash, thumbnail or backup item')}: {', '.join(first)}{more}."
    return Notice("info", title, "Rename a skipped folder or file to import it.")


def _read(
    files: FoundFiles, problems: list[Quarantined], sources: list[Source], options: ImportOptions, title: str,
    folder: Path | None,
) -> Generator[Event, None, ImportResult]:  # fmt: skip
    """The sprites of these files, on one canvas. Raises OSError when there is no room in `folder`."""
    labelling, unreadable = yield from read_labels(files, options.decimal_mark)
    gathered = ImportBuffer(files, folder)
    yield from _read_files(gathered, files, sources, options)
    sheets = vote_on_sheets(gathered.candidates)
    if options.cuts_each_by_its_own:
        sheets |= _sheets_asked_for(gathered, sheets, options.size)
    own = yield from _own_grids(files, options.sheet_grids)
    sheets |= {number: replace(sheets[number], grid=grid) for number, grid in own.items() if number in sheets}
    cut = {number: sheet.grid for number, sheet in sheets.items()} if options.cuts_each_by_its_own else {}
    if grids := cut | own:
        gathered.forget(grids.keys())
        yield from _read_files(gathered, files, sources, options, grids)
    arranging = arrange(gathered, options, title, [*problems, *unreadable], labelling, sheets, folder)
    return (yield from run_in_thread(arranging, len(files), "files arranged"))


def _own_grids(files: FoundFiles, text: str) -> Generator[Event, None, dict[int, Grid]]:
    """Map file numbers to the grids listed in `text`, a text like ImportOptions.sheet_grids."""
    if not text:
        return {}
    names: dict[str, int] = {}
    for number in range(len(files)):
        names.setdefault(files[number].name, number)
        yield Progress(number, len(files), "files looked up")
    found = own_grids(text, names)
    for pattern in grids_by_name(text):
        if not any(map(exclusion_filter(pattern), found)):
            yield Notice("warning", f"No sheet is named {pattern!r}.", "Its grid has no effect.")
    return {names[name]: grid for name, grid in found.items()}


def _sheets_asked_for(
    gathered: ImportBuffer, sheets: Mapping[int, SheetCandidate], size: int
) -> dict[int, SheetCandidate]:
    """Pictures that may be sheets, to be cut because the user asked for cutting.

    Those larger than the canvas that was asked for; without one, all of them if no picture is surely a sheet.
    """
    asked: dict[int, SheetCandidate] = {}
    if sheets and not size:
        return asked
    for number, candidates in gathered.candidates.items():
        sheet = None if number in sheets else most_likely_grid(candidates)
        if sheet is not None and (not size or max(gathered.sheet_sizes[number]) > size):
            asked[number] = sheet
    return asked


def _read_files(
    gathered: ImportBuffer,
    files: FoundFiles,
    sources: list[Source],
    options: ImportOptions,
    grids: Mapping[int, Grid] | None = None,
) -> Generator[Event, None, None]:
    """Gather what comes of each file that is for the studio, or of those alone in which these grids were recognised.

    Raises OSError when there is no room.
    """
    pool = ReaderPool(files, sources, options, grids)
    workers = [partial(_gather, gathered, worker) for worker in pool.workers()]
    if grids is None:
        chunks = [range(start, min(start + _CHUNK, len(files))) for start in range(0, len(files), _CHUNK)]
    else:
        chunks = [range(number, number + 1) for number in sorted(grids)]
    done, total, what = 0, sum(map(len, chunks)), "files read" if grids is None else "sheets cut"
    with closing(run_workers(workers, chunks)) as batches, pool:
        while done < total:  # and not until all workers are done: a process may only now come up
            done += len(next(batches))
            yield Progress(done, total, what)


def _gather(gathered: ImportBuffer, worker: Worker, chunks: Iterator[range]) -> Iterator[int]:
    """Have a worker read and keep what it gives: yields the files' numbers."""
    for number, reading in worker(chunks):
        gathered.put(number, reading)
        yield number


def _store(entry: Path, arranged: ImportResult) -> Generator[Event, None, ImportResult]:
    """Keep the import for the next time. A cache that can't be written is said and stops nothing."""
    if arranged.sprites.rgba.nbytes > IN_MEMORY:  # runs link to this file, if the groups in it are theirs
        arranged = replace(arranged, sprites=(yield from group_near_duplicates(arranged.sprites, entry.parent)))
    try:
        count = len(arranged.sprites)
        return (
            yield from run_in_thread(import_cache.save_import(entry, arranged), count, "sprites kept for the next time")
        )
    except OSError as error:
        reason = error.strerror or error
        yield Notice(
            "info", f"The import could not be kept for the next time: {reason}.", f"It goes to {entry.parent}."
        )
    return arranged


def _all_names(arranged: ImportResult) -> Iterator[str]:
    """Yield the names of all kept and all quarantined sprites."""
    yield from arranged.sprites.names
    yield from (item.name for item in arranged.quarantine)


def _notices(arranged: ImportResult) -> Iterator[Event]:
    denied = [item for item in arranged.quarantine if item.group == "no access"]
    if denied:
        more = f" and {len(denied) - 1:,} more" if len(denied) > 1 else ""
        title = f"Can't read {denied[0].name}{more}: {denied[0].reason}."
        yield Notice("warning", title, "Its sprites are missing. Check permissions and drive, then import again.")
    counts = arranged.sprites.class_counts()
    for item in arranged.notes:
        if item.group == "ambiguous numbers":
            hint = "If wrong: 'Read decimal commas' or '... points' in the doctor, or --decimal-mark."
            yield Notice("warning", f"{item.name}: {item.reason}.", hint)
    for group in spelling_groups(arranged.sprites.class_names)[:_MOST_NAMED]:
        names = " and ".join(repr(arranged.sprites.class_names[index]) for index in group)
        hint = f"One class? '{MERGE_CLASSES.title}' in the window, or --merge-classes."
        title = f"Classes {names} differ only in case or blanks."
        yield FixOffered("warning", title, hint, fix=MERGE_CLASSES)
    if counts.max() >= _LOPSIDED * counts.min():
        large, small = (arranged.sprites.class_names[i] for i in (int(counts.argmax()), int(counts.argmin())))
        title = f"Class {large!r} has {counts.max():,} sprites and {small!r} only {counts.min():,}."
        yield Notice("warning", title, f"A model will hardly learn {small!r}: merge small classes or add sprites.")


def _imported(
    arranged: ImportResult, origin: Mapping[str, object], started: float, *, from_cache: bool
) -> SpritesImported:
    return SpritesImported(
        sprites=arranged.sprites.read_from(origin),
        quarantine=arranged.quarantine,
        notes=arranged.notes,
        sizes=arranged.sizes,
        proposed_size=arranged.proposed_size,
        elapsed_s=time.perf_counter() - started,
        from_cache=from_cache,
        sheets=arranged.sheets,
    )


def _no_room(error: OSError, folder: Path) -> StudioError:
    if error.errno == errno.ENOSPC:
        title = "There is not enough room on the drive for so many sprites while they are imported."
        return BadInputError(title, f"Free some space where {folder} is, or import a smaller folder.")
    title = f"The import can't use {folder}: {error.strerror or error}."
    return BadInputError(title, "Check that files can be written there.")


def _is_palette(path: Path) -> bool:
    try:
        return bool(len(load_palette(path)))
    except BadInputError:
        return False


def _nothing_usable(roots: Sequence[Root], arranged: ImportResult) -> NothingUsableError:
    quarantine = arranged.quarantine
    where, hint = title_of(roots), f"The studio reads {_READ}."
    title = f"None of the {len(quarantine):,} pictures in {where!r} can be used."
    if not quarantine and len(roots) == 1 and _is_palette(roots[0].path):
        title = f"{where!r} is a palette, not a sprite."
        hint = "New sprites can be drawn in it: choose it on the Generate page, or with generate --palette."
    elif not quarantine:
        title = f"There are no pictures in {where!r}."
    elif len(quarantine) == 1:
        title = f"{quarantine[0].name!r} can't be used: {quarantine[0].reason}."
    else:
        hint = f"Most often: {commonest(quarantine)}. {hint}"
    return NothingUsableError(title, hint, quarantine, arranged.sheets)
