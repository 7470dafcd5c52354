"""Store the window's import settings per set of opened paths: a JSON file per set in the studio's home.

The command line ignores stored settings: commands import by their flags, and report differing settings.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from studio.core import files, paths, records
from studio.core.config import Value
from studio.core.errors import BadInputError, UsageError
from studio.core.names import escape_unprintable
from studio.data.options import ImportOptions

_VERSION = 1
_DAMAGED = ".damaged"  # suffix for a copy of a damaged file


class StoredOptionsError(BadInputError):
    """A damaged or unreadable file of stored import settings, or a newer version's file."""


class _OptionsFile(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    paths: list[str]  # for human readers of the file
    options: dict[str, Value]  # options that differ from the defaults


def options_path(sources: Sequence[Path]) -> Path:
    """Return the file for a set of imported paths. The order of `sources` doesn't matter."""
    full = sorted(os.path.normcase(os.path.abspath(path)) for path in sources)  # noqa: PTH100 - as in resolve_roots
    digest = hashlib.sha256(b"\0".join(map(os.fsencode, full))).hexdigest()[:16]
    return paths.import_settings() / f"{files.safe_name(Path(full[0]).name)}-{digest}.json"


def read_options(sources: Sequence[Path]) -> ImportOptions:
    """Read the settings of the window's last import of the paths `sources`; defaults if unknown.

    Raises StoredOptionsError.
    """
    path = options_path(sources)
    try:
        parsed = records.parse(path.read_bytes(), _OptionsFile)
        if parsed.version > _VERSION:
            raise StoredOptionsError(_title(sources), f"{path} was written by a newer version of the studio.")
        return ImportOptions.from_json(ImportOptions().to_json() | parsed.options)
    except FileNotFoundError:
        return ImportOptions()
    except OSError as error:
        hint = f"{path}: {error.strerror or error}. Check the file's permissions."
        raise StoredOptionsError(_title(sources), hint) from None
    except (UsageError, ValueError) as error:
        reason = error.title.rstrip(".") if isinstance(error, UsageError) else error
        hint = f"{path} is damaged: {reason}. Repair or delete the file."
        raise StoredOptionsError(_title(sources), hint) from None


def store_options(sources: Sequence[Path], options: ImportOptions) -> None:
    """Store import settings for the paths `sources`; default settings need no file. Raises OSError.

    Keeps a damaged file beside the new file, with the suffix '.damaged'.
    """
    path = options_path(sources)
    try:
        if read_options(sources) == options:
            return
    except StoredOptionsError:
        with contextlib.suppress(FileNotFoundError):
            path.replace(path.with_suffix(_DAMAGED))
    if not options.changed():
        path.unlink(missing_ok=True)
        return
    contents = _OptionsFile(_VERSION, [str(source) for source in sources], options.changed())
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, json.dumps(msgspec.to_builtins(contents), indent=1).encode())


def _title(sources: Sequence[Path]) -> str:
    return f"The import settings of {escape_unprintable(sources[0].name)!r} can't be read."
