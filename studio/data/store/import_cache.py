"""Cache for imports: opening an unchanged folder again reads no files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import Any

import PIL

from studio.core import records
from studio.core.errors import BadInputError
from studio.data.attributes.reading import AttributeProposal
from studio.data.files.source_files import ImportIssue, SourceFile
from studio.data.import_result import DetectedSheet, Duplicate, ImportResult, SheetSummary
from studio.data.options import ReadOptions, SheetGrid, settings_of_reading
from studio.data.reading.finding import Root
from studio.data.sets.layout import SetProposal
from studio.data.store import packed

_VERSION = 18  # increase after a change to the results of imports
_MOST_ENTRIES = 20
_MOST_BYTES = 2 << 30  # total without the newest entry, which may be mapped
_PROGRESS_EVERY = 4096  # files
_NAME = "import-*.safetensors"


def entry_path(
    folder: Path, roots: Sequence[Root], files: Sequence[SourceFile], problems: Sequence[ImportIssue],
    options: ReadOptions, sources: Sequence[str],
) -> Generator[int, None, Path]:  # fmt: skip
    """Return the cache path for importing the files with the options. Yields the number of processed files."""
    about = [_VERSION, PIL.__version__, settings_of_reading(options), [str(root.path) for root in roots], list(sources)]
    digest = hashlib.sha256(json.dumps(about).encode())
    for number, file in enumerate(files):
        if not number % _PROGRESS_EVERY:
            yield number
        inside = f"\0{file.name}\0{file.member.entry}" if file.member else ""
        about_file = f"{file.path_str}\0{file.size}\0{file.mtime_ns}{inside}\n"
        digest.update(about_file.encode("utf-8", "surrogatepass"))
    for problem in problems:
        digest.update(f"{problem.name}\0{problem.reason}\n".encode("utf-8", "surrogatepass"))
    return folder / f"import-{digest.hexdigest()[:32]}.safetensors"


def load_import(entry: Path) -> Generator[int, None, ImportResult | None]:
    """Load a cached import; return None for a missing or damaged file. Yields the number of checked sprites."""
    try:
        sprites, extra = yield from packed.load_in_slices(entry)
        sizes = {(int(width), int(height)): int(count) for width, height, count in extra["sizes"]}
        quarantine, notes = (tuple(_items_from(extra[key])) for key in ("quarantine", "notes"))
        duplicates = tuple(_duplicate_from(*row) for row in extra["twins"])
        sheets = tuple(DetectedSheet(str(name), SheetGrid(*grid), int(count)) for name, grid, count in extra["sheets"])
        proposed, summary = int(extra["proposed_size"]), _summary_from(extra["sheet_summary"])
        proposal = _proposal_from(extra["proposed_sets"])
        found = (quarantine, notes, sizes, proposed, duplicates, sheets, summary, proposal)
        imported = ImportResult(sprites, *found, _attributes_from(extra["proposed_attributes"]))
    except (BadInputError, KeyError, ValueError, TypeError, OverflowError):
        return None
    with contextlib.suppress(OSError):
        os.utime(entry)  # mark the entry as used
    return imported


def save_import(entry: Path, imported: ImportResult) -> Generator[int, None, ImportResult]:
    """Save an import and remove old entries beyond the limits. Yields the number of saved sprites. Raises OSError.

    Returns the import. To free memory, large imports then map their pixels from the file.
    """
    extra = {
        "sizes": [[width, height, count] for (width, height), count in imported.sizes.items()],
        "quarantine": [_row(item) for item in imported.quarantine],
        "notes": [_row(item) for item in imported.notes],
        "sheets": [[sheet.name, astuple(sheet.grid), sheet.sprites] for sheet in imported.sheets],
        "sheet_summary": asdict(imported.sheet_summary),
        "proposed_size": imported.proposed_size,
        "proposed_sets": asdict(imported.proposed_sets) if imported.proposed_sets else None,
        "proposed_attributes": asdict(imported.proposed_attributes) if imported.proposed_attributes else None,
        "twins": [[_row(one.item), one.first, one.class_name, one.numbers, one.place] for one in imported.duplicates],
    }
    yield from packed.save_in_slices(imported.sprites, entry, extra)
    _evict(entry)
    return replace(imported, sprites=packed.map_saved(imported.sprites, entry))


def _row(item: ImportIssue) -> list[str]:
    return [item.name, item.reason, item.group, str(item.path or "")]


def _items_from(rows: Sequence[Sequence[str]]) -> Iterator[ImportIssue]:
    for name, reason, group, path in rows:
        yield ImportIssue(name, reason, group, Path(path) if path else None)


def _duplicate_from(
    row: Sequence[str], first: int, name: str, numbers: Sequence[float], place: Sequence[int] | None
) -> Duplicate:
    (item,) = _items_from([row])
    return Duplicate(item, first, name, tuple(numbers), None if place is None else (place[0], place[1]))


def _proposal_from(values: Mapping[str, Any] | None) -> SetProposal | None:
    if values is None:
        return None
    low, high = values["columns"]
    return SetProposal(int(values["count"]), tuple(values["rows"]), (int(low), int(high)))


def _attributes_from(values: Mapping[str, Any] | None) -> AttributeProposal | None:
    return None if values is None else records.convert(values, AttributeProposal)


def _summary_from(values: Mapping[str, Any]) -> SheetSummary:
    summary = SheetSummary(**values)
    skipped = tuple((width, height, count) for width, height, count in summary.skipped)
    return replace(summary, skipped=skipped, hidden=tuple(summary.hidden))


def _evict(newest: Path) -> None:
    """Remove the least recently used entries beyond the limits. Other studios may remove entries, too."""
    entries: list[tuple[float, int, Path]] = []
    for path in newest.parent.glob(_NAME):
        with contextlib.suppress(OSError):
            about = path.stat()
            entries.append((about.st_mtime, about.st_size, path))
    total = number = 0
    for _, size, path in sorted(entries, reverse=True):
        if path == newest:
            continue
        number, total = number + 1, total + size
        if number >= _MOST_ENTRIES or total > _MOST_BYTES:
            with contextlib.suppress(OSError):
                path.unlink()
