"""How the folder of a new run is made: completely, or not at all. No torch here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from studio.core import files, paths
from studio.core.errors import RunError
from studio.engine.runs.folder import (
    LOCK_FILES,
    PROGRESS_FILE,
    RECORD_FILE,
    START_MARK,
    STYLE_FILE,
    RunDir,
    wrap_write_errors,
)

_START_MARK_TEXT = b"Sprite Training Studio makes a run here. What a start that was killed has left is removed.\n"


@contextlib.contextmanager
def new_run(run: RunDir) -> Iterator[contextlib.ExitStack]:
    """Make the run's folder and take its lock; the block fills it and ends with `run.create`.

    Yields a stack of what is undone when the block fails, to which it may add. A start that fails leaves nothing; one
    that is killed leaves a folder that the next start takes. Raises RunError when something else is there or nothing
    can be written.
    """
    with wrap_write_errors(run.path):
        is_new = not run.path.exists()
    _require_free(run.path)  # before there is a lock in what may be anybody's folder
    with run.held_on_success(is_new=True) as on_error:
        _require_free(run.path)
        with wrap_write_errors(run.path):
            _remove_start_files(run)
        _require_free(run.path)  # a killed start's folder may hold a file of the user's
        on_error.callback(_undo_start, run, is_new=is_new)
        with wrap_write_errors(run.path):
            files.write_atomic(run.path / START_MARK, _START_MARK_TEXT)
            run.samples.mkdir()
            run.checkpoints.mkdir()
        yield on_error
        with wrap_write_errors(run.path):
            (run.path / START_MARK).unlink()


def remove_failed_starts() -> None:
    """Remove what killed starts have left in the studio's own folder of runs."""
    folders: list[Path] = []
    with contextlib.suppress(OSError):  # whoever needs a folder that can't be read says so
        folders += [path.parent for path in paths.runs().glob(f"*/{START_MARK}")]
    for run in map(RunDir, folders):
        with contextlib.suppress(OSError, RunError):  # it is being made, or is not ours
            if _has_start_mark(run.path):  # before there is a lock in what may be anybody's folder
                run.acquire(wait_s=0.0)
                if _has_start_mark(run.path):
                    _undo_start(run, is_new=True)
        run.release()


def _require_free(path: Path) -> None:
    """Raise RunError unless the folder is missing, empty, or left by a start that was killed."""
    with wrap_write_errors(path):
        found = list(path.iterdir()) if path.exists() else []
        others = [entry for entry in found if entry.name not in LOCK_FILES and not files.is_temporary(entry)]
        is_free = not others or _has_start_mark(path)
    if not is_free:
        raise RunError(f"{path} is not empty.", "Choose another folder for the run, or resume the run in it.")


def _has_start_mark(path: Path) -> bool:
    """Whether this folder is that of a start, under way or killed. Raises OSError."""
    mark = path / START_MARK
    return not (path / RECORD_FILE).exists() and mark.is_file() and mark.read_bytes() == _START_MARK_TEXT


def _remove_start_files(run: RunDir) -> None:
    """Remove what a start writes, and nothing else: a folder that holds a user's file stays. Raises OSError."""
    for name in (RECORD_FILE, PROGRESS_FILE, STYLE_FILE, run.data.name, run.start.name):
        (run.path / name).unlink(missing_ok=True)
    for folder in (run.samples, run.checkpoints):
        with contextlib.suppress(OSError):  # it is not empty
            folder.rmdir()
    files.sweep_temporaries(run.path)
    (run.path / START_MARK).unlink(missing_ok=True)


def _undo_start(run: RunDir, *, is_new: bool) -> None:
    """Remove what a start has written, and a new folder if nothing else is in it; release the lock."""
    with contextlib.suppress(OSError):  # the error that ended the start is the one to report
        _remove_start_files(run)
        run.release()
        if is_new:
            for name in LOCK_FILES:
                (run.path / name).unlink(missing_ok=True)
            run.path.rmdir()
