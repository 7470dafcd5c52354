"""Load and save palettes in any format."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import studio.data.palettes
from studio.core import files
from studio.core.discovery import discover
from studio.core.errors import BadInputError, UsageError
from studio.core.names import escape_unprintable
from studio.data.colour.palette import Palette
from studio.data.files.source_files import SourceFile, UnreadableFile
from studio.data.images.decoding import read_bytes
from studio.data.palettes.base import PaletteFormat, Unreadable

_LARGEST_FILE = 1 << 20  # bytes


@cache
def palette_formats() -> tuple[PaletteFormat, ...]:
    """Return all palette formats, in the order in which they are tried on a file."""
    return tuple(discover(studio.data.palettes, PaletteFormat).values())  # type: ignore[type-abstract]


def load_palette(path: Path) -> Palette:
    """Load a palette file; a palette without a name gets the file's name.

    The contents decide the format; the suffix decides if several formats or none match. Raises BadInputError, with the
    faulty line if known.
    """
    name = escape_unprintable(path.name)
    data = _read(path, name)
    suffix = path.suffix.lower()
    found = [form for form in palette_formats() if form.recognises(data)]
    form = min(found, key=lambda form: (form.order, suffix not in form.suffixes), default=_by_suffix(path))
    if form is None:
        raise BadInputError(f"Can't read {name}: not a palette.", f"Palette files end in {_suffixes()}.")
    try:
        palette = form.read(data)
    except Unreadable as fault:
        where = f"{fault.where} of {name}" if fault.where else name
        hint = f"Read as: {form.title}. Correct the file or save the palette again."
        raise BadInputError(f"Can't read {where}: {fault.reason}.", hint) from None
    return dataclasses.replace(palette, name=palette.name or path.stem)


def save_palette(path: Path, palette: Palette, *, replace: bool = False) -> Path:
    """Save a palette in the format of the suffix of `path`; return the path used.

    An existing file is replaced only with `replace`; otherwise the new file gets another name. Raises UsageError for an
    unknown suffix or a format that can't hold the palette, and ExportError if writing fails.
    """
    data = format_for(path).write(palette)
    target = files.output_path(path, replace=replace)
    with files.wrap_export_errors(target):
        files.write_atomic(target, data)
    return target


def has_palette_suffix(path: Path) -> bool:
    """Return whether the file's suffix belongs to a palette format."""
    return _by_suffix(path) is not None


def format_for(path: Path) -> PaletteFormat:
    """Return the format for the suffix of `path`. Raises UsageError."""
    form = _by_suffix(path)
    if form is None:
        raise UsageError(f"Can't save a palette as {path.name!r}.", f"Use one of the extensions {_suffixes()}.")
    return form


def _by_suffix(path: Path) -> PaletteFormat | None:
    return next((form for form in palette_formats() if path.suffix.lower() in form.suffixes), None)


def _suffixes() -> str:
    return ", ".join(dict.fromkeys(suffix for form in palette_formats() for suffix in form.suffixes))


def _read(path: Path, name: str) -> bytes:
    try:
        data = read_bytes(SourceFile(str(path), name, (), "", frozenset(), 0, 0), _LARGEST_FILE + 1)
    except FileNotFoundError:
        raise BadInputError(f"Palette {escape_unprintable(str(path))!r} does not exist.", "Check the name.") from None
    except IsADirectoryError:
        raise BadInputError(f"{name} is a folder.", "Choose a palette file.") from None
    except OSError as error:
        raise BadInputError(f"{name} can't be opened: {error.strerror}.", "Check permissions and drive.") from None
    except UnreadableFile as refused:
        raise BadInputError(f"Can't read {name}: {refused.reason}.", "Choose a palette file.") from None
    if len(data) > _LARGEST_FILE:
        title = f"Can't read {name}: larger than {_LARGEST_FILE >> 20} MB, too large for a palette."
        raise BadInputError(title, f"Palette files end in {_suffixes()}.")
    return data
