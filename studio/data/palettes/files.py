"""Palettes from files and into files, whatever kind they are of."""

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
    """Every kind of palette file there is, in the order in which they are asked."""
    return tuple(discover(studio.data.palettes, PaletteFormat).values())  # type: ignore[type-abstract]


def load_palette(path: Path) -> Palette:
    """Load a palette file; a palette without a name takes the name of the file.

    The content decides the format. The suffix decides if several formats or none fit the content. Raises BadInputError,
    with the line of the fault if known.
    """
    name = escape_unprintable(path.name)
    data = _read(path, name)
    suffix = path.suffix.lower()
    found = [form for form in palette_formats() if form.recognises(data)]
    form = min(found, key=lambda form: (form.order, suffix not in form.suffixes), default=_by_suffix(path))
    if form is None:
        raise BadInputError(f"Can't read {name}: it is no palette.", f"Palettes end in {_suffixes()}.")
    try:
        palette = form.read(data)
    except Unreadable as fault:
        where = f"{fault.where} of {name}" if fault.where else name
        hint = f"Read as: {form.title}. Correct the file, or save the palette again."
        raise BadInputError(f"Can't read {where}: {fault.reason}.", hint) from None
    return dataclasses.replace(palette, name=palette.name or path.stem)


def save_palette(path: Path, palette: Palette, *, replace: bool = False) -> Path:
    """Write a palette as what the suffix of `path` says. A file that is there is not replaced unless `replace`
    says so: returns the name used.

    Raises UsageError for a suffix that stands for no palette, or for one that can't hold this palette, and ExportError
    when the disk says no.
    """
    data = format_for(path).write(palette)
    target = files.output_path(path, replace=replace)
    with files.wrap_export_errors(target):
        files.write_atomic(target, data)
    return target


def has_palette_suffix(path: Path) -> bool:
    """Whether a file of this name would be a palette."""
    return _by_suffix(path) is not None


def format_for(path: Path) -> PaletteFormat:
    """The format that the suffix of `path` stands for. Raises UsageError."""
    form = _by_suffix(path)
    if form is None:
        raise UsageError(f"Palettes are not saved as {path.name!r}.", f"Let the name end in one of: {_suffixes()}.")
    return form


def _by_suffix(path: Path) -> PaletteFormat | None:
    return next((form for form in palette_formats() if path.suffix.lower() in form.suffixes), None)


def _suffixes() -> str:
    return ", ".join(dict.fromkeys(suffix for form in palette_formats() for suffix in form.suffixes))


def _read(path: Path, name: str) -> bytes:
    try:
        data = read_bytes(SourceFile(str(path), name, (), "", frozenset(), 0, 0), _LARGEST_FILE + 1)
    except FileNotFoundError:
        raise BadInputError(f"There is no palette {escape_unprintable(str(path))!r}.", "Check its name.") from None
    except IsADirectoryError:
        raise BadInputError(f"{name} is a folder.", "Name a palette file.") from None
    except OSError as error:
        raise BadInputError(
            f"{name} can't be opened: {error.strerror}.", "Check its permissions and its drive."
        ) from None
    except UnreadableFile as refused:
        raise BadInputError(f"Can't read {name}: {refused.reason}.", "Name a palette file.") from None
    if len(data) > _LARGEST_FILE:
        title = f"Can't read {name}: it has more than {_LARGEST_FILE >> 20} MB, which is no palette any more."
        raise BadInputError(title, f"Palettes end in {_suffixes()}.")
    return data
