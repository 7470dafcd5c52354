"""Write files so that a crash leaves either the old or the new contents; make file names that every system accepts."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, TypeVar

from studio.core.errors import ExportError, os_error_reason
from studio.core.file_systems import TEMPORARY, flush
from studio.core.names import nfc

_OURS = re.compile(rf"{re.escape(TEMPORARY)}[0-9a-f]{{12}}([.-].*)?")
_LONGEST_NAME_BYTES = 200  # most systems allow 255; leaves room for suffixes and numbers
_STALE_S = 3600.0  # older temporaries are left over from a crash
_IN_USE = frozenset({5, 32, 33})  # Windows error codes: another program has the file open
_RETRY_S, _PAUSE_S = 3.0, 0.05  # duration of the retries, and pause between two
# Windows takes these names for devices, also with a suffix, and with blanks before the suffix.
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[\d¹²³])\s*(\..*)?$", re.IGNORECASE)

T = TypeVar("T")


@contextlib.contextmanager
def atomic_path(target: Path, *, durable: bool = True, create_folder: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `target`; at the end of the block, its file or folder replaces `target`.

    With `durable`, data are flushed to disk before the rename and the folder after it; otherwise a power failure may
    lose the file. After an error the temporary is removed and `target` is unchanged. A target folder must not exist
    yet. create_folder: create the missing folder of `target`. Raises OSError.
    """
    if create_folder:
        target.parent.mkdir(parents=True, exist_ok=True)
    _sweep_stale(target.parent)
    temporary = _temporary_beside(target)
    try:
        yield temporary
        if durable:
            _flush_all(temporary)
        _replace(temporary, target)
        if durable:
            _flush_folder(target.parent)
    finally:
        remove(temporary)  # no-op after a successful rename


def write_atomic(target: Path, data: bytes) -> None:
    """Write `data` to `target` through a temporary file. Raises OSError; `target` is then unchanged."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(data)


@contextlib.contextmanager
def wrap_export_errors(target: Path) -> Iterator[None]:
    """Convert an OSError in the block into an ExportError that names the file."""
    try:
        yield
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError) and not target.parent.is_dir()
        hint = "That folder does not exist." if is_missing else "Choose another folder or free some space."
        raise ExportError(f"Can't write {target}: {os_error_reason(error, target)}.", hint) from error


@contextlib.contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Yield a path with `target`'s name in a temporary folder, where an export is checked before `publish` moves it.

    The temporary folder lies beside `target` and is removed at the end of the block. Raises ExportError.
    """
    folder = _temporary_beside(target)
    with wrap_export_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep_stale(target.parent)
        folder.mkdir()
    try:
        yield folder / target.name
    finally:
        _discard(folder)


def final_folder(path: Path) -> Path:
    """Return the folder of a file, or the folder into which `publish` moves a file that is still `staged`."""
    folder = path.absolute().parent
    return folder.parent if folder.name.startswith(TEMPORARY) else folder


def publish(paths: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """Move staged files into `folder`; return their new paths.

    paths: the main file first; it moves last. After an error, `folder` contains no moved file. Raises ExportError, also
    if another program has created a file with this name.
    """
    targets = tuple(folder / path.name for path in paths)
    for target in targets:
        if os.path.lexists(target):
            raise ExportError(f"{target} was written by another program meanwhile.", "Export again.")
    with contextlib.ExitStack() as undo_on_error:
        for path, target in reversed(list(zip(paths, targets, strict=True))):
            with wrap_export_errors(target):
                _replace(path, target)
            undo_on_error.callback(_discard, target)
        undo_on_error.pop_all()
    _flush_folder(folder)
    return targets


def export_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files, all or none. Raises ExportError.

    First writes the new files and backups of existing files, then replaces the files; an error restores the backups.
    """
    with contextlib.ExitStack() as temporaries, contextlib.ExitStack() as undo_on_error:
        written: dict[Path, Path] = {}
        for target, data in contents.items():
            with wrap_export_errors(target):
                written[target] = _write_beside(target, data, temporaries)
                if target.is_file():
                    before = _write_beside(target, target.read_bytes(), temporaries)
                    undo_on_error.callback(_put_back, before, target)
                elif not os.path.lexists(target):  # never remove a folder of that name
                    undo_on_error.callback(_discard, target)
        for target, temporary in written.items():
            with wrap_export_errors(target):
                _replace(temporary, target)
        undo_on_error.pop_all()
    for folder in {target.parent for target in contents}:
        _flush_folder(folder)


def _write_beside(target: Path, data: bytes, temporaries: contextlib.ExitStack) -> Path:
    """Write a temporary file beside `target`, flushed to disk and removed when the stack closes. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep_stale(target.parent)
    temporary = _temporary_beside(target)
    temporaries.callback(_discard, temporary)
    temporary.write_bytes(data)
    flush(temporary)
    return temporary


def _put_back(before: Path, target: Path) -> None:
    """Replace `target` by its backup `before`; ignore errors."""
    with contextlib.suppress(OSError):
        _replace(before, target)


def _discard(path: Path) -> None:
    """Remove a file or folder; ignore errors."""
    with contextlib.suppress(OSError):
        remove(path)


def append_line(target: Path, line: str) -> None:
    """Append a line to a text file, created if missing. Raises OSError; the file then holds no part of the line."""
    size_bytes = target.stat().st_size if target.exists() else 0
    try:
        with target.open("ab") as lines:
            lines.write(f"{line}\n".encode())
    except OSError:
        if target.exists():
            os.truncate(target, size_bytes)
        raise


def sweep_temporaries(folder: Path) -> None:
    """Remove the temporary files that a crash left directly inside `folder`."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if is_temporary(path):
            remove(path)


def is_temporary(path: Path) -> bool:
    """Return whether the path has a name of the studio's temporary files."""
    return _OURS.fullmatch(path.name) is not None


@lru_cache(maxsize=64)
def _sweep_stale(folder: Path) -> None:
    """Remove old temporary files and folders left in `folder` by killed processes; runs once per folder."""
    for path in folder.glob(f"{TEMPORARY}*"):
        with contextlib.suppress(OSError):  # removed by another process, or no permission
            if is_temporary(path) and not path.is_symlink() and time.time() - path.stat().st_mtime > _STALE_S:
                remove(path)


def remove(path: Path) -> Path | None:
    """Remove a file or folder, if it exists; return the present path of a partly removed folder, else None.

    A folder is first renamed to a temporary name: a crash leaves no damaged folder under the old name.
    """
    if path.is_dir() and not path.is_symlink():
        renamed = path
        with contextlib.suppress(OSError):  # Windows can't rename a folder with an open file
            renamed = path.rename(_temporary_beside(path))
        shutil.rmtree(renamed, ignore_errors=True)
        return renamed if renamed.exists() else None
    retry_in_use(lambda: path.unlink(missing_ok=True))
    return None


def retry_in_use(work: Callable[[], T]) -> T:
    """Call `work` and return its result; on Windows, retry for some seconds while another program has the file open.

    Virus scanners, search indexers and file managers open files for a moment. Raises what `work` raises.
    """
    end_s = time.monotonic() + _RETRY_S
    while True:
        try:
            return work()
        except OSError as error:
            if getattr(error, "winerror", None) not in _IN_USE or time.monotonic() > end_s:
                raise
        time.sleep(_PAUSE_S)


def read_into(file: BinaryIO, start: int, out: memoryview) -> int:
    """Fill `out` with the bytes of a file from offset `start`; return the number of bytes read.

    A network drive may return fewer bytes than the file has: retry the rest for some seconds. Raises OSError.
    """
    done, end_s = 0, time.monotonic() + _RETRY_S
    while done < len(out):
        file.seek(start + done)
        count = file.readinto(out[done:])  # type: ignore[attr-defined]  # BinaryIO has no readinto
        done += count
        if not count:
            if time.monotonic() > end_s:
                break
            time.sleep(_PAUSE_S)
    return done


def safe_name(text: str, fallback: str = "unnamed") -> str:
    """Return a file name of at most 80 characters and 200 bytes that is valid on every system and has no folders."""
    name = re.sub(r'[\x00-\x1f\x7f<>:"/\\|?*\ud800-\udfff]+', "_", nfc(text)).strip(" .")[:80]
    name = name.encode()[:200].decode(errors="ignore").strip(" .")
    if _RESERVED.match(name):
        name = f"_{name}"
    return name or fallback


def output_name(text: str, fallback: str = "unnamed") -> str:
    """Return a safe file name with hyphens for blanks, which break paths in shells and build scripts of games."""
    return re.sub(r"\s+", "-", safe_name(text, fallback))


def free_path(path: Path, beside: Sequence[str] = (), endings: Sequence[str] = ("",)) -> Path:
    """Return the first unused path: `path`, 'name-2.ext', 'name-3.ext', ... Suffixes in `beside` must be unused too.

    The number follows a blank, as in 'my name 2.ext', if the name contains blanks. endings: the files to write, by what
    follows the stem: with '-down', 'name-down.ext' must be unused instead of `path`.
    """
    candidate, number, gap = path, 2, " " if " " in path.stem else "-"
    ends = [f"{ending}{suffix}" for ending in endings for suffix in (path.suffix, *beside)]
    while any(os.path.lexists(candidate.with_name(candidate.stem + end)) for end in ends):
        candidate = path.with_name(f"{path.stem}{gap}{number}{path.suffix}")
        number += 1
    return candidate


def why_unwritable(target: Path) -> str:
    """Return the reason why no file can be written to `target`, as a sentence; '' if a file can."""
    if len(os.fsencode(target.name)) > _LONGEST_NAME_BYTES:
        return "The name is too long: shorten it."
    folder = target.parent
    while not os.path.lexists(folder):
        if folder.parent == folder:
            return f"Drive {folder} does not exist: choose another folder."
        folder = folder.parent
    if not folder.is_dir():
        return f"{folder} is not a folder: choose another folder."
    can_write = os.access(folder, os.W_OK | os.X_OK)
    return "" if can_write else f"You may not write in {folder}: choose another folder."


def output_path(path: Path, *, replace: bool) -> Path:
    """Return `path` if `replace` (the user agreed to replace the file), else a free path, as `free_path` does."""
    return path if replace else free_path(path)


def _replace(source: Path, target: Path) -> None:
    """Rename `source` to `target`, replacing a file of that name. Raises OSError."""
    retry_in_use(lambda: source.replace(target))


def _temporary_beside(path: Path) -> Path:
    return path.with_name(f"{TEMPORARY}{uuid.uuid4().hex[:12]}{path.suffix}")


def _flush_all(path: Path) -> None:
    """Flush a file, or a folder with its contents, to disk. Raises OSError."""
    if not path.is_dir():
        flush(path)
        return
    for inside in path.iterdir():
        _flush_all(inside)
    _flush_folder(path)


def _flush_folder(path: Path) -> None:
    """Flush a folder to disk if the file system supports it; without, renames still take effect."""
    with contextlib.suppress(OSError):
        flush(path)
