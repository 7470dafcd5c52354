"""Create a new run's folder, completely or not at all: a start mark stays in the folder until the run is complete."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from studio.core import files, paths
from studio.core.errors import RunError
from studio.core.file_systems import TEMPORARY
from studio.engine.runs import folder
from studio.engine.runs.folder import LOCK_FILES, START_MARK, RunDir, wrap_write_errors

# Old folders hold this exact text: don't change it.
_START_MARK_TEXT = b"Sprite Training Studio makes a run here. What a start that was killed has left is removed.\n"


@contextlib.contextmanager
def new_run(run: RunDir) -> Iterator[contextlib.ExitStack]:
    """Create a run folder for a `with` block to fill; delete the run's files if the block fails.

    The block holds the run's lock and must end with `run.create`; after the block, the process keeps the lock. Yields
    an ExitStack for callbacks on failure. Reuses a folder left by a killed process. Raises RunError for a folder with
    other content and for an unwritable folder.
    """
    with wrap_write_errors(run.path):
        is_new = not run.path.exists()
    _require_free(run.path)  # check first: the lock file must not appear in a user's folder
    with run.held_on_success(is_new=True) as on_error:
        _require_free(run.path)
        with wrap_write_errors(run.path):
            _remove_start_files(run)
        _require_free(run.path)  # a killed start's folder may also hold a user's file
        on_error.callback(_undo_start, run, is_new=is_new)
        with wrap_write_errors(run.path):
            files.write_atomic(run.path / START_MARK, _START_MARK_TEXT)
            run.samples.mkdir()
            run.checkpoints.mkdir()
            _try_longest_path(run)
        yield on_error
        with wrap_write_errors(run.path):
            (run.path / START_MARK).unlink()


def remove_failed_starts() -> None:
    """Delete half-created run folders of killed processes from the runs folders."""
    folders: list[Path] = []
    for parent in paths.runs_folders():
        with contextlib.suppress(OSError):  # listing runs reports an unreadable folder
            folders += [path.parent for path in parent.glob(f"*/{START_MARK}")]
    for run in map(RunDir, folders):
        with contextlib.suppress(OSError, RunError):  # another process is creating the run, or denies access
            if _has_start_mark(run.path):  # check first: the lock file must not appear in a user's folder
                run.acquire(wait_s=0.0)
                if _has_start_mark(run.path):
                    _undo_start(run, is_new=True)
        run.release()


def _require_free(path: Path) -> None:
    """Raise RunError unless the folder is missing, empty, or left by a killed creation."""
    with wrap_write_errors(path):
        found = list(path.iterdir()) if path.exists() else []
        others = [entry for entry in found if entry.name not in LOCK_FILES and not files.is_temporary(entry)]
        is_free = not others or _has_start_mark(path)
    if not is_free:
        raise RunError(f"{path} is not empty.", "Choose another folder for the run, or resume the run in it.")


def _has_start_mark(path: Path) -> bool:
    """Return whether the folder holds a run in creation, or left by a killed creation. Raises OSError."""
    mark = path / START_MARK
    return not (path / folder.RECORD_FILE).exists() and mark.is_file() and mark.read_bytes() == _START_MARK_TEXT


def _try_longest_path(run: RunDir) -> None:
    """Write and delete a file with a checkpoint's longest path. Raises OSError, for a path too long for Windows."""
    trial = run.checkpoints / f"{TEMPORARY}{'0' * 12}"
    try:
        trial.mkdir()
        (trial / "optimizer.safetensors").touch()
    finally:
        files.remove(trial)


def _remove_start_files(run: RunDir) -> None:
    """Delete the files written while creating a run, and nothing else: a user's files stay. Raises OSError."""
    for name in (folder.RECORD_FILE, folder.PROGRESS_FILE, folder.STYLE_FILE, run.data.name, run.start.name):
        (run.path / name).unlink(missing_ok=True)
    for inner in (run.samples, run.checkpoints):
        with contextlib.suppress(OSError):  # not empty
            inner.rmdir()
    files.sweep_temporaries(run.path)
    (run.path / START_MARK).unlink(missing_ok=True)


def _undo_start(run: RunDir, *, is_new: bool) -> None:
    """Delete a failed creation's files and release the lock. Deletes a new folder without other files."""
    with contextlib.suppress(OSError):  # the error that ended the start matters more
        _remove_start_files(run)
        run.release()
        if is_new:
            for name in LOCK_FILES:
                (run.path / name).unlink(missing_ok=True)
            run.path.rmdir()
