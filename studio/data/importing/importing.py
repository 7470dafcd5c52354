"""Import dropped files and folders as `Sprites`: find, read, slice sheets, assemble, cache, fix and report.

An import may have a million files and sprites. Their data are stored in columns or on the disk: see FoundFiles,
ImportBuffer, ScratchBuffer and data/store/packed.py.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from studio.core import formatting
from studio.core.errors import BadInputError, StudioError
from studio.core.events import Event, Notice, Progress
from studio.core.threads import run_in_thread, run_in_threads
from studio.data.attributes.reading import parse_names
from studio.data.doctor.class_spelling import spelling_groups
from studio.data.doctor.findings import MERGE_CLASSES, SPLITS_AS_CLASSES, FixOffered
from studio.data.doctor.fixes import apply_fixes, unmatched_patterns
from studio.data.edits import Edits
from studio.data.files.scratch import MEMORY_LIMIT, writable_folder
from studio.data.files.source_files import MAX_FILES, ImportIssue, SkippedItem
from studio.data.import_result import (
    ImportResult,
    ReadSprites,
    SpritesImported,
    most_common_reasons,
)
from studio.data.importing.assemble import assemble
from studio.data.importing.class_moves import apply_edits, moved_by_class
from studio.data.importing.import_buffer import ImportBuffer
from studio.data.importing.set_places import notices_on_sets, options_of_sets
from studio.data.importing.sheet_detection import choose_grids
from studio.data.importing.sheet_grids import parse_sheet_grids
from studio.data.labels.lookup import read_labels
from studio.data.options import ImportOptions
from studio.data.palettes.files import load_palette
from studio.data.reading.finding import FoundFiles, Root, resolve_roots, title_of_roots, walk_files
from studio.data.reading.read import all_sources
from studio.data.reading.reader_pool import read_files
from studio.data.reading.splits import SplitFolders, remove_split_folders
from studio.data.sets.table import read_set_tables
from studio.data.similarity.groups import group_near_duplicates
from studio.data.sources.base import Source
from studio.data.store import import_cache
from studio.data.store.run_sprites import load_run_sprites, sprites_file

__all__ = ["ImportOptions", "SpritesImported", "import_sprites"]

_IMBALANCE = 100  # warn if the largest class has this many times the sprites of the smallest
_MAX_NAMED = 3
_FORMATS = "PNG, GIF, WebP and other images, Aseprite, Piskel, OpenRaster and IDX files, in folders or zip archives"


class NothingUsableError(BadInputError):
    """Raised if no file could be imported. left_out: issues of all files. sheets: images like sheets.

    proposed_sets: the sets that slicing the sheets would give, if any.
    """

    def __init__(self, title: str, hint: str, result: ImportResult) -> None:
        super().__init__(title, hint)
        self.left_out, self.sheets, self.sheet_summary = result.quarantine, result.sheets, result.sheet_summary
        self.proposed_sets = result.proposed_sets


def import_sprites(
    paths: Sequence[Path], options: ImportOptions, cache_dir: Path | None = None, edits: Edits = ()
) -> Generator[Event, None, None]:
    """Import every sprite under `paths`: yields Progress at least every 50 ms, notices, and SpritesImported last.

    Closing the generator stops the import within 200 ms, even while a file hangs. Never changes the files. With
    `cache_dir`, unchanged files are not read again. edits: the user's, from `load_edits`. Raises NothingUsableError if
    no file could be imported, and BadInputError for a missing path, an unusable palette or a full disk.
    """
    started = time.perf_counter()
    yield Progress(0, 0, "files found")
    roots, options = resolve_roots(paths), options_of_sets(with_palette(options))
    title = title_of_roots(roots)
    parse_names(options.attribute_names)  # raises for bad names before files are read
    if options.sheet_grids:
        parse_sheet_grids(options.sheet_grids)  # raises for a bad list before files are read
    yield from _notice_on_equal_names(roots)

    before: Mapping[str, Any] = {}  # the origin of a run's sprites
    try:
        if (of_run := sprites_file(roots)) is not None:
            result, before = yield from load_run_sprites(of_run, options)
            is_new = False
        else:
            result, is_new = yield from _load_or_read(roots, options, cache_dir)
        edited = (yield from apply_edits(result, edits, cache_dir)) if options.edits == "on" else result
        fixed = (yield from apply_fixes(edited, options, cache_dir)) if options.has_fixes else edited
    except OSError as error:
        raise _disk_error(error, writable_folder(cache_dir)) from error

    # Report.
    if not len(fixed.sprites):
        title = f"The import settings exclude all {len(result.sprites):,} sprites of {title!r}."
        reasons = most_common_reasons(fixed.quarantine)
        raise BadInputError(title, f"Most common: {reasons}. Change the import settings.")
    names = chain(result.sprites.names, (issue.name for issue in result.quarantine))
    if options.leave_out and (unknown := unmatched_patterns(options.leave_out, names)):
        hint = "Correct the name in Exclude; * matches any text."
        yield Notice("warning", f"No sprite matches {unknown[0]!r} to exclude.", hint)
    if is_new:
        yield from _notices(fixed)
    yield from notices_on_sets(result, options)
    origin: dict[str, Any] = {"paths": [str(root.path) for root in roots], **before}
    origin["options"] = {**dict(before.get("options", {})), **_decided(options, result)}
    if made := _record_edits(fixed):
        origin["edits"] = made
    rows = np.arange(len(fixed.sprites)) if fixed.rows is None else fixed.rows
    yield SpritesImported(
        fixed.sprites.with_origin(origin), fixed.quarantine, fixed.notes, fixed.sizes, fixed.proposed_size,
        time.perf_counter() - started, from_cache=not is_new, read=ReadSprites(result.sprites, rows),
        edits=edits, sheets=fixed.sheets, sheet_summary=fixed.sheet_summary, proposed_sets=fixed.proposed_sets,
        proposed_attributes=fixed.proposed_attributes,
    )  # fmt: skip


def _record_edits(fixed: ImportResult) -> dict[str, Any]:
    """Return the names of sprites that the user moved, by class, and recoloured, for run.json."""
    edited = {group: [note.name for note in fixed.notes if note.group == group] for group in ("moved", "recoloured")}
    kept = set(fixed.sprites.names) if edited["recoloured"] else set()
    made = {
        "moved": moved_by_class(edited["moved"], fixed.sprites),
        "recoloured": [name for name in edited["recoloured"] if name in kept],
    }
    return {name: value for name, value in made.items() if edited[name]}


def _decided(options: ImportOptions, result: ImportResult) -> dict[str, Any]:
    """Return the changed options by name, with the classes of sliced sheets that 'auto' has decided."""
    is_sliced = any(note.group == "cut sheet" for note in result.notes)
    return (options.replace(sheet_classes=result.sheet_summary.classes) if is_sliced else options).changed()


def _load_or_read(
    roots: Sequence[Root], options: ImportOptions, cache_dir: Path | None
) -> Generator[Event, None, tuple[ImportResult, bool]]:
    """Find the files; load their cached import, or read them. Return the import, and whether it was read."""
    title, sources = title_of_roots(roots), all_sources()
    files, problems = yield from list_files(roots)
    splits = (yield from _find_splits(files)) if options.split_folders else []
    entry, cached = yield from _load_cached(cache_dir, roots, files, problems, options, sources)
    if cached is not None:
        return cached, False
    result = yield from _read_and_assemble(files, problems, sources, options, title, cache_dir)
    notes = [ImportIssue(each.parent[:-1] or title, each.sentence(), "split folders") for each in splits]
    result = replace(result, notes=(*result.notes, *notes))
    if not len(result.sprites):
        raise _nothing_usable(roots, result, options.size)
    return (yield from _store_in_cache(entry, result)), True


def with_palette(options: ImportOptions) -> ImportOptions:
    """Return a copy of the options with an absolute palette path. Raises BadInputError for an unusable palette."""
    if not options.palette:
        return options
    expanded = os.path.expanduser(options.palette)  # noqa: PTH111 - Path.expanduser raises for an unknown user
    path = os.path.abspath(expanded)  # noqa: PTH100 - Path.resolve would follow links
    load_palette(Path(path)).visible()  # check the palette before the files are read, which can take minutes
    return options.replace(palette=path)


def list_files(roots: Sequence[Root]) -> Generator[Event, None, tuple[FoundFiles, list[ImportIssue]]]:
    """Find all files under `roots`; return them sorted by name, and issues. Yields Progress and notices."""
    files = FoundFiles()
    problems: list[ImportIssue] = []
    skipped: list[str] = []
    too_many = False
    with closing(run_in_threads(walk_files, roots, threads=1)) as batches:
        for batch in batches:
            for item in batch:
                if isinstance(item, ImportIssue):
                    problems.append(item)
                elif isinstance(item, SkippedItem):
                    skipped.append(item.name)
                elif len(files) < MAX_FILES:
                    files.add(item)
                else:
                    too_many = True
            if too_many:
                yield Notice("warning", f"Only the first {MAX_FILES:,} files were read.", "Import a smaller folder.")
                break
    if skipped:
        yield _notice_on_skipped(skipped)
    yield from run_in_thread(files.sort(), 0, "files sorted")
    problems.sort(key=lambda issue: (issue.name, issue.reason))
    return files, problems


def _find_splits(files: FoundFiles) -> Generator[Event, None, list[SplitFolders]]:
    """Remove split folders (train, val, test) from class names of `files`; return them. Yields a notice for each."""
    splits = yield from run_in_thread(remove_split_folders(files), len(files.folders), "folders checked")
    for split in splits:
        title = f"{split.sentence()}{f' (in {split.parent[:-1]})' if split.parent else ''}."
        fix = SPLITS_AS_CLASSES
        yield FixOffered("info", title, f"To undo, choose '{fix.title}' or use --no-split-folders.", fix=fix)
    return splits


def _load_cached(
    cache_dir: Path | None, roots: Sequence[Root], files: FoundFiles, problems: list[ImportIssue],
    options: ImportOptions, sources: Sequence[Source],
) -> Generator[Event, None, tuple[Path | None, ImportResult | None]]:  # fmt: skip
    """Return the cache path for an import of `files`, None without a cache, and the cached result, None if missing."""
    if cache_dir is None:
        return None, None
    names = [source.name for source in sources]
    finding = import_cache.entry_path(cache_dir, roots, files, problems, options, names)
    entry = yield from run_in_thread(finding, len(files), "files checked")
    return entry, (yield from run_in_thread(import_cache.load_import(entry), 0, "sprites loaded"))


def _read_and_assemble(
    files: FoundFiles, problems: list[ImportIssue], sources: Sequence[Source], options: ImportOptions, title: str,
    folder: Path | None,
) -> Generator[Event, None, ImportResult]:  # fmt: skip
    """Read the files, slice the sheets and build the sprites. Raises OSError if the disk of `folder` is full."""
    labels, unreadable = yield from read_labels(files, options.decimal_mark)
    tables, problems_of_tables = yield from read_set_tables(files if options.sets in ("auto", "csv") else [])
    buffer = ImportBuffer(files, folder)
    yield from read_files(files, sources, options, buffer.put)
    sheets, grids = yield from choose_grids(buffer, files, options)
    if grids:
        buffer.drop(grids.keys())
        yield from read_files(files, sources, options, buffer.put, grids)
    issues = [*problems, *unreadable, *problems_of_tables]
    assembling = assemble(buffer, options, title, issues, labels, sheets, folder, tables)
    return (yield from run_in_thread(assembling, len(files), "files assembled"))


def _store_in_cache(entry: Path | None, result: ImportResult) -> Generator[Event, None, ImportResult]:
    """Save an import result to the cache file `entry`; return the result, mapped from the file if it is large.

    A result with inaccessible files is not saved. A failed save yields a notice and does not stop the import.
    """
    if entry is None or any(issue.group == "no access" for issue in result.quarantine):
        return result
    if result.sprites.rgba.nbytes > MEMORY_LIMIT:  # training runs link to the cache file if the groups are equal
        result = replace(result, sprites=(yield from group_near_duplicates(result.sprites, entry.parent)))
    try:
        count = len(result.sprites)
        return (yield from run_in_thread(import_cache.save_import(entry, result), count, "sprites cached"))
    except OSError as error:
        title = f"The import could not be cached: {error.strerror or error}."
        yield Notice("info", title, f"Check the cache folder: {entry.parent}.")
    return result


def _notice_on_equal_names(roots: Sequence[Root]) -> Iterator[Event]:
    shared = [root.default_class for root in roots if root.is_folder and root.shares_name]
    if shared:
        title = f"Merged folders with equal names: {', '.join(shared)}."
        yield Notice("info", title, "Import the parent folder to make each folder a class.")


def _notice_on_skipped(names: list[str]) -> Notice:
    """Return a notice with the number and names of skipped backup files and folders of other programs."""
    first = sorted(names)[:_MAX_NAMED]
    more = f" and {len(names) - len(first):,} more" if len(names) > len(first) else ""
    title = f"Skipped {formatting.count(len(names), 'trash, thumbnail or backup item')}: {', '.join(first)}{more}."
    return Notice("info", title, "Rename a skipped folder or file to import it.")


def _notices(result: ImportResult) -> Iterator[Event]:
    """Yield notices on inaccessible files, ambiguous numbers, similar class names and imbalanced classes."""
    denied = [issue for issue in result.quarantine if issue.group == "no access"]
    if denied:
        more = f" and {len(denied) - 1:,} more" if len(denied) > 1 else ""
        title = f"Can't read {denied[0].name}{more}: {denied[0].reason}."
        yield Notice("warning", title, "Check permissions and drive, then import again.")
    for note in result.notes:
        if note.group == "ambiguous numbers":
            hint = "If wrong, choose 'Read as decimal comma' or '... point' in the doctor, or use --decimal-mark."
            yield Notice("warning", f"{note.name}: {note.reason}.", hint)
    if lost := [note for note in result.notes if note.group == "lost moves"]:
        title = f"{formatting.count(len(lost), 'edit')} found no sprite: files were redrawn or removed."
        yield Notice("info", title, f"First: {lost[0].name}. Edit the new sprites again.")
    classes, counts = result.sprites.class_names, result.sprites.class_counts()
    for group in spelling_groups(classes)[:_MAX_NAMED]:
        names = " and ".join(repr(classes[index]) for index in group)
        hint = f"To merge them, choose '{MERGE_CLASSES.title}' in the window or use --merge-classes."
        yield FixOffered("warning", f"Classes {names} differ only in case or spaces.", hint, fix=MERGE_CLASSES)
    if counts.max() >= _IMBALANCE * counts.min():
        large, small = classes[int(counts.argmax())], classes[int(counts.argmin())]
        title = f"Class {large!r} has {counts.max():,} sprites and {small!r} only {counts.min():,}."
        yield Notice("warning", title, f"A model will hardly learn {small!r}: merge small classes or add sprites.")


def _disk_error(error: OSError, folder: Path) -> StudioError:
    if error.errno == errno.ENOSPC:
        hint = f"Free some space on the drive of {folder}, or import a smaller folder."
        return BadInputError("The disk is full.", hint)
    title = f"The import can't use {folder}: {error.strerror or error}."
    return BadInputError(title, "Check the permissions of the folder.")


def _nothing_usable(roots: Sequence[Root], result: ImportResult, canvas: int) -> NothingUsableError:
    """Return the error for an import without a sprite. canvas: the chosen side in pixels, or 0 for Auto."""
    quarantine = result.quarantine
    name, hint = title_of_roots(roots), f"Supported files: {_FORMATS}."
    title = f"None of the {len(quarantine):,} images in {name!r} can be used."
    if not quarantine and len(roots) == 1 and _is_palette(roots[0].path):
        title = f"{name!r} is a palette, not a sprite."
        hint = "Choose a palette on the Generate page, or with generate --palette."
    elif not quarantine:
        title = f"No images found in {name!r}."
    elif canvas and any(issue.group == "wrong size" for issue in quarantine):
        title = f"No sprite of {name!r} fits the canvas of {canvas} × {canvas} pixels."
        hint = "Choose a larger canvas size, or Auto."
    elif result.proposed_sets is not None:
        title = f"The images in {name!r} are too large for sprites, and look like {result.proposed_sets.describe()}."
        hint = "Slice the sheets: set Views and frames to sheets (--sets sheets)."
    elif len(quarantine) == 1:
        title = f"{quarantine[0].name!r} can't be used: {quarantine[0].reason}."
    else:
        hint = f"Most common: {most_common_reasons(quarantine)}. {hint}"
    return NothingUsableError(title, hint, result)


def _is_palette(path: Path) -> bool:
    try:
        return bool(len(load_palette(path)))
    except BadInputError:
        return False
